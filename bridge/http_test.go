package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/wasmhost"
)

// serveHTTP serves b over HTTP. Where tokens is true, the token of a request is the name of its user.
func serveHTTP(t *testing.T, b *Bridge, tokens bool) string {
	t.Helper()
	endpoint := NewServer(b, ServerOptions{}).HTTP()
	var handler http.Handler = endpoint
	if tokens {
		handler = auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: token}, nil
		}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		b.Drain(canceled())
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := endpoint.Close(ctx); err != nil {
			t.Errorf("closing the endpoint: %v", err)
		}
		server.Close()
	})
	return server.URL
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if b != "" {
		req.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(req)
}

// oldClient connects in the way of versions with connections.
func oldClient(t *testing.T, url, token string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "old", Version: "1"}, opts).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// A post is a request of the stateless version of the protocol.
type post struct {
	url, token, method string
	params             map[string]any
}

func (p post) send(ctx context.Context) (*http.Response, error) {
	params := map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "new", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}},
	}}
	for key, value := range p.params {
		params[key] = value
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": p.method, "params": params})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", p.method)
	for _, key := range []string{"name", "uri"} {
		if name, ok := p.params[key].(string); ok {
			req.Header.Set("Mcp-Name", name)
		}
	}
	return (&http.Client{Transport: bearer(p.token)}).Do(req)
}

// do returns the result of the request.
func (p post) do(t *testing.T) map[string]any {
	t.Helper()
	resp, err := p.send(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if at := strings.LastIndex(text, "data: "); at >= 0 {
		text = text[at+len("data: "):]
	}
	var answer struct {
		Result map[string]any
		Error  any
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%d: %v\n%s", resp.StatusCode, err, data)
	}
	if answer.Result == nil {
		return map[string]any{"error": answer.Error}
	}
	return answer.Result
}

func (p post) run(t *testing.T, code string) map[string]any {
	t.Helper()
	p.method, p.params = "tools/call", map[string]any{"name": "run_python", "arguments": map[string]any{"code": code}}
	result := p.do(t)
	structured, ok := result["structuredContent"].(map[string]any)
	if !ok {
		t.Fatalf("no result: %v", result)
	}
	return structured
}

func read(t *testing.T, session *mcp.ClientSession, uri string) (string, error) {
	t.Helper()
	res, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "", err
	}
	return res.Contents[0].Text, nil
}

// counting scripts print how many runs their sandbox has seen.
func counting() map[string]script {
	return map[string]script{"count": func(_ context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		return succeed(fmt.Sprint(len(sb.runs))), nil
	}}
}

// Nothing of one client can be seen or reached by another: sessions of the same name, their list, what is kept
// of runs, and what completion proposes.
func TestHTTPClientsAreKeptApart(t *testing.T) {
	tests := []struct {
		name         string
		tokens       bool
		alice, bob   string // tokens
		shareBetween bool   // connections of one user have the same sessions
	}{
		{name: "by token", tokens: true, alice: "alice", bob: "bob", shareBetween: true},
		{name: "by connection"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			b, _ := newFakeBridge(t, Options{KeepOutput: time.Hour}, counting(), nil)
			url := serveHTTP(t, b, tc.tokens)
			alice, bob := oldClient(t, url, tc.alice, nil), oldClient(t, url, tc.bob, nil)
			for i, session := range []*mcp.ClientSession{alice, alice, bob} {
				_, got := callRunPython(t, session, map[string]any{"code": "count", "session": "work"})
				if want := []string{"1", "2", "1"}[i]; got["stdout"] != want {
					t.Errorf("run %d is number %v of its session, want %s", i, got["stdout"], want)
				}
			}
			var runs struct{ Runs []RunInfo }
			text, err := read(t, alice, runsURI)
			if err != nil || json.Unmarshal([]byte(text), &runs) != nil || len(runs.Runs) != 2 {
				t.Fatalf("runs %s, %v", text, err)
			}
			uri := runURI(runs.Runs[0].ID, textStdout)
			if text, err := read(t, alice, uri); err != nil || text != "2" {
				t.Errorf("her own output: %q, %v", text, err)
			}
			if text, err := read(t, bob, uri); err == nil {
				t.Errorf("somebody else reads it: %q", text)
			}
			callRunPython(t, alice, map[string]any{"code": "count", "session": "private"})
			if text, err := read(t, bob, sessionsURI); err != nil || strings.Contains(text, "private") || !strings.Contains(text, "work") {
				t.Errorf("somebody else's sessions: %s, %v", text, err)
			}
			if _, err := read(t, bob, sessionsURI+"/private"); err == nil {
				t.Error("somebody else reads her session")
			}
			list, err := bob.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list.Resources {
				if strings.Contains(r.URI, runs.Runs[0].ID) {
					t.Errorf("somebody else sees %s", r.URI)
				}
			}
			done, err := bob.Complete(t.Context(), &mcp.CompleteParams{
				Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: sessionTemplate},
				Argument: mcp.CompleteParamsArgument{Name: "session", Value: "p"},
			})
			if err != nil || len(done.Completion.Values) != 0 {
				t.Errorf("completion proposes %v, %v", done, err)
			}
			again := oldClient(t, url, tc.alice, nil)
			want := "1"
			if tc.shareBetween {
				want = "3"
			}
			if _, got := callRunPython(t, again, map[string]any{"code": "count", "session": "work"}); got["stdout"] != want {
				t.Errorf("another connection: run %v of the session, want %s", got["stdout"], want)
			}
		})
	}
}

