// Package upstream starts the MCP servers that scripts call, and calls them.
//
// Its one job is to make a set of configured servers usable: each is started
// when it is first needed, kept warm, started again after a crash, and ended
// with everything that it started. It knows MCP's client side and processes;
// it knows neither scripts nor Wasm. The bridge is its only user.
//
// # Why there is a transport of our own
//
// The SDK's CommandTransport gives up when a server prints a banner on its
// stdout, waits without a limit for servers that ignore requests they don't
// know, signals only the process that it started itself, and reads no line
// longer than 16 MiB. Servers do all that.
//
// # Why server/discover is answered in the server's place
//
// A client of protocol version 2026-07-28 first asks server/discover. Servers
// that are older answer with an error, or nothing, or exit. A server that says
// nothing for [Options.ProbeTimeout] gets the older greeting on the same
// connection, as if it had answered that it doesn't know the request; one that
// exits is started again and greeted the older way at once. Which way worked
// is remembered for the next start.
//
// # Why there is a supervisor
//
// No server may outlive codeexec, not even if codeexec is killed and can't
// clean up. A server sees the end of its stdin then, but many ignore it, and
// Linux's parent death signal is sent when the thread that started the process
// ends, and not to grandchildren. So each server is started through a small
// process of our own program, see [SuperviseMain], which notices the end of a
// pipe that codeexec holds. On Linux it also finds processes that left their
// group, such as browsers and daemons; those end with their server too.
//
// # Why servers get so few environment variables
//
// The host's environment holds the user's secrets, and a server comes from
// anywhere. It gets what it needs to find its files, its programs and its
// language, and what is configured for it.
package upstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/alias"
	"codeexec/bridge/config"
)

// Options configures a [Manager]. The zero value is usable.
type Options struct {
	// Logger gets what servers do wrong. Nil means none.
	Logger *slog.Logger
	// StartTimeout is how long a server may take from its start to the end of
	// the greeting. Zero means 30 s.
	StartTimeout time.Duration
	// ProbeTimeout is how long a server may take to answer server/discover
	// before it is greeted the older way. Zero means 3 s.
	ProbeTimeout time.Duration
	// MaxInFlight is how many calls a server gets at a time; the rest wait.
	// Zero means 16.
	MaxInFlight int
	// ClientName and Version introduce us to servers. Empty means "codeexec"
	// and "dev".
	ClientName, Version string
	// Supervisor is the command line that runs [SuperviseMain], usually
	// [SelfSupervisor]'s. Empty means that servers are started directly: they
	// end with Close, but may live on if this process is killed. It isn't the
	// default because a program whose main function doesn't know
	// [SuperviseArg] would start itself for ever.
	Supervisor []string
	// Environ is the host's environment. Nil means [os.Environ].
	Environ []string

	maxLine int // see [maxLine]; tests lower it
}

// SelfSupervisor returns the [Options.Supervisor] of a program whose main
// function calls [SuperviseMain] when its first argument is [SuperviseArg].
func SelfSupervisor() ([]string, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// Stays right when the program is replaced by a newer one while it runs.
	const running = "/proc/self/exe"
	if _, err := os.Stat(running); err == nil {
		path = running
	}
	return []string{path, SuperviseArg}, nil
}

// Status of a server, see [Info].
const (
	StatusIdle     = "idle"     // not running; starts when it is needed
	StatusReady    = "ready"    // running
	StatusFailed   = "failed"   // the last start failed, or it crashed
	StatusDisabled = "disabled" // by its configuration
)

// An Info describes a server at one moment.
type Info struct {
	Name        string
	Alias       string // its Python name, see [alias.Servers]
	Description string
	Transport   string // "stdio"
	Cwd         string // empty means that of codeexec
	Status      string
	Err         error // why Status is [StatusFailed], else nil
	Tools       int   // how many tools it listed last; -1 if it never did
}

// A Manager holds the servers. Its methods may be called concurrently.
type Manager struct {
	names   []string // sorted
	servers map[string]*server
	cancel  context.CancelFunc
	close   sync.Once
}

// NewManager returns a manager of servers, whose names must be distinct, as
// those of a [config.Set] are. It starts none of them. [Manager.Close] must be
// called.
func NewManager(servers []config.Server, opts Options) *Manager {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.StartTimeout <= 0 {
		opts.StartTimeout = 30 * time.Second
	}
	if opts.ProbeTimeout <= 0 {
		opts.ProbeTimeout = 3 * time.Second
	}
	if opts.MaxInFlight <= 0 {
		opts.MaxInFlight = 16
	}
	if opts.ClientName == "" {
		opts.ClientName = "codeexec"
	}
	if opts.Version == "" {
		opts.Version = "dev"
	}
	if opts.Environ == nil {
		opts.Environ = os.Environ()
	}
	if opts.maxLine <= 0 {
		opts.maxLine = maxLine
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &Manager{servers: make(map[string]*server, len(servers)), cancel: cancel}
	for _, cfg := range servers {
		m.servers[cfg.Name] = newServer(ctx, cfg, &opts)
	}
	m.names = slices.Sorted(maps.Keys(m.servers))
	for name, alias := range alias.Servers(m.names) {
		m.servers[name].alias = alias
	}
	return m
}

// Servers describes all servers, sorted by name.
func (m *Manager) Servers() []Info {
	infos := make([]Info, 0, len(m.names))
	for _, name := range m.names {
		infos = append(infos, m.servers[name].info())
	}
	return infos
}

// Tools returns the tools of a server, in the order of its own list. It starts
// the server if it isn't running, and asks it only if the list isn't known or
// has changed. The tools must not be modified.
//
// The error is ctx's, or an [UnknownServerError], [UnavailableError] or
// [ProtocolError].
func (m *Manager) Tools(ctx context.Context, server string) ([]*mcp.Tool, error) {
	s, err := m.server(server)
	if err != nil {
		return nil, err
	}
	return s.tools(ctx)
}

// Call calls a tool. It starts the server if it isn't running. The arguments
// are a JSON object, which is sent as it is; nil means none. If ctx ends before
// the server has answered, the server is told that the call is cancelled.
//
// The result has everything that the server sent. Its StructuredContent is a
// [json.RawMessage] with the server's own spelling, so that numbers keep their
// precision, and "null" differs from nil, which means that the result has no
// structured content. A result whose IsError is set is no error here.
//
// The error is ctx's, or an [UnknownServerError], [UnknownToolError],
// [UnavailableError], [ProtocolError] or [TooLargeError].
func (m *Manager) Call(ctx context.Context, server, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	s, err := m.server(server)
	if err != nil {
		return nil, err
	}
	return s.call(ctx, tool, args)
}

func (m *Manager) server(name string) (*server, error) {
	if s, ok := m.servers[name]; ok {
		return s, nil
	}
	return nil, &UnknownServerError{Server: name, Suggestions: suggest(name, m.names)}
}

// Close ends all servers at the same time, and fails what is in flight. When it
// returns nil, nothing of them is left. If ctx ends first, its error is
// returned, and the servers go on ending.
func (m *Manager) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.close.Do(m.cancel)
		for _, s := range m.servers {
			s.wait()
		}
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
