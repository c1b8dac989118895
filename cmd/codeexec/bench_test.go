package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// From the start of a process to the end of its output, with compiled code in
// the cache.
func BenchmarkStart(b *testing.B) {
	binary := builtBinary(b)
	start := func(args ...string) {
		if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	start("exec", "-c", "pass") // compiles, where nothing did before
	for b.Loop() {
		start("exec", "-c", "print(1)")
	}
}

// From the start of a process to its answers to initialize and tools/list, which a client waits for when it
// starts.
func BenchmarkHello(b *testing.B) {
	for b.Loop() {
		cmd, in, answers := startServe(b)
		for _, request := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		} {
			if _, err := fmt.Fprintln(in, request); err != nil {
				b.Fatal(err)
			}
			if answer, err := answers.ReadString('\n'); err != nil || !strings.Contains(answer, `"result"`) {
				b.Fatalf("%v\n%s", err, answer)
			}
		}
		b.StopTimer()
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// From a client's cancellation of a run, and of the call of a server's tool that it waits for, to the answer.
func BenchmarkCancel(b *testing.B) {
	stub := filepath.Join(b.TempDir(), "stubserver")
	if out, err := exec.Command("go", "build", "-o", stub, "codeexec/testdata/stubserver").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for name, wait := range map[string]string{
		"computing": "while True: pass",
		"calling":   "await mcp_stub.sleep(ms=60_000)",
		"sleeping":  "import time; time.sleep(60)",
	} {
		b.Run(name, func(b *testing.B) {
			cmd, in, answers := startServe(b, "--server", "stub="+stub)
			send := func(message string) {
				if _, err := fmt.Fprintln(in, message); err != nil {
					b.Fatal(err)
				}
			}
			receive := func() string {
				answer, err := answers.ReadString('\n')
				if err != nil {
					b.Fatal(err)
				}
				return answer
			}
			send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
			receive()
			code, err := json.Marshal("await mcp_stub.echo(text='')\nprint('on', flush=True)\n" + wait)
			if err != nil {
				b.Fatal(err)
			}
			// When the next run of the session has its turn, the cancelled one is over; it gets no answer.
			for id := 1; b.Loop(); id += 2 {
				b.StopTimer()
				send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%[1]d,"method":"tools/call","params":{"name":"run_python","arguments":{"code":%[2]s},"_meta":{"progressToken":%[1]d}}}`, id, code))
				for !strings.Contains(receive(), `"on"`) {
				}
				send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"1"}}}`, id+1))
				b.StartTimer()
				send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
				for answer := receive(); !strings.Contains(answer, fmt.Sprintf(`"id":%d,`, id+1)); answer = receive() {
				}
			}
			b.StopTimer()
			in.Close()
			if err := cmd.Wait(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// startServe starts codeexec serve. Who closes in ends it.
func startServe(b *testing.B, args ...string) (cmd *exec.Cmd, in io.WriteCloser, answers *bufio.Reader) {
	b.Helper()
	cmd = exec.Command(builtBinary(b), append([]string{"serve"}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return cmd, in, bufio.NewReader(out)
}

// builtBinary is codeexec as it is shipped.
func builtBinary(b *testing.B) string {
	b.Helper()
	binary, err := exec.LookPath("codeexec")
	if err != nil {
		b.Fatal(err)
	}
	return binary
}

// Fifty awaited calls of a real server, of 100 ms each, side by side. 100 ms
// is what it can't be under.
func BenchmarkGatheredCalls(b *testing.B) {
	binary := builtBinary(b)
	stub := filepath.Join(b.TempDir(), "stubserver")
	if out, err := exec.Command("go", "build", "-o", stub, "codeexec/testdata/stubserver").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	const script = `
import asyncio, time
servers = [mcp_a, mcp_b, mcp_c, mcp_d] # at most 16 calls are in flight to one of them
await asyncio.gather(*(s.sleep(ms=1) for s in servers))
start = time.perf_counter()
await asyncio.gather(*(servers[i % 4].sleep(ms=100) for i in range(50)))
print(int((time.perf_counter() - start) * 1e9))`
	var total time.Duration
	for b.Loop() {
		args := []string{"exec", "-c", script}
		for _, name := range []string{"a", "b", "c", "d"} {
			args = append(args, "--server", name+"="+stub)
		}
		out, err := exec.Command(binary, args...).Output()
		if err != nil {
			b.Fatal(err)
		}
		took, err := time.ParseDuration(string(out[:len(out)-1]) + "ns")
		if err != nil {
			b.Fatal(err)
		}
		total += took
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/50calls")
	b.ReportMetric(0, "ns/op")
}
