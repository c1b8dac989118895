//lint:file-ignore SA1019 Sampling and roots are deprecated, but in use for years to come.

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Client is whoever calls are made for, as far as servers may turn to it in
// the middle of a call.
type Client interface {
	// Identity is who is asked in the end; it can be compared. Values of
	// different runs may have the same.
	Identity() any
	// Capabilities says what the client can be asked. Nil is nothing.
	Capabilities() *mcp.ClientCapabilities
	// Request makes a request of the client: elicitation/create,
	// sampling/createMessage or roots/list, whose parameters are the server's
	// and haven't been checked. An error that is a [*jsonrpc.Error] gets to the
	// server as it is.
	Request(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)
	// Progress passes on the progress of a call. It must not block.
	Progress(server, tool string, p Progress)
}

// Progress is how far a call is
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress).
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"` // 0 if it isn't known
	Message  string  `json:"message"`
}

type clientKey struct{}

// WithClient returns a context for calls that are made for the client.
func WithClient(ctx context.Context, client Client) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// clientOf returns the client that a context's calls are made for, or nil.
func clientOf(ctx context.Context) Client {
	client, _ := ctx.Value(clientKey{}).(Client)
	return client
}

const (
	// maxRequests is how many requests of a server are passed on at a time.
	maxRequests = 16
	// maxRounds is how often a server may ask for input before it answers a
	// call.
	maxRounds = 10
	// maxLogData is how many bytes of a server's log message are logged.
	maxLogData = 1 << 10
)

// What is said to servers whose request can't be passed on.
var (
	errNobody  = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "no client that can be asked is waiting for a call"}
	errSeveral = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "several clients are waiting for calls, and nobody can tell which of them is meant"}
	errBusy    = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "too many requests at a time"}
)

// offered returns what servers are told that a client can do: what is passed
// on, and nothing else.
func offered(client Client) *mcp.ClientCapabilities {
	out := &mcp.ClientCapabilities{}
	if client == nil {
		return out
	}
	if has := client.Capabilities(); has != nil {
		out.Elicitation = has.Elicitation
		out.Sampling = has.Sampling
		if has.RootsV2 != nil {
			out.RootsV2 = &mcp.RootCapabilities{} // whose changes we don't pass on
		}
	}
	return out
}

// wireCapabilities is the JSON of capabilities, which those of the SDK aren't.
func wireCapabilities(has *mcp.ClientCapabilities) map[string]any {
	out := make(map[string]any)
	if has.Elicitation != nil {
		out["elicitation"] = has.Elicitation
	}
	if has.Sampling != nil {
		out["sampling"] = has.Sampling
	}
	if has.RootsV2 != nil {
		out["roots"] = struct{}{}
	}
	return out
}

// passable reports whether a server's request can be passed on to a client.
func passable(method string) bool {
	return method == "elicitation/create" || method == "sampling/createMessage" || method == "roots/list"
}

// An inquiry is a request of the server that is passed on.
type inquiry struct {
	call   int64 // in whose stream it came; 0 if that isn't known
	cancel context.CancelFunc
}

// over takes note that a request has been answered or given up, and ends the
// inquiries that nobody waits for any more. The caller must hold c.mu.
func (c *conn) over(id jsonrpc.ID) {
	delete(c.captures, id)
	waiting := false
	for _, raw := range c.captures {
		waiting = waiting || raw.client != nil
	}
	n, _ := id.Raw().(int64)
	for _, inquiry := range c.asked {
		if n != 0 && inquiry.call == n || !waiting {
			inquiry.cancel()
		}
	}
}

// meant finds the client that a server's request is for: the one that waits for
// the call in whose stream the request came, or else the only one that waits.
func (c *conn) meant(call int64) (Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found Client
	for id, raw := range c.captures {
		if n, _ := id.Raw().(int64); raw.client == nil || raw.field != fieldStructured || call != 0 && n != call {
			continue
		}
		if found != nil && found.Identity() != raw.client.Identity() {
			return nil, errSeveral
		}
		found = raw.client
	}
	if found == nil {
		return nil, errNobody
	}
	return found, nil
}

