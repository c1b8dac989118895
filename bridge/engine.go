package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"codeexec/wasmhost"
)

// An Engine makes sandboxes.
type Engine interface {
	// NewSandbox makes a sandbox with a fresh interpreter. It honours ctx.
	NewSandbox(ctx context.Context, opts wasmhost.SessionOptions) (Sandbox, error)
	// Close frees what the sandboxes have in common. They must be closed first.
	Close(ctx context.Context) error
}

// A LazyEngine is an [Engine] over a [wasmhost.Engine] that it makes when it is first needed, in the
// background: making one takes 0.1 s, or several seconds where nothing is cached yet, and a server should
// answer its client before that.
type LazyEngine struct {
	opts   wasmhost.Options
	start  sync.Once
	cancel context.CancelFunc // set by start
	ready  chan struct{}      // closed when engine and err are set

	engine *wasmhost.Engine
	err    error
}

// NewLazyEngine returns an engine that hasn't started. It costs nothing until [LazyEngine.Start].
func NewLazyEngine(opts wasmhost.Options) *LazyEngine {
	return &LazyEngine{opts: opts, ready: make(chan struct{})}
}

// errEngineClosed is what an engine that was closed before it started fails with.
var errEngineClosed = errors.New("the engine is closed")

// Start begins making the engine, if nothing has begun it yet, and returns at once.
func (e *LazyEngine) Start() {
	e.start.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		e.cancel = cancel
		go func() {
			defer close(e.ready)
			e.engine, e.err = wasmhost.New(ctx, e.opts)
		}()
	})
}

// Ready returns a channel that is closed when the engine is made or has failed.
func (e *LazyEngine) Ready() <-chan struct{} { return e.ready }

// Err says why the engine could not be made. It is nil as long as nobody knows.
func (e *LazyEngine) Err() error {
	select {
	case <-e.ready:
		return e.err
	default:
		return nil
	}
}

// NewSandbox starts the engine if need be, waits for it, and makes a session of it.
func (e *LazyEngine) NewSandbox(ctx context.Context, opts wasmhost.SessionOptions) (Sandbox, error) {
	e.Start()
	select {
	case <-e.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if e.err != nil {
		return nil, fmt.Errorf("starting Python: %w", e.err)
	}
	session, err := e.engine.NewSession(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("starting a session: %w", err)
	}
	return session, nil
}

// Close implements [Engine]. An engine that is being made is given up.
func (e *LazyEngine) Close(ctx context.Context) error {
	e.start.Do(func() { // never started: never will
		e.err = errEngineClosed
		e.cancel = func() {}
		close(e.ready)
	})
	e.cancel()
	select {
	case <-e.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if e.engine == nil {
		return nil
	}
	return e.engine.Close(ctx)
}
