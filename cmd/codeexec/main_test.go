package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"codeexec/bridge/upstream"
	"codeexec/wasmhost"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect to what they get")

// The test binary is the helpers of tests too, and the supervisor of the servers that bridges in it start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == upstream.SuperviseArg {
		os.Exit(upstream.SuperviseMain(os.Args[2:]))
	}
	testscript.Main(withProgram{m}, map[string]func(){"suiteclient": suiteClient, "suitebrowser": suiteBrowser})
}

// withProgram runs tests with codeexec on the PATH, as it is shipped: under the race detector each of the many
// processes that tests start would take a second before it does anything. What runs in them is under the race
// detector in the tests of the packages that they are made of, and in those of this one that open a bridge.
type withProgram struct{ m *testing.M }

func (w withProgram) Run() int {
	dir, err := os.MkdirTemp("", "codeexec-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", dir+string(os.PathSeparator), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building codeexec: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return w.m.Run()
}

// The scripts show what users and MCP clients see. Those that run Python fail, and say what to do, in a
// checkout without its artifacts.
func TestScripts(t *testing.T) {
	tools := t.TempDir()
	stub := filepath.Join(tools, "stubserver")
	if runtime.GOOS == "windows" {
		stub += ".exe"
	}
	build := exec.Command("go", "build", "-o", stub, "codeexec/testdata/stubserver")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the stub server: %v\n%s", err, out)
	}
	cache, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	// Once, and not in each of the scripts at the same time.
	engine, err := wasmhost.New(t.Context(), wasmhost.Options{CacheDir: cache})
	if err != nil {
		t.Fatal(err) // says what to do where there is no Python
	}
	if err := engine.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		WorkdirRoot:         t.TempDir(), // testscript leaves its own behind
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", tools+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("CODEEXEC_STATE_DIR", filepath.Join(env.WorkDir, "state"))
			own := filepath.Join(env.WorkDir, "cache")
			env.Setenv("CODEEXEC_CACHE_DIR", own)
			return linkCache(own, cache)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode":  scriptExitCode,
			"mcp":       scriptMCP,
			"gone":      scriptGone,
			"interrupt": scriptInterrupt,
			"damage":    scriptDamage,
		},
	})
}

// cacheDir is where codeexec keeps compiled code outside of tests, so that they needn't compile anew.
func cacheDir() (string, error) {
	if dir := os.Getenv("CODEEXEC_CACHE_DIR"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "codeexec"), err
}

// linkCache makes dir a cache directory with the compiled code of another, since compiling takes seconds, and
// with nothing known of servers.
func linkCache(dir, other string) error {
	native := filepath.Join(other, "native")
	if err := os.MkdirAll(native, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.Symlink(native, filepath.Join(dir, "native"))
}

// freshCache is a cache directory of the test's own, with the compiled code and with nothing known of servers.
func freshCache(t testing.TB) string {
	t.Helper()
	compiled, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "cache")
	if err := linkCache(dir, compiled); err != nil {
		t.Fatal(err)
	}
	return dir
}

// patience bounds whatever a script waits for; it is reached only when something is broken.
const patience = time.Minute

// scriptExitCode runs a command and compares its exit code:
//
//	exitcode N program args…
func scriptExitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// command returns codeexec with args in the environment of a script.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	program := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) { // the script's, not ours
		if candidate := filepath.Join(dir, "codeexec"+ts.Getenv("exe")); isFile(candidate) {
			program = candidate
			break
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "CODEEXEC_STATE_DIR", "CODEEXEC_CACHE_DIR", "CODEEXEC_OUTPUT_MODE", "CODEEXEC_MEMORY", "CODEEXEC_SESSION_IDLE", "MCP_BRIDGE_TIMEOUT", "MCP_BRIDGE_MAX_TIMEOUT"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// scriptMCP is a client that sends the lines of a file to "codeexec serve", and waits for the answer to each
// before it sends the next, except for lines that begin with "&". The answers become the command's standard
// output, one a line, without what differs from run to run:
//
//	mcp FILE [args of serve…]
func scriptMCP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: mcp file [args...]")
	}
	requests := ts.ReadFile(args[0])
	cmd := command(ts, append([]string{"serve"}, args[1:]...))
	cmd.Stderr = ts.Stderr()
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	watchdog := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer watchdog.Stop()
	answers := bufio.NewReader(out)
	for line := range strings.Lines(requests) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		line, ahead := strings.CutPrefix(line, "&")
		if _, err := fmt.Fprintln(in, line); err != nil {
			ts.Fatalf("sending %s: %v", line, err)
		}
		var request struct{ ID json.RawMessage }
		if json.Unmarshal([]byte(line), &request); request.ID == nil || ahead {
			continue
		}
		for {
			answer, err := answers.ReadBytes('\n')
			if err != nil {
				ts.Fatalf("no answer to %s: %v", line, err)
			}
			fmt.Fprintf(ts.Stdout(), "%s\n", stable(ts, answer))
			var got struct{ ID json.RawMessage }
			if json.Unmarshal(answer, &got); bytes.Equal(got.ID, request.ID) {
				break
			}
		}
	}
	in.Close()
	rest, err := io.ReadAll(answers)
	ts.Check(err)
	if len(rest) > 0 {
		fmt.Fprintf(ts.Stdout(), "%s\n", rest)
	}
	if err := cmd.Wait(); err != nil {
		ts.Fatalf("codeexec serve: %v", err)
	}
}

