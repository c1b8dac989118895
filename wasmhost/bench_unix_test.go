//go:build unix

package wasmhost_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeexec/wasmhost"
)

// Programs that only compute, against this machine's own python3: x/native is
// how many times more processor time the sandbox takes, both measured in turns.
// What else the machine does plays a small part in that, and a large one in
// what a clock would show.
func BenchmarkCPU(b *testing.B) {
	python, err := exec.LookPath("python3")
	if err != nil {
		b.Skip("no python3 to compare with: ", err)
	}
	// What is found may be a script that looks for the interpreter, for longer than some programs take.
	real, err := exec.Command(python, "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		b.Fatal(err)
	}
	python = strings.TrimSpace(string(real))
	programs, err := filepath.Glob("../testdata/bench/*.py")
	if err != nil || len(programs) == 0 {
		b.Fatalf("no programs: %v", err)
	}
	for _, program := range programs {
		code, err := os.ReadFile(program)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(strings.TrimSuffix(filepath.Base(program), ".py"), func(b *testing.B) {
			var sandbox, native time.Duration
			for b.Loop() {
				s := newSession(b, wasmhost.SessionOptions{})
				before := processorTime(b)
				r := run(b, s, string(code))
				if r.Outcome != wasmhost.Success {
					b.Fatal(traceback(r))
				}
				sandbox += processorTime(b) - before
				native += max(nativeTime(b, python, program)-nativeTime(b, python, os.DevNull), time.Millisecond)
			}
			b.ReportMetric(float64(sandbox)/float64(native), "x/native")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// nativeTime is the processor time of a program under the machine's own Python.
func nativeTime(b *testing.B, python, program string) time.Duration {
	b.Helper()
	cmd := exec.Command(python, program)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s %s: %v\n%s", python, program, err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
