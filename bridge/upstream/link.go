//lint:file-ignore SA1019 Log messages of servers are deprecated, but in use for years to come.

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/config"
)

const (
	// legacyVersion is the newest protocol version whose greeting is
	// initialize.
	legacyVersion = "2025-11-25"
)

// A link is a connection to a running server, from a successful greeting to
// the end of the process.
type link struct {
	server  *server
	backend backend
	conn    *conn
	session *mcp.ClientSession
	ended   chan struct{} // closed when the server doesn't count as running any more
	closed  chan struct{} // closed when nothing of it is left

	tokens  atomic.Int64  // progress tokens that were given out
	changes atomic.Int64  // how often the server's list of tools has changed
	stale   chan struct{} // takes one value without blocking when it has, see follow
	listing chan struct{} // a lock of the field below; one that a context can leave
	last    *listing      // nil if there was none yet
}

// A backend is what a link reaches: a process or a remote server.
type backend interface {
	// stop ends it, as far as it is ours. It returns when nothing is left.
	stop()
	// postmortem says why the connection broke, which it has, with the end of
	// the server's stderr.
	postmortem() (stderr string, err error)
	// stderrTail returns the end of the server's stderr so far.
	stderrTail() string
}

// A greeting is a way to greet a server.
type greeting struct {
	legacy bool          // with initialize at once
	sse    bool          // over the transport HTTP with SSE
	probe  time.Duration // how long server/discover may take
	offers *mcp.ClientCapabilities
	timing *Timing // gets how long it took
}

// dial starts the server and greets it, and says how long that took. The error
// is an [UnavailableError].
func (s *server) dial(offers *mcp.ClientCapabilities, timing *Timing) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.opts.StartTimeout,
		fmt.Errorf("it didn't answer the greeting within %v of its start", s.opts.StartTimeout))
	defer cancel()
	s.mu.Lock()
	way := greeting{legacy: s.legacy, sse: s.sse, probe: s.opts.ProbeTimeout, offers: offers, timing: timing}
	s.mu.Unlock()
	if s.cfg.Transport == config.TransportSSE {
		way.legacy, way.sse = true, true
	}

	began := time.Now()
	l, seen, err := s.greet(ctx, way)
	switch {
	case err == nil || ctx.Err() != nil || !seen.sent:
	case seen.timedOut && refused(err):
		// It doesn't want the older greeting, or not after server/discover,
		// which it has read by now. So it was only slow to start.
		patient := greeting{probe: s.opts.ProbeTimeout + 2*time.Since(began), offers: offers, timing: timing}
		if slow, _, again := s.greet(ctx, patient); again == nil {
			l, seen, err = slow, discover{}, nil
		}
	case s.cfg.URL != "":
		// The specification has clients try the older transport then.
		if !way.sse && notFound(err) {
			if old, _, again := s.greet(ctx, greeting{legacy: true, sse: true, offers: offers, timing: timing}); again == nil {
				l, way.sse, err = old, true, nil
			}
		}
	case !seen.answered && !seen.timedOut:
		// It gave up at the first message that it didn't know.
		l, seen, err = s.greet(ctx, greeting{legacy: true, offers: offers, timing: timing})
		seen.timedOut = err == nil
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.legacy = way.legacy || seen.timedOut
	s.sse = way.sse
	s.mu.Unlock()
	return l, nil
}

// notFound reports whether a server answered as if its URL knew no POST.
func notFound(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && (status.code == http.StatusBadRequest || status.code == http.StatusNotFound || status.code == http.StatusMethodNotAllowed)
}

// refused reports whether a server answered the greeting with an error.
func refused(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc)
}

// open starts the server, or makes ready to talk to a remote one.
func (s *server) open(ctx context.Context, way greeting) (*link, error) {
	if s.ctx.Err() != nil {
		return nil, ErrClosed
	}
	l := &link{
		server: s, listing: make(chan struct{}, 1), stale: make(chan struct{}, 1),
		ended: make(chan struct{}), closed: make(chan struct{}),
	}
	if s.cfg.URL != "" {
		r, err := newRemote(s.cfg, s.access, way.probe, s.opts.maxLine, s.log)
		if err != nil {
			return nil, err
		}
		l.backend, l.conn = r, r.conn
		if way.sse {
			if err := openSSE(ctx, r); err != nil {
				r.stop()
				return nil, err
			}
		}
		return l, nil
	}
	env := serverEnviron(runtime.GOOS, s.opts.Environ, s.cfg.Env)
	path, err := findProgram(runtime.GOOS, s.cfg.Command, s.cfg.Cwd, env, serverEnviron(runtime.GOOS, s.opts.Environ, nil))
	if err != nil {
		return nil, err
	}
	p, err := startProcess(command{
		path: path, args: s.cfg.Args, env: env.list(), dir: s.cfg.Cwd, supervisor: s.opts.Supervisor,
	})
	if err != nil {
		return nil, err
	}
	l.backend = p
	l.conn = newPipesConn(s.cfg.Name, p.stdout, p.stdin, way.probe, s.opts.maxLine, s.log)
	return l, nil
}

