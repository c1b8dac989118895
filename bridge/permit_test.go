package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/audit"
	"codeexec/bridge/catalog"
	"codeexec/bridge/policy"
	"codeexec/bridge/upstream"
	"codeexec/hostfuncs"
	"codeexec/wasmhost"
)

// person is a client that answers questions with what it is told to.
type person struct {
	answer func(question string) string // JSON of the result of elicitation/create
	mute   bool                         // can't be asked

	mu    sync.Mutex
	asked []string
}

func (p *person) Identity() any { return p }

func (p *person) Capabilities() *mcp.ClientCapabilities {
	if p.mute {
		return &mcp.ClientCapabilities{}
	}
	return &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}
}

func (p *person) Request(_ context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	var question struct{ Message string }
	if err := json.Unmarshal(params, &question); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, question.Message)
	return json.RawMessage(p.answer(question.Message)), nil
}

func (p *person) Progress(string, string, upstream.Progress) {}

func loadPolicy(t *testing.T, text string) *policy.Policy {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codeexec.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := policy.Load(path) // a broken one is a policy too
	return p
}

// callers makes scripts that each call one tool and print what comes of it.
func callers(calls ...string) map[string]script {
	scripts := make(map[string]script)
	for _, c := range calls {
		server, tool, _ := strings.Cut(c, ".")
		scripts[c] = func(ctx context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
			_, err := sb.call(ctx, "tools.call", map[string]any{"server": server, "tool": tool, "arguments": map[string]any{"name": "x"}})
			if e, ok := errors.AsType[*hostfuncs.Error](err); ok {
				return succeed(e.Kind + ": " + e.Message), nil
			}
			if err != nil {
				return succeed("error: " + err.Error()), nil
			}
			return succeed("called"), nil
		}
	}
	return scripts
}

func somePolicyUpstreams(called *[]string) *fakeUpstreams {
	tool := func(name, annotations string) catalog.Tool {
		return catalog.Tool{Name: name, Annotations: json.RawMessage(annotations)}
	}
	var mu sync.Mutex
	return &fakeUpstreams{
		servers: someServers(),
		tools: map[string][]catalog.Tool{
			"git-hub": {tool("get", `{"readOnlyHint":true}`), tool("delete", `{"destructiveHint":true}`), tool("bare", "")},
			"files":   {tool("read", `{"readOnlyHint":true}`)},
		},
		call: func(_ context.Context, server, tool string, _ json.RawMessage) (*mcp.CallToolResult, error) {
			mu.Lock()
			defer mu.Unlock()
			*called = append(*called, server+"."+tool)
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		},
	}
}

func TestPolicy(t *testing.T) {
	const denyDelete = "[[policy.rules]]\naction = \"deny\"\nservers = [\"git-hub\"]\ntools = [\"del*\"]\nreason = \"Ask Ada first.\"\n"
	const askWrites = "[[policy.rules]]\naction = \"ask\"\nwhen = [\"not read-only\"]\n"
	says := func(answer string) *person {
		return &person{answer: func(string) string { return answer }}
	}
	accept := func(allow string) *person { return says(`{"action":"accept","content":{"allow":"` + allow + `"}}`) }
	tests := []struct {
		name, policy string
		client       upstream.Client
		call, want   string
		asked        int
	}{
		{"denied", denyDelete, nil, "git-hub.delete", "PolicyError: git-hub.delete: denied by rule 1 of codeexec.toml: Ask Ada first.", 0},
		{"denied by its alias too", denyDelete, nil, "git_hub.delete", "PolicyError: git-hub.delete: denied by rule 1 of codeexec.toml: Ask Ada first.", 0},
		{"not denied", denyDelete, nil, "git-hub.get", "called", 0},
		{"read-only", askWrites, nil, "git-hub.get", "called", 0},
		{"nobody to ask", askWrites, nil, "git-hub.delete", "PolicyError: git-hub.delete: needs the user's consent, for which this client can't ask, by rule 1 of codeexec.toml", 0},
		{"a client that can't be asked", askWrites, &person{mute: true}, "git-hub.bare", "PolicyError: git-hub.bare: needs the user's consent, for which this client can't ask, by rule 1 of codeexec.toml", 0},
		{"allowed once", askWrites, accept("once"), "git-hub.delete", "called", 2},
		{"allowed for the session", askWrites, accept("for this session"), "git-hub.delete", "called", 1},
		{"refused", askWrites, accept("no"), "git-hub.delete", "PolicyError: git-hub.delete: the user has not allowed it; asked for by rule 1 of codeexec.toml", 2},
		{"refused for the session", askWrites, accept("not in this session"), "git-hub.delete", "PolicyError: git-hub.delete: the user has not allowed it; asked for by rule 1 of codeexec.toml", 1},
		{"declined", askWrites, says(`{"action":"decline"}`), "git-hub.delete", "PolicyError: git-hub.delete: the user has not allowed it; asked for by rule 1 of codeexec.toml", 2},
		{"accepted without an answer", askWrites, says(`{"action":"accept"}`), "git-hub.delete", "PolicyError: git-hub.delete: the user has not allowed it; asked for by rule 1 of codeexec.toml", 2},
		{"a tool that there isn't", askWrites, accept("once"), "git-hub.nope", "MCPError: ", 0},
		{"a policy that can't be read", "[[policy", nil, "files.read", "PolicyError: files.read: denied by codeexec.toml, which can't be used: ", 0},
		{"too many calls", "[[policy.limits]]\ncalls = 1\n", nil, "files.read", "called", 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var called []string
			b, _ := newFakeBridge(t, Options{Policy: loadPolicy(t, tc.policy)}, callers(tc.call), somePolicyUpstreams(&called))
			for range 2 {
				res := mustRun(t, b, RunRequest{Code: tc.call, Client: tc.client, Servers: []string{"files", "git_hub"}})
				if !strings.HasPrefix(res.Stdout, tc.want) {
					t.Errorf("got %s\nwant %s", res.Stdout, tc.want)
				}
			}
			if got := len(called) > 0; got != (tc.want == "called") {
				t.Errorf("calls %v", called)
			}
			if p, ok := tc.client.(*person); ok && len(p.asked) != tc.asked {
				t.Errorf("asked %q", p.asked)
			}
		})
	}
}

