package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge"
	"codeexec/bridge/config"
	"codeexec/bridge/metrics"
)

// stressVariable is how long TestManySessions lasts, such as 60s.
const stressVariable = "CODEEXEC_TEST_STRESS"

// Clients over HTTP, half of them with connections and half without, run scripts in parallel that call a server,
// each in a session of its own: nothing of one is seen by another, and in the end everything is given back. In
// this process, so that the race detector sees it.
func TestManySessions(t *testing.T) {
	const clients = 64
	lasts := 5 * time.Second
	if text := os.Getenv(stressVariable); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", stressVariable, err)
		}
	}
	goroutines := runtime.NumGoroutine()
	stub := filepath.Join(t.TempDir(), "stubserver")
	if out, err := exec.Command("go", "build", "-o", stub, "codeexec/testdata/stubserver").CombinedOutput(); err != nil {
		t.Fatalf("building the stub server: %v\n%s", err, out)
	}
	state := t.TempDir()
	set, err := config.Load(t.Context(), config.Options{StateDir: state, Flags: []string{"stub=" + stub}, Sources: []config.Source{}})
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	counts := metrics.New("test")
	b, engine := openBridge(context.Background(), settings{stateDir: state, cacheDir: freshCache(t), sessions: clients + 1, memory: defaultMemory},
		bridge.Options{Servers: set, Logger: logger, KeepOutput: time.Minute, Observer: counts}, nil)
	counts.Watch(b)
	engine.Start()
	endpoint := newServer(b, settings{text: bridge.TextCompact}, logger).HTTP()
	server := httptest.NewServer(endpoint)
	defer server.Close()

	// What one session needs, Python and the stub server included.
	if res, err := b.Run(t.Context(), bridge.RunRequest{Owner: "warm", Code: "await mcp_stub.echo(text='x')"}); err != nil || res.Status != bridge.StatusSuccess {
		t.Fatalf("%+v, %v", res, err)
	}
	before := memoryUsed()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sessions := make([]*mcp.ClientSession, clients)
	for i := range sessions {
		version := []string{"2025-11-25", "2026-07-28"}[i%2]
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		if sessions[i], err = client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL, DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: version}); err != nil {
			t.Fatal(err)
		}
	}
	// Whoever has a connection has names of its own.
	name := func(i int) string {
		if i%2 == 0 {
			return "default"
		}
		return fmt.Sprint("session ", i)
	}
	var runs atomic.Int64
	round := func(i, n int) error {
		code := fmt.Sprintf(`
import asyncio, os
seen = globals().get("seen", [])
seen.append(%[1]d)
open("/tmp/mine", "a").write("%[2]d\n")
back = await asyncio.gather(*(mcp_stub.echo(text=f"%[2]d-{k}") for k in range(3)))
print(*(b["text"] for b in back), *open("/tmp/mine").read().split(), len(seen), seen == list(range(len(seen))))`, n, i)
		result, err := sessions[i].CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": code, "session": name(i), "timeout": 120}})
		if err != nil {
			return err
		}
		want := fmt.Sprintf("%[1]d-0 %[1]d-1 %[1]d-2%[2]s %[3]d True\n", i, strings.Repeat(fmt.Sprint(" ", i), n+1), n+1)
		if got := result.StructuredContent.(map[string]any); got["stdout"] != want {
			return fmt.Errorf("session %d, run %d: %v, want %q", i, n, got, want)
		}
		runs.Add(1)
		return nil
	}
	all := func(from int, until func(n int) bool) {
		var running sync.WaitGroup
		for i := range clients {
			running.Go(func() {
				for n := from; until(n); n++ {
					if err := round(i, n); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		running.Wait()
	}
	all(0, func(n int) bool { return n < 2 })
	if t.Failed() {
		return
	}
	all64 := memoryUsed()
	deadline := time.Now().Add(lasts)
	all(2, func(int) bool { return time.Now().Before(deadline) })
	busy := memoryUsed()
	for i, session := range sessions {
		if err := session.Close(); err != nil {
			t.Errorf("client %d: %v", i, err)
		}
	}
	answer := httptest.NewRecorder()
	counts.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		fmt.Sprintf(`codeexec_runs_total{status="success"} %d`, runs.Load()+1),
		fmt.Sprintf(`codeexec_tool_calls_total{outcome="ok",server="stub"} %d`, 3*runs.Load()+1),
		"codeexec_runs_running 0",
	} {
		if !strings.Contains(answer.Body.String(), want+"\n") {
			t.Errorf("metrics have no %q", want)
		}
	}
	// The sessions of clients without a connection are kept for their return.
	for deadline := time.Now().Add(patience); b.Stats().Sessions != clients/2+1 && !t.Failed(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d sessions are left, want %d", b.Stats().Sessions, clients/2+1)
		}
	}
	if err := closeBridge(t.Context(), b); err != nil {
		t.Error(err)
	}
	if err := endpoint.Close(t.Context()); err != nil {
		t.Error(err)
	}
	server.Close()
	cancel()
	after := memoryUsed()
	t.Logf("%d runs of %d sessions in %v; memory in MiB: %d with one session, %d with all, %d at the end, %d afterwards", runs.Load(), clients, lasts, before>>20, all64>>20, busy>>20, after>>20)
	if before > 0 && (busy > 2*all64 || after > before+(all64-before)/2) {
		t.Errorf("memory in MiB: %d with one session, %d with all, %d at the end, and %d when all is closed", before>>20, all64>>20, busy>>20, after>>20)
	}
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > goroutines+2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, before %d:\n%s", runtime.NumGoroutine(), goroutines, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// memoryUsed is what this process has in memory, in bytes; 0 where that can't be told.
func memoryUsed() int64 {
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}
