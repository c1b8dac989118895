package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// legacyVersion is the newest protocol version whose greeting is
	// initialize.
	legacyVersion = "2025-11-25"
	// maxPages and maxTools bound a list that a server makes up as it goes.
	maxPages = 1000
	maxTools = 10_000
)

// A link is a connection to a running server, from a successful greeting to
// the end of the process.
type link struct {
	server  *server
	process *process
	conn    *conn
	session *mcp.ClientSession
	ended   chan struct{} // closed when the server doesn't count as running any more
	closed  chan struct{} // closed when nothing of it is left

	changes atomic.Int64  // how often the server's list of tools has changed
	listing chan struct{} // a lock of the fields below; one that a context can leave
	list    []*mcp.Tool   // nil if it isn't known
	names   map[string]bool
	asOf    int64 // the changes that list has in it
}

// dial starts the server and greets it. The error is an [UnavailableError].
func (s *server) dial() (*link, error) {
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.opts.StartTimeout,
		fmt.Errorf("it didn't answer the greeting within %v of its start", s.opts.StartTimeout))
	defer cancel()
	s.mu.Lock()
	legacy := s.legacy
	s.mu.Unlock()

	began := time.Now()
	l, seen, err := s.greet(ctx, legacy, s.opts.ProbeTimeout)
	switch {
	case err == nil || ctx.Err() != nil || !seen.sent:
	case seen.timedOut && refused(err):
		// It doesn't want the older greeting, or not after server/discover,
		// which it has read by now. So it was only slow to start.
		if slow, _, again := s.greet(ctx, false, s.opts.ProbeTimeout+2*time.Since(began)); again == nil {
			l, seen, err = slow, discover{}, nil
		}
	case !seen.answered && !seen.timedOut:
		// It gave up at the first message that it didn't know.
		l, seen, err = s.greet(ctx, true, 0)
		seen.timedOut = err == nil
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.legacy = legacy || seen.timedOut
	s.mu.Unlock()
	return l, nil
}

// refused reports whether a server answered the greeting with an error.
func refused(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc)
}

// greet starts the server and greets it once.
func (s *server) greet(ctx context.Context, legacy bool, probe time.Duration) (*link, discover, error) {
	if s.ctx.Err() != nil {
		return nil, discover{}, s.unavailable(ErrClosed, "")
	}
	env := serverEnviron(s.opts.Environ, s.cfg.Env)
	path, err := findProgram(s.cfg.Command, s.cfg.Cwd, env, serverEnviron(s.opts.Environ, nil))
	if err != nil {
		return nil, discover{}, s.unavailable(err, "")
	}
	p, err := startProcess(command{
		path: path, args: s.cfg.Args, env: env.list(), dir: s.cfg.Cwd, supervisor: s.opts.Supervisor,
	})
	if err != nil {
		return nil, discover{}, s.unavailable(err, "")
	}
	l := &link{
		server: s, process: p, listing: make(chan struct{}, 1),
		ended: make(chan struct{}), closed: make(chan struct{}),
		conn: newConn(p.stdout, p.stdin, probe, s.opts.maxLine, s.log),
	}
	stop := context.AfterFunc(ctx, func() { l.conn.fail(context.Cause(ctx)) })
	defer stop()
	var version string
	if legacy {
		version = legacyVersion
	}
	err = guarded(func() (err error) {
		l.session, err = l.client().Connect(ctx, l.conn, &mcp.ClientSessionOptions{ProtocolVersion: version})
		return err
	})
	seen := l.conn.discovered()
	if err == nil {
		return l, seen, nil
	}
	var rpc *jsonrpc.Error
	switch {
	case s.ctx.Err() != nil:
		err = s.unavailable(ErrClosed, "")
	case ctx.Err() != nil:
		err = s.unavailable(context.Cause(ctx), p.stderr.String())
	case errors.As(err, &rpc):
		err = s.unavailable(fmt.Errorf("it refused the greeting: %w (code %d)", rpc, rpc.Code), p.stderr.String())
	case l.conn.broken():
		err = l.failure()
	default:
		err = s.unavailable(fmt.Errorf("the greeting failed: %w", err), p.stderr.String())
	}
	l.close()
	return nil, seen, err
}

// client makes the SDK's client of this link.
func (l *link) client() *mcp.Client {
	return mcp.NewClient(
		&mcp.Implementation{Name: l.server.opts.ClientName, Version: l.server.opts.Version},
		&mcp.ClientOptions{
			Logger: l.server.log,
			// Nothing is offered that isn't there; the SDK's default offers
			// roots.
			Capabilities: &mcp.ClientCapabilities{},
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
				l.changes.Add(1)
			},
			// Without a handler for questions to the user there is nothing to
			// answer them with.
			MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		})
}

// close ends the link and the server's process with it. What is in flight
// fails at once.
func (l *link) close() {
	l.conn.fail(ErrClosed)
	l.process.stop()
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
	// A process that crashed is gone as soon as its stdout is, and with it its
	// stderr. One that merely closed its stdout isn't.
	const patience = 2 * time.Second
	err := errors.New("it closed its standard output")
	if l.process.gone(patience) {
		err = l.process.obituary()
		select {
		case <-l.process.drained:
		case <-time.After(patience):
		}
	}
	return l.server.unavailable(err, l.process.stderr.String())
}