// What was answered counts for one client, one session and one tool, until the session starts anew.
func TestConsentIsNotTransferred(t *testing.T) {
	var called []string
	b, _ := newFakeBridge(t, Options{Policy: loadPolicy(t, "policy.default = \"ask\"\n")}, callers("git-hub.get", "git-hub.delete"), somePolicyUpstreams(&called))
	yes := func(string) string { return `{"action":"accept","content":{"allow":"for this session"}}` }
	ada, bob := &person{answer: yes}, &person{answer: yes}
	run := func(p *person, session, call string, reset bool) {
		mustRun(t, b, RunRequest{Code: call, Client: p, Session: session, Reset: reset})
	}
	run(ada, "a", "git-hub.get", false)
	run(ada, "a", "git-hub.get", false)
	if len(ada.asked) != 1 || !strings.HasPrefix(ada.asked[0], `A script wants to call the tool "get" of the server "git-hub" with these arguments: {"name":"x"}`) {
		t.Errorf("asked %q", ada.asked)
	}
	run(ada, "a", "git-hub.delete", false)
	run(ada, "b", "git-hub.get", false)
	run(bob, "a", "git-hub.get", false)
	run(ada, "a", "git-hub.get", true)
	if len(ada.asked) != 4 || len(bob.asked) != 1 {
		t.Errorf("asked %q and %q", ada.asked, bob.asked)
	}
}

// Ten calls at a time make one question.
func TestOneQuestionAtATime(t *testing.T) {
	var called []string
	up := somePolicyUpstreams(&called)
	b, _ := newFakeBridge(t, Options{Policy: loadPolicy(t, "policy.default = \"ask\"\n[[policy.limits]]\ncalls = 7\n")}, map[string]script{
		"gather": func(ctx context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
			var wg sync.WaitGroup
			var mu sync.Mutex
			kinds := make(map[string]int)
			for range 10 {
				wg.Go(func() {
					_, err := sb.call(ctx, "tools.call", map[string]any{"server": "files", "tool": "read"})
					kind := "ok"
					if e, ok := errors.AsType[*hostfuncs.Error](err); ok {
						kind = e.Kind
					}
					mu.Lock()
					defer mu.Unlock()
					kinds[kind]++
				})
			}
			wg.Wait()
			return succeed(fmt.Sprint(kinds)), nil
		},
	}, up)
	p := &person{answer: func(string) string { return `{"action":"accept","content":{"allow":"for this session"}}` }}
	res := mustRun(t, b, RunRequest{Code: "gather", Client: p})
	if res.Stdout != "map[LimitExceeded:3 ok:7]" || len(p.asked) != 1 {
		t.Errorf("%s; asked %d times", res.Stdout, len(p.asked))
	}
}

// A person may take longer than a script has.
func TestTheClockStandsStillWhileAPersonIsAsked(t *testing.T) {
	var called []string
	b, _ := newFakeBridge(t, Options{Policy: loadPolicy(t, "policy.default = \"ask\"\n")}, callers("files.read"), somePolicyUpstreams(&called))
	p := &person{answer: func(string) string {
		time.Sleep(1200 * time.Millisecond)
		return `{"action":"accept","content":{"allow":"once"}}`
	}}
	if res := mustRun(t, b, RunRequest{Code: "files.read", Client: p, Timeout: time.Second}); res.Stdout != "called" {
		t.Errorf("%s", res.Stdout)
	}
}

func TestAuditLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log, err := audit.Open(audit.Options{Dir: dir, Arguments: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var called []string
	b, _ := newFakeBridge(t, Options{Audit: log, Policy: loadPolicy(t, "[[policy.rules]]\naction = \"deny\"\ntools = [\"delete\"]\n")},
		callers("git_hub.delete", "files.read"), somePolicyUpstreams(&called))
	mustRun(t, b, RunRequest{Code: "git_hub.delete", Session: "s"})
	mustRun(t, b, RunRequest{Code: "files.read"})
	data, err := os.ReadFile(filepath.Join(dir, audit.FileName))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	runs := make(map[any]int)
	for l := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatal(err)
		}
		runs[m["run"]]++
		got = append(got, fmt.Sprint(m["kind"], " ", m["session"], " ", m["server"], " ", m["tool"], " ", m["outcome"], " ", m["rule"], " ", m["arguments"], " ", m["calls"]))
	}
	want := []string{
		"call s git-hub delete refused rule 1 of codeexec.toml map[name:x] <nil>",
		"run s <nil> <nil> success <nil> <nil> 1",
		"call default files read ok the default of codeexec.toml map[name:x] <nil>",
		"run default <nil> <nil> success <nil> <nil> 1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || len(runs) != 2 {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}
