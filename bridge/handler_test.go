package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/upstream"
	"codeexec/hostfuncs"
	"codeexec/wasmhost"
)

// ask runs one host operation as a script of a run with req, and returns its answer.
func ask(t *testing.T, up *fakeUpstreams, req RunRequest, op string, params any) (value string, res *RunResult, err error) {
	t.Helper()
	req.Code = "code"
	scripts := map[string]script{"code": func(ctx context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		var raw json.RawMessage
		raw, err = sb.call(ctx, op, params)
		value = string(raw)
		return &wasmhost.Result{Outcome: "error", ExitCode: 1}, nil // so that the calls are listed
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, up)
	res = mustRun(t, b, req)
	return value, res, err
}

func TestToolsCallResult(t *testing.T) {
	up := &fakeUpstreams{servers: someServers(), call: func(_ context.Context, server, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
		if server != "git-hub" || tool != "read" || string(args) != `{"path":"/x"}` {
			t.Errorf("called %s.%s(%s)", server, tool, args)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hi"}}, StructuredContent: map[string]any{"n": 0}}, nil
	}}
	got, res, err := ask(t, up, RunRequest{Servers: []string{"git-hub"}}, "tools.call", map[string]any{"server": "git-hub", "tool": "read", "arguments": map[string]any{"path": "/x"}})
	if want := `{"content":[{"type":"text","text":"hi"}],"structuredContent":{"n":0}}`; err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	if res.ToolCalls != 1 || len(res.Calls) != 1 || res.Calls[0].Server != "git-hub" || res.Calls[0].Tool != "read" || res.Calls[0].Outcome != CallOK {
		t.Errorf("calls %+v", res.Calls)
	}
}

func TestToolsCallErrors(t *testing.T) {
	failing := func(err error) *fakeUpstreams {
		return &fakeUpstreams{servers: someServers(), call: func(context.Context, string, string, json.RawMessage) (*mcp.CallToolResult, error) { return nil, err }}
	}
	tests := []struct {
		name    string
		server  string
		servers []string
		up      *fakeUpstreams
		kind    string
		message string
		data    string
		outcome CallOutcome
	}{
		{"protocol error", "files", nil, failing(&upstream.ProtocolError{Server: "files", Code: -32602, Message: "bad", Data: json.RawMessage(`[1]`)}),
			"ProtocolError", "bad", `{"code":-32602,"data":[1],"server":"files","tool":"read"}`, CallFailed},
		{"unavailable", "files", nil, failing(&upstream.UnavailableError{Server: "files", Err: errors.New("exited"), Stderr: "boom"}),
			"ServerUnavailable", "boom", `{"server":"files","tool":"read"}`, CallUnavailable},
		{"unknown tool", "files", nil, failing(&upstream.UnknownToolError{Server: "files", Tool: "read", Suggestions: []string{"read_file"}}),
			"MCPError", "read_file", `{"server":"files","tool":"read"}`, CallFailed},
		{"too large", "files", nil, failing(&upstream.TooLargeError{Server: "files", Tool: "read", Limit: 5}),
			"LimitExceeded", "5 bytes", `{"server":"files","tool":"read"}`, CallFailed},
		{"anything else", "files", nil, failing(errors.New("odd")),
			"MCPError", "files.read: odd", `{"server":"files","tool":"read"}`, CallFailed},
		{"unknown server", "flies", nil, nil,
			"MCPError", `did you mean "files"?`, `{"server":"flies","tool":"read"}`, CallRefused},
		{"server that the request left out", "files", []string{"git-hub"}, nil,
			"MCPError", "Server 'files' is not available: add it to servers", `{"server":"files","tool":"read"}`, CallRefused},
		{"disabled server", "off", nil, nil,
			"MCPError", "Server 'off' is not available: it is disabled in its configuration", `{"server":"off","tool":"read"}`, CallRefused},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			up := tc.up
			if up == nil {
				up = failing(errors.New("must not be called"))
			}
			_, res, err := ask(t, up, RunRequest{Servers: tc.servers}, "tools.call", map[string]any{"server": tc.server, "tool": "read"})
			e, ok := errors.AsType[*hostfuncs.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			data, _ := json.Marshal(e.Data)
			if e.Kind != tc.kind || !strings.Contains(e.Message, tc.message) || string(data) != tc.data {
				t.Errorf("got %v, data %s", e, data)
			}
			if len(res.Calls) != 1 || res.Calls[0].Outcome != tc.outcome {
				t.Errorf("calls %+v", res.Calls)
			}
		})
	}
}

func TestToolsCallEnds(t *testing.T) {
	waiting := func() *fakeUpstreams {
		return &fakeUpstreams{servers: someServers(), call: func(ctx context.Context, _, _ string, _ json.RawMessage) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
	}
	t.Run("by its own time limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, res, err := ask(t, waiting(), RunRequest{}, "tools.call", map[string]any{"server": "files", "tool": "read", "timeout": 2.5})
			e, ok := errors.AsType[*hostfuncs.Error](err)
			if !ok || e.Kind != "CallTimeout" || e.Message != "files.read: no answer within 2.5 s" {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took != 2500*time.Millisecond {
				t.Errorf("took %v", took)
			}
			if len(res.Calls) != 1 || res.Calls[0].Outcome != CallTimeout || res.Calls[0].MS != 2500 {
				t.Errorf("calls %+v", res.Calls)
			}
		})
	})
	t.Run("by the run's time limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, res, err := ask(t, waiting(), RunRequest{Timeout: time.Second}, "tools.call", map[string]any{"server": "files", "tool": "read", "timeout": 1e300})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if len(res.Calls) != 1 || res.Calls[0].Outcome != CallCancelled {
				t.Errorf("calls %+v", res.Calls)
			}
		})
	})
}