// lock takes the lock of the list of tools.
func (l *link) lock(ctx context.Context) error {
	select {
	case l.listing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) unlock() { <-l.listing }

// tools returns the list of tools. It asks the server if fresh is set, or if
// the list isn't known or has changed.
func (l *link) tools(ctx context.Context, fresh bool) ([]*mcp.Tool, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	changes := l.changes.Load()
	if l.list != nil && l.asOf == changes && !fresh {
		return l.list, nil
	}
	list, err := l.fetch(ctx)
	if err != nil {
		return nil, err
	}
	l.list, l.asOf = list, changes
	l.names = make(map[string]bool, len(list))
	for _, tool := range list {
		l.names[tool.Name] = true
	}
	s := l.server
	s.mu.Lock()
	s.toolsN = len(list)
	s.mu.Unlock()
	return list, nil
}

// fetch reads all pages of the list of tools.
func (l *link) fetch(ctx context.Context) ([]*mcp.Tool, error) {
	var (
		list  = []*mcp.Tool{}
		names = make(map[string]bool)
		seen  = make(map[string]bool) // cursors
		log   = l.server.log
	)
	params := &mcp.ListToolsParams{}
	for range maxPages {
		var page *mcp.ListToolsResult
		err := guarded(func() (err error) {
			page, err = l.session.ListTools(ctx, params)
			return err
		})
		if err != nil {
			err = l.explain(ctx, "", err)
			var rpc *ProtocolError
			if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound {
				return list, nil // it has no tools
			}
			return nil, err
		}
		l.server.answered()
		for _, tool := range page.Tools {
			switch {
			case tool.Name == "":
				log.Warn("left out a tool without a name")
			case names[tool.Name]:
				log.Warn("left out a tool of a name that is taken", "tool", tool.Name)
			case len(list) == maxTools:
				log.Warn("left out tools: there are too many", "limit", maxTools)
				return list, nil
			default:
				names[tool.Name] = true
				list = append(list, tool)
			}
		}
		if page.NextCursor == "" {
			return list, nil
		}
		if seen[page.NextCursor] {
			log.Warn("the pages of tools/list go in a circle", "cursor", page.NextCursor)
			return list, nil
		}
		seen[page.NextCursor] = true
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
	log.Warn("left out tools: their list has too many pages", "limit", maxPages)
	return list, nil
}

// checkTool returns an error if the server doesn't list the tool. A server that
// can't list its tools is given the benefit of the doubt.
func (l *link) checkTool(ctx context.Context, tool string) error {
	for _, fresh := range []bool{false, true} { // it may be new
		list, err := l.tools(ctx, fresh)
		var rpc *ProtocolError
		if errors.As(err, &rpc) {
			return nil
		}
		if err != nil {
			return err
		}
		if l.has(ctx, tool) || fresh && len(list) == 0 {
			return nil
		}
	}
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	unknown := &UnknownToolError{Server: l.server.cfg.Name, Tool: tool}
	var names []string
	for _, t := range l.list {
		names = append(names, t.Name)
	}
	unknown.Suggestions = suggest(tool, names)
	return unknown
}

// has reports whether the server lists the tool.
func (l *link) has(ctx context.Context, tool string) bool {
	if l.lock(ctx) != nil {
		return true // the call will fail for this reason
	}
	defer l.unlock()
	return l.names[tool]
}

// call calls a tool with a JSON object of arguments.
func (l *link) call(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	ctx, raw := withCapture(ctx)
	defer l.conn.forget(raw)
	var result *mcp.CallToolResult
	err := guarded(func() (err error) {
		result, err = l.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		return err
	})
	if err != nil {
		return nil, l.explain(ctx, tool, err)
	}
	l.server.answered()
	if result.NeedsInput() {
		return nil, &ProtocolError{Server: l.server.cfg.Name, Tool: tool,
			Message: "it asks for input from the user, which scripts can't give"}
	}
	result.StructuredContent = nil
	if raw.structured != nil {
		result.StructuredContent = raw.structured
	}
	return result, nil
}

// explain turns an error of the SDK into one of ours.
func (l *link) explain(ctx context.Context, tool string, err error) error {
	name := l.server.cfg.Name
	var rpc *jsonrpc.Error
	switch {
	case errors.As(err, &rpc):
		l.server.answered()
		return &ProtocolError{Server: name, Tool: tool, Code: rpc.Code, Message: rpc.Message, Data: rpc.Data}
	case errors.Is(err, errTooLarge):
		return &TooLargeError{Server: name, Tool: tool, Limit: l.server.opts.maxLine}
	case ctx.Err() != nil:
		return ctx.Err()
	case l.conn.broken():
		return l.failure()
	}
	// What is left are answers that the SDK can't decode.
	message := strings.TrimPrefix(err.Error(), `calling "tools/call": `)
	return &ProtocolError{Server: name, Tool: tool, Message: "its answer isn't valid: " + message}
}
