package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"codeexec/bridge/artifact"
	"codeexec/bridge/audit"
	"codeexec/bridge/upstream"
	"codeexec/wasmhost"
)

// DefaultSession is the session of a run that names none.
const DefaultSession = "default"

const (
	maxCode        = 15 << 20 // bytes of source: what fits in a request to the guest, with room for the rest
	maxSessionName = 128      // bytes
)

// A RunRequest is one script to run.
type RunRequest struct {
	// Owner is whose session it is. Owners share /projects, memory and the servers, but neither sessions nor what
	// is kept of runs. Empty: the only user of a process that has one.
	Owner string

	Code    string
	Servers []string      // names or aliases of the only servers that it may use; nil: all, empty: none
	Timeout time.Duration // at least 1 s; 0: [Options.Timeout]. Above [Options.MaxTimeout] that one holds.
	Session string        // empty: [DefaultSession]
	Reset   bool          // start the session anew first

	// Client is who the run is made for: it is asked what the servers that the script calls, or the policy, want to
	// know. Nil: nobody can be asked.
	Client upstream.Client

	// SavePictures has pictures that the script shows saved in the run's folder too, for callers who can't show them.
	SavePictures bool

	Stdout, Stderr io.Writer // get the output as it is produced; may be nil

	// Queued, if not nil, is called once, as soon as the run's place among those of its session is certain.
	Queued func()
}

// A plan is a request that was found valid.
type plan struct {
	session    string
	timeout    time.Duration
	servers    []upstream.Info // those it may use, sorted by name
	restricted bool
	notes      []string         // for the summary
	folder     *artifact.Folder // of the run; nil: none
}

// plan checks req. The error is for the caller of the tool to read.
func (b *Bridge) plan(req RunRequest) (*plan, error) {
	p := &plan{session: req.Session, timeout: req.Timeout, restricted: req.Servers != nil}
	switch {
	case len(req.Code) > maxCode:
		return nil, fmt.Errorf("code has %d bytes, above the limit of %d: put data in a file under /projects", len(req.Code), maxCode)
	case !utf8.ValidString(req.Code):
		return nil, errors.New("code is not valid UTF-8")
	}
	if p.session == "" {
		p.session = DefaultSession
	}
	if err := checkSessionName(p.session); err != nil {
		return nil, err
	}
	switch {
	case p.timeout == 0:
		p.timeout = b.opts.Timeout
	case p.timeout < time.Second:
		return nil, errTimeoutTooShort
	case p.timeout > b.opts.MaxTimeout:
		p.notes = append(p.notes, fmt.Sprintf("timeout %s is above the maximum, so %s was used", seconds(p.timeout), seconds(b.opts.MaxTimeout)))
		p.timeout = b.opts.MaxTimeout
	}
	known := b.upstreams.Servers()
	if req.Servers == nil {
		p.servers = slices.DeleteFunc(known, func(s upstream.Info) bool { return s.Status == upstream.StatusDisabled })
		return p, nil
	}
	for _, name := range req.Servers {
		info, ok := findServer(known, name)
		switch {
		case !ok:
			return nil, errors.New(unknownServer(name, serverNames(known)))
		case info.Status == upstream.StatusDisabled:
			return nil, fmt.Errorf("server %q is disabled in its configuration", info.Name)
		}
		p.servers = append(p.servers, info)
	}
	slices.SortFunc(p.servers, func(a, b upstream.Info) int { return strings.Compare(a.Name, b.Name) })
	p.servers = slices.CompactFunc(p.servers, func(a, b upstream.Info) bool { return a.Name == b.Name })
	return p, nil
}

var errTimeoutTooShort = errors.New("timeout must be at least 1 second")

func checkSessionName(name string) error {
	if len(name) > maxSessionName {
		return fmt.Errorf("session has %d bytes, above the limit of %d", len(name), maxSessionName)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError }) {
		return fmt.Errorf("session %q has characters that can't be printed", name)
	}
	return nil
}

