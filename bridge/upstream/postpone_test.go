package upstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server that has no time is asked again when it wants it, whatever it is
// asked for; nothing is done twice.
func TestBusyServersAreAskedAgain(t *testing.T) {
	tests := []struct {
		name    string
		status  int
		after   string // Retry-After
		refused int32  // how many requests are
		limit   time.Duration
		want    string // of the error; empty if there is none
	}{
		{"too many requests", 429, "0", 3, time.Minute, ""},
		{"unavailable for a moment", 503, "1", 1, time.Minute, ""},
		{"it doesn't say when", 429, "", 1, time.Minute, ""},
		{"a time in the past", 503, "Mon, 02 Jan 2006 15:04:05 GMT", 2, time.Minute, ""},
		{"again and again", 429, "0", 1000, time.Minute, "HTTP status 429 Too Many Requests: try again in 0s"},
		{"later than the call may take", 429, "20", 1000, 10 * time.Second, "try again in 20s"},
		{"much later", 503, "3600", 1000, 2 * time.Hour, "try again in 1h0m0s"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			server := remoteServer(t, nil)
			h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
			var refusing atomic.Int32
			m := start(t, Options{}, remoteConfig(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && refusing.Add(-1) >= 0 {
					if tc.after != "" {
						w.Header().Set("Retry-After", tc.after)
					}
					w.WriteHeader(tc.status)
					return
				}
				h.ServeHTTP(w, r)
			})).URL))
			call(t, m, "echo", "{}") // starts it
			refusing.Store(tc.refused)
			ctx, cancel := context.WithTimeout(limit(t), tc.limit)
			defer cancel()
			began := time.Now()
			_, err := m.Call(ctx, "stub", "echo", nil)
			refusing.Store(0)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("err = %v, want … %s", err, tc.want)
			case tc.limit < time.Minute && time.Since(began) > tc.limit:
				t.Errorf("it took all of the time that there was: %v", time.Since(began))
			}
		})
	}
}

// Who waits for a busy server can be told to stop.
func TestWaitingForABusyServerEnds(t *testing.T) {
	busy := make(chan struct{}, 100)
	m := start(t, Options{StartTimeout: time.Minute}, remoteConfig(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "25")
		w.WriteHeader(http.StatusTooManyRequests)
		busy <- struct{}{}
	})).URL))
	ctx, cancel := context.WithCancel(limit(t))
	go func() {
		<-busy
		cancel()
	}()
	if _, err := m.Call(ctx, "stub", "echo", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}
