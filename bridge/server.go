package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A TextForm is how the text of an answer is written. The structured form is always there too.
type TextForm string

const (
	TextCompact TextForm = "compact" // sections for a model to read; see [RunResult.Compact]
	TextJSON    TextForm = "json"    // the structured form as JSON
)

// ServerOptions configures a [Server].
type ServerOptions struct {
	Version string       // of this program, as told to clients
	Text    TextForm     // empty: TextCompact
	Logger  *slog.Logger // nil: nothing is logged
}

// A Server is the MCP server in front of a [Bridge]. It has one tool, run_python, and one resource,
// [CapabilitiesURI].
type Server struct {
	bridge *Bridge
	opts   ServerOptions
	mcp    *mcp.Server
}

// NewServer returns a server that runs scripts in b. Closing b is the caller's business.
func NewServer(b *Bridge, opts ServerOptions) *Server {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{bridge: b, opts: opts}
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "codeexec", Title: "codeexec", Version: opts.Version},
		&mcp.ServerOptions{
			Logger: opts.Logger,
			// What is offered never changes, and nothing is logged to clients; the defaults say otherwise.
			Capabilities: &mcp.ServerCapabilities{
				Tools:     &mcp.ToolCapabilities{},
				Resources: &mcp.ResourceCapabilities{},
			},
		})
	s.mcp.AddTool(runPythonTool(b.opts), s.runPython)
	s.mcp.AddResource(&mcp.Resource{
		URI:         CapabilitiesURI,
		Name:        "capabilities",
		Title:       "What scripts can do",
		Description: "How to find and call tools from Python, with examples and the limits in force",
		MIMEType:    "text/markdown",
	}, s.readCapabilities)
	return s
}

// Serve speaks MCP over one connection until the peer closes it, or ctx ends: then the runs that it asked
// for are cancelled. It returns nil in both cases.
func (s *Server) Serve(ctx context.Context, t mcp.Transport) error {
	return s.serve(ctx, t, &connection{ctx: ctx, gate: &admissionGate{}, drain: func() {}})
}

// A connection is what the handler of a request needs to know of the connection that it came by. It rides on
// the request's context.
type connection struct {
	ctx   context.Context // the one of Serve: the SDK keeps its end from the contexts of requests
	gate  *admissionGate
	drain func() // waits until requests in progress are answered, within a limit
}

type connectionKey struct{}

func (s *Server) serve(ctx context.Context, t mcp.Transport, conn *connection) error {
	session, err := s.mcp.Connect(context.WithValue(ctx, connectionKey{}, conn), t, nil)
	if err != nil {
		return fmt.Errorf("connecting the MCP server: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		conn.drain() // the requests have been cancelled; once Close has begun, no answer goes out
		if err := session.Close(); err != nil {
			s.opts.Logger.DebugContext(ctx, "closing the connection", "error", err)
		}
		<-ended
	}
	if err != nil {
		return fmt.Errorf("the MCP connection broke: %w", err)
	}
	return nil
}

func (s *Server) runPython(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	conn, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return nil, errors.New("a request that came by no connection")
	}
	admit := sync.OnceFunc(conn.gate.admit) // once: the gate may have been shut for the next call since
	defer admit()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(conn.ctx, func() { cancel(context.Cause(conn.ctx)) })()
	defer s.reportProgress(ctx, req)()

	run, err := parseArguments(req.Params.Arguments)
	if err != nil {
		return s.answer(invalidRequest(err)), nil
	}
	run.Queued = admit
	result, err := s.bridge.Run(ctx, run)
	if err != nil {
		// The model can't mend it, but it should tell its user.
		s.opts.Logger.ErrorContext(ctx, "no run", "error", err)
		message := firstLine(err.Error(), maxMessage)
		result = &RunResult{
			Status:   StatusError,
			ExitCode: exitError,
			Summary:  message,
			Error:    &RunError{Type: "HostError", Message: message},
		}
	}
	return s.answer(result), nil
}

// answer puts a result into the protocol's form.
func (s *Server) answer(r *RunResult) *mcp.CallToolResult {
	structured, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	text := r.Compact()
	if s.opts.Text == TextJSON {
		text = string(structured)
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: text}},
		StructuredContent: json.RawMessage(structured),
		IsError:           r.Status != StatusSuccess,
	}
}

func (s *Server) readCapabilities(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
		URI:      CapabilitiesURI,
		MIMEType: "text/markdown",
		Text:     s.bridge.Capabilities(),
	}}}, nil
}

// progressInterval is how often a client that asked for it is told that a run is still going on. Clients
// give up on silent requests after a minute or less.
const progressInterval = 5 * time.Second

// reportProgress sends progress notifications until the returned function is called, if the client asked
// for them.
func (s *Server) reportProgress(ctx context.Context, req *mcp.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		started := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token,
				Progress:      time.Since(started).Seconds(),
				Message:       "the script is running",
			})
			if err != nil {
				return // the connection is gone, or the run is over
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
