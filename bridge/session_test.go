package bridge

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codeexec/wasmhost"
)

func TestSessionKeepsItsSandbox(t *testing.T) {
	b, engine := newFakeBridge(t, Options{}, nil, nil)
	for range 3 {
		if res := mustRun(t, b, RunRequest{Code: "x"}); res.SessionState != SessionKept || res.Session != DefaultSession {
			t.Errorf("session %q is %q", res.Session, res.SessionState)
		}
	}
	mustRun(t, b, RunRequest{Code: "x", Session: "other"})
	if engine.made != 2 {
		t.Errorf("%d sandboxes for 2 sessions", engine.made)
	}
}

func TestResetStartsAnew(t *testing.T) {
	b, engine := newFakeBridge(t, Options{}, nil, nil)
	mustRun(t, b, RunRequest{Code: "x"})
	res := mustRun(t, b, RunRequest{Code: "x", Reset: true})
	if res.SessionState != SessionReset || !strings.Contains(res.Summary, "reset as requested") {
		t.Errorf("state %q, summary %q", res.SessionState, res.Summary)
	}
	if res = mustRun(t, b, RunRequest{Code: "x"}); res.SessionState != SessionKept {
		t.Errorf("the run after that says %q", res.SessionState)
	}
	if engine.made != 2 || engine.alive != 1 {
		t.Errorf("made %d sandboxes, %d alive", engine.made, engine.alive)
	}
}

func TestSandboxThatWasResetSaysSo(t *testing.T) {
	scripts := map[string]script{"stubborn": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
		return &wasmhost.Result{Outcome: "timeout", Reset: "the script did not stop when it was interrupted"}, nil
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	res := mustRun(t, b, RunRequest{Code: "stubborn"})
	if res.SessionState != SessionReset || !strings.Contains(res.Summary, "did not stop") || strings.Contains(res.Summary, "kept") {
		t.Errorf("state %q, summary %q", res.SessionState, res.Summary)
	}
}

func TestFailedSandboxIsReplaced(t *testing.T) {
	scripts := map[string]script{"fault": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
		return nil, fmt.Errorf("out of file descriptors")
	}}
	b, engine := newFakeBridge(t, Options{}, scripts, nil)
	res := mustRun(t, b, RunRequest{Code: "fault"})
	if res.Status != StatusError || res.SessionState != SessionReset || !strings.Contains(res.Summary, "out of file descriptors") {
		t.Errorf("got %+v", res)
	}
	if res = mustRun(t, b, RunRequest{Code: "x"}); res.Status != StatusSuccess {
		t.Errorf("the next run: %+v", res)
	}
	if engine.alive != 1 {
		t.Errorf("%d sandboxes alive", engine.alive)
	}
}

func TestRunsOfOneSessionKeepTheirOrder(t *testing.T) {
	release := make(chan struct{})
	var mu sync.Mutex
	var order []string
	note := func(ctx context.Context, _ *fakeSandbox, req wasmhost.Request) (*wasmhost.Result, error) {
		if req.Code == "0" {
			<-release
		}
		mu.Lock()
		defer mu.Unlock()
		order = append(order, req.Code)
		return succeed(""), nil
	}
	scripts := map[string]script{}
	for i := range 10 {
		scripts[fmt.Sprint(i)] = note
	}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	var runs sync.WaitGroup
	for i := range 10 {
		queued := make(chan struct{})
		runs.Go(func() { mustRun(t, b, RunRequest{Code: fmt.Sprint(i), Queued: func() { close(queued) }}) })
		<-queued
	}
	// Another session doesn't wait for them.
	mustRun(t, b, RunRequest{Code: "x", Session: "other"})
	close(release)
	runs.Wait()
	if got := strings.Join(order, ""); got != "0123456789" {
		t.Errorf("ran in the order %s", got)
	}
}

