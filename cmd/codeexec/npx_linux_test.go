package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeexec/testdata/npm"
)

// However codeexec ends while a script waits for a server that npx has started, which is a process of a process
// of a process: 3 s later there is none of them. It takes 2.1 s at most on a machine that has time; the limit leaves
// room for one that hasn't.
func TestNothingOutlivesCodeexec(t *testing.T) {
	const limit = 10 * time.Second
	bin := npm.Need(t, npm.Bin)
	self, err := exec.LookPath("codeexec")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		end  func(cmd *exec.Cmd, in io.Closer) error
	}{
		{"EOF", func(_ *exec.Cmd, in io.Closer) error { return in.Close() }},
		{"SIGTERM", func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGTERM) }},
		{"SIGKILL", func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Kill() }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "servers.json")
			entry := map[string]any{"command": "npx", "args": []string{"--no-install", "mcp-server-everything"}, "cwd": filepath.Dir(filepath.Dir(bin))}
			text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"everything": entry}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(config, text, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "serve", "--config", config)
			cmd.Env = append(os.Environ(), "CODEEXEC_STATE_DIR="+t.TempDir(), "CODEEXEC_CACHE_DIR="+freshCache(t))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()

			// The server's progress says that the call is on its way.
			const code = "await asyncio.gather(*(mcp_everything.trigger_long_running_operation(duration=600, steps=600) for _ in range(3)))"
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python","arguments":{"code":%q,"timeout":600},"_meta":{"progressToken":"p"}}}
`, "import asyncio\n"+code)
			working := make(chan struct{})
			go func() {
				lines := bufio.NewScanner(out)
				for seen := false; lines.Scan(); {
					if text := lines.Text(); !seen && strings.Contains(text, "notifications/progress") && strings.Contains(text, "trigger-long-running-operation") {
						seen = true
						close(working)
					}
				}
			}()
			select {
			case <-working:
			case <-time.After(patience):
				t.Fatalf("no call is in progress\n%s", &stderr)
			}
			started := descendants(t, cmd.Process.Pid)
			if len(started) < 3 {
				t.Fatalf("codeexec has started the processes %v", started)
			}
			if err := tc.end(cmd, in); err != nil {
				t.Fatal(err)
			}
			ended := time.Now()
			for _, pid := range append(started, cmd.Process.Pid) {
				for alive(pid) {
					if time.Since(ended) > limit {
						t.Errorf("process %d lives after %v", pid, limit)
						syscall.Kill(pid, syscall.SIGKILL)
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
			}
			t.Logf("%d processes were gone after %v", len(started)+1, time.Since(ended).Round(10*time.Millisecond))
		})
	}
}

// descendants returns the processes that a process has started, and those that these have started, and so on.
func descendants(t *testing.T, root int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := make(map[int][]int)
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		// The state and the parent come after the program's name, which may have any character in it.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		parent, err := strconv.Atoi(string(fields[1]))
		if err != nil {
			t.Fatal(err)
		}
		children[parent] = append(children[parent], pid)
	}
	found := children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}
