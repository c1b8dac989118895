//go:build linux

package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Calls, crashes, sessions that end and idle stops leave nothing behind.
func TestLongUseLeaksNothing(t *testing.T) {
	server := remoteServer(t, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
	web := serve(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	other := stubServer()
	other.Name = "other"
	far := remoteConfig(web.URL)
	far.Name = "far"
	rounds, warm := 300, 30
	if testing.Short() {
		rounds = 60
	}
	measure := func() (goroutines, files int, heap uint64) {
		var mem runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&mem)
		return runtime.NumGoroutine(), openFiles(t), mem.HeapAlloc
	}
	m := start(t, Options{}, stubServer(), other, far)
	var goroutines, files int
	var heap uint64
	for i := range rounds {
		if i == warm {
			goroutines, files, heap = measure()
		}
		for _, name := range []string{"stub", "other", "far"} {
			if _, err := m.Call(limit(t), name, "echo", json.RawMessage(fmt.Sprintf(`{"i":%d}`, i))); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case i%50 == 10:
			m.Call(limit(t), "stub", "crash", nil)
		case i%50 == 20: // as after an idle time
			s := m.servers["far"]
			s.mu.Lock()
			s.link.conn.fail(errIdle)
			s.mu.Unlock()
		}
	}
	eventually(t, "goroutines and descriptors are as before", func() bool {
		g, f, h := measure()
		return g <= goroutines+5 && f <= files+3 && h <= heap+4<<20
	})
}
