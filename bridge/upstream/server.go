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

	"codeexec/bridge/catalog"
	"codeexec/bridge/config"
	"codeexec/bridge/oauth"
)

// A server is a configured server, running or not.
type server struct {
	cfg    config.Server
	alias  string
	opts   *Options
	log    *slog.Logger
	ctx    context.Context // ends when the manager is closed
	slots  chan struct{}   // one for each call in flight
	record *catalog.Record // what is known of it, also when it isn't running
	access *oauth.Access   // nil if there is no OAuth
	tasks  sync.WaitGroup  // goroutines that see to a start or a link

	mu       sync.Mutex
	closed   bool      // no more tasks
	link     *link     // nil if it isn't running
	last     *link     // the one before; it may be ending still
	attempt  *attempt  // the start in progress, or nil
	err      error     // why it isn't running; nil if it never was or is
	erred    time.Time // when err was set
	failures int       // crashes and failed starts since the last call that it answered
	rests    time.Time // until when it isn't started, since it failed too often
	uses     int       // calls and listings that want it
	idle     *time.Timer
	timing   Timing // of the last start
	legacy   bool   // it doesn't take server/discover well
	sse      bool   // its URL knows only the older transport
}

// An attempt is a start that several callers wait for.
type attempt struct {
	offers *mcp.ClientCapabilities
	done   chan struct{} // closed when link or err is set
	link   *link
	err    error
}

func newServer(ctx context.Context, cfg config.Server, opts *Options) *server {
	inFlight := opts.MaxInFlight
	if limit := opts.MaxInFlightTo[cfg.Name]; limit > 0 {
		inFlight = min(inFlight, limit)
	}
	var access *oauth.Access
	if opts.OAuth != nil {
		access = opts.OAuth.Access(cfg)
	}
	return &server{
		cfg: cfg, opts: opts, ctx: ctx, access: access,
		log:    opts.Logger.With("server", cfg.Name),
		slots:  make(chan struct{}, inFlight),
		record: opts.Catalog.Record(cfg),
	}
}

func (s *server) info() Info {
	known, ok := s.record.Summary()
	if !ok {
		known.Tools = -1
	}
	needsLogin := s.access != nil && s.access.Status() == oauth.StatusNeeded
	s.mu.Lock()
	defer s.mu.Unlock()
	info := Info{
		Name: s.cfg.Name, Alias: s.alias, Description: s.cfg.Description,
		Transport: s.transport(), Cwd: s.cfg.Cwd, Status: StatusIdle, Tools: known.Tools,
		NeedsLogin: needsLogin,
	}
	if info.Description == "" {
		info.Description = known.Description
	}
	switch {
	case s.cfg.Disabled:
		info.Status = StatusDisabled
	case s.link != nil:
		info.Status = StatusReady
	case s.err != nil:
		info.Status, info.Err, info.Failed = StatusFailed, s.err, s.erred
	}
	return info
}

// transport names how the server is reached. The caller must hold s.mu.
func (s *server) transport() string {
	switch {
	case s.cfg.URL == "":
		return config.TransportStdio
	case s.sse:
		return config.TransportSSE
	case s.cfg.Transport == "":
		return config.TransportHTTP
	}
	return s.cfg.Transport
}

// enter takes note that somebody wants the server, until leave is called.
func (s *server) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
	if s.idle != nil {
		s.idle.Stop()
	}
}

func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses--
	s.watchIdle()
}

// watchIdle has the server stopped if nobody wants it for some time. The caller
// must hold s.mu.
func (s *server) watchIdle() {
	if s.uses == 0 && s.link != nil && !s.closed && s.opts.IdleTimeout > 0 {
		l := s.link
		s.idle = time.AfterFunc(s.opts.IdleTimeout, func() { s.retire(l) })
	}
}

// errIdle is why the link to a server that nobody wants is ended.
var errIdle = errors.New("nobody uses it")

// retire ends a link that is idle still.
func (s *server) retire(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses == 0 && s.link == l {
		l.conn.fail(errIdle) // who watches the link ends the rest
	}
}

