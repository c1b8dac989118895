//lint:file-ignore SA1019 Sampling and roots are deprecated, but in use for years to come.

package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/upstream"
	"codeexec/wasmhost"
)

// eras are versions of the protocol with requests of servers, and without.
var eras = []string{"2025-11-25", "2026-07-28"}

// connectAs returns a client session of some version that answers questions.
func connectAs(t *testing.T, b *Bridge, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	theirs, ours := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	server := NewServer(b, ServerOptions{})
	go func() { served <- server.Serve(ctx, ours) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	client.AddRoots(&mcp.Root{URI: "file:///home", Name: "home"})
	session, err := client.Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("version %s", got)
	}
	t.Cleanup(func() {
		session.Close()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return session
}

func TestConsentIsAskedOfTheClient(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			var called []string
			b, _ := newFakeBridge(t, Options{Policy: loadPolicy(t, "policy.default = \"ask\"\n")}, callers("git-hub.get", "files.read"), somePolicyUpstreams(&called))
			var mu sync.Mutex
			var asked []string
			session := connectAs(t, b, version, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, req.Params.Message)
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"allow": "for this session"}}, nil
				},
			})
			for range 2 {
				if _, out := callRunPython(t, session, map[string]any{"code": "git-hub.get"}); out["stdout"] != "called" {
					t.Errorf("%v", out)
				}
			}
			if len(asked) != 1 || !strings.HasPrefix(asked[0], "[codeexec] A script wants to call the tool") {
				t.Errorf("asked %q", asked)
			}
			mute := connectAs(t, b, version, nil)
			if _, out := callRunPython(t, mute, map[string]any{"code": "files.read"}); !strings.HasPrefix(fmt.Sprint(out["stdout"]), "PolicyError: files.read: needs the user's consent") {
				t.Errorf("%v", out)
			}
		})
	}
}

// What servers ask in the middle of a call gets to the client whose script made it.
func TestQuestionsOfServersReachTheClient(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			var called []string
			up := somePolicyUpstreams(&called)
			scripts := map[string]script{"ask": func(ctx context.Context, _ *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
				client := ctx.Value(runScopeKey{}).(*runScope).client
				var out []string
				for _, q := range [][2]string{
					{"elicitation/create", `{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`},
					{"sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}`},
					{"roots/list", ``},
					{"elicitation/create", `[]`},
					{"tools/call", `{}`},
				} {
					answer, err := client.Request(ctx, "files", q[0], json.RawMessage(q[1]))
					if err != nil {
						out = append(out, err.Error())
						continue
					}
					out = append(out, string(answer))
				}
				return succeed(strings.Join(out, "\n")), nil
			}}
			b, _ := newFakeBridge(t, Options{}, scripts, up)
			session := connectAs(t, b, version, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": req.Params.Message}}, nil
				},
				CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
					return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "hello"}}, nil
				},
			})
			_, out := callRunPython(t, session, map[string]any{"code": "ask"})
			got := strings.Split(fmt.Sprint(out["stdout"]), "\n")
			for i, want := range []string{
				`"content":{"name":"[files] Who?"}`, `"text":"hello"`, `"uri":"file:///home"`, "elicitation/create: ", "the client can't be asked for that",
			} {
				if i >= len(got) || !strings.Contains(got[i], want) {
					t.Errorf("answer %d of %q has no %s", i, got, want)
				}
			}
		})
	}
}

// A client that never repeats its request leaves nothing behind, and nobody else can take its run over.
func TestRunsThatAreNeverResumed(t *testing.T) {
	var called []string
	b, _ := newFakeBridge(t, Options{Policy: loadPolicy(t, "policy.default = \"ask\"\n")}, callers("git-hub.get"), somePolicyUpstreams(&called))
	session := connectAs(t, b, "2026-07-28", &mcp.ClientOptions{
		MultiRoundTrip:     &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil },
	})
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "git-hub.get"}})
	if err != nil || !res.NeedsInput() || res.RequestState == "" {
		t.Fatalf("%+v, %v", res, err)
	}
	retry := func(state string, answers mcp.InputResponseMap) *mcp.CallToolResult {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "x"}, RequestState: state, InputResponses: answers})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if got := retry("guessed", nil); !got.IsError {
		t.Errorf("%+v", got)
	}
	// No answer is no consent.
	if got, _ := json.Marshal(retry(res.RequestState, nil)); !strings.Contains(string(got), "PolicyError") {
		t.Errorf("%s", got)
	}
	if got := retry(res.RequestState, nil); !got.IsError {
		t.Errorf("the state counts twice: %+v", got)
	}
	// This one waits until the bridge closes.
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "git-hub.get"}}); err != nil {
		t.Fatal(err)
	}
	if len(called) > 0 {
		t.Errorf("called %v", called)
	}
}

func TestProgressOfServersIsProgressOfTheRun(t *testing.T) {
	scripts := map[string]script{"go": func(ctx context.Context, _ *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		client := ctx.Value(runScopeKey{}).(*runScope).client
		client.Progress("files", "read", upstream.Progress{Progress: 1, Total: 4, Message: "reading"})
		return untilEnd(ctx, nil, wasmhost.Request{})
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	messages := make(chan string, 10)
	session := connectAs(t, b, "2025-11-25", &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			messages <- req.Params.Message
			cancel()
		},
	})
	params := &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "go"}}
	params.SetProgressToken("t")
	session.CallTool(ctx, params) // ends when the first notification has arrived
	if got := <-messages; got != "files.read: 1 of 4: reading" {
		t.Errorf("%q", got)
	}
}