// stable replaces what differs from run to run in a message.
func stable(ts *testscript.TestScript, message []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(message))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		ts.Fatalf("standard output has a line that is no message: %q", message)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	ts.Check(encoder.Encode(withoutTimes(v)))
	return strings.TrimSpace(b.String())
}

var (
	duration = regexp.MustCompile(`\b[0-9.]+ m?s\b`)
	runID    = regexp.MustCompile(`(codeexec://runs/|"id": ")[a-z0-9]{16}\b`)
	instant  = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[0-9:.]+Z|\b\d\d:\d\d:\d\d\b`)
	icon     = regexp.MustCompile(`^data:image/svg.*`)
)

func withoutTimes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			_, isNumber := value.(json.Number)
			switch {
			case isNumber && (key == "duration_ms" || key == "ms" || key == "progress"):
				v[key] = 0
			case key == "version":
				v[key] = "VERSION"
			default:
				v[key] = withoutTimes(value)
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = withoutTimes(v[i])
		}
		return v
	case string:
		v = icon.ReplaceAllString(v, "ICON")
		v = runID.ReplaceAllString(v, "${1}RUN")
		v = instant.ReplaceAllString(v, "TIME")
		v = regexp.MustCompile(`"duration_ms": \d+`).ReplaceAllString(v, `"duration_ms": 0`)
		return duration.ReplaceAllString(v, "TIME")
	}
	return v
}

// scriptGone waits until none of the processes whose ids are in a file exist.
func scriptGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone file")
	}
	for _, field := range strings.Fields(ts.ReadFile(args[0])) {
		pid, err := strconv.Atoi(field)
		ts.Check(err)
		waitUntil(ts, fmt.Sprintf("the end of process %d", pid), func() bool { return !alive(pid) })
	}
}

// scriptDamage cuts the files in a directory in half:
//
//	damage DIR
func scriptDamage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage dir")
	}
	dir := ts.MkAbs(args[0])
	entries, err := os.ReadDir(dir)
	ts.Check(err)
	if len(entries) == 0 {
		ts.Fatalf("%s is empty", args[0])
	}
	for _, entry := range entries {
		info, err := entry.Info()
		ts.Check(err)
		ts.Check(os.Truncate(filepath.Join(dir, entry.Name()), info.Size()/2))
	}
}

// scriptInterrupt runs codeexec, sends it a signal when it has got somewhere, and compares its exit code, -1
// if the signal killed it:
//
//	interrupt INT|TERM|KILL CODE stdout:TEXT|file:PATH INPUT codeexec args…
//
// The signal is sent once standard output has TEXT in it, or the file PATH isn't empty. INPUT is a file with
// standard input, which stays open, or "-" for none.
func scriptInterrupt(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}
	if neg || len(args) < 5 || signals[args[0]] == nil || args[4] != "codeexec" {
		ts.Fatalf("usage: interrupt INT|TERM|KILL code stdout:text|file:path input codeexec [args...]")
	}
	cmd := command(ts, args[5:])
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, ts.Stderr()
	in, err := cmd.StdinPipe()
	ts.Check(err)
	defer in.Close()
	ts.Check(cmd.Start())
	watchdog := time.AfterFunc(2*patience, func() { cmd.Process.Kill() })
	defer watchdog.Stop()
	if args[3] != "-" {
		_, err := io.WriteString(in, ts.ReadFile(args[3]))
		ts.Check(err)
	}
	waitUntil(ts, args[2], func() bool {
		if text, ok := strings.CutPrefix(args[2], "stdout:"); ok {
			return strings.Contains(out.String(), text)
		}
		info, err := os.Stat(ts.MkAbs(strings.TrimPrefix(args[2], "file:")))
		return err == nil && info.Size() > 0
	})
	ts.Check(cmd.Process.Signal(signals[args[0]]))
	cmd.Wait() // the exit code says it all
	io.WriteString(ts.Stdout(), out.String())
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("exit code %s, want %s", got, args[1])
	}
}

func waitUntil(ts *testscript.TestScript, what string, done func() bool) {
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("waited in vain for %s", what)
		}
	}
}

// A lockedBuffer may be read while a command writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