// A connection can only be used by whoever has opened it.
func TestHTTPConnectionBelongsToItsUser(t *testing.T) {
	blocked := map[string]script{"wait": func(ctx context.Context, _ *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		<-ctx.Done()
		return &wasmhost.Result{Outcome: wasmhost.Cancelled}, nil
	}}
	b, _ := newFakeBridge(t, Options{}, blocked, nil)
	url := serveHTTP(t, b, true)
	alice := oldClient(t, url, "alice", nil)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = alice.CallTool(context.Background(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "wait"}})
	}()
	waitFor(t, func() bool { return b.Stats().Running == 1 })
	req, err := http.NewRequest(http.MethodDelete, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", alice.ID())
	resp, err := (&http.Client{Transport: bearer("bob")}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden || b.Stats().Running != 1 {
		t.Errorf("somebody else closes it: status %d, %+v", resp.StatusCode, b.Stats())
	}
	if resp, err = (&http.Client{Transport: bearer("alice")}).Do(req); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("she closes it: status %d", resp.StatusCode)
	}
	waitFor(t, func() bool { return b.Stats().Running == 0 })
	<-answered
}

// waitFor waits until something is so that happens elsewhere.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}

// In the stateless version, a client that goes away takes its run with it; before, it doesn't.
func TestHTTPDisconnect(t *testing.T) {
	started := make(chan struct{}, 1)
	ended := make(chan error, 1)
	release := make(chan struct{})
	scripts := map[string]script{"wait": func(ctx context.Context, _ *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		started <- struct{}{}
		select {
		case <-ctx.Done():
			ended <- ctx.Err()
			return &wasmhost.Result{Outcome: wasmhost.Cancelled}, nil
		case <-release:
			ended <- nil
			return succeed("done"), nil
		}
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	url := serveHTTP(t, b, false)

	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		resp, err := post{url: url, method: "tools/call", params: map[string]any{"name": "run_python", "arguments": map[string]any{"code": "wait"}}}.send(ctx)
		if err == nil {
			_, _ = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
	}()
	<-started
	cancel()
	<-answered
	if err := <-ended; err == nil {
		t.Error("the run goes on without its client")
	}

	old := oldClient(t, url, "", nil)
	body := `{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"wait"}}}`
	ctx, cancel = context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Session-Id": old.ID(), "Mcp-Protocol-Version": "2025-11-25",
	} {
		req.Header.Set(key, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	<-started
	cancel()
	resp.Body.Close()
	// The server has noticed by the time that it answers the next request of this client.
	if _, err := old.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the run has ended with its stream: %v", err)
	}
}

// The sessions of a client without a token go with its connection.
func TestHTTPConnectionTakesItsSessionsAlong(t *testing.T) {
	b, engine := newFakeBridge(t, Options{KeepOutput: time.Hour}, nil, nil)
	url := serveHTTP(t, b, false)
	old := oldClient(t, url, "", nil)
	callRunPython(t, old, map[string]any{"code": "x"})
	if stats := b.Stats(); stats.Sessions != 1 {
		t.Fatalf("%+v", stats)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		engine.mu.Lock()
		defer engine.mu.Unlock()
		return engine.alive == 0 && b.Stats().Sessions == 0
	})
}

// What a run asks its client over HTTP, in both ways that the protocol has had. Nobody else can answer.
func TestHTTPElicitation(t *testing.T) {
	ask := map[string]script{"ask": func(ctx context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		client := ctx.Value(runScopeKey{}).(*runScope).client
		answer, err := client.Request(ctx, "someone", "elicitation/create", json.RawMessage(`{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`))
		if err != nil {
			return nil, err
		}
		return succeed(string(answer)), nil
	}}
	b, _ := newFakeBridge(t, Options{}, ask, nil)
	url := serveHTTP(t, b, true)

	t.Run("by a request", func(t *testing.T) {
		old := oldClient(t, url, "alice", &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": req.Params.Message}}, nil
		}})
		if _, got := callRunPython(t, old, map[string]any{"code": "ask"}); !strings.Contains(fmt.Sprint(got["stdout"]), "[someone] Who?") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("by an answer", func(t *testing.T) {
		call := post{url: url, token: "alice", method: "tools/call", params: map[string]any{"name": "run_python", "arguments": map[string]any{"code": "ask"}}}
		first := call.do(t)
		state, _ := first["requestState"].(string)
		if state == "" {
			t.Fatalf("nothing is asked: %v", first)
		}
		call.params["requestState"] = state
		call.params["inputResponses"] = map[string]any{inputID: map[string]any{"action": "accept", "content": map[string]any{"name": "Ann"}}}
		call.token = "bob"
		if got := fmt.Sprint(call.do(t)); !strings.Contains(got, "requestState is that of no run") {
			t.Errorf("somebody else answers: %s", got)
		}
		call.token = "alice"
		if got := fmt.Sprint(call.do(t)["structuredContent"]); !strings.Contains(got, "Ann") {
			t.Errorf("got %v", got)
		}
	})
}

// Whoever makes many sessions doesn't take them from others, and nobody learns what others call theirs.
func TestSessionsAreShared(t *testing.T) {
	hold := make(chan struct{})
	scripts := counting()
	scripts["hold"] = func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
		<-hold
		return succeed(""), nil
	}
	b, _ := newFakeBridge(t, Options{MaxSessions: 4, OwnSessions: 3}, scripts, nil)
	run := func(owner, session string) *RunResult {
		return mustRun(t, b, RunRequest{Owner: owner, Code: "count", Session: session})
	}
	run("ann", "a")
	for i := range 10 {
		run("ben", fmt.Sprint("b", i))
	}
	if res := run("ann", "a"); res.Stdout != "2" {
		t.Errorf("ben's many sessions have cost ann hers: %+v", res)
	}
	if n := len(b.Sessions("ben")); n != 3 {
		t.Errorf("ben has %d sessions, want his share of 3", n)
	}
	run("cay", "c") // ben has most
	if n := len(b.Sessions("ben")); n != 2 || len(b.Sessions("ann")) != 1 {
		t.Errorf("ben has %d sessions, ann %v", n, b.Sessions("ann"))
	}
	done := make(chan struct{}, 4)
	for i, owner := range []string{"ben", "ben", "ann", "cay"} {
		session := fmt.Sprint("busy ", i)
		before := b.Stats().Running
		go func() {
			_, _ = b.Run(context.Background(), RunRequest{Owner: owner, Code: "hold", Session: session})
			done <- struct{}{}
		}()
		waitFor(t, func() bool { return b.Stats().Running == before+1 })
	}
	if res := run("dan", "d"); res.Status != StatusInvalid || strings.Contains(res.Summary, "ben") || !strings.Contains(res.Summary, "other clients") {
		t.Errorf("with everything busy: %+v", res)
	}
	close(hold)
	for range 4 {
		<-done
	}
}

