package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Where the address space is limited, as on shared machines, sessions have less memory, and work.
func TestLimitedAddressSpace(t *testing.T) {
	self, err := exec.LookPath("codeexec")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODEEXEC_STATE_DIR", t.TempDir())
	t.Setenv("CODEEXEC_CACHE_DIR", freshCache(t))
	const code = `
try:
    bytearray(10**9)
except MemoryError:
    print("MemoryError")
print(6 * 7)
`
	// 2 GB: the Go runtime reserves more than it uses.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -v 2000000 && exec "$0" exec -c "$1"`, self, code)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "MemoryError\n42\n" {
		t.Errorf("%v, printed %q", err, out)
	}
}

// After scripts that had to be stopped, the process rests.
func TestProcessorIsIdleAfterTimeouts(t *testing.T) {
	self, err := exec.LookPath("codeexec")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODEEXEC_STATE_DIR", t.TempDir())
	t.Setenv("CODEEXEC_CACHE_DIR", freshCache(t))
	cmd := exec.Command(self, "serve", "--sources", "none")
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, code := range []string{
		"while True: pass",
		"sum(range(10**11))", // one operation: it has to be killed
		"import asyncio\nawait asyncio.Event().wait()",
		"import time\ntime.sleep(1e6)",
		"while True:\n  try:\n    while True: pass\n  except BaseException: pass",
	} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": code, "timeout": 1}})
		if err != nil {
			t.Fatal(err)
		}
		if text := result.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "time limit") && !strings.Contains(text, "deadlock") {
			t.Errorf("%s: %s", code, text)
		}
	}
	const watched = time.Second
	before := processorTime(t, cmd.Process.Pid)
	time.Sleep(watched)
	if used := processorTime(t, cmd.Process.Pid) - before; used > watched/4 {
		t.Errorf("the process used %v of processor time in %v with nothing to do", used, watched)
	}
}

// processorTime is what /proc/PID/stat says (proc_pid_stat(5)): user and system time, in hundredths of a second.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may have spaces
	fields := strings.Fields(rest)
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
