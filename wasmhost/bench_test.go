package wasmhost_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"codeexec/hostfuncs"
	"codeexec/wasmhost"
)

// From nothing to the output of a new session, and its end.
func BenchmarkForkToFirstPrint(b *testing.B) {
	for b.Loop() {
		s, err := engine.NewSession(b.Context(), wasmhost.SessionOptions{})
		if err != nil {
			b.Fatal(err)
		}
		mustPrint(b, s, "print(1)", "1\n")
		if err := s.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRunInLiveSession(b *testing.B) {
	s := newSession(b, wasmhost.SessionOptions{})
	for b.Loop() {
		mustPrint(b, s, "print(1)", "1\n")
	}
}

// What a session costs in memory of its own, with a hundred of them alive.
func BenchmarkPrivateMemory(b *testing.B) {
	const sessions = 100
	for b.Loop() {
		before := privateBytes(b)
		var all []*wasmhost.Session
		for range sessions {
			s, err := engine.NewSession(b.Context(), wasmhost.SessionOptions{})
			if err != nil {
				b.Fatal(err)
			}
			mustPrint(b, s, "import json\nprint(json.dumps([1]))", "[1]\n")
			all = append(all, s)
		}
		b.ReportMetric(float64(privateBytes(b)-before)/sessions/1024, "KiB/session")
		for _, s := range all {
			if err := s.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// privateBytes is the memory of this process that it shares with nobody.
func privateBytes(b *testing.B) int64 {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		b.Skip("this system doesn't tell: ", err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[0] == "Anonymous:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib * 1024
		}
	}
	b.Fatal("no Anonymous in smaps_rollup")
	return 0
}

// Host calls from Python: each iteration makes a thousand.
func BenchmarkHostCalls(b *testing.B) {
	echo := hostfuncs.HandlerFunc(func(_ context.Context, req hostfuncs.Request) (hostfuncs.Response, error) {
		return hostfuncs.Response{Value: req.Params}, nil
	})
	for name, code := range map[string]string{
		"sync":     "for i in range(1000): host.call('echo', {})",
		"awaited":  "for i in range(1000): await host.call_async('echo', {})",
		"gathered": "for i in range(10): await asyncio.gather(*(host.call_async('echo', {}) for _ in range(100)))",
	} {
		b.Run(name, func(b *testing.B) {
			s := newSession(b, wasmhost.SessionOptions{Handler: echo})
			mustPrint(b, s, "import asyncio\nfrom codeexec import host", "")
			for b.Loop() {
				mustPrint(b, s, code, "")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/call")
		})
	}
}

// Compiling, and loading what was compiled.
func BenchmarkEngine(b *testing.B) {
	open := func(b *testing.B, dir string) {
		e, err := wasmhost.New(b.Context(), wasmhost.Options{CacheDir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			open(b, b.TempDir())
		}
	})
	b.Run("cached", func(b *testing.B) {
		dir := b.TempDir()
		open(b, dir)
		for b.Loop() {
			open(b, dir)
		}
	})
}
