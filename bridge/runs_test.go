package bridge

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/wasmhost"
)

// What an answer has no room for can be read as a whole, by the link that the answer holds.
func TestWholeOutputIsAResource(t *testing.T) {
	stdout, stderr := strings.Repeat("line 世\n", 20_000), strings.Repeat("warn\x00\n", 20_000)
	scripts := map[string]script{"long": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
		border := 6 // inside of a character
		return &wasmhost.Result{
			Outcome: "success",
			Stdout:  wasmhost.Output{Head: []byte(stdout[:border]), Tail: []byte(stdout[border:])},
			Stderr:  wholeOutput(stderr),
		}, nil
	}}
	b, _ := newFakeBridge(t, Options{KeepOutput: time.Hour}, scripts, nil)
	session := connect(t, b, ServerOptions{})
	res, structured := callRunPython(t, session, map[string]any{"code": "long"})
	if res.IsError || structured["truncated"] != true {
		t.Errorf("isError %v, truncated %v", res.IsError, structured["truncated"])
	}
	want := map[string]string{"stdout": stdout, "stderr": strings.ReplaceAll(stderr, "\x00", `\x00`)}
	if len(res.Content) != 3 {
		t.Fatalf("%d blocks, want a text and two links", len(res.Content))
	}
	for _, block := range res.Content[1:] {
		link := block.(*mcp.ResourceLink)
		if !strings.Contains(structured["summary"].(string), link.URI) {
			t.Errorf("the summary lacks %s: %s", link.URI, structured["summary"])
		}
		read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI})
		if err != nil {
			t.Fatal(err)
		}
		if got := read.Contents[0].Text; got != want[link.Name] {
			t.Errorf("%s: %d bytes, want %d", link.Name, len(got), len(want[link.Name]))
		}
	}
}

// A client of a version without links would refuse the whole answer.
func TestOldClientsGetNoLinks(t *testing.T) {
	r := &RunResult{Status: StatusSuccess, Whole: []WholeText{{Name: "stdout", URI: "codeexec://runs/x/stdout"}}}
	s := &Server{bridge: &Bridge{}}
	for version, want := range map[string]int{"2024-11-05": 1, "2025-03-26": 1, "2025-06-18": 2, "2025-11-25": 2, "2026-07-28": 2} {
		if got := len(s.answer(r, version).Content); got != want {
			t.Errorf("%s: %d blocks, want %d", version, got, want)
		}
	}
}

func TestOutputIsKeptForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &runStore{keep: time.Hour}
		for i := range 3 {
			s.add("", RunInfo{ID: fmt.Sprint(i), Ended: time.Now()}, succeed("hello"))
			time.Sleep(25 * time.Minute)
		}
		synctest.Wait()
		if runs := s.list(""); len(runs) != 2 || runs[0].ID != "2" || runs[1].ID != "1" {
			t.Errorf("got %+v", runs)
		}
		if _, ok := s.text("", "0", "stdout"); ok {
			t.Error("the oldest can still be read")
		}
		if text, _ := s.text("", "1", "stdout"); text != "hello" {
			t.Errorf("got %q", text)
		}
		if _, ok := s.text("", "1", "stderr"); ok {
			t.Error("there is an empty stderr")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if s.size != 0 || len(s.list("")) != 0 {
			t.Errorf("%d bytes and %d runs are left", s.size, len(s.list("")))
		}
	})
}

func TestKeptOutputIsBounded(t *testing.T) {
	s := &runStore{keep: time.Hour}
	defer s.close()
	big := make([]byte, 0, 20<<20)[:10<<20] // half of it is unused memory
	for i := range 50 {
		s.add("", RunInfo{ID: fmt.Sprint(i)}, &wasmhost.Result{Stdout: wasmhost.Output{Head: big}, Value: strings.Repeat("v", 17<<20)})
		held := 0
		for _, run := range s.runs {
			for _, text := range run.texts {
				held += cap(text.Head) + cap(text.Tail)
			}
		}
		if held > maxKeptBytes || s.size > maxKeptBytes {
			t.Fatalf("%d bytes are held, %d counted", held, s.size)
		}
	}
	if runs := s.list(""); len(runs) != 2 || runs[0].ID != "49" {
		t.Errorf("%d runs are left", len(runs))
	}
	for i := range 2 * maxKeptRuns {
		s.add("", RunInfo{ID: fmt.Sprint("small", i)}, succeed("x"))
	}
	if n := len(s.list("")); n > maxKeptRuns {
		t.Errorf("%d runs", n)
	}
}

func TestWholePrintableSaysWhatWasNotKept(t *testing.T) {
	got := wholePrintable(wasmhost.Output{Head: []byte("head"), Tail: []byte("\x96\x8dtail"), Dropped: 10})
	if want := "head\n[… 12 bytes were not kept …]\ntail"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Where nothing is kept, nobody is sent to look for it.
func TestNothingIsKeptUnlessAsked(t *testing.T) {
	scripts := map[string]script{"long": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
		return succeed(strings.Repeat("x", 1<<20)), nil
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	res := mustRun(t, b, RunRequest{Code: "long"})
	if !res.Truncated || len(res.Whole) != 0 || strings.Contains(res.Summary, "codeexec://") || len(b.Runs("")) != 0 {
		t.Errorf("whole %v, summary %q, runs %v", res.Whole, res.Summary, b.Runs(""))
	}
}
