package upstream

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/config"
)

func TestAnIdleServerIsStoppedAndStartsAgain(t *testing.T) {
	remote := remoteServer(t, nil)
	web := serve(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return remote }, nil))
	for name, cfg := range map[string]config.Server{"a process": stubServer(), "a remote server": remoteConfig(web.URL)} {
		t.Run(name, func(t *testing.T) {
			m := start(t, Options{IdleTimeout: 100 * time.Millisecond}, cfg)
			for range 2 {
				call(t, m, "echo", "")
				eventually(t, "it is stopped", func() bool { return m.Servers()[0].Status == StatusIdle })
				if info := m.Servers()[0]; info.Err != nil || info.Tools < 0 {
					t.Errorf("info = %+v", info)
				}
			}
		})
	}
}

// A call that takes longer than the idle time is no idleness.
func TestAServerInUseIsNotIdle(t *testing.T) {
	m := start(t, Options{IdleTimeout: 50 * time.Millisecond}, stubServer())
	if got := text(t, call(t, m, "sleep", `{"ms": 500}`)); got != "slept" {
		t.Error(got)
	}
}

// A server that fails again and again is left alone for a while; its reason
// stays visible, and calls fail at once.
func TestAServerThatKeepsFailingIsLeftAlone(t *testing.T) {
	crashes := func(m *Manager) error {
		_, err := m.Call(limit(t), "stub", "crash", json.RawMessage(`{"status":3}`))
		return err
	}
	lists := func(m *Manager) error {
		_, err := m.Refresh(limit(t), "stub")
		return err
	}
	tests := []struct {
		name   string
		server config.Server
		use    func(*Manager) error
		want   string
	}{
		{"never starts", stubServer("-exit", "7"), lists, "it exited with status 7"},
		{"crashes in each call, but lists its tools", stubServer(), crashes, "it exited with status 3"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := start(t, Options{rest: time.Hour}, tc.server)
			for range maxFailures {
				got := unavailable(t, tc.use(m)).Error()
				if strings.Contains(got, "in a row") {
					t.Fatalf("left alone too early: %s", got)
				}
			}
			s := m.servers["stub"]
			eventually(t, "the last failure is noted", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.failures == maxFailures && s.link == nil
			})
			began := time.Now()
			for range 100 {
				got := unavailable(t, tc.use(m)).Error()
				if !strings.Contains(got, tc.want) || !strings.Contains(got, "5 failures in a row; it is tried again in 10m0s") {
					t.Fatalf("err = %s", got)
				}
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("100 calls took %v", took)
			}
			if info := m.Servers()[0]; info.Status != StatusFailed || !strings.Contains(info.Err.Error(), tc.want) {
				t.Errorf("info = %+v", info)
			}
			// Later it is tried again.
			s.mu.Lock()
			s.rests = time.Now()
			s.mu.Unlock()
			if got := unavailable(t, tc.use(m)).Error(); strings.Contains(got, "in a row") {
				t.Errorf("err = %s", got)
			}
		})
	}
}

func TestTheOwnersTimeLimitOfACall(t *testing.T) {
	cfg := stubServer()
	cfg.Timeout = 200 * time.Millisecond
	m := start(t, Options{}, cfg)
	if _, err := m.Tools(limit(t), "stub"); err != nil { // the start isn't part of the call
		t.Fatal(err)
	}
	_, err := m.Call(limit(t), "stub", "block", nil)
	if timeout, ok := errors.AsType[*TimeoutError](err); !ok || timeout.Limit != cfg.Timeout || timeout.Tool != "block" {
		t.Errorf("err = %v", err)
	}
	call(t, m, "echo", "")
}

func TestMaxInFlightToOneServer(t *testing.T) {
	m := start(t, Options{MaxInFlight: 8, MaxInFlightTo: map[string]int{"stub": 2}}, stubServer())
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() { call(t, m, "sleep", `{"ms": 100}`) })
	}
	wg.Wait()
	if most := field[int](t, call(t, m, "cancelled", ""), "most"); most != 2 {
		t.Errorf("%d calls at a time, want 2", most)
	}
}

// Good servers work at full speed whatever the others do.
func TestBadServersDoNotSlowDownGoodOnes(t *testing.T) {
	named := func(name string, flags ...string) config.Server {
		cfg := stubServer(flags...)
		cfg.Name = name
		return cfg
	}
	silent := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-t.Context().Done() // which ends before the server is closed
	}))
	m := start(t, Options{StartTimeout: 20 * time.Second, ProbeTimeout: time.Second},
		named("silent", "-silent"), named("exits", "-exit", "1"), named("crashes"), named("floods", "-flood", "100"),
		config.Server{Name: "remote", URL: silent.URL, Transport: config.TransportHTTP}, config.Server{Name: "missing", Command: "no-such-program"},
		named("banner", "-banner", "100"), named("pages", "-tools", "300", "-page", "10"), named("stub"))
	var bad sync.WaitGroup
	for _, name := range []string{"silent", "exits", "crashes", "remote", "missing"} {
		bad.Go(func() {
			ctx := limit(t)
			if _, err := m.Call(ctx, name, "crash", nil); err == nil {
				t.Errorf("%s works", name)
			}
		})
	}
	for _, name := range []string{"stub", "banner", "pages", "floods"} {
		if _, err := m.Call(limit(t), name, "echo", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := m.servers["silent"]; func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.attempt == nil }() {
		t.Error("the good ones waited for the silent one")
	}
	for _, info := range m.Servers() {
		if info.Name == "pages" && info.Tools < 300 {
			t.Errorf("%d tools", info.Tools)
		}
	}
	closeManager(t, m) // ends the bad ones
	bad.Wait()
}