func TestCancelledInTheQueue(t *testing.T) {
	release := make(chan struct{})
	scripts := map[string]script{"slow": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
		<-release
		return succeed(""), nil
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	var slow sync.WaitGroup
	queued := make(chan struct{})
	slow.Go(func() { mustRun(t, b, RunRequest{Code: "slow", Queued: func() { close(queued) }}) })
	<-queued
	ctx, cancel := context.WithCancel(t.Context())
	res, err := b.Run(ctx, RunRequest{Code: "never", Queued: cancel})
	if err != nil || res.Status != StatusCancelled || res.ExitCode != 130 || !strings.Contains(res.Summary, "nothing was run") {
		t.Errorf("got %+v, %v", res, err)
	}
	close(release)
	slow.Wait()
	if res := mustRun(t, b, RunRequest{Code: "x"}); res.Status != StatusSuccess {
		t.Errorf("the queue is stuck: %+v", res)
	}
}

func TestLeastRecentlyUsedIdleSessionIsDropped(t *testing.T) {
	b, engine := newFakeBridge(t, Options{MaxSessions: 2}, nil, nil)
	mustRun(t, b, RunRequest{Code: "x", Session: "a"})
	mustRun(t, b, RunRequest{Code: "x", Session: "b"})
	mustRun(t, b, RunRequest{Code: "x", Session: "a"})
	mustRun(t, b, RunRequest{Code: "x", Session: "c"}) // drops b
	if engine.alive != 2 {
		t.Errorf("%d sandboxes alive", engine.alive)
	}
	if res := mustRun(t, b, RunRequest{Code: "x", Session: "a"}); res.SessionState != SessionKept {
		t.Errorf("a: %q", res.SessionState)
	}
	if res := mustRun(t, b, RunRequest{Code: "x", Session: "b"}); res.SessionState != SessionReset || !strings.Contains(res.Summary, "dropped") {
		t.Errorf("b: %q, %q", res.SessionState, res.Summary)
	}
	if res := mustRun(t, b, RunRequest{Code: "x", Session: "b"}); res.SessionState != SessionKept {
		t.Errorf("b again: %q", res.SessionState)
	}
}

func TestNoSessionToDrop(t *testing.T) {
	b, _ := newFakeBridge(t, Options{MaxSessions: 1}, map[string]script{"wait": untilEnd}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	queued := make(chan struct{})
	waiting.Go(func() {
		if _, err := b.Run(ctx, RunRequest{Code: "wait", Session: "busy", Queued: func() { close(queued) }}); err != nil {
			t.Error(err)
		}
	})
	<-queued
	res := mustRun(t, b, RunRequest{Code: "x", Session: "new"})
	if res.Status != StatusInvalid || !strings.Contains(res.Summary, "busy") {
		t.Errorf("got %+v", res)
	}
	cancel()
	waiting.Wait()
}

func TestTimeLimitCountsFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newFakeBridge(t, Options{}, map[string]script{"wait": untilEnd}, nil)
		var runs sync.WaitGroup
		for range 3 {
			runs.Go(func() {
				began := time.Now()
				res := mustRun(t, b, RunRequest{Code: "wait", Timeout: 10 * time.Second})
				if res.Status != StatusTimeout || res.ExitCode != 124 || res.Stdout != "so far\n" || time.Since(began)%(10*time.Second) != 0 {
					t.Errorf("after %v: %+v", time.Since(began), res)
				}
			})
		}
		began := time.Now()
		runs.Wait()
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("three runs one after another took %v", took)
		}
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseCancelsRuns(t *testing.T) {
	b, engine := newFakeBridge(t, Options{}, map[string]script{"wait": untilEnd}, nil)
	var runs sync.WaitGroup
	for i := range 4 {
		queued := make(chan struct{})
		runs.Go(func() {
			res := mustRun(t, b, RunRequest{Code: "wait", Session: fmt.Sprint(i % 2), Queued: func() { close(queued) }})
			if res.Status != StatusCancelled {
				t.Errorf("status %q", res.Status)
			}
		})
		<-queued
	}
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	runs.Wait()
	if engine.alive != 0 {
		t.Errorf("%d sandboxes alive", engine.alive)
	}
	if _, err := b.Run(t.Context(), RunRequest{Code: "x"}); err == nil {
		t.Error("a closed bridge runs")
	}
}
