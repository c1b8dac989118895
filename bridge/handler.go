package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/audit"
	"codeexec/bridge/catalog"
	"codeexec/bridge/policy"
	"codeexec/bridge/upstream"
	"codeexec/hostfuncs"
	"codeexec/memory"
)

// upstreams are the MCP servers that scripts may call. *[upstream.Manager] is one.
type upstreams interface {
	Servers() []upstream.Info
	Known(server string) ([]catalog.Tool, bool)
	Tools(ctx context.Context, server string) ([]catalog.Tool, error)
	Refresh(ctx context.Context, server string) ([]catalog.Tool, error)
	Tool(ctx context.Context, server, tool string) (catalog.Tool, error)
	Call(ctx context.Context, server, tool string, args json.RawMessage) (*mcp.CallToolResult, error)
	Close(ctx context.Context) error
}

// The kinds of error that the guest turns into exceptions of the same name. Their data always holds
// "server" and, where it applies, "tool".
const (
	kindMCPError          = "MCPError"
	kindProtocolError     = "ProtocolError"
	kindServerUnavailable = "ServerUnavailable"
	kindCallTimeout       = "CallTimeout"
	kindLimitExceeded     = "LimitExceeded"
	kindPolicyError       = "PolicyError"
)

// A runScope is what one run may use and what it has used. It rides on the context of the run, and so
// reaches the handler with each of the run's requests.
type runScope struct {
	id      string // ties the audit log's lines together
	owner   string // of the session
	session string
	allowed []string        // the servers that may be called, sorted; all of the enabled ones where the request named none
	client  upstream.Client // who the run is made for; nil: nobody who can be asked
	calls   callLog
	warmer  warmer
}

type runScopeKey struct{}

func withScope(ctx context.Context, scope *runScope) context.Context {
	return context.WithValue(ctx, runScopeKey{}, scope)
}

// guestHandler answers the requests of the Python package mcp. One serves all sessions.
type guestHandler struct {
	upstreams    upstreams
	capabilities string
	logger       *slog.Logger
	index        toolIndex
	policy       *policy.Policy
	approvals    approvals
	audit        *audit.Log
	memory       memory.Store // nil: none
	tools        *toolFile    // nil: none
	observer     Observer
	drawing      chan struct{} // holds a token for each chart that is being drawn
}

// Handle implements [hostfuncs.Handler].
func (h *guestHandler) Handle(ctx context.Context, req hostfuncs.Request) (hostfuncs.Response, error) {
	scope, ok := ctx.Value(runScopeKey{}).(*runScope)
	if !ok {
		return hostfuncs.Response{}, fmt.Errorf("%s outside of a run", req.Op)
	}
	switch req.Op {
	case "servers.list":
		return respond(h.listServers())
	case "tools.list":
		return h.listTools(ctx, scope, req.Params)
	case "tools.search":
		return h.searchTools(ctx, req.Params)
	case "tools.call":
		return h.callTool(ctx, scope, req.Params)
	case "text.capabilities":
		return respond(h.capabilities)
	case "chart.render":
		return h.renderChart(ctx, req)
	}
	if strings.HasPrefix(req.Op, "memory.") {
		return h.useMemory(ctx, req.Op, req.Params)
	}
	if strings.HasPrefix(req.Op, "saved.") {
		return h.useSaved(ctx, req.Op, req.Params)
	}
	return hostfuncs.Response{}, unsupported(req.Op)
}

func unsupported(op string) error {
	return &hostfuncs.Error{
		Kind:    hostfuncs.KindUnsupported,
		Message: fmt.Sprintf("this build has no operation %q", op),
	}
}

func respond(v any) (hostfuncs.Response, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // it would make some texts six times as long
	err := encoder.Encode(v)
	return hostfuncs.Response{Value: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}, err
}

// maxCallTimeout bounds the time limit that a script gives a call; the run's own is far below it.
const maxCallTimeout = 24 * time.Hour

// errCallTimeout is the cause of the end of a call's own time limit.
var errCallTimeout = errors.New("the call's time limit")

