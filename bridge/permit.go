package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"codeexec/bridge/catalog"
	"codeexec/bridge/policy"
	"codeexec/bridge/upstream"
	"codeexec/hostfuncs"
)

// maxShownArguments is how many characters of a call's arguments a person is shown who is asked about it.
const maxShownArguments = 500

// permit decides whether a call may be made, as the owner's policy says. rule is what decided. The error is
// what the guest raises: nothing that the script says or does can get it around that.
func (h *guestHandler) permit(ctx context.Context, scope *runScope, server, tool string, args json.RawMessage) (rule string, err error) {
	decision, err := h.policy.Decide(policy.Call{Server: server, Tool: tool, Annotations: func() (policy.Annotations, error) {
		known, err := h.upstreams.Tool(ctx, server, tool)
		return policy.ParseAnnotations(known.Annotations), err
	}})
	if err != nil {
		return "", err
	}
	data := map[string]any{"server": server, "tool": tool, "rule": decision.Rule}
	deny := func(why string) error {
		message := fmt.Sprintf("%s.%s: %s by %s", server, tool, why, decision.Rule)
		if decision.Reason != "" {
			message += ": " + decision.Reason
		}
		return &hostfuncs.Error{Kind: kindPolicyError, Message: message, Data: data}
	}
	switch decision.Action {
	case policy.Allow:
	case policy.Ask:
		// Nobody should be asked about a tool that there isn't.
		if _, err := h.upstreams.Tool(ctx, server, tool); err != nil {
			return decision.Rule, err
		}
		ok, err := h.approvals.get(ctx, scope, server, tool, args)
		switch {
		case ctx.Err() != nil:
			return decision.Rule, context.Cause(ctx)
		case errors.Is(err, errCantAsk):
			return decision.Rule, deny("needs the user's consent, for which this client can't ask,")
		case err != nil:
			return decision.Rule, deny(fmt.Sprintf("asking the user failed (%v); denied", err))
		case !ok:
			return decision.Rule, deny("the user has not allowed it; asked for")
		}
	default:
		return decision.Rule, deny("denied")
	}
	if limit := h.policy.Limits(server).Calls; limit > 0 && !scope.withinServerLimit(server, limit) {
		return decision.Rule, &hostfuncs.Error{
			Kind:    kindLimitExceeded,
			Message: fmt.Sprintf("%s.%s: a run may make at most %d calls to this server", server, tool, limit),
			Data:    map[string]any{"server": server, "tool": tool, "limit": limit},
		}
	}
	return decision.Rule, nil
}

// denied reports whether the policy denies all calls of a tool, so that nobody need be told of it. Calls are
// decided on by permit.
func (h *guestHandler) denied(server string, tool catalog.Tool) bool {
	decision, err := h.policy.Decide(policy.Call{Server: server, Tool: tool.Name, Annotations: func() (policy.Annotations, error) {
		return policy.ParseAnnotations(tool.Annotations), nil
	}})
	return err == nil && decision.Action == policy.Deny
}

// approvals remember what people have answered. The zero value is ready for use.
type approvals struct {
	mu      sync.Mutex
	answers map[approvalKey]*approval
}

// An approval belongs to one client: nobody's consent counts for somebody else.
type approvalKey struct {
	client       any
	session      sessionKey
	server, tool string
}

type approval struct {
	asking chan struct{} // a lock that a context can leave
	always answerKind    // what holds for the rest of the session; empty: ask
}

// An answerKind is what a person chooses.
type answerKind string

const (
	answerOnce   answerKind = "once"
	answerAlways answerKind = "for this session"
	answerNo     answerKind = "no"
	answerNever  answerKind = "not in this session"
)

// maxApprovals bounds what is remembered; above it, everybody is asked anew.
const maxApprovals = 1000

// errCantAsk says that there is nobody to be asked.
var errCantAsk = errors.New("the client can't be asked")

// get asks whether a call is allowed, unless it is known. One question is asked at a time about one tool.
func (a *approvals) get(ctx context.Context, scope *runScope, server, tool string, args json.RawMessage) (bool, error) {
	client := scope.client
	if client == nil {
		return false, errCantAsk
	}
	if has := client.Capabilities(); has == nil || has.Elicitation == nil {
		return false, errCantAsk
	}
	key := approvalKey{client.Identity(), sessionKey{scope.owner, scope.session}, server, tool}
	a.mu.Lock()
	if len(a.answers) >= maxApprovals {
		a.answers = nil
	}
	if a.answers == nil {
		a.answers = make(map[approvalKey]*approval)
	}
	known := a.answers[key]
	if known == nil {
		known = &approval{asking: make(chan struct{}, 1)}
		a.answers[key] = known
	}
	a.mu.Unlock()

	select {
	case known.asking <- struct{}{}:
		defer func() { <-known.asking }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if known.always != "" {
		return known.always == answerAlways, nil
	}
	answer, err := askPermission(ctx, client, server, tool, args)
	if err != nil {
		return false, err
	}
	if answer == answerAlways || answer == answerNever {
		known.always = answer
	}
	return answer == answerOnce || answer == answerAlways, nil
}

// forget forgets the answers of a session that starts anew.
func (a *approvals) forget(owner, session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.answers {
		if key.session == (sessionKey{owner, session}) {
			delete(a.answers, key)
		}
	}
}

func askPermission(ctx context.Context, client upstream.Client, server, tool string, args json.RawMessage) (answerKind, error) {
	params, err := json.Marshal(object{
		"mode": "form",
		"message": fmt.Sprintf("A script wants to call the tool %q of the server %q with these arguments: %s",
			firstLine(tool, 200), firstLine(server, 200), firstLine(string(args), maxShownArguments)),
		"requestedSchema": object{
			"type": "object",
			"properties": object{
				"allow": object{
					"type": "string", "title": "Allow it?",
					"enum": []answerKind{answerOnce, answerAlways, answerNo, answerNever},
				},
			},
			"required": []string{"allow"},
		},
	})
	if err != nil {
		return "", err
	}
	raw, err := client.Request(ctx, "codeexec", "elicitation/create", params)
	if err != nil {
		return "", err
	}
	var result struct {
		Action  string `json:"action"`
		Content struct {
			Allow answerKind `json:"allow"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", err
	}
	if result.Action != "accept" {
		return answerNo, nil // also if the question was only closed
	}
	return result.Content.Allow, nil
}
