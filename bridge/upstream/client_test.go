//lint:file-ignore SA1019 Sampling and roots are deprecated, but in use for years to come.

package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fakeClient answers what servers ask.
type fakeClient struct {
	caps   mcp.ClientCapabilities
	answer func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

	mu       sync.Mutex
	asked    []string
	progress []string
}

func (c *fakeClient) Identity() any { return c }

func (c *fakeClient) Capabilities() *mcp.ClientCapabilities { return &c.caps }

func (c *fakeClient) Request(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	c.mu.Lock()
	c.asked = append(c.asked, server+" "+method)
	c.mu.Unlock()
	return c.answer(ctx, method, params)
}

func (c *fakeClient) Progress(server, tool string, p Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress = append(c.progress, fmt.Sprintf("%s.%s %v/%v %s", server, tool, p.Progress, p.Total, p.Message))
}

func (c *fakeClient) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.progress...)
}

func accepting() *fakeClient {
	c := &fakeClient{}
	c.caps.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}
	c.caps.Sampling = &mcp.SamplingCapabilities{}
	c.caps.RootsV2 = &mcp.RootCapabilities{ListChanged: true}
	c.answer = func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
		switch method {
		case "elicitation/create":
			return json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`), nil
		case "sampling/createMessage":
			return json.RawMessage(`{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`), nil
		}
		return json.RawMessage(`{"roots":[{"uri":"file:///x","name":"x"}]}`), nil
	}
	return c
}

// askingServer has tools that turn to the client: in the older way, or with the
// newest version by what they return.
func askingServer(t testing.TB, opts *mcp.ServerOptions) *mcp.Server {
	server := remoteServer(t, opts)
	schema := json.RawMessage(`{"type":"object"}`)
	form := &mcp.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)}
	say := func(v any, err error) (*mcp.CallToolResult, error) {
		if err != nil {
			return nil, err
		}
		data, _ := json.Marshal(v)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(data)}}}, nil
	}
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say(req.Session.Elicit(ctx, form))
	})
	server.AddTool(&mcp.Tool{Name: "sample", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say(req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1}))
	})
	server.AddTool(&mcp.Tool{Name: "roots", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say(req.Session.ListRoots(ctx, nil))
	})
	server.AddTool(&mcp.Tool{Name: "input", InputSchema: schema}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer, ok := req.Params.InputResponses["who"]; ok {
			return say(answer, nil)
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": form}, RequestState: "s1"}, nil
	})
	server.AddTool(&mcp.Tool{Name: "progress", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: float64(i), Total: 3, Message: "step\x1b[31m\x00"})
			if err != nil {
				return nil, err
			}
		}
		return say("done", nil)
	})
	return server
}

func TestServersTurnToTheClient(t *testing.T) {
	older := &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}}
	newest := &mcp.ServerOptions{SupportedProtocolVersions: []string{"2026-07-28"}}
	tests := []struct {
		name    string
		opts    *mcp.ServerOptions
		http    *mcp.StreamableHTTPOptions
		sse     bool
		tool    string
		want    string
		nobody  string // the error if the client can't be asked
		several bool   // whether it works while other clients wait
	}{
		{"elicitation", older, nil, false, "ask", `{"action":"accept","content":{"name":"Ada"}}`, "client does not support elicitation", true},
		{"sampling", older, nil, false, "sample", `{"content":{"type":"text","text":"sampled"},"model":"m","role":"assistant"}`, "no client that can be asked", true},
		{"roots", older, nil, false, "roots", `{"roots":[{"name":"x","uri":"file:///x"}]}`, "no client that can be asked", true},
		{"elicitation over the older transport", older, nil, true, "ask", `{"action":"accept","content":{"name":"Ada"}}`, "client does not support elicitation", false},
		{"elicitation with the newest version", newest, &mcp.StreamableHTTPOptions{Stateless: true}, false, "input", `{"action":"accept","content":{"name":"Ada"}}`, "it asks for input that it can't get", true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			connect := func() *Manager {
				server := askingServer(t, tc.opts)
				var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, tc.http)
				if tc.sse {
					h = mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
				}
				return start(t, Options{}, remoteConfig(serve(t, h).URL))
			}
			m := connect()
			client := accepting()
			ctx := WithClient(limit(t), client)
			result, err := m.Call(ctx, "stub", tc.tool, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, result); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}

			// Somebody else's call is in progress: the question must not get
			// to them.
			other := accepting()
			waiting, cancel := context.WithCancel(WithClient(limit(t), other))
			blocked := make(chan struct{})
			go func() {
				m.Call(waiting, "stub", "block", nil)
				close(blocked)
			}()
			s := m.servers["stub"]
			eventually(t, "the other call is in flight", func() bool { return len(s.slots) == 1 })
			eventually(t, "the other call is noted", func() bool {
				s.link.conn.mu.Lock()
				defer s.link.conn.mu.Unlock()
				return len(s.link.conn.captures) == 1
			})
			result, err = m.Call(ctx, "stub", tc.tool, nil)
			if (err == nil && text(t, result) == tc.want) != tc.several {
				t.Errorf("with another client: %v", err)
			}
			if len(other.asked) > 0 {
				t.Errorf("somebody else was asked: %v", other.asked)
			}
			cancel()
			<-blocked

			// A client that can't be asked, or none.
			_, err = connect().Call(limit(t), "stub", tc.tool, nil)
			if err == nil || !strings.Contains(err.Error(), tc.nobody) {
				t.Errorf("err = %v, want … %s", err, tc.nobody)
			}
		})
	}
}

func TestProgressOfCalls(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		server := askingServer(t, &mcp.ServerOptions{SupportedProtocolVersions: []string{version}})
		h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: version == "2026-07-28"})
		m := start(t, Options{}, remoteConfig(serve(t, h).URL))
		client := accepting()
		if _, err := m.Call(WithClient(limit(t), client), "stub", "progress", nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "progress has arrived", func() bool { return len(client.seen()) == 3 })
		if got := strings.Join(client.seen(), "; "); got != "stub.progress 0/3 step; stub.progress 1/3 step; stub.progress 2/3 step" {
			t.Errorf("progress %q", got)
		}
	}
}

// What a process sends that asks for nothing sensible, or at the wrong time, is
// answered with an error and harms nobody.
func TestRequestsThatNobodyCanAnswer(t *testing.T) {
	m := start(t, Options{}, stubServer("-rude", "-version", "2025-11-25"))
	client := accepting()
	client.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) { panic("a decoder's") }
	for range 3 {
		if _, err := m.Call(WithClient(limit(t), client), "stub", "echo", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// The server gets the client's refusal, and its cancellation ends the question.
func TestQuestionsEnd(t *testing.T) {
	server := askingServer(t, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
	schema := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&mcp.Tool{Name: "impatient", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?", RequestedSchema: schema})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(err)}}}, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	m := start(t, Options{}, remoteConfig(serve(t, h).URL))
	client := accepting()
	ended := make(chan struct{})
	client.answer = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	ctx := WithClient(limit(t), client)
	result, err := m.Call(ctx, "stub", "impatient", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, result); !strings.Contains(got, "deadline") {
		t.Error(got)
	}
	<-ended

	client.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return nil, &jsonrpc.Error{Code: -32042, Message: "not now"}
	}
	if _, err := m.Call(ctx, "stub", "ask", nil); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("err = %v", err)
	}
}
