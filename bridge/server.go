package bridge

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A TextForm is how the text of an answer is written. The structured form is always there too.
type TextForm string

const (
	TextCompact TextForm = "compact" // sections for a model to read; see [RunResult.Compact]
	TextJSON    TextForm = "json"    // the structured form as JSON
	TextTOON    TextForm = "toon"    // the structured form as TOON; see package toon
)

// ServerOptions configures a [Server].
type ServerOptions struct {
	Version string       // of this program, as told to clients
	Text    TextForm     // empty: TextCompact
	Logger  *slog.Logger // nil: nothing is logged
}

//go:embed instructions.md
var instructions string

// A Server is the MCP server in front of a [Bridge]. It has one tool, run_python. Its resources are the manual
// ([CapabilitiesURI]), the signatures of the servers that scripts can call, what there is of sessions and runs,
// and the files that scripts saved.
type Server struct {
	bridge *Bridge
	opts   ServerOptions
	mcp    *mcp.Server

	pending pendingRuns
}

// NewServer returns a server that runs scripts in b. Closing b is the caller's business.
func NewServer(b *Bridge, opts ServerOptions) *Server {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{bridge: b, opts: opts}
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "codeexec", Title: "codeexec", Version: opts.Version, Icons: icons()},
		&mcp.ServerOptions{
			Logger:       sdkLogger(opts.Logger),
			Instructions: strings.TrimSpace(instructions),
			// Nobody is told of changes (tools and prompts have none), and nothing is logged to clients; the
			// defaults say otherwise.
			Capabilities: &mcp.ServerCapabilities{
				Tools:     &mcp.ToolCapabilities{},
				Resources: &mcp.ResourceCapabilities{},
				Prompts:   &mcp.PromptCapabilities{},
			},
			CompletionHandler: s.complete,
			SetCacheable:      cacheHints,
		})
	s.mcp.AddTool(runPythonTool(b.opts), s.runPython)
	s.addResources()
	s.addPrompts()
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

// endOf says why the context of a request has ended: the client has taken it back or has left, or nobody is served
// any more.
func endOf(ctx context.Context) error {
	conn, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok || conn.ctx.Err() == nil {
		return context.Cause(ctx)
	}
	cause := context.Cause(conn.ctx)
	if errors.Is(cause, errDisconnected) || errors.Is(cause, errTooMany) {
		return cause
	}
	return closing(cause)
}

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

	var p *pendingRun
	if req.Params.RequestState != "" {
		admit() // it has had its place for long
		if p = s.resume(req); p == nil {
			return s.answer(invalidRequest(errors.New("requestState is that of no run; start it anew")), req.ProtocolVersion()), nil
		}
	} else {
		run, err := parseArguments(req.Params.Arguments)
		if err != nil {
			return s.answer(invalidRequest(err), req.ProtocolVersion()), nil
		}
		run.Owner = ownerOf(req)
		run.Queued = admit
		p = s.begin(ctx, req, run)
	}
	defer s.reportProgress(ctx, req, p.feed)()
	return s.follow(ctx, p, req.ProtocolVersion()), nil
}

// run is [Bridge.Run], whose errors are results here.
func (s *Server) run(ctx context.Context, run RunRequest) *RunResult {
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
	return result
}

// answer puts a result into the form of a version of the protocol.
func (s *Server) answer(r *RunResult, version string) *mcp.CallToolResult {
	structured, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return &mcp.CallToolResult{
		Content:           r.content(r.text(s.opts.Text, structured), version, s.bridge.opts.KeepOutput),
		StructuredContent: json.RawMessage(structured),
		IsError:           r.Status != StatusSuccess,
	}
}

// linksVersion is the first version of the protocol in which a result may have links to resources. Older
// clients refuse a whole result for them.
const linksVersion = "2025-06-18"