// greet starts the server and greets it once.
func (s *server) greet(ctx context.Context, way greeting) (*link, discover, error) {
	began := time.Now()
	way.timing.Failed = PhaseStart
	l, err := s.open(ctx, way)
	way.timing.Start += time.Since(began)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ErrClosed) {
			err = context.Cause(ctx)
		}
		return nil, discover{}, s.unavailable(err, "")
	}
	stop := context.AfterFunc(ctx, func() { l.conn.fail(context.Cause(ctx)) })
	defer stop()
	began = time.Now()
	way.timing.Failed = PhaseHandshake
	defer func() { way.timing.Handshake += time.Since(began) }()
	var version string
	if way.legacy {
		version = legacyVersion
	}
	err = guarded(func() (err error) {
		l.session, err = l.client(way.offers).Connect(ctx, l.conn, &mcp.ClientSessionOptions{ProtocolVersion: version})
		return err
	})
	seen := l.conn.discovered()
	if err == nil {
		way.timing.Failed = ""
		return l, seen, nil
	}
	var (
		rpc      *jsonrpc.Error
		status   *statusError
		access   *accessError
		transfer *transferError
	)
	switch {
	case s.ctx.Err() != nil:
		err = s.unavailable(ErrClosed, "")
	case l.refusal() != nil:
		err = s.unavailable(l.refusal(), "") // what came after it says less
	case ctx.Err() != nil:
		err = s.unavailable(context.Cause(ctx), l.backend.stderrTail())
	case errors.As(err, &rpc):
		err = s.unavailable(fmt.Errorf("it refused the greeting: %w (code %d)", rpc, rpc.Code), l.backend.stderrTail())
	case errors.As(err, &status):
		err = s.unavailable(status, "")
	case errors.As(err, &access):
		err = s.unavailable(access, "")
	case errors.As(err, &transfer):
		err = s.unavailable(transfer, "")
	case l.conn.broken() && (s.cfg.URL == "" || !errors.Is(l.conn.err, io.EOF)):
		err = l.failure()
	default:
		err = s.unavailable(fmt.Errorf("the greeting failed: %w", err), l.backend.stderrTail())
	}
	l.close()
	return nil, seen, err
}

// refusal returns why a remote server didn't want to say what it is, or nil.
func (l *link) refusal() error {
	if r, ok := l.backend.(*remote); ok {
		if err := r.refusal(); err != nil {
			return err
		}
	}
	return nil
}

// client makes the SDK's client of this link.
func (l *link) client(offers *mcp.ClientCapabilities) *mcp.Client {
	return mcp.NewClient(
		&mcp.Implementation{Name: l.server.opts.ClientName, Version: l.server.opts.Version},
		&mcp.ClientOptions{
			Logger: l.conn.log,
			// Nothing is offered that isn't there; the SDK's default offers
			// roots. What is offered is seen to by conn.
			Capabilities: offers,
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
				l.changed()
			},
			// It would answer with handlers that it hasn't got; see call.
			MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		})
}

// logs reports whether the server says that it has log messages.
func (l *link) logs() bool {
	greeting := l.session.InitializeResult()
	return greeting != nil && greeting.Capabilities != nil && greeting.Capabilities.Logging != nil
}

// askForLog has a server send its log messages, which many don't unasked. In
// newer versions each call asks for its own.
func (l *link) askForLog(ctx context.Context) {
	if !l.logs() || l.session.InitializeResult().ProtocolVersion > legacyVersion {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.server.opts.ListTimeout)
	defer cancel()
	err := guarded(func() error {
		return l.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: wantedLevel(l.conn.log)})
	})
	if err != nil {
		l.conn.log.Debug("it can't be asked for its log", "error", err)
	}
}

