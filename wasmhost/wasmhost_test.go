package wasmhost_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"codeexec/hostfuncs"
	"codeexec/wasmhost"
)

// engine is shared by the tests: compiling takes seconds.
var engine *wasmhost.Engine

func TestMain(m *testing.M) {
	var err error
	engine, err = wasmhost.New(context.Background(), wasmhost.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := engine.Close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "closing the engine:", err)
		code = 1
	}
	os.Exit(code)
}

func newSession(t testing.TB, opts wasmhost.SessionOptions) *wasmhost.Session {
	t.Helper()
	s, err := engine.NewSession(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("closing the session: %v", err)
		}
	})
	return s
}

func run(t testing.TB, s *wasmhost.Session, code string) *wasmhost.Result {
	t.Helper()
	return runFor(t, s, time.Minute, code)
}

func runFor(t testing.TB, s *wasmhost.Session, limit time.Duration, code string) *wasmhost.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := s.Run(ctx, wasmhost.Request{Code: code})
	if err != nil {
		t.Fatalf("running %q: %v", code, err)
	}
	return r
}

// mustPrint fails unless code succeeds and prints want.
func mustPrint(t testing.TB, s *wasmhost.Session, code, want string) {
	t.Helper()
	r := run(t, s, code)
	if r.Outcome != wasmhost.Success {
		t.Fatalf("%s: %s\n%s%s", code, r.Outcome, r.Stderr, traceback(r))
	}
	if got := r.Stdout.String(); got != want {
		t.Errorf("%s: printed %q, want %q", code, got, want)
	}
}

func traceback(r *wasmhost.Result) string {
	if r.Exception == nil {
		return ""
	}
	return r.Exception.Traceback
}

func TestRun(t *testing.T) {
	tests := []struct {
		name     string
		code     string
		outcome  wasmhost.Outcome
		exit     int
		stdout   string
		stderr   string
		value    string
		except   string // Exception.Type
		line     int
		resetHas string
	}{
		{name: "prints", code: "print(6 * 7)", outcome: wasmhost.Success, stdout: "42\n"},
		{name: "gives the value of the last expression", code: "x = 20\nx + 1", outcome: wasmhost.Success, value: "21"},
		{name: "gives no value for None", code: "print(1)", outcome: wasmhost.Success, stdout: "1\n"},
		{name: "awaits at top level", code: "import asyncio\nawait asyncio.sleep(0.001)\nprint('slept')", outcome: wasmhost.Success, stdout: "slept\n"},
		{name: "runs asyncio.run inside the running loop", code: "import asyncio\nasync def main(): return 5\nprint(asyncio.run(main()))", outcome: wasmhost.Success, stdout: "5\n"},
		{name: "keeps stderr apart", code: "import sys\nprint('e', file=sys.stderr)", outcome: wasmhost.Success, stderr: "e\n"},
		{name: "reports an exception with its line", code: "print('before')\n\n1/0", outcome: wasmhost.Failure, exit: 1, stdout: "before\n", except: "ZeroDivisionError", line: 3},
		{name: "reports a syntax error", code: "x = (", outcome: wasmhost.Failure, exit: 1, except: "SyntaxError", line: 1},
		{name: "exits with 0", code: "import sys\nprint('x')\nsys.exit()", outcome: wasmhost.Success, stdout: "x\n"},
		{name: "exits with a code", code: "raise SystemExit(3)", outcome: wasmhost.Failure, exit: 3, except: "SystemExit", line: 1},
		{name: "exits with a text", code: "exit('bye')", outcome: wasmhost.Failure, exit: 1, stderr: "bye\n", except: "SystemExit", line: 1},
		{name: "os._exit resets", code: "import os\nprint('x')\nos._exit(4)", outcome: wasmhost.Failure, exit: 4, stdout: "x\n", resetHas: "os._exit"},
		{name: "os.abort resets", code: "import os\nos.abort()", outcome: wasmhost.Failure, exit: 134, resetHas: "os.abort"},
		{name: "input is at its end", code: "input()", outcome: wasmhost.Failure, exit: 1, except: "EOFError", line: 1},
		{name: "recursion is an error", code: "def f(): f()\nf()", outcome: wasmhost.Failure, exit: 1, except: "RecursionError", line: 1},
		{name: "memory has a limit", code: "x = bytearray(10**9)", outcome: wasmhost.Failure, exit: 1, except: "MemoryError", line: 1},
		{name: "closing the standard streams loses no output", code: "import os\nfor fd in range(4): os.close(fd)\nopen(1, 'w').close()\nprint('x', os.listdir('/tmp'))", outcome: wasmhost.Success, stdout: "x []\n"},
		{name: "no stray surrogate breaks output", code: `print("\ud800 \x00")`, outcome: wasmhost.Success, stdout: "\\ud800 \x00\n"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newSession(t, wasmhost.SessionOptions{})
			r := run(t, s, tc.code)
			if r.Outcome != tc.outcome || r.ExitCode != tc.exit {
				t.Errorf("outcome %s, exit code %d; want %s, %d\n%s", r.Outcome, r.ExitCode, tc.outcome, tc.exit, traceback(r))
			}
			if got := r.Stdout.String(); got != tc.stdout {
				t.Errorf("stdout %q, want %q", got, tc.stdout)
			}
			if got := r.Stderr.String(); got != tc.stderr {
				t.Errorf("stderr %q, want %q", got, tc.stderr)
			}
			if r.Value != tc.value {
				t.Errorf("value %q, want %q", r.Value, tc.value)
			}
			var except string
			var line int
			if r.Exception != nil {
				except, line = r.Exception.Type, r.Exception.Line
			}
			if except != tc.except || line != tc.line {
				t.Errorf("exception %q at line %d, want %q at %d\n%s", except, line, tc.except, tc.line, traceback(r))
			}
			if (r.Reset != "") != (tc.resetHas != "") || !strings.Contains(r.Reset, tc.resetHas) {
				t.Errorf("reset %q, want one with %q", r.Reset, tc.resetHas)
			}
			mustPrint(t, s, "print('alive')", "alive\n")
		})
	}
}

