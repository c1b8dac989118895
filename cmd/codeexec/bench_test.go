package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// From the start of a process to the end of its output, with compiled code in
// the cache: the binary that make bench has just built.
func BenchmarkStart(b *testing.B) {
	binary, err := filepath.Abs("../../bin/codeexec")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(binary); err != nil {
		b.Fatal("make build makes it: ", err)
	}
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

// Fifty awaited calls of a real server, of 100 ms each, side by side. 100 ms
// is what it can't be under.
func BenchmarkGatheredCalls(b *testing.B) {
	binary, err := filepath.Abs("../../bin/codeexec")
	if err != nil {
		b.Fatal(err)
	}
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
