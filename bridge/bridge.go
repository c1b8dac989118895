package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"codeexec/bridge/artifact"
	"codeexec/bridge/audit"
	"codeexec/bridge/catalog"
	"codeexec/bridge/config"
	"codeexec/bridge/oauth"
	"codeexec/bridge/policy"
	"codeexec/bridge/upstream"
	"codeexec/memory"
	"codeexec/wasmhost"
)

// The limits that apply where [Options] names none.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultMaxTimeout  = 120 * time.Second
	DefaultMaxSessions = 16
	DefaultSessionIdle = 30 * time.Minute
	DefaultMaxCalls    = 1000
	DefaultMaxInFlight = 16
	DefaultOutputBytes = 64 << 10
)

// Options configures a [Bridge].
type Options struct {
	Engine  Engine     // makes the sandboxes; required. The bridge closes it.
	Servers config.Set // the MCP servers that scripts may call
	Version string     // of this program, as told to those servers

	// Supervisor is the command line under which those servers are started, see [upstream.Options].
	Supervisor []string

	// Catalog is the directory of what is known of servers that aren't running, see package catalog; empty: it
	// is kept in memory.
	Catalog string
	// Logins is the directory of what users' logins at remote servers have brought, see package oauth; empty: it is
	// forgotten with the bridge.
	Logins string

	Policy *policy.Policy // which tools may be called; nil: all
	Audit  *audit.Log     // gets a line for each run and call; nil: none. The bridge closes it.

	Projects string // host directory that scripts see as /projects; empty: none
	Memory   int64  // linear memory of a sandbox in bytes, as scripts are told; 0: not told

	// Store keeps what scripts save by key; nil: they can save nothing.
	Store memory.Store

	// ToolsLock is the file that processes lock to change the tools that scripts have saved, out of the reach
	// of scripts; empty, or without Projects: they can't save any.
	ToolsLock string

	// KeepRuns says which runs have a folder under Projects for their code, their output and what they save there;
	// empty: [artifact.Written].
	KeepRuns artifact.Mode

	Timeout     time.Duration // of a run that names none, at least 1 s; 0: [DefaultTimeout]
	MaxTimeout  time.Duration // of any run, at least Timeout; 0: [DefaultMaxTimeout]
	MaxSessions int           // sessions that are alive at once; 0: [DefaultMaxSessions]
	OwnSessions int           // of these, those of one owner; 0: all of them
	MaxRuns     int           // runs in progress and waiting for their session's turn; 0: no limit
	SessionIdle time.Duration // after which a session that nobody uses is dropped; 0: [DefaultSessionIdle], less: never
	MaxCalls    int           // tool calls of one run; 0: [DefaultMaxCalls]
	MaxInFlight int           // tool calls in flight to one server, the rest wait; 0: [DefaultMaxInFlight]
	OutputBytes int           // all text of an answer together; 0: [DefaultOutputBytes]

	// KeepOutput is how long the whole output of a run can be read as a resource, as far as memory allows. Zero:
	// not at all.
	KeepOutput time.Duration

	Observer Observer     // nil: none
	Logger   *slog.Logger // nil: nothing is logged
}

// An Observer is told what happens in a [Bridge], for instance to count it. Its methods are called concurrently,
// and must not wait.
type Observer interface {
	// RunEnded tells of a script that has run for d; reset says that its session has lost its variables.
	RunEnded(status Status, reset bool, d time.Duration)
	// CallEnded tells of a call of a tool; server is empty where there is none of the name that the script gave.
	CallEnded(server string, outcome CallOutcome, d time.Duration)
}

type noObserver struct{}

func (noObserver) RunEnded(Status, bool, time.Duration)         {}
func (noObserver) CallEnded(string, CallOutcome, time.Duration) {}

func (o Options) withDefaults() Options {
	setDefault(&o.Timeout, DefaultTimeout)
	setDefault(&o.MaxTimeout, max(DefaultMaxTimeout, o.Timeout))
	setDefault(&o.MaxSessions, DefaultMaxSessions)
	setDefault(&o.OwnSessions, o.MaxSessions)
	if o.SessionIdle == 0 {
		o.SessionIdle = DefaultSessionIdle
	}
	setDefault(&o.MaxCalls, DefaultMaxCalls)
	setDefault(&o.MaxInFlight, DefaultMaxInFlight)
	setDefault(&o.OutputBytes, DefaultOutputBytes)
	o.Timeout = min(o.Timeout, o.MaxTimeout)
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T int | time.Duration](v *T, value T) {
	if *v <= 0 {
		*v = value
	}
}

