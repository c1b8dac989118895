package wasmhost

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"

	"codeexec/hostfuncs"
	pythonwasm "codeexec/python-wasm"
	"codeexec/wasmhost/internal/sandboxfs"
)

const (
	// defaultGrace is how long interrupted code may go on.
	defaultGrace = time.Second
	// tripEvery is how often the interrupt is repeated.
	tripEvery = 8 * time.Millisecond
	// maxDisplays bounds what a run shows, in bytes.
	maxDisplays = 64 << 20

	statusDone int32 = 0 // codeexec_run: the guest has written its result
)

// errKilled is the error of a guest call that a kill ended.
var errKilled = errors.New("killed")

// A guest is an instance of the interpreter with everything that belongs to it.
// It is used by one goroutine at a time.
type guest struct {
	module api.Module
	memory *memory
	files  *sandboxfs.FS
	host   *hostfuncs.Instance

	alloc, exec api.Function
	words       interruptWords

	// Of the run that is going on.
	done           <-chan struct{} // closed when its context ends
	killed         atomic.Bool
	stdout, stderr *capture
	result         []byte
	displays       []Display
	show           func(Display) string // takes what is shown; nil: displays does
	displayed      int64                // bytes
}

// newGuest forks an instance.
func (e *Engine) newGuest(ctx context.Context, opts SessionOptions) (_ *guest, err error) {
	g := &guest{stdout: &capture{}, stderr: &capture{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("forking a session: %w", err), g.close(context.WithoutCancel(ctx)))
		}
	}()
	if g.memory, err = e.image.fork(e.opts.Memory); err != nil {
		return nil, err
	}
	if g.words, err = newInterruptWords(g.memory, e.manifest.Interrupt); err != nil {
		return nil, err
	}
	g.files, err = sandboxfs.New(sandboxfs.Options{
		Base:          e.base,
		Quota:         opts.DiskQuota,
		Entries:       opts.DiskEntries,
		Projects:      opts.Projects,
		ProjectsQuota: opts.ProjectsQuota,
	})
	if err != nil {
		return nil, err
	}
	g.host = hostfuncs.NewInstance(hostfuncs.Options{
		Handler: opts.Handler,
		Output:  g.output,
		Yield:   g.yield,
		Panicked: func(op string, value any, stack []byte) {
			e.opts.Logger.Error("a host call panicked", "op", op, "value", value, "stack", string(stack))
		},
	})
	// The environment is in the snapshot already.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithFSConfig(wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(g.files, "/")).
		WithStdout(stream{g, func(g *guest) *capture { return g.stdout }}).
		WithStderr(stream{g, func(g *guest) *capture { return g.stderr }}).
		WithRandSource(rand.Reader).
		WithSysWalltime().WithSysNanotime().WithNanosleep(g.sleep).WithOsyield(runtime.Gosched)
	allocator := experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return g.memory })
	g.module, err = e.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, allocator), e.compiled, config)
	if err != nil {
		return nil, err
	}
	g.alloc = g.module.ExportedFunction("codeexec_alloc")
	g.exec = g.module.ExportedFunction("codeexec_run")
	afterFork := g.module.ExportedFunction("codeexec_after_fork")
	if g.alloc == nil || g.exec == nil || afterFork == nil {
		return nil, errors.New("the embedded module lacks an export")
	}
	if status, err := afterFork.Call(g.context(ctx)); err != nil {
		return nil, err
	} else if status[0] != 0 {
		return nil, fmt.Errorf("the interpreter could not be made ready: %s", g.stderr.output())
	}
	return g, nil
}

// context is the context for calls into the guest.
func (g *guest) context(ctx context.Context) context.Context {
	return g.host.Context(g.files.Context(ctx))
}

// run runs one request. Where the result says Reset, g is good for nothing but closing.
func (g *guest) run(ctx context.Context, req Request, frame []byte) *Result {
	// What the guest waits for is woken by a context of its own, which ends
	// just after the interrupt was made pending: a guest that is woken must find it.
	waits, wake := context.WithCancelCause(context.WithoutCancel(ctx))
	defer wake(nil)
	g.done = waits.Done()
	g.stdout, g.stderr = &capture{next: req.Stdout}, &capture{next: req.Stderr}
	g.result, g.displays, g.displayed, g.show = nil, nil, 0, req.Show
	g.files.RenewProjectsQuota()
	g.host.Begin(waits)

	grace := req.Grace
	if grace <= 0 {
		grace = defaultGrace
	}
	stop := g.watch(ctx, grace, func() { wake(context.Cause(ctx)) })
	status, err := g.call(g.context(context.WithoutCancel(ctx)), frame)
	stop()
	g.host.End()
	g.words.clear()

	result := classify(ctx, status, err, g.result)
	result.Stdout, result.Stderr = g.stdout.output(), g.stderr.output()
	result.Displays = g.displays
	result.Calls = g.host.Calls()
	g.stdout, g.stderr, g.result, g.displays, g.show = &capture{}, &capture{}, nil, nil, nil
	return result
}