// Run runs a script and reports on it. What the script does wrong, and what is wrong with the request, is
// in the result. An error means that there was no run because of the host: Python could not be started, or
// the bridge is closed.
//
// The end of ctx interrupts the script. Its time limit counts from when it starts: neither waiting for
// earlier runs of the session nor starting Python counts.
func (b *Bridge) Run(ctx context.Context, req RunRequest) (*RunResult, error) {
	queued := req.Queued
	if queued == nil {
		queued = func() {}
	}
	plan, err := b.plan(req)
	if err != nil {
		queued()
		return invalidRequest(err), nil
	}
	ctx, end, err := b.begin(ctx)
	if err != nil {
		queued()
		if limit, ok := errors.AsType[*runLimitError](err); ok {
			return invalidRequest(limit), nil
		}
		return nil, err
	}
	defer end()
	place, err := b.sessions.enqueue(sessionKey{req.Owner, plan.session})
	queued()
	if err != nil {
		return invalidRequest(err), nil
	}
	defer place.leave()
	b.closeEvicted(ctx, place)
	report := &report{id: newRunID(), keeps: b.runs.enabled(), plan: plan, started: time.Now(), room: b.opts.OutputBytes}
	if err := place.wait(ctx); err != nil {
		return report.cancelled("before it began"), nil
	}
	report.started = time.Now()
	session := place.session
	if why := place.takeLost(); why != "" {
		report.reset = fmt.Sprintf("session %q had been dropped, since %s, and started anew", plan.session, why)
	}
	if req.Reset {
		if err := session.close(context.WithoutCancel(ctx)); err != nil {
			b.opts.Logger.ErrorContext(ctx, "resetting a session", "error", err)
		}
		b.handler.approvals.forget(req.Owner, plan.session)
		report.reset = "the session was reset as requested"
	}
	if report.reset != "" {
		session.anew = report.reset
	}
	report.anew = session.anew
	if err := b.openSandbox(ctx, session); err != nil {
		if ctx.Err() != nil {
			return report.cancelled("while Python was starting"), nil
		}
		return nil, err
	}
	plan.folder = b.artifacts.Folder(report.id, report.started)
	env, err := b.env(plan)
	if err != nil {
		return nil, fmt.Errorf("encoding the run's environment: %w", err)
	}
	scope := b.newScope(report.id, req, plan)
	report.calls = &scope.calls
	report.started = time.Now()
	clock := newClock(ctx, plan.timeout)
	defer clock.release()
	runCtx := withScope(clock, scope)
	if req.Client != nil {
		scope.client = &runClient{req.Client, clock}
		runCtx = upstream.WithClient(runCtx, scope.client)
	}
	report.gallery = gallery{ctx: runCtx, turns: b.decoding, folder: plan.folder, save: req.SavePictures, logger: b.opts.Logger}
	res, err := session.sandbox.Run(runCtx, wasmhost.Request{Code: req.Code, Env: env, Stdout: req.Stdout, Stderr: req.Stderr, Show: report.gallery.show})
	if err != nil {
		// Nobody knows what state the sandbox is in.
		b.opts.Logger.ErrorContext(ctx, "run failed", "session", plan.session, "error", err)
		if err := session.close(context.WithoutCancel(ctx)); err != nil {
			b.opts.Logger.ErrorContext(ctx, "dropping a failed session", "error", err)
		}
		report.reset = "the session was reset"
		session.anew = "the sandbox had failed, and the session was reset"
		result := report.hostFault(err)
		b.opts.Observer.RunEnded(result.Status, false, time.Since(report.started))
		b.record(scope, report, len(req.Code), result)
		return result, nil
	}
	place.ran()
	report.files, err = plan.folder.Finish(req.Code, transcript(res))
	if err != nil {
		b.opts.Logger.WarnContext(ctx, "keeping what a run saved", "session", plan.session, "error", err)
	}
	if res.Outcome == wasmhost.Cancelled && errors.Is(context.Cause(ctx), errClosing) {
		report.reset = errClosing.Error() + ", and the session ends with it" // no run will find it
	}
	result := report.finished(res)
	b.opts.Observer.RunEnded(result.Status, res.Reset != "", res.Duration)
	if res.Reset != "" {
		session.anew = report.reset
	}
	b.runs.add(req.Owner, RunInfo{
		ID:       report.id,
		Session:  plan.session,
		Status:   result.Status,
		Ended:    time.Now().UTC(),
		Duration: result.DurationMS,
	}, res)
	b.opts.Logger.InfoContext(ctx, "run", "session", plan.session, "status", result.Status, "duration", time.Since(report.started), "tool_calls", result.ToolCalls)
	b.record(scope, report, len(req.Code), result)
	return result, nil
}

// closeEvicted closes the sandbox that place took its room from, even if ctx ends meanwhile: its memory must not
// outlive its session.
func (b *Bridge) closeEvicted(ctx context.Context, p *place) {
	if p.evicted == nil {
		return
	}
	if err := p.evicted.close(context.WithoutCancel(ctx)); err != nil {
		b.opts.Logger.ErrorContext(ctx, "dropping the least recently used session", "error", err)
	}
}

// openSandbox makes the sandbox of a session that has none. The caller has its turn.
func (b *Bridge) openSandbox(ctx context.Context, s *session) (err error) {
	if s.sandbox == nil {
		s.sandbox, err = b.newSandbox(ctx)
	}
	return err
}

// newScope returns the scope of a run that plan was made of req for.
func (b *Bridge) newScope(id string, req RunRequest, plan *plan) *runScope {
	scope := &runScope{id: id, owner: req.Owner, session: plan.session, calls: callLog{limit: b.opts.MaxCalls}, warmer: warmer{code: req.Code}}
	for _, s := range plan.servers {
		scope.allowed = append(scope.allowed, s.Name)
	}
	return scope
}

// record writes a run into the audit log.
func (b *Bridge) record(scope *runScope, report *report, code int, result *RunResult) {
	b.opts.Audit.Run(audit.Run{
		ID: scope.id, Client: scope.owner, Session: scope.session, Start: report.started, Duration: time.Since(report.started),
		Outcome: string(result.Status), Code: code, Output: len(result.Stdout) + len(result.Stderr), Calls: result.ToolCalls,
	})
}