// close ends the link and the server's process with it. What is in flight
// fails at once.
func (l *link) close() {
	l.conn.fail(ErrClosed)
	l.backend.stop()
	if l.session != nil {
		l.session.Close()
	}
	close(l.closed)
}

// failure says why the connection broke, which it has.
func (l *link) failure() error {
	if errors.Is(l.conn.err, ErrClosed) || l.server.ctx.Err() != nil {
		return l.server.unavailable(ErrClosed, "")
	}
	stderr, err := l.backend.postmortem()
	return l.server.unavailable(err, stderr)
}

// call calls a tool with a JSON object of arguments.
func (l *link) call(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	client := clientOf(ctx)
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	for round := 1; ; round++ {
		result, err := l.round(ctx, client, params)
		if err != nil || !result.NeedsInput() {
			return result, err
		}
		refuse := func(err error) error {
			return &ProtocolError{Server: l.server.cfg.Name, Tool: tool, Message: "it asks for input that it can't get: " + err.Error()}
		}
		if round == maxRounds {
			return nil, refuse(errors.New("it asks again and again"))
		}
		params.RequestState = result.RequestState
		err = guarded(func() (err error) {
			params.InputResponses, err = input(ctx, l.server.cfg.Name, client, result.InputRequests)
			return err
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, refuse(err)
		}
	}
}

// round makes one request of a call.
func (l *link) round(ctx context.Context, client Client, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	ctx, raw := withCapture(ctx, fieldStructured)
	defer l.conn.forget(raw)
	// What the SDK adds is for this request only.
	params = &mcp.CallToolParams{
		Name: params.Name, Arguments: params.Arguments,
		InputResponses: params.InputResponses, RequestState: params.RequestState,
	}
	tool := params.Name
	if client != nil {
		raw.client, raw.tool, raw.token = client, tool, l.tokens.Add(1)
		params.SetProgressToken(raw.token)
	}
	if greeting := l.session.InitializeResult(); greeting != nil && greeting.ProtocolVersion > legacyVersion {
		meta := params.GetMeta()
		if meta == nil {
			meta = mcp.Meta{}
		}
		meta[mcp.MetaKeyClientCapabilities] = wireCapabilities(offered(client))
		if l.logs() {
			meta[mcp.MetaKeyLogLevel] = wantedLevel(l.conn.log)
		}
		params.SetMeta(meta)
	}
	var result *mcp.CallToolResult
	err := guarded(func() (err error) {
		result, err = l.session.CallTool(ctx, params)
		return err
	})
	if err != nil {
		if raw.unseen.Load() {
			return nil, errSessionEnded
		}
		return nil, l.explain(ctx, tool, err)
	}
	l.server.answered()
	result.StructuredContent = nil
	if raw.value != nil {
		result.StructuredContent = raw.value
	}
	return result, nil
}

// explain turns an error of the SDK into one of ours.
func (l *link) explain(ctx context.Context, tool string, err error) error {
	name := l.server.cfg.Name
	var (
		rpc      *jsonrpc.Error
		status   *statusError
		access   *accessError
		transfer *transferError
	)
	switch {
	case errors.As(err, &rpc):
		if tool != "" {
			l.server.answered()
		}
		return &ProtocolError{Server: name, Tool: tool, Code: rpc.Code, Message: rpc.Message, Data: rpc.Data}
	case errors.Is(err, errTooLarge):
		return &TooLargeError{Server: name, Tool: tool, Limit: l.server.opts.maxLine}
	case ctx.Err() != nil:
		return ctx.Err()
	case tool == "" && l.conn.broken() && errors.Is(l.conn.err, errSessionEnded):
		return errSessionEnded // a list can be asked for twice
	case errors.As(err, &status):
		return l.server.unavailable(status, "")
	case errors.As(err, &access):
		return l.server.unavailable(access, "")
	case errors.As(err, &transfer):
		return l.server.unavailable(transfer, "")
	case errors.Is(err, errNoAnswer):
		return l.server.unavailable(err, "")
	case l.conn.broken():
		return l.failure()
	}
	// What is left are answers that the SDK can't decode.
	message := strings.TrimPrefix(err.Error(), `calling "tools/call": `)
	return &ProtocolError{Server: name, Tool: tool, Message: "its answer isn't valid: " + message}
}
