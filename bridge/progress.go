package bridge

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/upstream"
)

const (
	// progressInterval is how often a client that asked for it is told that a silent run is still going on.
	// Clients give up on silent requests after a minute or less.
	progressInterval = 5 * time.Second
	// minProgress is the least time between two notifications of progress.
	minProgress = 100 * time.Millisecond

	maxProgressText  = 2 << 10 // bytes of output in one notification; of more, the newest
	maxProgressCalls = 8       // calls of tools in one notification; of more, the newest
)

// A feed collects what there is to tell of a run while it goes on. Nobody who adds to it ever waits: what the
// client isn't told in time, it isn't told, and the answer has it anyway.
type feed struct {
	changed chan struct{} // holds a token if there is something to take

	mu    sync.Mutex
	lines []byte // whole lines of output
	cut   bool   // there were more lines
	rest  []byte // the last line, as far as it was written
	calls []callProgress
}

// callProgress is the newest that is known of calls of a tool.
type callProgress struct{ tool, text string }

func newFeed() *feed { return &feed{changed: make(chan struct{}, 1)} }

// Write adds output of the script. It never fails.
func (f *feed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(p)
	if end := bytes.LastIndexByte(p, '\n') + 1; end > 0 {
		f.addLines(f.rest)
		f.addLines(p[:end])
		f.rest, p = f.rest[:0], p[end:]
		f.signal()
	}
	f.rest = append(f.rest, p[:min(len(p), maxProgressText-len(f.rest))]...)
	return n, nil
}

func (f *feed) addLines(p []byte) {
	f.lines = append(f.lines, p[max(len(p)-2*maxProgressText, 0):]...)
	if over := len(f.lines) - maxProgressText; over > 0 {
		f.cut = true
		f.lines = slices.Delete(f.lines, 0, over)
	}
}

// call adds how far a call of a tool is, in the place of what was known before.
func (f *feed) call(server, tool string, p upstream.Progress) {
	text := fmt.Sprint(p.Progress)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %v", p.Total)
	}
	if p.Message != "" {
		text += ": " + firstLine(p.Message, 200)
	}
	name := firstLine(server, 100) + "." + firstLine(tool, 100)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = slices.DeleteFunc(f.calls, func(c callProgress) bool { return c.tool == name })
	f.calls = append(f.calls, callProgress{name, text})
	if len(f.calls) > maxProgressCalls {
		f.calls = slices.Delete(f.calls, 0, 1)
	}
	f.signal()
}

func (f *feed) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// take returns what was added since the last time, as one text; at the end also a line that isn't whole.
func (f *feed) take(end bool) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if end {
		f.addLines(f.rest)
		f.rest = nil
	}
	text, _ := headOf(f.lines, 4*maxProgressText)
	if text = strings.TrimSuffix(text, "\n"); f.cut {
		if _, after, ok := strings.Cut(text, "\n"); ok { // the first line isn't whole
			text = after
		}
		text = "…\n" + text
	}
	var parts []string
	if text != "" {
		parts = append(parts, text)
	}
	for _, c := range f.calls {
		parts = append(parts, c.tool+": "+c.text)
	}
	f.lines, f.cut, f.calls = nil, false, nil
	return strings.Join(parts, "\n")
}

// reportProgress tells the client what there is to tell of a run until the returned function is called, if
// the client asked for that. The progress is the number of seconds that it waits: it only ever grows, whatever
// the calls in the run say of theirs.
func (s *Server) reportProgress(ctx context.Context, req *mcp.CallToolRequest, f *feed) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	started, last := time.Now(), -1.0
	notify := func(message string) error {
		last = max(time.Since(started).Seconds(), last+0.001)
		return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: last, Message: message})
	}
	idle := func() string {
		select {
		case <-s.bridge.ready():
			return "the script is running"
		default:
			return "Python is starting"
		}
	}
	loop, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if message := idle(); message != "the script is running" && notify(message) != nil {
			return
		}
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			var message string
			select {
			case <-loop.Done():
				return
			case <-ticker.C:
				message = idle()
			case <-f.changed:
				if message = f.take(false); message == "" {
					continue
				}
			}
			if notify(message) != nil {
				return // the connection is gone, or the run is over
			}
			ticker.Reset(progressInterval)
			select {
			case <-loop.Done():
				return
			case <-time.After(minProgress):
			}
		}
	}()
	return func() {
		cancel()
		<-done
		if message := f.take(true); message != "" {
			// An error is the end of the connection, which everybody notices.
			_ = notify(message)
		}
	}
}
