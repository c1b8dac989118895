package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/config"
)

// A server is a configured server, running or not.
type server struct {
	cfg   config.Server
	alias string
	opts  *Options
	log   *slog.Logger
	ctx   context.Context // ends when the manager is closed
	slots chan struct{}   // one for each call in flight
	tasks sync.WaitGroup  // goroutines that see to a start or a link

	mu       sync.Mutex
	closed   bool     // no more tasks
	link     *link    // nil if it isn't running
	last     *link    // the one before; it may be ending still
	attempt  *attempt // the start in progress, or nil
	err      error    // why it isn't running; nil if it never was or is
	failures int      // crashes and failed starts since the last answer
	legacy   bool     // it doesn't take server/discover well
	toolsN   int      // see Info.Tools
}

// An attempt is a start that several callers wait for.
type attempt struct {
	done chan struct{} // closed when link or err is set
	link *link
	err  error
}

func newServer(ctx context.Context, cfg config.Server, opts *Options) *server {
	return &server{
		cfg: cfg, opts: opts, ctx: ctx,
		log:    opts.Logger.With("server", cfg.Name),
		slots:  make(chan struct{}, opts.MaxInFlight),
		toolsN: -1,
	}
}

func (s *server) info() Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := Info{
		Name: s.cfg.Name, Alias: s.alias, Description: s.cfg.Description,
		Transport: "stdio", Cwd: s.cfg.Cwd, Status: StatusIdle, Tools: s.toolsN,
	}
	switch {
	case s.cfg.Disabled:
		info.Status = StatusDisabled
	case s.link != nil:
		info.Status = StatusReady
	case s.err != nil:
		info.Status, info.Err = StatusFailed, s.err
	}
	return info
}

// wait returns when the server has ended, after its context has.
func (s *server) wait() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.tasks.Wait()
}

func (s *server) unavailable(err error, stderr string) *UnavailableError {
	return &UnavailableError{Server: s.cfg.Name, Err: err, Stderr: stderr}
}

// connect returns the link to the running server. It starts the server if
// nobody does yet. The start goes on if ctx ends: others may wait for it, and
// the next call will be glad of it.
func (s *server) connect(ctx context.Context) (*link, error) {
	if s.cfg.Disabled {
		return nil, s.unavailable(fmt.Errorf("it is disabled in %s", s.cfg.Source), "")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		l, a, err := s.running()
		if err != nil {
			return nil, err
		}
		var wait <-chan struct{}
		switch {
		case l != nil && !l.conn.broken():
			return l, nil
		case l != nil:
			wait = l.ended // it has crashed, but that hasn't been seen to yet
		default:
			wait = a.done
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if a != nil {
			return a.link, a.err
		}
	}
}

// running returns the link to the server, or else the attempt to start it,
// which it makes if there is none.
func (s *server) running() (*link, *attempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ctx.Err() != nil {
		return nil, nil, s.unavailable(ErrClosed, "")
	}
	if s.link == nil && s.attempt == nil {
		a := &attempt{done: make(chan struct{})}
		s.attempt = a
		last, delay := s.last, backoff(s.failures)
		s.tasks.Go(func() { s.start(a, last, delay) })
	}
	return s.link, s.attempt, nil
}

// backoff is how long the next start waits after some failures in a row. The
// first costs nothing: most crashes are accidents.
func backoff(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(250*time.Millisecond<<min(failures-2, 10), 5*time.Second)
}

// start makes an attempt, when nothing is left of the last link, and after a
// delay. If it succeeds, it sees to the link until its end.
func (s *server) start(a *attempt, last *link, delay time.Duration) {
	if last != nil {
		<-last.closed
	}
	select {
	case <-time.After(delay):
	case <-s.ctx.Done():
	}
	l, err := s.dial()
	s.mu.Lock()
	s.attempt = nil
	s.link = l
	s.err = err
	if err != nil {
		s.failures++
		if s.ctx.Err() == nil {
			s.log.Warn("server could not be started", "error", err)
		}
	}
	s.mu.Unlock()
	a.link, a.err = l, err
	close(a.done)
	if err != nil {
		return
	}

	select {
	case <-l.conn.closed:
	case <-s.ctx.Done():
	}
	if s.ctx.Err() == nil {
		err = l.failure()
		s.log.Warn("server crashed", "error", err)
	}
	s.mu.Lock()
	s.link, s.last = nil, l
	s.err = err
	if err != nil {
		s.failures++
	}
	s.mu.Unlock()
	close(l.ended)
	l.close()
}

// answered takes note that the server works.
func (s *server) answered() {
	s.mu.Lock()
	s.failures = 0
	s.mu.Unlock()
}

// tools returns the server's tools.
func (s *server) tools(ctx context.Context) ([]*mcp.Tool, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return l.tools(ctx, false)
}

// call calls a tool.
func (s *server) call(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	args, err := object(args)
	if err != nil {
		return nil, &ProtocolError{Server: s.cfg.Name, Tool: tool, Message: err.Error()}
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.checkTool(ctx, tool); err != nil {
		return nil, err
	}
	return l.call(ctx, tool, args)
}

// object checks that args are a JSON object, and makes nothing an empty one.
func object(args json.RawMessage) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		return json.RawMessage("{}"), nil
	}
	if args[0] != '{' || !json.Valid(args) {
		return nil, errors.New("the arguments of a call must be a JSON object")
	}
	return args, nil
}