func (h *guestHandler) callTool(ctx context.Context, scope *runScope, params json.RawMessage) (hostfuncs.Response, error) {
	var p struct {
		Server    string          `json:"server"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
		Timeout   *float64        `json:"timeout"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return hostfuncs.Response{}, fmt.Errorf("tools.call: %w", err)
	}
	if len(p.Arguments) == 0 || string(p.Arguments) == "null" {
		p.Arguments = json.RawMessage("{}")
	}
	started := time.Now()
	server, known, rule := p.Server, "", ""
	finish := func(resp hostfuncs.Response, outcome CallOutcome, err error) (hostfuncs.Response, error) {
		took := time.Since(started)
		scope.calls.end(p.Server, p.Tool, outcome, took)
		h.logger.InfoContext(ctx, "tool call", "session", scope.session, "server", server, "tool", p.Tool, "outcome", outcome, "duration", took)
		size := len(resp.Value)
		for _, a := range resp.Attachments {
			size += len(a)
		}
		h.observer.CallEnded(known, outcome, took)
		h.audit.Call(audit.Call{
			Run: scope.id, Client: scope.owner, Session: scope.session, Server: server, Tool: p.Tool, Start: started, Duration: took,
			Outcome: string(outcome), Rule: rule, Arguments: p.Arguments, Result: size,
		})
		return resp, err
	}
	if !scope.calls.begin() {
		return finish(hostfuncs.Response{}, CallRefused, &hostfuncs.Error{
			Kind:    kindLimitExceeded,
			Message: fmt.Sprintf("%s.%s: a run may make at most %d tool calls; make the rest in another run", p.Server, p.Tool, scope.calls.limit),
			Data:    map[string]any{"server": p.Server, "tool": p.Tool, "limit": scope.calls.limit},
		})
	}
	info, err := h.allowedServer(scope, p.Server, p.Tool)
	if err != nil {
		return finish(hostfuncs.Response{}, CallRefused, err)
	}
	server, known = info.Name, info.Name
	if rule, err = h.permit(ctx, scope, info.Name, p.Tool, p.Arguments); err != nil {
		if refused, ok := errors.AsType[*hostfuncs.Error](err); ok {
			return finish(hostfuncs.Response{}, CallRefused, refused)
		}
		if ctx.Err() != nil {
			return finish(hostfuncs.Response{}, CallCancelled, context.Cause(ctx))
		}
		guestErr, outcome := guestError(err, info.Name, p.Tool)
		return finish(hostfuncs.Response{}, outcome, guestErr)
	}
	callCtx := ctx
	if limit := h.policy.Limits(info.Name).PerCall.Seconds(); limit > 0 && (p.Timeout == nil || *p.Timeout > limit) {
		p.Timeout = &limit
	}
	if p.Timeout != nil {
		limit := time.Duration(min(max(*p.Timeout, 0), maxCallTimeout.Seconds()) * float64(time.Second))
		var cancel context.CancelFunc
		callCtx, cancel = context.WithTimeoutCause(ctx, limit, errCallTimeout)
		defer cancel()
	}
	result, err := h.upstreams.Call(callCtx, info.Name, p.Tool, p.Arguments)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return finish(hostfuncs.Response{}, CallCancelled, context.Cause(ctx))
	case context.Cause(callCtx) == errCallTimeout:
		return finish(hostfuncs.Response{}, CallTimeout, &hostfuncs.Error{
			Kind:    kindCallTimeout,
			Message: fmt.Sprintf("%s.%s: no answer within %v s", info.Name, p.Tool, *p.Timeout),
			Data:    map[string]any{"server": info.Name, "tool": p.Tool, "timeout": *p.Timeout},
		})
	default:
		guestErr, outcome := guestError(err, info.Name, p.Tool)
		return finish(hostfuncs.Response{}, outcome, guestErr)
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return finish(hostfuncs.Response{}, CallFailed, err)
	}
	resp, isError, err := guestResult(raw)
	switch {
	case err != nil:
		return finish(hostfuncs.Response{}, CallFailed, &hostfuncs.Error{
			Kind:    kindProtocolError,
			Message: fmt.Sprintf("%s.%s: the server's answer is not a tool result: %v", info.Name, p.Tool, err),
			Data:    map[string]any{"server": info.Name, "tool": p.Tool},
		})
	case isError:
		return finish(resp, CallToolError, nil)
	}
	return finish(resp, CallOK, nil)
}

// guestError turns an error of [upstream.Manager] into what the guest raises, and into the call's outcome.
func guestError(err error, server, tool string) (*hostfuncs.Error, CallOutcome) {
	data := map[string]any{"server": server}
	where := server
	if tool != "" {
		data["tool"] = tool
		where += "." + tool
	}
	out := &hostfuncs.Error{Message: where + ": " + withoutNames(err.Error(), server, tool), Data: data}
	if _, ok := errors.AsType[*upstream.UnavailableError](err); ok {
		out.Kind = kindServerUnavailable
		return out, CallUnavailable
	}
	if protocol, ok := errors.AsType[*upstream.ProtocolError](err); ok {
		out.Kind = kindProtocolError
		maps.Copy(data, map[string]any{"code": protocol.Code, "data": protocol.Data})
		return out, CallFailed
	}
	if _, ok := errors.AsType[*upstream.TooLargeError](err); ok {
		out.Kind = kindLimitExceeded
		return out, CallFailed
	}
	if _, ok := errors.AsType[*upstream.TimeoutError](err); ok {
		out.Kind = kindCallTimeout
		return out, CallTimeout
	}
	out.Kind = kindMCPError
	return out, CallFailed
}

// withoutNames returns a message of package upstream without the names that it begins with.
func withoutNames(message, server, tool string) string {
	rest, ok := strings.CutPrefix(message, fmt.Sprintf("server %q", server))
	if !ok {
		return message
	}
	rest = strings.TrimPrefix(rest, fmt.Sprintf(", tool %q", tool))
	if what, ok := strings.CutPrefix(rest, ": "); ok {
		return what
	}
	return "the server" + rest
}
