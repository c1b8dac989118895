package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/wasmhost"
)

// connect returns a client of a server over b.
func connect(t *testing.T, b *Bridge, opts ServerOptions) *mcp.ClientSession {
	t.Helper()
	theirs, ours := mcp.NewInMemoryTransports()
	server := NewServer(b, opts)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, ours) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
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

func callRunPython(t *testing.T, session *mcp.ClientSession, args any) (*mcp.CallToolResult, map[string]any) {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	structured, _ := res.StructuredContent.(map[string]any)
	return res, structured
}

func TestToolDescription(t *testing.T) {
	b, _ := newFakeBridge(t, Options{Timeout: 45 * time.Second, MaxTimeout: 90 * time.Second}, nil, nil)
	session := connect(t, b, ServerOptions{})
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 {
		t.Fatalf("got %+v, %v", list, err)
	}
	tool := list.Tools[0]
	// English has about 1.3 tokens a word, code more; four bytes a token is the usual estimate.
	if n := len(tool.Description); n > 800 {
		t.Errorf("the description has %d bytes, about %d tokens", n, n/4)
	}
	if a := tool.Annotations; tool.Name != "run_python" || tool.Title == "" || a == nil || a.ReadOnlyHint || a.IdempotentHint || !*a.DestructiveHint || !*a.OpenWorldHint {
		t.Errorf("got %+v, %+v", tool, a)
	}
	schema, _ := json.Marshal(tool.InputSchema)
	for _, want := range []string{`"default":45`, "at most 90", `"required":["code"]`} {
		if !bytes.Contains(schema, []byte(want)) {
			t.Errorf("the input schema has no %s: %s", want, schema)
		}
	}
}

func TestCapabilities(t *testing.T) {
	b, _ := newFakeBridge(t, Options{Memory: 256 << 20, Projects: "/somewhere"}, nil, nil)
	session := connect(t, b, ServerOptions{})
	res, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: CapabilitiesURI})
	if err != nil {
		t.Fatal(err)
	}
	text := res.Contents[0].Text
	if n := len(strings.Fields(text)); n >= 400 {
		t.Errorf("%d words", n)
	}
	for _, want := range []string{"30 s a run", "up to 120 s", "256 MiB of memory", "1000 tool calls", "16 in flight", "64 KiB of text", "/projects"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing about %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "{{") || strings.Contains(text, "\n\n\n") {
		t.Errorf("the template shows:\n%s", text)
	}
}

func TestRunPython(t *testing.T) {
	scripts := map[string]script{"fail": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
		return &wasmhost.Result{Outcome: "error", Stdout: wasmhost.Output{Head: []byte("before\n")}, Exception: &wasmhost.Exception{Type: "ValueError", Message: "no"}}, nil
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	session := connect(t, b, ServerOptions{})

	res, structured := callRunPython(t, session, map[string]any{"code": "hello", "timeout": nil, "servers": nil})
	if res.IsError || structured["status"] != "success" || structured["stdout"] != "hello" || structured["exit_code"] != 0.0 {
		t.Errorf("got %+v", structured)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; text != "success: finished in 1 ms\nstdout: hello\n" {
		t.Errorf("text %q", text)
	}
	res, structured = callRunPython(t, session, map[string]any{"code": "fail"})
	if !res.IsError || structured["status"] != "error" || structured["stdout"] != "before\n" {
		t.Errorf("got %+v", structured)
	}
}

func TestRunPythonAsJSON(t *testing.T) {
	b, _ := newFakeBridge(t, Options{}, nil, nil)
	session := connect(t, b, ServerOptions{Text: TextJSON})
	res, structured := callRunPython(t, session, map[string]any{"code": "hello"})
	var text map[string]any
	if err := json.Unmarshal([]byte(res.Content[0].(*mcp.TextContent).Text), &text); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(text) != fmt.Sprint(structured) {
		t.Errorf("text %v, structured %v", text, structured)
	}
}

func TestRunPythonRefusesArguments(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"no code", `{}`, "code is missing: the Python source to run"},
		{"null code", `{"code":null}`, "code is missing: the Python source to run"},
		{"code of the wrong type", `{"code":1}`, "code must be a string, not 1"},
		{"misspelt argument", `{"code":"x","server":["a"]}`, `unknown argument "server": did you mean "servers"?`},
		{"unknown argument", `{"code":"x","colour":"red"}`, `unknown argument "colour": the arguments are "code", "servers", "timeout", "session", "reset"`},
		{"servers as a string", `{"code":"x","servers":"github"}`, `servers must be a list of strings, such as ["github"], not "github"`},
		{"timeout of zero", `{"code":"x","timeout":0}`, "timeout must be at least 1 second"},
		{"negative timeout", `{"code":"x","timeout":-1e300}`, "timeout must be at least 1 second"},
		{"timeout with a fraction", `{"code":"x","timeout":1.5}`, "timeout must be a whole number of seconds, not 1.5"},
		{"timeout as a string", `{"code":"x","timeout":"30"}`, `timeout must be a number of seconds, not "30"`},
		{"two mistakes", `{"code":1,"reset":"yes"}`, `code must be a string, not 1; reset must be true or false, not "yes"`},
	}
	b, _ := newFakeBridge(t, Options{}, nil, nil)
	session := connect(t, b, ServerOptions{})
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			res, structured := callRunPython(t, session, json.RawMessage(tc.args))
			if !res.IsError || structured["status"] != "validation_error" || structured["summary"] != tc.want {
				t.Errorf("got %+v", structured)
			}
		})
	}
}

