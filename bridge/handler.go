package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/alias"
	"codeexec/bridge/upstream"
	"codeexec/hostfuncs"
)

// upstreams are the MCP servers that scripts may call. *[upstream.Manager] is one.
type upstreams interface {
	Servers() []upstream.Info
	Tools(ctx context.Context, server string) ([]*mcp.Tool, error)
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
)

// A runScope is what one run may use and what it has used. It rides on the context of the run, and so
// reaches the handler with each of the run's requests.
type runScope struct {
	session string
	allowed []string // the servers that may be called, sorted; all of the enabled ones where the request named none
	calls   callLog
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
	case "tools.call":
		return h.callTool(ctx, scope, req.Params)
	case "text.capabilities":
		return respond(h.capabilities)
	}
	return hostfuncs.Response{}, &hostfuncs.Error{
		Kind:    hostfuncs.KindUnsupported,
		Message: fmt.Sprintf("this build has no operation %q", req.Op),
	}
}

func respond(v any) (hostfuncs.Response, error) {
	value, err := json.Marshal(v)
	return hostfuncs.Response{Value: value}, err
}

// guestServer is what a script learns of a server without starting it.
type guestServer struct {
	Name        string `json:"name"`
	Alias       string `json:"alias"`
	Description string `json:"description"`
	Status      string `json:"status"`
	Transport   string `json:"transport"`
	Cwd         string `json:"cwd"`
	Error       string `json:"error,omitempty"`
	Tools       *int   `json:"tools,omitempty"`
}

func (h *guestHandler) listServers() []guestServer {
	servers := []guestServer{}
	for _, info := range h.upstreams.Servers() {
		s := guestServer{
			Name:        info.Name,
			Alias:       info.Alias,
			Description: info.Description,
			Status:      info.Status,
			Transport:   info.Transport,
			Cwd:         info.Cwd,
		}
		if info.Err != nil {
			s.Error = info.Err.Error()
		}
		if info.Tools >= 0 {
			s.Tools = &info.Tools
		}
		servers = append(servers, s)
	}
	return servers
}

// guestTool is a tool as a script sees it.
type guestTool struct {
	Name         string               `json:"name"`
	Alias        string               `json:"alias"`
	Title        string               `json:"title,omitempty"`
	Description  string               `json:"description"`
	InputSchema  any                  `json:"inputSchema"`
	OutputSchema any                  `json:"outputSchema,omitempty"`
	Annotations  *mcp.ToolAnnotations `json:"annotations,omitempty"`
}

func (h *guestHandler) listTools(ctx context.Context, scope *runScope, params json.RawMessage) (hostfuncs.Response, error) {
	var p struct {
		Server string `json:"server"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return hostfuncs.Response{}, fmt.Errorf("tools.list: %w", err)
	}
	info, err := h.allowedServer(scope, p.Server, "")
	if err != nil {
		return hostfuncs.Response{}, err
	}
	tools, err := h.upstreams.Tools(ctx, info.Name)
	if err != nil {
		guestErr, _ := guestError(err, info.Name, "")
		return hostfuncs.Response{}, guestErr
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	aliases := alias.Tools(names)
	list := make([]guestTool, len(tools))
	for i, t := range tools {
		list[i] = guestTool{
			Name:         t.Name,
			Alias:        aliases[t.Name],
			Title:        t.Title,
			Description:  t.Description,
			InputSchema:  t.InputSchema,
			OutputSchema: t.OutputSchema,
			Annotations:  t.Annotations,
		}
	}
	return respond(map[string]any{"server": info.Name, "alias": info.Alias, "tools": list})
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
	finish := func(resp hostfuncs.Response, outcome CallOutcome, err error) (hostfuncs.Response, error) {
		took := time.Since(started)
		scope.calls.end(p.Server, p.Tool, outcome, took)
		h.logger.InfoContext(ctx, "tool call", "session", scope.session, "server", p.Server, "tool", p.Tool, "outcome", outcome, "duration", took)
		return resp, err
	}
	if !scope.calls.begin() {
		return finish(hostfuncs.Response{}, CallRefused, &hostfuncs.Error{
			Kind:    kindLimitExceeded,
			Message: fmt.Sprintf("%s.%s: a run may make at most %d tool calls", p.Server, p.Tool, scope.calls.limit),
			Data:    map[string]any{"server": p.Server, "tool": p.Tool, "limit": scope.calls.limit},
		})
	}
	info, err := h.allowedServer(scope, p.Server, p.Tool)
	if err != nil {
		return finish(hostfuncs.Response{}, CallRefused, err)
	}
	callCtx := ctx
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

// allowedServer finds the server of that name or alias among those that the run may use.
func (h *guestHandler) allowedServer(scope *runScope, name, tool string) (upstream.Info, error) {
	servers := h.upstreams.Servers()
	data := map[string]any{"server": name}
	if tool != "" {
		data["tool"] = tool
	}
	info, ok := findServer(servers, name)
	if !ok {
		return upstream.Info{}, &hostfuncs.Error{Kind: kindMCPError, Message: unknownServer(name, serverNames(servers)), Data: data}
	}
	if _, ok := slices.BinarySearch(scope.allowed, info.Name); !ok {
		message := fmt.Sprintf("Server '%s' is not available: add it to servers", name)
		if info.Status == upstream.StatusDisabled {
			message = fmt.Sprintf("Server '%s' is not available: it is disabled in its configuration", name)
		}
		return upstream.Info{}, &hostfuncs.Error{Kind: kindMCPError, Message: message, Data: data}
	}
	return info, nil
}

// findServer finds a server by its name or, since no alias is another server's name, by its alias.
func findServer(servers []upstream.Info, name string) (upstream.Info, bool) {
	for _, s := range servers {
		if s.Name == name || s.Alias == name {
			return s, true
		}
	}
	return upstream.Info{}, false
}

func serverNames(servers []upstream.Info) []string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	return names
}

// guestError turns an error of [upstream.Manager] into what the guest raises, and into the call's outcome.
func guestError(err error, server, tool string) (*hostfuncs.Error, CallOutcome) {
	data := map[string]any{"server": server}
	where := server
	if tool != "" {
		data["tool"] = tool
		where += "." + tool
	}
	out := &hostfuncs.Error{Message: err.Error(), Data: data}
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
	out.Kind = kindMCPError
	if _, ok := errors.AsType[*upstream.UnknownToolError](err); ok {
		return out, CallFailed
	}
	out.Message = where + ": " + out.Message
	return out, CallFailed
}
