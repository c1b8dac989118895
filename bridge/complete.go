package bridge

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/suggest"
	"codeexec/bridge/upstream"
)

// maxCompletions is how many values the protocol lets an answer have.
const maxCompletions = 100

// complete proposes values for arguments of prompts and for variables of resource templates
// (https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/completion).
func (s *Server) complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	var candidates []string
	switch ref := req.Params.Ref; (completable{ref.Name, ref.URI, req.Params.Argument.Name}) {
	case completable{prompt: exploreServerPrompt, argument: "server"}, completable{template: stubsTemplate, argument: "server"}:
		for _, info := range s.bridge.upstreams.Servers() {
			if info.Status != upstream.StatusDisabled {
				candidates = append(candidates, info.Name)
			}
		}
	case completable{prompt: writeScriptPrompt, argument: "session"}, completable{template: sessionTemplate, argument: "session"}:
		for _, info := range s.bridge.Sessions(ownerOf(req)) {
			candidates = append(candidates, info.Name)
		}
	case completable{template: runTemplate, argument: "run"}:
		for _, info := range s.bridge.Runs(ownerOf(req)) {
			candidates = append(candidates, info.ID)
		}
	case completable{template: runTemplate, argument: "text"}:
		candidates = []string{textStdout, textStderr, textResult, textTraceback}
	}
	values := matching(candidates, req.Params.Argument.Value)
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{
		Values:  values[:min(len(values), maxCompletions)],
		Total:   len(values),
		HasMore: len(values) > maxCompletions,
	}}, nil
}

// completable is what values can be proposed for: an argument of a prompt, or a variable of a template.
type completable struct{ prompt, template, argument string }

// matching returns those of names that somebody who has typed text may want: those that begin with it, those
// that have it elsewhere, and, if there are none, those that are like it. The rest is as in names.
func matching(names []string, text string) []string {
	text = strings.ToLower(text)
	begin, within := []string{}, []string{}
	for _, name := range names {
		switch at := strings.Index(strings.ToLower(name), text); {
		case at == 0:
			begin = append(begin, name)
		case at > 0:
			within = append(within, name)
		}
	}
	if len(begin)+len(within) == 0 {
		return append(begin, suggest.Names(text, names)...)
	}
	return slices.Concat(begin, within)
}