func TestSessionKeepsState(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	run(t, s, "import math, os\nx = 1\ndef f(): return x + 1\nopen('/workspace/a', 'w').write('hello')\nos.mkdir('/tmp/d'); os.chdir('/tmp/d')")
	mustPrint(t, s, "print(x, f(), math.tau > 6, open('/workspace/a').read(), os.getcwd())", "1 2 True hello /tmp/d\n")
	other := newSession(t, wasmhost.SessionOptions{})
	r := run(t, other, "print(x)")
	if r.Exception == nil || r.Exception.Type != "NameError" {
		t.Errorf("a variable of another session: %+v, want NameError", r.Exception)
	}
	mustPrint(t, other, "import os; print(os.listdir('/workspace'), os.getcwd())", "[] /workspace\n")
}

func TestForksDrawDifferentRandomNumbers(t *testing.T) {
	const code = "import random, uuid, secrets, os, tempfile\n" +
		"print(random.random(), uuid.uuid4(), uuid.uuid1(), secrets.token_hex(8), os.urandom(8), tempfile.mktemp())"
	a, b := newSession(t, wasmhost.SessionOptions{}), newSession(t, wasmhost.SessionOptions{})
	x, y := strings.Fields(run(t, a, code).Stdout.String()), strings.Fields(run(t, b, code).Stdout.String())
	if len(x) != 6 || len(y) != 6 {
		t.Fatalf("printed %q and %q, want six numbers each", x, y)
	}
	for i := range x {
		if x[i] == y[i] {
			t.Errorf("both sessions drew %s", x[i])
		}
	}
}

func TestClockIsReal(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	r := run(t, s, "import time\na = time.perf_counter()\ntime.sleep(0.02)\nb = time.perf_counter()\nprint(time.time())\nassert b - a >= 0.02, b - a")
	var seconds float64
	if _, err := fmt.Sscan(r.Stdout.String(), &seconds); err != nil || r.Outcome != wasmhost.Success {
		t.Fatalf("%v %s %s", err, r.Stdout, traceback(r))
	}
	if d := time.Since(time.UnixMilli(int64(seconds * 1000))); d < 0 || d > time.Minute {
		t.Errorf("the sandbox's clock is %v behind", d)
	}
}