func TestHugeTimeoutIsClamped(t *testing.T) {
	b, _ := newFakeBridge(t, Options{}, nil, nil)
	session := connect(t, b, ServerOptions{})
	_, structured := callRunPython(t, session, json.RawMessage(`{"code":"x","timeout":1e300}`))
	if s := structured["summary"].(string); structured["status"] != "success" || !strings.Contains(s, "120 s was used") {
		t.Errorf("got %+v", structured)
	}
}

func TestPythonThatCannotStart(t *testing.T) {
	b, engine := newFakeBridge(t, Options{}, nil, nil)
	engine.err = fmt.Errorf("the artifacts are missing: run make python-wasm")
	session := connect(t, b, ServerOptions{})
	res, structured := callRunPython(t, session, map[string]any{"code": "x"})
	if !res.IsError || structured["status"] != "error" || structured["summary"] != "the artifacts are missing: run make python-wasm" {
		t.Errorf("got %+v", structured)
	}
}

func TestClientCancellationReachesTheRun(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	scripts := map[string]script{"wait": func(ctx context.Context, sb *fakeSandbox, req wasmhost.Request) (*wasmhost.Result, error) {
		close(started)
		defer func() { ended <- ctx.Err() }()
		return untilEnd(ctx, sb, req)
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	session := connect(t, b, ServerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "wait"}}); err == nil {
		t.Error("no error")
	}
	if err := <-ended; err != context.Canceled {
		t.Errorf("the run's context: %v", err)
	}
}

// A client that asks for progress hears of a long run every few seconds.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newFakeBridge(t, Options{}, map[string]script{"wait": untilEnd}, nil)
		theirs, ours := mcp.NewInMemoryTransports()
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- NewServer(b, ServerOptions{}).Serve(ctx, ours) }()
		var heard []float64
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				heard = append(heard, req.Params.Progress)
			},
		})
		session, err := client.Connect(ctx, theirs, nil)
		if err != nil {
			t.Fatal(err)
		}
		params := &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "wait", "timeout": 12}}
		params.SetProgressToken("p")
		if _, err := session.CallTool(ctx, params); err != nil {
			t.Fatal(err)
		}
		session.Close()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(heard) != 2 || heard[0] != 5 || heard[1] != 10 {
			t.Errorf("heard %v", heard)
		}
	})
}

// A stdio is a client that writes and reads lines.
type stdio struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *bufio.Reader
	served chan error
	cancel context.CancelFunc
}

func startStdio(t *testing.T, b *Bridge) *stdio {
	in, clientIn := io.Pipe()
	clientOut, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &stdio{t: t, in: clientIn, out: bufio.NewReader(clientOut), served: make(chan error, 1), cancel: cancel}
	go func() {
		c.served <- NewServer(b, ServerOptions{Version: "1"}).ServeStdio(ctx, in, out)
		out.Close()
	}()
	t.Cleanup(func() {
		cancel()
		clientIn.Close()
		go io.Copy(io.Discard, clientOut)
	})
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	c.receive()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *stdio) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *stdio) sendRun(id int, code string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_python","arguments":{"code":%q}}}`, id, code))
}

