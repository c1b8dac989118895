package bridge

import (
	"context"
	"fmt"
	"reflect"
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

func TestIdleSessionExpires(t *testing.T) {
	tests := []struct {
		name  string
		idle  time.Duration // of the options
		after time.Duration
		want  string
		why   string
	}{
		{"the default", 0, 30*time.Minute + time.Second, SessionReset, "since nobody had used it for 30 min"},
		{"not yet", 0, 29 * time.Minute, SessionKept, ""},
		{"an hour", time.Hour, 59 * time.Minute, SessionKept, ""},
		{"never", -1, 1000 * time.Hour, SessionKept, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, engine := newFakeBridge(t, Options{SessionIdle: tc.idle}, nil, nil)
				mustRun(t, b, RunRequest{Code: "x"})
				time.Sleep(20 * time.Minute)
				if tc.want == SessionKept {
					mustRun(t, b, RunRequest{Code: "x"}) // from here it counts anew
				}
				time.Sleep(tc.after)
				synctest.Wait()
				if tc.want == SessionReset && (engine.alive != 0 || len(b.Sessions("")) != 0) {
					t.Errorf("%d sandboxes alive, sessions %v", engine.alive, b.Sessions(""))
				}
				res := mustRun(t, b, RunRequest{Code: "x"})
				if res.SessionState != tc.want || !strings.Contains(res.Summary, tc.why) {
					t.Errorf("state %q, summary %q", res.SessionState, res.Summary)
				}
			})
		})
	}
}

func TestRunningSessionDoesNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripts := map[string]script{"long": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
			time.Sleep(time.Minute)
			return succeed(""), nil
		}}
		b, engine := newFakeBridge(t, Options{SessionIdle: 10 * time.Second}, scripts, nil)
		for range 3 {
			if res := mustRun(t, b, RunRequest{Code: "long"}); res.SessionState != SessionKept {
				t.Errorf("state %q", res.SessionState)
			}
			time.Sleep(9 * time.Second)
		}
		if engine.made != 1 {
			t.Errorf("%d sandboxes", engine.made)
		}
	})
}

func TestSessionsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newFakeBridge(t, Options{}, map[string]script{"wait": untilEnd}, nil)
		began := time.Now().UTC()
		mustRun(t, b, RunRequest{Code: "x", Session: "idle"})
		ctx, cancel := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		for range 3 {
			runs.Go(func() { b.Run(ctx, RunRequest{Code: "wait", Session: "busy"}) })
		}
		synctest.Wait()
		expires := began.Add(DefaultSessionIdle)
		want := []SessionInfo{
			{Name: "busy", State: SessionRunning, Waiting: 2, Made: began, LastUsed: began},
			{Name: "idle", State: SessionIdle, Runs: 1, Made: began, LastUsed: began, Expires: &expires},
		}
		if got := b.Sessions(""); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		cancel()
		runs.Wait()
	})
}

// Whoever lost their variables is told so when they miss one, also if that is some runs later.
func TestNameErrorAfterAReset(t *testing.T) {
	scripts := map[string]script{
		"name": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
			return &wasmhost.Result{Outcome: "error", Exception: &wasmhost.Exception{Type: "NameError", Message: "name 'x' is not defined"}, Duration: time.Millisecond}, nil
		},
		"stubborn": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
			return &wasmhost.Result{Outcome: "timeout", Reset: "the script did not stop"}, nil
		},
	}
	tests := []struct {
		name string
		runs []RunRequest
		want string // of the last run
	}{
		{"no reset", []RunRequest{{Code: "x"}, {Code: "name"}}, "NameError: name 'x' is not defined after 1 ms"},
		{"dropped", []RunRequest{{Code: "x"}, {Code: "x", Session: "b"}, {Code: "name"}},
			`NameError: name 'x' is not defined after 1 ms; session "default" had been dropped, since only 1 are kept, and started anew; hint: variables from before are gone`},
		{"reset as requested", []RunRequest{{Code: "x"}, {Code: "name", Reset: true}},
			"NameError: name 'x' is not defined after 1 ms; the session was reset as requested; hint: variables from before are gone"},
		{"killed earlier", []RunRequest{{Code: "stubborn"}, {Code: "x"}, {Code: "name"}},
			"NameError: name 'x' is not defined after 1 ms; hint: variables from before are gone, since the session was reset: the script did not stop"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			b, _ := newFakeBridge(t, Options{MaxSessions: 1}, scripts, nil)
			var res *RunResult
			for _, req := range tc.runs {
				res = mustRun(t, b, req)
			}
			if res.Summary != tc.want {
				t.Errorf("got  %s\nwant %s", res.Summary, tc.want)
			}
		})
	}
}