func TestRunsHaveALimit(t *testing.T) {
	hold := make(chan struct{})
	b, _ := newFakeBridge(t, Options{MaxRuns: 1}, map[string]script{"hold": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
		<-hold
		return succeed("held"), nil
	}}, nil)
	done := make(chan *RunResult, 1)
	go func() {
		res, _ := b.Run(context.Background(), RunRequest{Code: "hold"})
		done <- res
	}()
	waitFor(t, func() bool { return b.Stats().Running == 1 })
	if res := mustRun(t, b, RunRequest{Code: "x", Session: "other"}); res.Status != StatusInvalid || !strings.Contains(res.Summary, "try again later") {
		t.Errorf("%+v", res)
	}
	close(hold)
	if res := <-done; res.Stdout != "held" {
		t.Errorf("%+v", res)
	}
	if res := mustRun(t, b, RunRequest{Code: "x", Session: "other"}); res.Status != StatusSuccess {
		t.Errorf("afterwards: %+v", res)
	}
}

// A shutdown lets a run end that does so in time, answers the others, and says no to new ones.
func TestHTTPShutdown(t *testing.T) {
	started := make(chan struct{}, 2)
	quick := make(chan struct{})
	scripts := map[string]script{
		"quick": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
			started <- struct{}{}
			<-quick
			return succeed("in time"), nil
		},
		"endless": func(ctx context.Context, _ *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
			started <- struct{}{}
			<-ctx.Done()
			return &wasmhost.Result{Outcome: wasmhost.Cancelled}, nil
		},
	}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	url := serveHTTP(t, b, true)
	clients := []*mcp.ClientSession{oldClient(t, url, "ann", nil), oldClient(t, url, "ben", nil)}
	results := []chan map[string]any{make(chan map[string]any, 1), make(chan map[string]any, 1)}
	for i, code := range []string{"quick", "endless"} {
		go func() {
			_, got := callRunPython(t, clients[i], map[string]any{"code": code})
			results[i] <- got
		}()
		<-started
	}
	if err := b.Ready(); err != nil {
		t.Errorf("before: %v", err)
	}
	grace, endGrace := context.WithCancel(t.Context())
	drained := make(chan struct{})
	go func() {
		b.Drain(grace)
		close(drained)
	}()
	waitFor(t, func() bool { return b.Ready() != nil })
	if got := (post{url: url, token: "cay"}).run(t, "x"); !strings.Contains(fmt.Sprint(got["summary"]), "shutting down") {
		t.Errorf("a new run: %v", got)
	}
	close(quick)
	if got := <-results[0]; got["stdout"] != "in time" {
		t.Errorf("the quick one: %v", got)
	}
	endGrace()
	<-drained
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-results[1]; got["status"] != "cancelled" {
		t.Errorf("the endless one: %v", got)
	}
}

