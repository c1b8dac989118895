package wasmhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/sys"

	"codeexec/hostfuncs"
)

// SessionOptions configure a [Session]. The zero value is a sandbox that can
// compute and no more.
type SessionOptions struct {
	// Handler answers what code asks of its host. Nil: every such call fails.
	Handler hostfuncs.Handler

	// Projects is the directory of the host that is /projects, shared by all
	// sessions that name it. It must exist. Empty: there is no /projects.
	Projects string

	// DiskQuota bounds /tmp and /workspace together, in bytes. Zero: 256 MiB.
	DiskQuota int64
	// DiskEntries bounds the files and folders there. Zero: 16,384.
	DiskEntries int
	// ProjectsQuota bounds the bytes that a run adds to /projects. Zero: 1 GiB.
	ProjectsQuota int64
}

// A Session runs code many times and keeps its variables, imports and files in
// between. Runs of one session queue; different sessions run in parallel.
type Session struct {
	engine *Engine
	opts   SessionOptions

	turn chan struct{} // holds one token: the right to use what follows
	g    *guest        // nil after the instance was discarded
	cell int           // runs so far, since the session began anew

	closing   context.Context // ends when the session closes
	interrupt context.CancelFunc
}

// NewSession forks a session from the warm interpreter.
func (e *Engine) NewSession(ctx context.Context, opts SessionOptions) (*Session, error) {
	s := &Session{engine: e, opts: opts, turn: make(chan struct{}, 1)}
	s.closing, s.interrupt = context.WithCancel(context.Background())
	if err := s.fork(ctx); err != nil {
		s.interrupt()
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions == nil {
		s.interrupt()
		return nil, errors.Join(errClosed, s.g.close(ctx))
	}
	e.sessions[s] = struct{}{}
	s.turn <- struct{}{}
	return s, nil
}

func (s *Session) fork(ctx context.Context) (err error) {
	s.g, err = s.engine.newGuest(ctx, s.opts)
	s.cell = 0
	return err
}

// Run runs code. When ctx ends the run ends too, as the package comment says,
// with the [Outcome] Timeout or Cancelled and all output so far. An error means
// that the host failed, or that ctx ended while the run still waited for its turn.
func (s *Session) Run(ctx context.Context, req Request) (*Result, error) {
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the session's earlier run: %w", context.Cause(ctx))
	case <-s.closing.Done():
		return nil, errClosed
	}
	if s.closing.Err() != nil {
		return nil, errClosed
	}
	start := time.Now()
	if s.g == nil {
		if err := s.fork(ctx); err != nil {
			return nil, err
		}
	}
	if req.Edit == nil {
		s.cell++
	}
	frame, err := requestFrame(req, s.cell)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()

	result := s.g.run(ctx, req, frame)
	result.Duration = time.Since(start)
	if result.Reset != "" {
		err := s.g.close(context.WithoutCancel(ctx))
		s.g = nil
		if err != nil {
			return nil, fmt.Errorf("discarding the session's instance: %w", err)
		}
	}
	return result, nil
}

// requestFrame is the frame that codeexec.run.main in the guest reads.
func requestFrame(req Request, cell int) ([]byte, error) {
	header, err := json.Marshal(struct {
		Code string          `json:"code"`
		Cell int             `json:"cell"`
		Edit *Edit           `json:"edit,omitempty"`
		Env  json.RawMessage `json:"env,omitempty"`
	}{req.Code, cell, req.Edit, req.Env})
	if err != nil {
		return nil, fmt.Errorf("encoding the run's env: %w", err)
	}
	return hostfuncs.Frame{Header: header}.Append(nil), nil
}

// Memory returns how many bytes of linear memory the session has, most of them shared with other sessions
// as long as nothing writes them. It is 0 while a run is going on, and after the instance was discarded.
func (s *Session) Memory() int64 {
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	default:
		return 0
	}
	if s.g == nil {
		return 0
	}
	return int64(s.g.module.Memory().Size())
}

// interruptForGood makes a run that is going on end as if it were cancelled.
func (s *Session) interruptForGood() { s.interrupt() }

// Close ends the session: a run that is going on is cancelled, and the session's
// memory and files in memory are freed. Where ctx ends first, they are freed by
// a later Close.
func (s *Session) Close(ctx context.Context) error {
	s.interrupt()
	select {
	case <-s.turn:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the session's run to end: %w", context.Cause(ctx))
	}
	defer func() { s.turn <- struct{}{} }()
	s.engine.mu.Lock()
	delete(s.engine.sessions, s)
	s.engine.mu.Unlock()
	if s.g == nil {
		return nil
	}
	err := s.g.close(context.WithoutCancel(ctx))
	s.g = nil
	return err
}

// classify turns what came of a run into a Result. status and callErr are those
// of the guest's codeexec_run, written is what it wrote as its result, and ctx
// the run's context.
func classify(ctx context.Context, status int32, callErr error, written []byte) *Result {
	if callErr != nil {
		return classifyLoss(ctx, callErr)
	}
	if status != statusDone {
		return &Result{
			Outcome:  Failure,
			ExitCode: 1,
			Exception: &Exception{
				Type:    "MemoryError",
				Message: "the sandbox's memory is exhausted: not even the end of the run could be reported",
			},
			Reset: "its memory was exhausted",
		}
	}
	var g guestResult
	if err := json.Unmarshal(written, &g); err != nil {
		return &Result{
			Outcome:   Failure,
			ExitCode:  1,
			Exception: &Exception{Type: "SystemError", Message: "the interpreter gave no result of the run: " + err.Error()},
			Reset:     "its interpreter was damaged by the code that ran",
		}
	}
	r := &Result{ExitCode: g.ExitCode, Value: g.Value, Exception: g.Error}
	switch {
	case g.Outcome == "interrupted" && ctx.Err() != nil:
		r.Outcome = ended(ctx)
	case g.Outcome == "ok" || g.Outcome == "exit" && g.ExitCode == 0:
		r.Outcome, r.ExitCode = Success, 0
	default:
		r.Outcome = Failure
		if r.ExitCode == 0 {
			r.ExitCode = 1
		}
	}
	return r
}

// classifyLoss is classify for a run that left the instance unusable.
func classifyLoss(ctx context.Context, callErr error) *Result {
	var exit *sys.ExitError
	switch {
	case errors.Is(callErr, errKilled):
		return &Result{Outcome: ended(ctx), ExitCode: 1, Reset: "the code did not stop when it was interrupted, and was killed"}
	case errors.As(callErr, &exit):
		r := &Result{Outcome: Success, ExitCode: int(exit.ExitCode()), Reset: "os._exit() or os.abort() ended its interpreter"}
		if r.ExitCode != 0 {
			r.Outcome = Failure
		}
		return r
	case strings.Contains(callErr.Error(), "stack overflow"):
		return &Result{
			Outcome:   Failure,
			ExitCode:  1,
			Exception: &Exception{Type: "RecursionError", Message: "the interpreter's own stack overflowed"},
			Reset:     "the interpreter's own stack overflowed",
		}
	default:
		// wazero's errors go on with a stack trace of wasm functions.
		message, _, _ := strings.Cut(callErr.Error(), "\n")
		return &Result{
			Outcome:   Failure,
			ExitCode:  1,
			Exception: &Exception{Type: "SystemError", Message: "the interpreter crashed: " + message},
			Reset:     "its interpreter crashed",
		}
	}
}

// ended is the outcome of a run whose context has ended.
func ended(ctx context.Context) Outcome {
	// The cause too: a caller whose clock can stand still has no deadline that a context could have.
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return Timeout
	}
	return Cancelled
}
