package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/memory"
)

// Sessions of several processes, as those of several clients, update one key at once, and no update is lost.
func TestUpdatesOfSeveralClientsAreAllApplied(t *testing.T) {
	got := contend(t, 3, 3, 20)
	t.Logf("%.0f updates/s, %.1f attempts each, at most %d", got.rate, got.attempts, got.most)
}

// BenchmarkContendedScripts is that with 64 sessions: the throughput of updates of one key, the attempts that an
// update took, and those that the unluckiest one took, of the 100 that it has.
func BenchmarkContendedScripts(b *testing.B) {
	for b.Loop() {
		got := contend(b, 8, 8, 500)
		b.ReportMetric(got.rate, "updates/s")
		b.ReportMetric(got.attempts, "attempts/update")
		b.ReportMetric(float64(got.most), "most-attempts")
	}
}

// contention is what there was of it.
type contention struct {
	rate     float64 // updates a second, all together
	attempts float64 // of an update, on average
	most     int     // attempts of one update
}

// contend lets sessions of several processes update one key, each a number of times, and checks the sum.
func contend(t testing.TB, processes, sessions, updates int) contention {
	state := t.TempDir()
	t.Setenv("CODEEXEC_STATE_DIR", state)
	t.Setenv("CODEEXEC_CACHE_DIR", freshCache(t))
	t.Setenv("CODEEXEC_MAX_SESSIONS", strconv.Itoa(sessions))
	t.Setenv("CODEEXEC_MAX_TIMEOUT", "1h")
	code := fmt.Sprintf(`
import json
total = most = 0
for _ in range(%d):
    attempts = 0
    def increment(n):
        global attempts
        attempts += 1
        return n + 1
    update_memory("counter", increment, default=0)
    total += attempts
    most = max(most, attempts)
print(json.dumps({"total": total, "most": most}))`, updates)

	var done sync.WaitGroup
	start := make(chan struct{})
	var mu sync.Mutex
	var total, most int
	for range processes {
		client := serveHere(t, []string{"--sources", "none"})
		for i := range sessions {
			run := func(code string) (out runOutcome, err error) {
				res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{
					"code": code, "session": strconv.Itoa(i), "timeout": 3600,
				}})
				if err != nil {
					return out, err
				}
				raw, err := json.Marshal(res.StructuredContent)
				if err != nil {
					return out, err
				}
				if err := json.Unmarshal(raw, &out); err != nil {
					return out, err
				}
				if out.Status != "success" {
					return out, fmt.Errorf("%s %s", out.Summary, raw)
				}
				return out, nil
			}
			// Makes the session. One after another, so that Python is compiled only once where it isn't yet.
			if _, err := run("pass"); err != nil {
				close(start)
				t.Fatal(err)
			}
			done.Go(func() {
				<-start
				out, err := run(code)
				if err != nil {
					t.Error(err)
					return
				}
				var counted struct{ Total, Most int }
				if err := json.Unmarshal([]byte(out.Stdout), &counted); err != nil {
					t.Errorf("%q: %v", out.Stdout, err)
				}
				mu.Lock()
				defer mu.Unlock()
				total += counted.Total
				most = max(most, counted.Most)
			})
		}
	}
	begin := time.Now()
	close(start)
	done.Wait()
	took := time.Since(begin)

	dir, err := memory.OpenDir(filepath.Join(state, "user_tools", "memory"), filepath.Join(state, "memory.lock"), memory.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := processes * sessions * updates
	if rec, err := dir.Get(t.Context(), "counter"); err != nil || string(rec.Value) != strconv.Itoa(want) {
		t.Errorf("the number is %s, %v; want %d", rec.Value, err, want)
	}
	return contention{float64(want) / took.Seconds(), float64(total) / float64(want), most}
}