// errClosing is in the cause of the end of runs whose sessions end too: nobody is served any more.
var errClosing = errors.New("codeexec is shutting down")

// closing returns a cause that is errClosing, and what brought that about.
func closing(cause error) error {
	if errors.Is(cause, errClosing) {
		return cause
	}
	return fmt.Errorf("%w: %w", errClosing, cause)
}

// A runLimitError says that there are too many runs at once.
type runLimitError struct{ limit int }

func (e *runLimitError) Error() string {
	return fmt.Sprintf("%d scripts are running or waiting, which is the limit; try again later", e.limit)
}

// A Bridge runs Python scripts that call MCP servers. Its methods may be called concurrently.
type Bridge struct {
	opts         Options
	upstreams    upstreams
	handler      *guestHandler
	sessions     *sessions
	runs         *runStore
	stubTurn     chan struct{} // see stubs
	artifacts    *artifact.Store
	decoding     chan struct{} // holds a token for each picture that is being decoded
	capabilities string
	limits       guestLimits

	ctx    context.Context // ends when Close begins
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	draining bool // no run may begin any more
	closed   bool
	inside   int            // runs
	running  sync.WaitGroup // runs; added to under mu while not draining
}

// New returns a bridge to the given servers. Nothing is started yet: neither Python nor any server.
// [Bridge.Close] must be called in the end; the end of ctx cancels all runs, but doesn't close.
func New(ctx context.Context, opts Options) *Bridge {
	opts = opts.withDefaults()
	inFlight := make(map[string]int)
	for _, s := range opts.Servers.Servers {
		inFlight[s.Name] = opts.Policy.Limits(s.Name).InFlight
	}
	manager := upstream.NewManager(opts.Servers.Servers, upstream.Options{
		Logger:      opts.Logger,
		MaxInFlight: opts.MaxInFlight, MaxInFlightTo: inFlight,
		Version:    opts.Version,
		Supervisor: opts.Supervisor,
		Catalog:    catalog.Open(opts.Catalog, opts.Logger),
		OAuth:      oauth.New(oauth.Options{Dir: opts.Logins, Logger: opts.Logger}),
	})
	return newBridge(ctx, opts, manager)
}

func newBridge(ctx context.Context, opts Options, up upstreams) *Bridge {
	opts = opts.withDefaults()
	ctx, cancel := context.WithCancelCause(ctx)
	b := &Bridge{
		opts:      opts,
		upstreams: up,
		sessions: newSessions(opts.MaxSessions, opts.OwnSessions, opts.SessionIdle, func(err error) {
			opts.Logger.Error("dropping an idle session", "error", err)
		}),
		runs:         &runStore{keep: opts.KeepOutput},
		stubTurn:     make(chan struct{}, 1),
		artifacts:    artifact.Open(opts.Projects, opts.KeepRuns, 0),
		decoding:     make(chan struct{}, 2),
		capabilities: capabilitiesText(opts),
		limits: guestLimits{
			Timeout:  int(opts.Timeout / time.Second),
			Memory:   opts.Memory,
			Calls:    opts.MaxCalls,
			InFlight: opts.MaxInFlight,
		},
		ctx:    ctx,
		cancel: cancel,
	}
	b.handler = &guestHandler{upstreams: up, capabilities: b.capabilities, logger: opts.Logger, policy: opts.Policy, audit: opts.Audit, memory: opts.Store, observer: opts.Observer, drawing: make(chan struct{}, 2)}
	if opts.Projects != "" && opts.ToolsLock != "" {
		b.handler.tools = newToolFile(opts.Projects, opts.ToolsLock)
	}
	return b
}

// Capabilities returns the manual for models: what scripts can do here, under which limits.
func (b *Bridge) Capabilities() string { return b.capabilities }

// Sessions describes the sessions of an owner that are alive, sorted by name; see [RunRequest].
func (b *Bridge) Sessions(owner string) []SessionInfo { return b.sessions.list(owner) }

// Stats are figures about a [Bridge] at one moment.
type Stats struct {
	Sessions int   // that are alive
	Running  int   // of these, those that run a script
	Waiting  int   // scripts that wait for their session's turn
	Memory   int64 // bytes of linear memory of the sessions after their last run, mostly shared between them
}

