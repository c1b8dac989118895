package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/config"
)

// stub is the path of the stub server's program.
var stub string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == SuperviseArg {
		os.Exit(SuperviseMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == victimArg {
		os.Exit(victimMain(os.Args[2:]))
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "stubserver")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		stub = filepath.Join(dir, "stubserver")
		if runtime.GOOS == "windows" {
			stub += ".exe"
		}
		build := exec.Command("go", "build", "-o", stub, "codeexec/testdata/stubserver")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the stub server: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// supervisor is our own test program in its other mode.
func supervisor(t testing.TB) []string {
	t.Helper()
	line, err := SelfSupervisor()
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// A buffer is a log that a test can read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func logTo(b *buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// stubServer configures the stub server under the name "stub".
func stubServer(flags ...string) config.Server {
	return config.Server{Name: "stub", Command: stub, Args: flags, Source: "test"}
}

// start makes a manager of servers that ends with the test.
func start(t testing.TB, opts Options, servers ...config.Server) *Manager {
	t.Helper()
	if opts.Supervisor == nil {
		opts.Supervisor = supervisor(t)
	}
	m := NewManager(servers, opts)
	t.Cleanup(func() { closeManager(t, m) })
	return m
}

func closeManager(t testing.TB, m *Manager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// limit is a context for what should take a moment.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// call calls a tool of the server "stub", and fails the test if it can't.
func call(t testing.TB, m *Manager, tool, args string) *mcp.CallToolResult {
	t.Helper()
	result, err := m.Call(limit(t), "stub", tool, json.RawMessage(args))
	if err != nil {
		t.Fatalf("calling %s: %v", tool, err)
	}
	return result
}

// text returns the text of a result that has one block of text.
func text(t testing.TB, result *mcp.CallToolResult) string {
	t.Helper()
	if len(result.Content) != 1 {
		t.Fatalf("%d blocks of content", len(result.Content))
	}
	block, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("content is a %T", result.Content[0])
	}
	return block.Text
}

// field returns a field of a result's structured content.
func field[T any](t testing.TB, result *mcp.CallToolResult, key string) T {
	t.Helper()
	var fields map[string]json.RawMessage
	var value T
	raw, _ := result.StructuredContent.(json.RawMessage)
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatalf("structured content %s: %v", raw, err)
	}
	if err := json.Unmarshal(fields[key], &value); err != nil {
		t.Fatalf("%s of %s: %v", key, raw, err)
	}
	return value
}

// unavailable asserts that err is an UnavailableError and returns it.
func unavailable(t testing.TB, err error) *UnavailableError {
	t.Helper()
	var u *UnavailableError
	if !errors.As(err, &u) {
		t.Fatalf("err = %v (%T), want an UnavailableError", err, err)
	}
	return u
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not so: %s", what)
		}
	}
}

// readPids reads the process ids that stub servers have noted in a file.
func readPids(t testing.TB, file string) []int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, field := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// victimArg makes the test program a codeexec that will be killed.
const victimArg = "__victim"

// victimMain starts a stub server with the given flags, says so on stdout, and
// waits to be killed.
func victimMain(args []string) int {
	line, err := SelfSupervisor()
	if err != nil {
		return 1
	}
	m := NewManager([]config.Server{{Name: "stub", Command: args[0], Args: args[1:]}}, Options{Supervisor: line})
	if _, err := m.Tools(context.Background(), "stub"); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	select {}
}