// Each of these runs beyond a limit of 1 s. The wall clock bounds are generous:
// what is tested is that the run ends by itself, soon, and what is left.
func TestTimeout(t *testing.T) {
	tests := []struct {
		name, code string
		kept       bool // the session's variables survive
	}{
		{name: "endless loop", code: "while True: pass", kept: true},
		{name: "long C loop that checks signals", code: "sum(range(10**12))"},
		{name: "loop that catches everything", code: "while True:\n    try:\n        while True: pass\n    except BaseException: pass"},
		{name: "sleep", code: "import time\ntime.sleep(1e6)", kept: true},
		{name: "event that nobody sets, beside a timer", code: "import asyncio\nasyncio.get_running_loop().call_later(1e5, print)\nawait asyncio.Event().wait()", kept: true},
		{name: "asyncio.sleep", code: "import asyncio\nawait asyncio.sleep(1e6)", kept: true},
		{name: "catastrophic regex", code: "import re\nre.match('(a+)+$', 'a' * 40 + 'b')", kept: true},
		{name: "huge power", code: "x = 10 ** 10 ** 8"},
		{name: "endless deque", code: "import collections, itertools\ncollections.deque(itertools.count(), maxlen=0)"},
		{name: "endless printing", code: "while True: print('x' * 1000)", kept: true},
		{name: "recursive generator", code: "def f():\n    while True:\n        yield from (i for i in range(10**6))\nfor _ in f(): pass", kept: true},
		{name: "host call that never ends", code: "from codeexec import host\nhost.call('block', {})", kept: true},
		{name: "awaited host call that never ends", code: "from codeexec import host\nawait host.call_async('block', {})", kept: true},
	}
	block := hostfuncs.HandlerFunc(func(ctx context.Context, _ hostfuncs.Request) (hostfuncs.Response, error) {
		<-ctx.Done()
		return hostfuncs.Response{}, ctx.Err()
	})
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, wasmhost.SessionOptions{Handler: block})
			run(t, s, "x = 1")
			start := time.Now()
			r := runFor(t, s, time.Second, "print('begun')\n"+tc.code)
			elapsed := time.Since(start)
			if r.Outcome != wasmhost.Timeout {
				t.Errorf("outcome %s, want timeout\n%s", r.Outcome, traceback(r))
			}
			if elapsed > 20*time.Second {
				t.Errorf("it took %v", elapsed)
			}
			if !strings.HasPrefix(r.Stdout.String(), "begun\n") {
				t.Errorf("stdout %.20q lacks what was printed before the timeout", r.Stdout)
			}
			if tc.kept && r.Reset != "" {
				t.Errorf("the session was reset: %s", r.Reset)
			}
			if r.Reset == "" {
				mustPrint(t, s, "print(x)", "1\n")
			} else {
				mustPrint(t, s, "print('x' in globals())", "False\n")
			}
		})
	}
}