// wait returns when the server has ended, after its context has.
func (s *server) wait() {
	s.mu.Lock()
	s.closed = true
	if s.idle != nil {
		s.idle.Stop()
	}
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
		l, a, err := s.running(clientOf(ctx))
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
func (s *server) running(client Client) (*link, *attempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ctx.Err() != nil {
		return nil, nil, s.unavailable(ErrClosed, "")
	}
	if s.link == nil && s.attempt == nil {
		if rest := time.Until(s.rests); rest > 0 {
			return nil, nil, s.resting(rest)
		}
		a := &attempt{offers: offered(client), done: make(chan struct{})}
		s.attempt = a
		last, delay := s.last, backoff(s.failures)
		s.tasks.Go(func() { s.start(a, last, delay) })
	}
	return s.link, s.attempt, nil
}

// maxFailures is how many starts and links may fail in a row before the server
// is left alone for a while.
const maxFailures = 5

// failed takes note of a failure. The caller must hold s.mu.
func (s *server) failed(err error) {
	s.err, s.erred = err, time.Now()
	if wantsLogin(err) {
		return // once its user has logged in, nobody should have to wait
	}
	s.failures++
	if over := s.failures - maxFailures; over >= 0 {
		s.rests = time.Now().Add(min(s.opts.rest<<min(over, 10), 10*time.Minute))
	}
}

// reason says why a server failed, without its name.
func reason(err error) string {
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok {
		return unavailable.reason()
	}
	return err.Error()
}

// resting says why the server isn't started now. The caller must hold s.mu.
func (s *server) resting(rest time.Duration) error {
	cause, stderr := s.err, ""
	if last, ok := errors.AsType[*UnavailableError](s.err); ok {
		cause, stderr = last.Err, last.Stderr
	}
	return s.unavailable(fmt.Errorf("%w (%d failures in a row; it is tried again in %v)",
		cause, s.failures, max(rest.Round(time.Second), time.Second)), stderr)
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
	var timing Timing
	l, err := s.dial(a.offers, &timing)
	s.mu.Lock()
	s.timing = timing
	s.attempt = nil
	s.link = l
	s.err = nil
	if err != nil {
		s.failed(err)
	}
	s.watchIdle()
	s.mu.Unlock()
	switch {
	case err == nil:
		s.record.Started()
	case wantsLogin(err):
		s.log.Warn("server wants a login", "error", err)
		if !s.info().NeedsLogin {
			s.record.Fail(catalog.Failure{At: time.Now(), Reason: reason(err)})
		}
	case s.ctx.Err() == nil:
		s.log.Warn("server could not be started", "error", err)
		s.record.Fail(catalog.Failure{At: time.Now(), Reason: reason(err)})
	}
	a.link, a.err = l, err
	close(a.done)
	if err != nil {
		return
	}

	s.tasks.Go(func() { l.askForLog(s.ctx) })
	l.follow(s.ctx)
	err = nil
	switch {
	case s.ctx.Err() != nil:
	case errors.Is(l.conn.err, errIdle):
		s.log.Info("server stopped", "idle", s.opts.IdleTimeout)
	case errors.Is(l.conn.err, errSessionEnded):
		s.log.Debug("the server has ended the session")
	default:
		err = l.failure()
		s.log.Warn("server crashed", "error", err)
		s.record.Fail(catalog.Failure{At: time.Now(), Reason: reason(err), Crashed: true})
	}
	s.mu.Lock()
	s.link, s.last = nil, l
	if err != nil {
		s.failed(err)
	}
	s.mu.Unlock()
	close(l.ended)
	l.close()
}

// answered takes note that the server works. Only calls of tools count: there
// are servers that list their tools and crash in each call.
func (s *server) answered() {
	s.mu.Lock()
	s.failures = 0
	s.rests = time.Time{}
	s.mu.Unlock()
	s.record.Answered()
}

// isRunning reports whether there is a link to the server that isn't broken.
func (s *server) isRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link != nil && !s.link.conn.broken()
}

// tools returns the server's tools, see [Manager.Tools].
func (s *server) tools(ctx context.Context) ([]catalog.Tool, error) {
	if !s.isRunning() && !s.cfg.Disabled {
		if tools, ok := s.record.Tools(); ok {
			return tools, nil
		}
	}
	return s.listed(ctx, false)
}

// listed returns the tools that the server itself lists. It is asked again if
// fresh is set.
func (s *server) listed(ctx context.Context, fresh bool) (tools []catalog.Tool, err error) {
	s.enter()
	defer s.leave()
	err = s.linked(ctx, func(l *link) error {
		list, err := l.list(ctx, fresh)
		if err == nil {
			tools = list.tools
		}
		return err
	})
	return tools, err
}

// probe returns the tools that the server itself lists, and how long what led to
// them took, see [Manager.Probe].
func (s *server) probe(ctx context.Context) (tools []catalog.Tool, timing Timing, err error) {
	s.enter()
	defer s.leave()
	running := s.isRunning()
	err = s.linked(ctx, func(l *link) error {
		began := time.Now()
		list, err := l.list(ctx, true)
		timing = Timing{List: time.Since(began)}
		if err != nil {
			timing.Failed = PhaseList
			return err
		}
		tools = list.tools
		return nil
	})
	if running {
		return tools, timing, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	timing.Start, timing.Handshake = s.timing.Start, s.timing.Handshake
	if timing.Failed == "" && err != nil {
		timing.Failed = s.timing.Failed
	}
	return tools, timing, err
}

// tool returns a tool, see [Manager.Tool].
func (s *server) tool(ctx context.Context, name string) (tool catalog.Tool, err error) {
	s.enter()
	defer s.leave()
	err = s.linked(ctx, func(l *link) error {
		tool, err = l.lookUp(ctx, name)
		return err
	})
	return tool, err
}

// call calls a tool.
func (s *server) call(ctx context.Context, tool string, args json.RawMessage) (result *mcp.CallToolResult, err error) {
	args, err = object(args)
	if err != nil {
		return nil, &ProtocolError{Server: s.cfg.Name, Tool: tool, Message: err.Error()}
	}
	s.enter()
	defer s.leave()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	limited := ctx
	if limit := s.cfg.Timeout; limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	err = s.linked(limited, func(l *link) error {
		known, err := l.lookUp(limited, tool)
		if err != nil {
			return err
		}
		result, err = l.call(withSchema(limited, known.InputSchema), tool, args)
		return err
	})
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = &TimeoutError{Server: s.cfg.Name, Tool: tool, Limit: s.cfg.Timeout}
	}
	return result, err
}

// linked calls f with the link to the running server. If the server has
// forgotten the session that f uses, and so done nothing, f is called again
// with a new one.
func (s *server) linked(ctx context.Context, f func(*link) error) error {
	for again := true; ; again = false {
		l, err := s.connect(ctx)
		if err != nil {
			return err
		}
		err = f(l)
		if !errors.Is(err, errSessionEnded) {
			return err
		}
		if !again {
			return s.unavailable(err, "")
		}
	}
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