// call hands the frame to the guest's codeexec_run.
func (g *guest) call(ctx context.Context, frame []byte) (status int32, err error) {
	results, err := g.alloc.Call(ctx, uint64(len(frame)))
	if err != nil {
		return 0, err
	}
	address := uint32(results[0])
	if address == 0 || !g.module.Memory().Write(address, frame) {
		return -2, nil // as codeexec_run says it: no memory
	}
	results, err = g.exec.Call(ctx, uint64(address), uint64(len(frame)))
	if err != nil {
		return 0, err
	}
	return api.DecodeI32(results[0]), nil
}

// watch interrupts the guest when ctx ends and wakes it, and has it killed when
// grace is over too, until stop is called.
func (g *guest) watch(ctx context.Context, grace time.Duration, wake func()) (stop func()) {
	returned := make(chan struct{})
	finished := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(finished)
		ticker := time.NewTicker(tripEvery)
		defer ticker.Stop()
		deadline := time.NewTimer(grace)
		defer deadline.Stop()
		g.words.trip()
		wake()
		for {
			select {
			case <-ticker.C:
				g.words.trip()
			case <-deadline.C:
				g.killed.Store(true)
			case <-returned:
				return
			}
		}
	})
	return func() {
		close(returned)
		if !unhook() {
			<-finished
		}
	}
}

// yield is called by the guest some hundred times a second.
func (g *guest) yield() error {
	if g.killed.Load() {
		return errKilled
	}
	runtime.Gosched()
	return nil
}

// sleep is the guest's sleep, which the end of the run cuts short. The interrupt
// is made pending once more then: the last one may have come before the user's
// code began, and code whose last statement is a sleep must not seem to succeed.
func (g *guest) sleep(ns int64) {
	select {
	case <-g.done: // before a timer is made: a guest may ask very often
		g.words.trip()
		return
	default:
	}
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.done:
		g.words.trip()
	}
}

// output takes what the guest writes to its host.
func (g *guest) output(kind hostfuncs.OutputKind, p []byte) error {
	switch kind {
	case hostfuncs.OutputResult:
		g.result = p
		return nil
	case hostfuncs.OutputDisplay:
		if g.displayed += int64(len(p)); g.displayed > maxDisplays {
			return errors.New("too much is displayed")
		}
		frame, err := hostfuncs.ParseFrame(p)
		if err != nil {
			return err
		}
		shown := Display{Header: frame.Header, Attachments: frame.Attachments}
		if g.show == nil {
			g.displays = append(g.displays, shown)
			return nil
		}
		_, err = io.WriteString(g.stdout, g.show(shown))
		return err
	default:
		return fmt.Errorf("output of unknown kind %d", kind)
	}
}

// close frees everything. It may be called on a guest that was half made.
func (g *guest) close(ctx context.Context) error {
	var errs []error
	if g.host != nil {
		g.host.End()
	}
	if g.module != nil {
		errs = append(errs, g.module.Close(ctx))
	}
	if g.memory != nil {
		g.memory.release()
	}
	if g.files != nil {
		errs = append(errs, g.files.Close())
	}
	return errors.Join(errs...)
}

// A stream is the guest's standard output or error, whatever run it is in.
type stream struct {
	guest *guest
	of    func(*guest) *capture
}

func (s stream) Write(p []byte) (int, error) { return s.of(s.guest).Write(p) }

// interruptWords are the words of linear memory that make a SIGINT pending. See
// [pythonwasm.Interrupt].
type interruptWords struct {
	tripped, isTripped, evalBreaker *atomic.Uint32
	bit                             uint32
}

func newInterruptWords(m *memory, at pythonwasm.Interrupt) (w interruptWords, err error) {
	if w.tripped, err = m.word(at.Tripped); err != nil {
		return w, err
	}
	if w.isTripped, err = m.word(at.IsTripped); err != nil {
		return w, err
	}
	if w.evalBreaker, err = m.word(at.EvalBreaker); err != nil {
		return w, err
	}
	if at.Bit == 0 || at.Bit > 0xff {
		return w, fmt.Errorf("the manifest's interrupt bit %#x is not one of the low byte", at.Bit)
	}
	w.bit = at.Bit
	return w, nil
}

// trip makes the interrupt pending. It may be called while the guest runs: the
// last word's upper bits are the guest's, and are left alone. The guest may undo
// it in the middle of an update of its own; it is repeated soon.
func (w interruptWords) trip() {
	w.tripped.Store(1)
	w.isTripped.Store(1)
	w.evalBreaker.Or(w.bit)
}

// clear takes back an interrupt that came too late.
func (w interruptWords) clear() {
	w.tripped.Store(0)
	w.isTripped.Store(0)
	w.evalBreaker.And(^w.bit)
}