// Stats counts what there is, whoever it belongs to.
func (b *Bridge) Stats() Stats { return b.sessions.stats() }

// dropOwner forgets an owner who won't come back: its sessions, and what is kept of its runs.
func (b *Bridge) dropOwner(owner string) {
	b.sessions.dropOwner(owner)
	b.runs.dropOwner(owner)
}

// begin derives from ctx the context of one run, which also ends when the bridge closes. The caller must
// call end when the run is over. It fails if the bridge is closed, or has too many runs.
func (b *Bridge) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.draining {
		return nil, nil, errClosing
	}
	if b.opts.MaxRuns > 0 && b.inside >= b.opts.MaxRuns {
		return nil, nil, &runLimitError{b.opts.MaxRuns}
	}
	b.inside++
	b.running.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.ctx, func() { cancel(closing(context.Cause(b.ctx))) })
	return ctx, func() {
		stop()
		cancel(nil)
		b.mu.Lock()
		b.inside--
		b.mu.Unlock()
		b.running.Done()
	}, nil
}

// Drain lets no further run begin, and waits until all of them are over or ctx ends.
func (b *Bridge) Drain(ctx context.Context) {
	b.mu.Lock()
	b.draining = true
	b.mu.Unlock()
	select {
	case <-b.idle():
	case <-ctx.Done():
	}
}

// idle is closed when there is no run any more. None may begin.
func (b *Bridge) idle() <-chan struct{} {
	idle := make(chan struct{})
	go func() {
		b.running.Wait()
		close(idle)
	}()
	return idle
}

// Close cancels all runs, waits for them, and stops everything: sessions, servers, the engine. When it
// returns nil, no goroutine and no child process of the bridge is left. Where ctx ends first, what has not
// been stopped is left behind.
func (b *Bridge) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed, b.draining = true, true
	b.mu.Unlock()
	b.cancel(errClosing)
	defer b.runs.close()

	// The servers stop while the runs end: neither has to wait for the other, and a server that is slow
	// to go must not use up the time of the rest.
	var errs [3]error
	var stopping sync.WaitGroup
	stopping.Go(func() { errs[0] = b.upstreams.Close(ctx) })
	select {
	case <-b.idle():
		errs[1] = b.sessions.closeAll(ctx)
		errs[2] = b.opts.Engine.Close(ctx)
	case <-ctx.Done():
		errs[1] = context.Cause(ctx)
	}
	stopping.Wait()
	return errors.Join(append(errs[:], b.opts.Audit.Close())...)
}

// guestLimits tells a script its limits.
type guestLimits struct {
	Timeout  int   `json:"timeout"` // seconds
	Memory   int64 `json:"memory"`  // bytes
	Calls    int   `json:"calls"`
	InFlight int   `json:"in_flight"`
}

// guestEnv is what the package mcp in the guest is told at the start of a run.
type guestEnv struct {
	Servers    []guestEnvServer `json:"servers"`
	Restricted bool             `json:"restricted"`
	Limits     guestLimits      `json:"limits"`
	Execution  *guestEnvFolder  `json:"execution,omitempty"` // absent: there is none
	Saved      string           `json:"saved,omitempty"`     // the state of the saved tools; absent: there are none
}

// guestEnvFolder is where the run saves files.
type guestEnvFolder struct {
	Path string `json:"path"` // as the run sees it
	URL  string `json:"url"`  // file:// on the host
}

type guestEnvServer struct {
	Name        string `json:"name"`
	Alias       string `json:"alias"`
	Description string `json:"description"`
}

func (b *Bridge) env(p *plan) (json.RawMessage, error) {
	env := guestEnv{Servers: []guestEnvServer{}, Restricted: p.restricted, Limits: b.limits, Saved: b.handler.tools.state()}
	env.Limits.Timeout = int(p.timeout / time.Second)
	if p.folder != nil {
		env.Execution = &guestEnvFolder{p.folder.Path(), p.folder.URL()}
	}
	for _, s := range p.servers {
		env.Servers = append(env.Servers, guestEnvServer{s.Name, s.Alias, s.Description})
	}
	return json.Marshal(env)
}

func (b *Bridge) newSandbox(ctx context.Context) (Sandbox, error) {
	return b.opts.Engine.NewSandbox(ctx, wasmhost.SessionOptions{Handler: b.handler, Projects: b.opts.Projects})
}
