package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/catalog"
	"codeexec/bridge/upstream"
	"codeexec/hostfuncs"
	"codeexec/wasmhost"
)

// A script stands in for Python: it is what a fake sandbox runs for a request.
type script func(ctx context.Context, sb *fakeSandbox, req wasmhost.Request) (*wasmhost.Result, error)

// fakeEngine makes sandboxes that look up the code of a request among its scripts.
type fakeEngine struct {
	scripts map[string]script

	mu     sync.Mutex
	alive  int
	made   int
	closed bool
	err    error // of NewSandbox
}

func (e *fakeEngine) NewSandbox(ctx context.Context, opts wasmhost.SessionOptions) (Sandbox, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return nil, e.err
	}
	e.made++
	e.alive++
	return &fakeSandbox{engine: e, handler: opts.Handler, id: e.made}, nil
}

func (e *fakeEngine) Close(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.alive != 0 {
		return fmt.Errorf("%d sandboxes are open", e.alive)
	}
	e.closed = true
	return nil
}

type fakeSandbox struct {
	engine  *fakeEngine
	handler hostfuncs.Handler
	id      int
	runs    []string // the codes that were run, in order
}

func (s *fakeSandbox) Run(ctx context.Context, req wasmhost.Request) (*wasmhost.Result, error) {
	s.runs = append(s.runs, req.Code)
	if run := s.engine.scripts[req.Code]; run != nil {
		return run(ctx, s, req)
	}
	return succeed(req.Code), nil
}

func (s *fakeSandbox) Close(context.Context) error {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.engine.alive--
	return nil
}

// call makes a request of the host like a script.
func (s *fakeSandbox) call(ctx context.Context, op string, params any) (json.RawMessage, error) {
	p, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	resp, err := s.handler.Handle(ctx, hostfuncs.Request{Op: op, Params: p})
	return resp.Value, err
}

func succeed(stdout string) *wasmhost.Result {
	return &wasmhost.Result{Outcome: "success", Stdout: wasmhost.Output{Head: []byte(stdout)}, Duration: time.Millisecond}
}

// untilEnd is a script that waits for the end of its run.
func untilEnd(ctx context.Context, _ *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
	<-ctx.Done()
	outcome := wasmhost.Outcome("cancelled")
	if ctx.Err() == context.DeadlineExceeded {
		outcome = "timeout"
	}
	return &wasmhost.Result{Outcome: outcome, Duration: time.Second, Stdout: wasmhost.Output{Head: []byte("so far\n")}}, nil
}

// fakeUpstreams are servers with the given tools.
type fakeUpstreams struct {
	servers []upstream.Info
	tools   map[string][]catalog.Tool                                        // known ones by server
	list    func(ctx context.Context, server string) ([]catalog.Tool, error) // what it says itself; nil: the known ones
	mu      sync.Mutex
	asked   []string // servers that were, sorted
	call    func(ctx context.Context, server, tool string, args json.RawMessage) (*mcp.CallToolResult, error)
}

func (u *fakeUpstreams) Servers() []upstream.Info {
	infos := slices.Clone(u.servers)
	for i, info := range infos {
		if tools, ok := u.Known(info.Name); ok {
			infos[i].Tools = len(tools)
		}
	}
	return infos
}

func (u *fakeUpstreams) Known(server string) ([]catalog.Tool, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	tools, ok := u.tools[server]
	return tools, ok
}

func (u *fakeUpstreams) Tools(ctx context.Context, server string) ([]catalog.Tool, error) {
	if tools, ok := u.Known(server); ok {
		return tools, nil
	}
	return u.Refresh(ctx, server)
}

func (u *fakeUpstreams) Refresh(ctx context.Context, server string) ([]catalog.Tool, error) {
	u.mu.Lock()
	u.asked = append(u.asked, server)
	slices.Sort(u.asked)
	u.mu.Unlock()
	tools, err := u.list(ctx, server)
	if err == nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.tools == nil {
			u.tools = make(map[string][]catalog.Tool)
		}
		u.tools[server] = tools
	}
	return tools, err
}

func (u *fakeUpstreams) Tool(_ context.Context, server, tool string) (catalog.Tool, error) {
	tools, known := u.Known(server)
	for _, t := range tools {
		if t.Name == tool {
			return t, nil
		}
	}
	if known {
		return catalog.Tool{}, &upstream.UnknownToolError{Server: server, Tool: tool}
	}
	return catalog.Tool{Name: tool}, nil
}

func (u *fakeUpstreams) Call(ctx context.Context, server, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	return u.call(ctx, server, tool, args)
}

func (u *fakeUpstreams) Close(context.Context) error { return nil }

func someServers() []upstream.Info {
	return []upstream.Info{
		{Name: "files", Alias: "files", Description: "Files", Status: "idle", Transport: "stdio", Tools: -1},
		{Name: "git-hub", Alias: "git_hub", Status: "ready", Transport: "stdio", Tools: 3},
		{Name: "off", Alias: "off", Status: upstream.StatusDisabled, Transport: "stdio", Tools: -1},
	}
}

// newFakeBridge returns a bridge over fakes. It is closed when the test ends, which fails if anything is
// left.
func newFakeBridge(t *testing.T, opts Options, scripts map[string]script, up *fakeUpstreams) (*Bridge, *fakeEngine) {
	t.Helper()
	engine := &fakeEngine{scripts: scripts}
	opts.Engine = engine
	if up == nil {
		up = &fakeUpstreams{servers: someServers()}
	}
	b := newBridge(t.Context(), opts, up)
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if !engine.closed {
			t.Error("the engine is still open")
		}
	})
	return b, engine
}

func mustRun(t *testing.T, b *Bridge, req RunRequest) *RunResult {
	t.Helper()
	res, err := b.Run(t.Context(), req)
	if err != nil {
		t.Fatalf("Run(%q): %v", req.Code, err)
	}
	return res
}