// A caller may keep its own time, and say by the cause that it is over.
func TestTimeoutByCause(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer time.AfterFunc(50*time.Millisecond, func() { cancel(context.DeadlineExceeded) }).Stop()
	r, err := s.Run(ctx, wasmhost.Request{Code: "while True: pass"})
	if err != nil || r.Outcome != wasmhost.Timeout {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestInterruptLeavesTheSessionUsable(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	run(t, s, "import asyncio\nlog = []")
	for i := range 10 {
		r := runFor(t, s, 50*time.Millisecond, `
async def worker():
    try:
        while True:
            await asyncio.sleep(0.001)
            log.append(1)
    finally:
        log.append('end')
await asyncio.gather(worker(), worker())`)
		if r.Outcome != wasmhost.Timeout || r.Reset != "" {
			t.Fatalf("round %d: %s, reset %q\n%s", i, r.Outcome, r.Reset, traceback(r))
		}
	}
	mustPrint(t, s, "print(log.count('end'))\nprint(await asyncio.wait_for(asyncio.sleep(0, 'ok'), 5))", "20\nok\n")
}

func TestCancellation(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	var once sync.Once
	go func() {
		<-started
		cancel()
	}()
	out := writerFunc(func(p []byte) (int, error) { once.Do(func() { close(started) }); return len(p), nil })
	r, err := s.Run(ctx, wasmhost.Request{Code: "x = 1\nprint('go')\nwhile True: pass", Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcome != wasmhost.Cancelled || r.Reset != "" {
		t.Errorf("outcome %s, reset %q; want cancelled, kept", r.Outcome, r.Reset)
	}
	mustPrint(t, s, "print(x)", "1\n")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestRunsOfASessionQueue(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	run(t, s, "n = 0")
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { run(t, s, "n += 1") })
	}
	group.Wait()
	mustPrint(t, s, "print(n)", "20\n")

	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	group.Go(func() {
		_, _ = s.Run(ctx, wasmhost.Request{Code: "print('go')\nwhile True: pass", Stdout: writerFunc(func(p []byte) (int, error) {
			close(started)
			return 0, io.ErrClosedPipe
		})})
	})
	<-started
	waiting, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := s.Run(waiting, wasmhost.Request{Code: "1"}); err == nil {
		t.Error("a run overtook the one before it")
	}
	cancel()
	group.Wait()
}

func TestParallelSessions(t *testing.T) {
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			s, err := engine.NewSession(t.Context(), wasmhost.SessionOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close(context.Background())
			for j := range 5 {
				r := run(t, s, fmt.Sprintf("x = globals().get('x', %d) + 1\nprint(x)", i*1000))
				if want := fmt.Sprintln(i*1000 + j + 1); r.Stdout.String() != want {
					t.Errorf("session %d run %d printed %q, want %q", i, j, r.Stdout, want)
				}
			}
		})
	}
	group.Wait()
}

func TestOutputKeepsHeadAndTail(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	r := run(t, s, "print('first')\nfor _ in range(40): print('x' * 2**20)\nprint('last')")
	if r.Outcome != wasmhost.Success {
		t.Fatalf("%s\n%s", r.Outcome, traceback(r))
	}
	if want := int64(len("first\nlast\n") + 40*(1<<20+1)); r.Stdout.Total() != want {
		t.Errorf("total %d, want %d", r.Stdout.Total(), want)
	}
	if kept := len(r.Stdout.Head) + len(r.Stdout.Tail); kept != 16<<20 || r.Stdout.Dropped != r.Stdout.Total()-16<<20 {
		t.Errorf("kept %d, dropped %d", kept, r.Stdout.Dropped)
	}
	if !strings.HasPrefix(string(r.Stdout.Head), "first\nx") || !strings.HasSuffix(string(r.Stdout.Tail), "x\nlast\n") {
		t.Error("the head or the tail is wrong")
	}
}

func TestHostCallsRunConcurrently(t *testing.T) {
	const n = 50
	var arrived sync.WaitGroup
	arrived.Add(n)
	s := newSession(t, wasmhost.SessionOptions{Handler: hostfuncs.HandlerFunc(
		func(ctx context.Context, req hostfuncs.Request) (hostfuncs.Response, error) {
			arrived.Done()
			arrived.Wait() // all of them must be here at once
			return hostfuncs.Response{Value: req.Params, Attachments: req.Attachments}, nil
		})})
	mustPrint(t, s, `
import asyncio
from codeexec import host
replies = await asyncio.gather(*(host.call_async("echo", {"n": i}, [bytes([i])]) for i in range(50)))
print([r.value["n"] for r in replies] == list(range(50)), [bytes(r.attachments[0]) for r in replies] == [bytes([i]) for i in range(50)])`, "True True\n")
}

func TestCancelledTaskCancelsItsHostCall(t *testing.T) {
	cancelled := make(chan struct{})
	s := newSession(t, wasmhost.SessionOptions{Handler: hostfuncs.HandlerFunc(
		func(ctx context.Context, req hostfuncs.Request) (hostfuncs.Response, error) {
			<-ctx.Done()
			close(cancelled)
			return hostfuncs.Response{}, ctx.Err()
		})})
	mustPrint(t, s, `
import asyncio
from codeexec import host
try:
    await asyncio.wait_for(host.call_async("block", {}), 0.01)
except TimeoutError:
    print("timed out")`, "timed out\n")
	select {
	case <-cancelled:
	case <-time.After(time.Minute):
		t.Error("the handler's context didn't end")
	}
}

func TestEnvReachesNoUserCode(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	t.Setenv("CODEEXEC_TEST_SECRET", "s3cret")
	r, err := s.Run(t.Context(), wasmhost.Request{
		Code: "import os\nprint(sorted(os.environ))",
		Env:  json.RawMessage(`{"servers": []}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "['HOME', 'LANG', 'PATH', 'PWD', 'TMPDIR', 'USER']\n"; r.Stdout.String() != want {
		t.Errorf("environment %s, want %s", r.Stdout, want)
	}
}

func TestFiles(t *testing.T) {
	projects := t.TempDir()
	if err := os.WriteFile(filepath.Join(projects, "in.txt"), []byte("from the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSession(t, wasmhost.SessionOptions{Projects: projects, DiskQuota: 1 << 20})
	mustPrint(t, s, "print(open('/projects/in.txt').read())", "from the host\n")
	run(t, s, "open('/projects/out.txt', 'w').write('from the sandbox')")
	if got, err := os.ReadFile(filepath.Join(projects, "out.txt")); err != nil || string(got) != "from the sandbox" {
		t.Errorf("out.txt: %q, %v", got, err)
	}
	mustPrint(t, s, `
import errno
for path, size in ("/x", 1), ("/tmp/big", 2**21):
    try:
        with open(path, "wb") as f:
            f.write(bytes(size))
        print(path, "written")
    except OSError as e:
        print(path, errno.errorcode[e.errno])`, "/x EROFS\n/tmp/big ENOSPC\n")
	mustPrint(t, s, "from zoneinfo import ZoneInfo\nfrom datetime import datetime\n"+
		"print(datetime(2026, 7, 1, 12, tzinfo=ZoneInfo('Europe/Berlin')).isoformat())", "2026-07-01T12:00:00+02:00\n")
}

func TestClosedSessionsAndEngines(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	started := make(chan struct{})
	done := make(chan *wasmhost.Result, 1)
	go func() {
		r, _ := s.Run(context.Background(), wasmhost.Request{Code: "print('go')\nwhile True: pass", Stdout: writerFunc(func(p []byte) (int, error) {
			close(started)
			return 0, io.ErrClosedPipe
		})})
		done <- r
	}()
	<-started
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r == nil || r.Outcome != wasmhost.Cancelled {
		t.Errorf("the run of a closed session: %+v, want cancelled", r)
	}
	if _, err := s.Run(t.Context(), wasmhost.Request{Code: "1"}); err == nil {
		t.Error("a closed session runs")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestNothingLeaks(t *testing.T) {
	cycle := func() {
		s, err := engine.NewSession(t.Context(), wasmhost.SessionOptions{Projects: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, "f = open('/projects/x', 'w'); g = open('/tmp/y', 'w')")
		runFor(t, s, 20*time.Millisecond, "while True: pass")
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cycle()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 50 {
		cycle()
	}
	if n := runtime.NumGoroutine(); n > goroutines+2 {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if n := openFiles(t); n > files {
		t.Errorf("%d open files, %d before", n, files)
	}
}

// openFiles counts this process's descriptors, where the system tells.
func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Logf("descriptors aren't counted: %v", err)
	}
	return len(entries)
}

// A script whose last statement is a wait must not be taken for one that
// finished, when the end of its context cuts the wait short.
func TestWaitThatIsCutShortIsNoSuccess(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	// The limit ends before, while and after the code begins.
	for step := range 40 {
		limit := time.Duration(step) * 200 * time.Microsecond
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		r, err := s.Run(ctx, wasmhost.Request{Code: "import time\ntime.sleep(1e6)"})
		cancel()
		if err == nil && r.Outcome != wasmhost.Timeout {
			t.Fatalf("with a limit of %v: outcome %s, want timeout", limit, r.Outcome)
		}
	}
}
