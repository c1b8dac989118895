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
// The SDK's HTTP transports are not used either, see [remote].
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
// # Why questions of servers are answered by the client of the call
//
// A server may turn to us in the middle of a call: for input, a completion of a
// model, the folders it may use. We have no user; whoever the call is made for
// may have one ([Client]). All who use a server share its process, and over
// stdio a question doesn't say which call it belongs to. So it is passed on
// only if it can be for one client alone; nobody must be shown, or answer, what
// belongs to somebody else.
//
// # Why a server that keeps failing is left alone
//
// A script that calls it in a loop would start it in a loop. After
// [maxFailures] failures in a row calls fail at once with the last reason,
// until it is tried again.
//
// # Why a server that wants a login hasn't failed
//
// Nothing is wrong with it, and its user can put an end to it at any moment, in
// another process ([oauth.Access]). So it is asked with each call, and the first
// after the login is answered.
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
//
// # Why tools may be listed that a server no longer has
//
// To look for a tool among fifty servers must not start fifty programs. So
// [Manager.Tools] answers for a server that isn't running with what it listed
// when it last ran, which package catalog keeps. That is brought up to date
// whenever the server runs, whatever it runs for. [Manager.Call] starts the
// server and goes by the list that it has then; and who finds that something
// doesn't exist can ask the server itself, with [Manager.Refresh].
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
	"codeexec/bridge/catalog"
	"codeexec/bridge/config"
	"codeexec/bridge/oauth"
	"codeexec/bridge/suggest"
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
	// ListTimeout is how long a server may take to answer one page of
	// tools/list. Zero means 10 s.
	ListTimeout time.Duration
	// IdleTimeout is how long a server that nobody uses is kept running. Zero
	// means 10 min, and less than zero for ever.
	IdleTimeout time.Duration
	// MaxInFlight is how many calls a server gets at a time; the rest wait.
	// Zero means 16.
	MaxInFlight int
	// MaxInFlightTo holds lower limits of some servers, by name.
	MaxInFlightTo map[string]int
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
	// Catalog keeps what is known of servers that aren't running. Nil means
	// that it is forgotten with the manager.
	Catalog *catalog.Catalog
	// OAuth gets the tokens that remote servers want. Nil means that there are
	// none but those in the configuration.
	OAuth *oauth.Keeper

	maxLine int           // see [maxLine]; tests lower it
	rest    time.Duration // how long a server that failed [maxFailures] times is left alone; tests lower it
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
	Description string // the owner's, else what it said of itself when it last ran
	Transport   string // "stdio", "http" or "sse"
	Cwd         string // empty means that of codeexec
	Status      string
	Err         error     // why Status is [StatusFailed], else nil
	Failed      time.Time // when Err happened, if there is one
	NeedsLogin  bool      // it has asked for a login, of this or another process, see [oauth.Access.Status]
	Tools       int       // how many tools it listed last; -1 if that isn't known
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
	if opts.ListTimeout <= 0 {
		opts.ListTimeout = 10 * time.Second
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
	if opts.IdleTimeout == 0 {
		opts.IdleTimeout = 10 * time.Minute
	}
	if opts.rest <= 0 {
		opts.rest = 30 * time.Second
	}
	if opts.Catalog == nil {
		opts.Catalog = catalog.Open("", opts.Logger)
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

// Tools returns the tools of a server, in the order of its own list, for
// whoever wants to know what there is. A server that is running is asked if its
// list isn't known or has changed. One that isn't is only started if it was
// never seen; else its tools are those of the catalogue, which may be out of
// date. They must not be modified; as long as they are the same, so is the
// slice.
//
// The error is ctx's, or an [UnknownServerError], [UnavailableError] or
// [ProtocolError].
func (m *Manager) Tools(ctx context.Context, server string) ([]catalog.Tool, error) {
	s, err := m.server(server)
	if err != nil {
		return nil, err
	}
	return s.tools(ctx)
}

// Refresh returns the tools of a server as it lists them now. It starts the
// server if it isn't running. Otherwise it is as [Manager.Tools].
func (m *Manager) Refresh(ctx context.Context, server string) ([]catalog.Tool, error) {
	s, err := m.server(server)
	if err != nil {
		return nil, err
	}
	return s.listed(ctx, true)
}

// The phases of making a server usable, see [Timing].
const (
	PhaseStart     = "start"     // of its process; nothing for a remote server
	PhaseHandshake = "handshake" // to the end of the greeting
	PhaseList      = "list"      // of its tools, all pages
)

// A Timing says how long each phase of making a server usable took, 0 if it
// wasn't reached or was over already. What had to be tried again is counted in.
type Timing struct {
	Start, Handshake, List time.Duration

	Failed string // the phase that failed; empty if none did
}

// Total is how long all took.
func (t Timing) Total() time.Duration { return t.Start + t.Handshake + t.List }

// Probe is as [Manager.Refresh], and says how long it took. If nobody else uses
// the server, the times are those of this call.
func (m *Manager) Probe(ctx context.Context, server string) ([]catalog.Tool, Timing, error) {
	s, err := m.server(server)
	if err != nil {
		return nil, Timing{}, err
	}
	return s.probe(ctx)
}

// Failure returns why a server couldn't be used when it was last tried, in this
// or another process, if nothing has gone well since. A server whose
// [Info].Status is [StatusFailed] failed in this one.
func (m *Manager) Failure(server string) (catalog.Failure, bool) {
	s, err := m.server(server)
	if err != nil {
		return catalog.Failure{}, false
	}
	return s.record.Failure()
}

// Known returns the tools that a server listed last, without asking or starting
// it. It reports false if that isn't known. They must not be modified; as long
// as they are the same, so is the slice.
func (m *Manager) Known(server string) ([]catalog.Tool, bool) {
	s, err := m.server(server)
	if err != nil {
		return nil, false
	}
	return s.record.Tools()
}

// Tool returns a tool as the server itself lists it now. It starts the server if
// it isn't running. Of a server that can't list its tools nothing but the name
// is returned. The errors are those of [Manager.Call].
func (m *Manager) Tool(ctx context.Context, server, tool string) (catalog.Tool, error) {
	s, err := m.server(server)
	if err != nil {
		return catalog.Tool{}, err
	}
	return s.tool(ctx, tool)
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
// [UnavailableError], [ProtocolError], [TooLargeError] or [TimeoutError].
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
	return nil, &UnknownServerError{Server: name, Suggestions: suggest.Names(name, m.names)}
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