func TestHTTPOpensNoMoreConnectionsThanItMay(t *testing.T) {
	b, _ := newFakeBridge(t, Options{}, nil, nil)
	endpoint := NewServer(b, ServerOptions{}).HTTP()
	server := httptest.NewServer(endpoint)
	defer server.Close()
	defer endpoint.Close(t.Context())
	first := ""
	for i := range maxConnections + 1 {
		resp, err := http.DefaultClient.Do(initialize(t, server.URL))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
		if i == 0 {
			first = resp.Header.Get("Mcp-Session-Id")
		}
	}
	count := func() int {
		endpoint.mu.Lock()
		defer endpoint.mu.Unlock()
		return len(endpoint.connections)
	}
	if n := count(); n != maxConnections {
		t.Errorf("%d connections", n)
	}
	waitFor(t, func() bool {
		req, err := http.NewRequest(http.MethodDelete, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", first)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusNotFound
	})
}

func TestHTTPRefuses(t *testing.T) {
	b, _ := newFakeBridge(t, Options{}, nil, nil)
	url := serveHTTP(t, b, false)
	tests := []struct {
		name    string
		change  func(*http.Request)
		want    int
		message string
	}{
		{"a request that is too large", func(r *http.Request) {
			r.Body = io.NopCloser(io.LimitReader(zeros{}, maxMessageLine+1))
			r.ContentLength = -1
		}, 413, "larger than 16 MiB"},
		{"no JSON", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{")); r.ContentLength = 1 }, 400, "malformed"},
		{"another type of content", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, "application/json"},
		{"a client that takes no streams", func(r *http.Request) { r.Header.Set("Accept", "application/json") }, 400, "text/event-stream"},
		{"a version that there isn't", func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", "2020-01-01") }, 400, "2025-11-25"},
		{"a connection that there isn't", func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "x") }, 404, "not found"},
		{"another method", func(r *http.Request) { r.Method = http.MethodPut }, 405, "Not Allowed"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			req := initialize(t, url)
			tc.change(req)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tc.want || !strings.Contains(string(body), tc.message) {
				t.Errorf("%d %q, %v; want %d with %q", resp.StatusCode, body, err, tc.want, tc.message)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func initialize(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	return req
}