// receive returns the id and the status, or the error, of the next answer.
func (c *stdio) receive() string {
	c.t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("reading an answer: %v", err)
	}
	var answer struct {
		ID     any
		Error  *struct{ Code int }
		Result struct {
			StructuredContent struct{ Status string }
		}
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		c.t.Fatalf("%q: %v", line, err)
	}
	if answer.Error != nil {
		return fmt.Sprintf("%v error %d", answer.ID, answer.Error.Code)
	}
	return strings.TrimSpace(fmt.Sprintf("%v %s", answer.ID, answer.Result.StructuredContent.Status))
}

// Calls that a client sends without waiting run in the order in which it sent them.
func TestStdioKeepsTheOrderOfCalls(t *testing.T) {
	var mu sync.Mutex
	var order strings.Builder
	scripts := map[string]script{}
	for i := range 50 {
		scripts[fmt.Sprint(i)] = func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&order, "%d ", i)
			return succeed(""), nil
		}
	}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	c := startStdio(t, b)
	go func() {
		for i := range 50 {
			c.sendRun(i+1, fmt.Sprint(i))
			if i%10 == 0 { // calls that never get to a queue are no obstacle
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"x%d","method":"tools/call","params":{"name":"nothing"}}`, i))
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"y%d","method":"tools/call","params":{"name":"run_python","arguments":{}}}`, i))
			}
		}
	}()
	for range 60 {
		c.receive()
	}
	want := ""
	for i := range 50 {
		want += fmt.Sprintf("%d ", i)
	}
	if order.String() != want {
		t.Errorf("ran in the order %s", order.String())
	}
}

// What isn't a message is answered, and the connection goes on.
func TestStdioSurvivesBadLines(t *testing.T) {
	b, _ := newFakeBridge(t, Options{}, nil, nil)
	c := startStdio(t, b)
	tests := []struct{ name, line, want string }{
		{"not JSON", "hello", "<nil> error -32700"},
		{"half a message", `{"jsonrpc":"2.0","id":1`, "<nil> error -32700"},
		{"no JSON-RPC", `{"id":1}`, "<nil> error -32600"},
		{"another version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, "<nil> error -32600"},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "<nil> error -32600"},
		{"an empty batch", `[]`, "<nil> error -32600"},
		{"an endless line", strings.Repeat("x", maxMessageLine+1), "<nil> error -32600"},
		{"a good message after them", "  {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"} \r", "7"},
		{"a batch", `[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}]`, "8"},
		{"an unknown method", `{"jsonrpc":"2.0","id":9,"method":"nothing"}`, "9 error -32601"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c.send(tc.line)
			if got := c.receive(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A script that was piped in gets its answer although the input has ended.
func TestStdioAnswersAfterTheInputHasEnded(t *testing.T) {
	release := make(chan struct{})
	scripts := map[string]script{"slow": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
		<-release
		return succeed(""), nil
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	c := startStdio(t, b)
	c.sendRun(1, "slow")
	c.in.Close()
	close(release)
	if got := c.receive(); got != "1 success" {
		t.Errorf("got %s", got)
	}
	if err := <-c.served; err != nil {
		t.Error(err)
	}
}

// A client that has gone doesn't keep a script going.
func TestStdioStopsWhatTakesTooLongAfterTheInputHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newFakeBridge(t, Options{}, map[string]script{"wait": untilEnd}, nil)
		c := startStdio(t, b)
		c.sendRun(1, "wait")
		began := time.Now()
		c.in.Close()
		if got := c.receive(); got != "1 cancelled" {
			t.Errorf("got %s", got)
		}
		if took := time.Since(began); took != drainTime {
			t.Errorf("after %v", took)
		}
		if err := <-c.served; err != nil {
			t.Error(err)
		}
	})
}

// Shutting down cancels runs, and their answers still go out.
func TestStdioShutdown(t *testing.T) {
	started := make(chan struct{})
	scripts := map[string]script{"wait": func(ctx context.Context, sb *fakeSandbox, req wasmhost.Request) (*wasmhost.Result, error) {
		close(started)
		return untilEnd(ctx, sb, req)
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	c := startStdio(t, b)
	c.sendRun(1, "wait")
	<-started
	c.cancel()
	if got := c.receive(); got != "1 cancelled" {
		t.Errorf("got %s", got)
	}
	if err := <-c.served; err != nil {
		t.Error(err)
	}
}
