package bridge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"codeexec/bridge/catalog"
	"codeexec/bridge/upstream"
)

// firstPatience is how long a run whose code names several servers waits for one that was never seen. Python
// waits for it as a whole, and who works with several should get what the others say.
const firstPatience = 10 * time.Second

// A failure of a first use is the answer to further ones for this time. Python asks for the tool, and asks again
// as it is called; neither the start nor the wait for it shall be for each.
const firstFailure = time.Second

// A warmer sees to the servers that a run's code names and that were never seen.
type warmer struct {
	code string // empty: none is started

	mu      sync.Mutex
	started bool
	several bool // the code names more than one server
	failed  map[string]firstUse
}

// A firstUse is one that failed.
type firstUse struct {
	err error
	at  time.Time
}

// firstTools lists the tools of a server that was never seen. All servers of which that is true and that the
// run's code names are started side by side with it.
//
// Python evaluates mcp_a.x() before mcp_b.y(), also as arguments of asyncio.gather, and what x is only the server
// itself can tell where it was never seen. So without this one server's start would wait for that of another.
func (h *guestHandler) firstTools(ctx context.Context, scope *runScope, server string) ([]catalog.Tool, error) {
	w := &scope.warmer
	w.mu.Lock()
	if !w.started {
		w.started = true
		named := 0
		for _, info := range h.upstreams.Servers() {
			if _, allowed := slices.BinarySearch(scope.allowed, info.Name); !allowed || !namesServer(w.code, info) {
				continue
			}
			named++
			if info.Tools < 0 && info.Status == upstream.StatusIdle && info.Name != server {
				go h.upstreams.Tools(ctx, info.Name) // who wants the server gets the error
			}
		}
		w.several, w.failed = named > 1, make(map[string]firstUse)
	}
	several, last := w.several, w.failed[server]
	w.mu.Unlock()
	if last.err != nil && time.Since(last.at) < firstFailure {
		return nil, last.err
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if several {
		limited, cancel = context.WithTimeout(ctx, firstPatience)
	}
	defer cancel()
	tools, err := h.upstreams.Tools(limited, server)
	if err == nil || ctx.Err() != nil {
		return tools, err
	}
	if limited.Err() != nil {
		err = &upstream.UnavailableError{Server: server, Err: fmt.Errorf("it wasn't ready after %v; it goes on starting, so try again", firstPatience)}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed[server] = firstUse{err, time.Now()}
	return nil, err
}

// namesServer reports whether code seems to use a server: as a variable, as a module, or by its name.
func namesServer(code string, info upstream.Info) bool {
	for _, variable := range []string{"mcp_" + info.Alias, "servers." + info.Alias, "servers import " + info.Alias} {
		for rest := code; ; {
			_, after, found := strings.Cut(rest, variable)
			if !found {
				break
			}
			if rest = after; rest == "" || !strings.ContainsAny(rest[:1], "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				return true
			}
		}
	}
	for _, name := range []string{info.Name, info.Alias} {
		if strings.Contains(code, `"`+name+`"`) || strings.Contains(code, `'`+name+`'`) {
			return true
		}
	}
	return false
}