// forward passes a server's request on, on a goroutine of its own, and answers
// it.
func (c *conn) forward(req *jsonrpc.Request, call int64) {
	ctx, cancel := context.WithCancel(context.Background())
	c.mu.Lock()
	_, twice := c.asked[req.ID]
	room := len(c.asked) < maxRequests && !twice
	if room {
		c.asked[req.ID] = &inquiry{call, cancel}
	}
	c.mu.Unlock()
	answer := func(result json.RawMessage, err error) {
		resp := &jsonrpc.Response{ID: req.ID, Result: result}
		if err != nil {
			rpc, ok := errors.AsType[*jsonrpc.Error](err)
			if !ok {
				rpc = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
			}
			resp.Result, resp.Error = nil, rpc
		}
		data, err := jsonrpc.EncodeMessage(resp)
		if err == nil {
			err = c.carrier.send(ctx, resp, data)
		}
		if err != nil {
			c.log.Debug("a request of the server couldn't be answered", "method", req.Method, "error", err)
		}
	}
	go func() {
		defer cancel()
		stop := context.AfterFunc(c.ctx, cancel)
		defer stop()
		if !room {
			answer(nil, errBusy)
			return
		}
		client, err := c.meant(call)
		var result json.RawMessage
		if err == nil {
			err = guarded(func() (err error) {
				result, err = client.Request(ctx, c.name, req.Method, req.Params)
				return err
			})
		}
		c.mu.Lock()
		delete(c.asked, req.ID)
		c.mu.Unlock()
		if ctx.Err() == nil {
			answer(result, err)
		}
	}()
}

// retract ends a request that the server has cancelled.
func (c *conn) retract(params json.RawMessage) {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return
	}
	c.mu.Lock()
	inquiry := c.asked[id]
	c.mu.Unlock()
	if inquiry != nil {
		inquiry.cancel()
	}
}

// progressed passes on the progress of a call.
func (c *conn) progressed(params json.RawMessage) {
	var p struct {
		Token float64 `json:"progressToken"`
		Progress
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	var client Client
	var tool string
	c.mu.Lock()
	for _, raw := range c.captures {
		if raw.client != nil && raw.token != 0 && float64(raw.token) == p.Token {
			client, tool = raw.client, raw.tool
		}
	}
	c.mu.Unlock()
	if client != nil {
		p.Message = shown(p.Message, maxLogData)
		client.Progress(c.name, tool, p.Progress)
	}
}

// logLevels are the levels of servers' log messages, in ascending order, up to
// the last that isn't a warning or worse. What matters to the makers of a server
// matters a level less here.
var logLevels = [...]struct {
	theirs mcp.LoggingLevel
	ours   slog.Level
}{
	{"debug", slog.LevelDebug - 1},
	{"info", slog.LevelDebug},
	{"notice", slog.LevelInfo},
}

// wantedLevel is the lowest level of log messages that get into a log.
func wantedLevel(log *slog.Logger) mcp.LoggingLevel {
	for _, l := range logLevels {
		if log.Enabled(context.Background(), l.ours) {
			return l.theirs
		}
	}
	return "warning"
}

// logged logs a log message of the server
// (https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging).
func (c *conn) logged(params json.RawMessage) {
	var p struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	level := slog.LevelWarn
	for _, l := range logLevels {
		if string(l.theirs) == p.Level {
			level = l.ours
		}
	}
	text, ok := "", false
	if len(p.Data) > 0 && p.Data[0] == '"' {
		ok = json.Unmarshal(p.Data, &text) == nil
	}
	if !ok {
		text = string(p.Data)
	}
	c.log.Log(context.Background(), level, "the server says",
		"level", shown(p.Level, 20), "logger", shown(p.Logger, 100), "text", shown(text, maxLogData))
}

// shown returns the beginning of a server's text, fit to be shown.
func shown(text string, size int) string {
	if len(text) > size {
		text = text[:size] + "…"
	}
	return printable(text)
}

// input gets from the client what a server wants before it answers a call
// (https://modelcontextprotocol.io/specification/draft/server/tools).
func input(ctx context.Context, server string, client Client, wanted mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	if client == nil {
		return nil, errNobody
	}
	data, err := wanted.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var requests map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(data, &requests); err != nil {
		return nil, err
	}
	if len(requests) > maxRequests {
		return nil, errBusy
	}
	answers := make(map[string]json.RawMessage, len(requests))
	for id := range requests {
		answer, err := client.Request(ctx, server, requests[id].Method, requests[id].Params)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", requests[id].Method, err)
		}
		answers[id] = answer
	}
	data, err = json.Marshal(answers)
	if err != nil {
		return nil, err
	}
	var out mcp.InputResponseMap
	err = json.Unmarshal(data, &out)
	return out, err
}