func TestCallsAreLimitedAndTheNewestListed(t *testing.T) {
	up := &fakeUpstreams{servers: someServers(), call: func(context.Context, string, string, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{}}, nil
	}}
	var last error
	scripts := map[string]script{"code": func(ctx context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		for range 101 {
			_, last = sb.call(ctx, "tools.call", map[string]any{"server": "files", "tool": "read"})
		}
		return &wasmhost.Result{Outcome: "error"}, nil
	}}
	b, _ := newFakeBridge(t, Options{MaxCalls: 100}, scripts, up)
	for range 2 { // the limit is each run's
		res := mustRun(t, b, RunRequest{Code: "code"})
		if e, ok := errors.AsType[*hostfuncs.Error](last); !ok || e.Kind != "LimitExceeded" || !strings.Contains(e.Message, "at most 100") {
			t.Errorf("the last call: %v", last)
		}
		if len(res.Calls) != 50 || res.Calls[49].Outcome != CallRefused || res.Calls[48].Outcome != CallToolError {
			t.Errorf("%d calls listed: %+v", len(res.Calls), res.Calls)
		}
	}
}

func TestUnknownOperation(t *testing.T) {
	_, _, err := ask(t, nil, RunRequest{}, "disk.format", nil)
	if e, ok := errors.AsType[*hostfuncs.Error](err); !ok || e.Kind != hostfuncs.KindUnsupported {
		t.Errorf("got %v", err)
	}
}

func TestGuestResult(t *testing.T) {
	tests := []struct {
		name, raw, want string
		attachments     []string
		isError         bool
	}{
		{"text", `{"content":[{"type":"text","text":"data"}]}`, `{"content":[{"type":"text","text":"data"}]}`, nil, false},
		{"null differs from absent", `{"content":[],"structuredContent":null}`, `{"content":[],"structuredContent":null}`, nil, false},
		{"error", `{"content":[],"isError":true}`, `{"content":[],"isError":true}`, nil, true},
		{"image and audio",
			`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"x"},{"type":"audio","data":"eW8=","mimeType":"audio/wav"}],"structuredContent":null}`,
			`{"content":[{"attachment":0,"mimeType":"image/png","type":"image"},{"text":"x","type":"text"},{"attachment":1,"mimeType":"audio/wav","type":"audio"}],"structuredContent":null}`,
			[]string{"hi", "yo"}, false},
		{"embedded resources",
			`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"aGk="}},{"type":"resource","resource":{"uri":"a:c","text":"t"}}]}`,
			`{"content":[{"resource":{"attachment":0,"uri":"a:b"},"type":"resource"},{"resource":{"uri":"a:c","text":"t"},"type":"resource"}]}`,
			[]string{"hi"}, false},
		{"content of a later protocol", `{"content":[{"type":"hologram","data":"?"}]}`, `{"content":[{"type":"hologram","data":"?"}]}`, nil, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			resp, isError, err := guestResult(json.RawMessage(tc.raw))
			if err != nil || string(resp.Value) != tc.want || isError != tc.isError {
				t.Errorf("got %s, %v, %v", resp.Value, isError, err)
			}
			var attachments []string
			for _, a := range resp.Attachments {
				attachments = append(attachments, string(a))
			}
			if strings.Join(attachments, "|") != strings.Join(tc.attachments, "|") {
				t.Errorf("attachments %q", attachments)
			}
		})
	}
	for _, raw := range []string{`[]`, `{"content":"x"}`, `{"content":[{"type":"image","data":"%"}]}`, `{"content":[{"type":"resource","resource":1}]}`} {
		if _, _, err := guestResult(json.RawMessage(raw)); err == nil {
			t.Errorf("%s is accepted", raw)
		}
	}
}
