package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"codeexec/bridge"
	"codeexec/bridge/config"
	"codeexec/bridge/upstream"
	"codeexec/wasmhost"
)

// A thousand runs that each call three servers, in sessions that come and go, leave as many descriptors,
// goroutines, processes and temporary files as the first, and no more memory.
func TestAThousandRunsLeaveNothing(t *testing.T) {
	const runs, warm = 1000, 150
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	cache, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	stub := buildStub(t)
	var servers []config.Server
	for _, name := range []string{"one", "two", "three"} {
		servers = append(servers, config.Server{Name: name, Transport: config.TransportStdio, Command: stub, Source: "test"})
	}
	servers[2] = config.Server{Name: "three", Transport: config.TransportHTTP, URL: webServer(t), Source: "test"}
	supervisor, err := upstream.SelfSupervisor()
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	b := bridge.New(t.Context(), bridge.Options{
		Engine:     bridge.NewLazyEngine(wasmhost.Options{CacheDir: cache, Logger: logger}),
		Servers:    config.Set{Servers: servers},
		Supervisor: supervisor,
		Catalog:    t.TempDir(),
		Projects:   t.TempDir(),
		Logger:     logger,
	})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	const code = `
import asyncio
print(await asyncio.gather(mcp_one.say(text="a" * 10_000), mcp_two.say(text=%q), mcp_three.echo(x=%d)))
open("/tmp/x", "w").write("x" * 10_000)
`
	var before usage
	for i := range runs {
		if i == warm {
			before = measure(t, temporary)
		}
		res, err := b.Run(t.Context(), bridge.RunRequest{
			Code:    fmt.Sprintf(code, fmt.Sprint(i), i),
			Session: fmt.Sprintf("s%d", i%4),
			Reset:   i%100 > 95,
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`'%d', 'got {"x":%d}'`, i, i); res.Status != bridge.StatusSuccess || !strings.Contains(res.Stdout, want) {
			t.Fatalf("run %d: %s, %.100q, %s", i, res.Status, res.Stdout, res.Summary)
		}
	}
	var after usage
	for deadline := time.Now().Add(closing); ; time.Sleep(50 * time.Millisecond) {
		after = measure(t, temporary)
		flat := after.goroutines <= before.goroutines+5 && after.files <= before.files+3 &&
			after.processes <= before.processes && after.temporary <= before.temporary && after.heap <= before.heap+8<<20
		if flat {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %d runs: %+v\nafter %d runs: %+v", warm, before, runs, after)
		}
	}
	// What the operating system counts has the garbage in it that isn't collected yet.
	if after.resident > before.resident+64<<20 {
		t.Errorf("resident memory went from %d to %d MiB", before.resident>>20, after.resident>>20)
	}
	t.Logf("after %d runs: %+v\nafter %d runs: %+v", warm, before, runs, after)
}

// closing is how long what the test has started may take to end.
const closing = 20 * time.Second

// usage is what this process has.
type usage struct {
	goroutines, files, processes int
	temporary                    int    // files
	heap, resident               uint64 // bytes
}

func measure(t *testing.T, temporary string) usage {
	t.Helper()
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	u := usage{goroutines: runtime.NumGoroutine(), files: len(files), processes: len(descendants(t, os.Getpid())), heap: mem.HeapAlloc}
	err = filepath.WalkDir(temporary, func(string, os.DirEntry, error) error {
		u.temporary++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident uint64 // pages
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		t.Fatal(err)
	}
	u.resident = resident * uint64(os.Getpagesize())
	return u
}
