package bridge

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeexec/bridge/catalog"
	"codeexec/bridge/upstream"
	"codeexec/wasmhost"
)

// The first use of one server that was never seen starts the others that the code names too, and no more.
func TestFirstUsesStartServersSideBySide(t *testing.T) {
	const code = `await asyncio.gather(mcp_a.x(), mcp_b.y(), runtime.call_tool("c", "z"))`
	all := make(chan struct{})
	arrived := make(chan string, 10)
	up := &fakeUpstreams{tools: map[string][]catalog.Tool{"known": {}}}
	for _, name := range []string{"a", "b", "c", "known", "unnamed"} {
		up.servers = append(up.servers, upstream.Info{Name: name, Alias: name, Status: upstream.StatusIdle, Tools: -1})
	}
	up.list = func(ctx context.Context, server string) ([]catalog.Tool, error) {
		arrived <- server
		select {
		case <-all:
			return []catalog.Tool{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	go func() {
		for seen := map[string]bool{}; len(seen) < 3; {
			seen[<-arrived] = true
		}
		close(all)
	}()
	b, _ := newFakeBridge(t, Options{}, map[string]script{code: func(ctx context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		_, err := sb.call(ctx, "tools.list", map[string]any{"server": "a"})
		return succeed("listed"), err
	}}, up)
	if res := mustRun(t, b, RunRequest{Code: code, Timeout: time.Minute}); res.Stdout != "listed" {
		t.Errorf("the run: %+v", res)
	}
	up.mu.Lock()
	defer up.mu.Unlock()
	for _, server := range up.asked {
		if server == "known" || server == "unnamed" {
			t.Errorf("%q was started", server)
		}
	}
}

// A server that never answers holds up a script that works with others too no longer than some time, and once.
// One that works with it alone waits.
func TestFirstUseOfAServerThatDoesNotAnswer(t *testing.T) {
	for code, want := range map[string]time.Duration{"mcp_files, mcp_git_hub": firstPatience, "mcp_files": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			up := &fakeUpstreams{servers: someServers(), list: func(ctx context.Context, _ string) ([]catalog.Tool, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			var took []time.Duration
			var last error
			b, _ := newFakeBridge(t, Options{}, map[string]script{code: func(ctx context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
				for range 2 {
					began := time.Now()
					_, last = sb.call(ctx, "tools.list", map[string]any{"server": "files"})
					took = append(took, time.Since(began))
				}
				return succeed(""), nil
			}}, up)
			mustRun(t, b, RunRequest{Code: code, Timeout: time.Minute})
			if took[0] != want || took[1] != 0 {
				t.Errorf("%s: it took %v, want %v and then nothing", code, took, want)
			}
			if want == firstPatience && !strings.Contains(last.Error(), "it wasn't ready after 10s") {
				t.Errorf("err = %v", last)
			}
		})
	}
}

func TestNamesServer(t *testing.T) {
	info := upstream.Info{Name: "my-server.2", Alias: "my_server_2"}
	for code, want := range map[string]bool{
		"await mcp_my_server_2.x()":                true,
		"print(mcp_my_server_22, mcp_my_server_2)": true,
		"mcp_my_server_22.x()":                     false,
		"mcp_my_server_2":                          true,
		`mcp_servers["my-server.2"].x()`:           true,
		"call_tool('my_server_2', 'x')":            true,
		"from mcp.servers.my_server_2 import x":    true,
		"from mcp.servers import my_server_2":      true,
		"import mcp.servers.my_server_2":           true,
		"# about my-server.2, which is not used":   false,
		"":                                         false,
	} {
		if got := namesServer(code, info); got != want {
			t.Errorf("%q: %v", code, got)
		}
	}
}
