package hostfuncs

import (
	"context"
	"math"
	"sync/atomic"
)

// OutputKind says what a chunk of output is.
type OutputKind int32

const (
	// OutputResult is the result of a run: a JSON text.
	OutputResult OutputKind = 1
	// OutputDisplay is something to show: a [Frame].
	OutputDisplay OutputKind = 2
)

// Options configure an [Instance]. The zero value is usable: calls are answered with errors, output is dropped.
type Options struct {
	// Handler answers the guest's requests. With nil every call is answered with an error of the kind "Unsupported".
	Handler Handler
	// Output takes the guest's output, well-formed for its kind, one chunk at a time while the guest stands still. It
	// owns p. An error refuses the chunk: the guest gets LIMIT. With nil all output is dropped.
	Output func(kind OutputKind, p []byte) error
	// Yield is called whenever the guest has used up its fuel. With an error the guest doesn't go on: the call into it
	// returns that error, wrapped. The guest's stack isn't unwound in an orderly way, so the instance is then good
	// for nothing but closing. With nil the guest goes on at once, after the Go scheduler had its chance.
	Yield func() error
	// Panicked is told of each panic of the handler: the operation, the value and the stack. It may be called from
	// several goroutines at a time, and must not panic itself. With nil the stack is lost, but not the value: the guest
	// sees it.
	Panicked func(op string, value any, stack []byte)

	// MaxRequest is the longest request and the longest chunk of output, in bytes. Default 16 MiB, at most 2 GiB - 1.
	MaxRequest int64
	// MaxResponse is the longest response frame, in bytes. Default 64 MiB, at most 2 GiB - 1. A longer one becomes an
	// error of the kind "LimitExceeded".
	MaxResponse int64
	// MaxInFlight is how many calls a run may have that aren't done with: their handler runs, or they are neither read nor
	// cancelled. Default 1024.
	MaxInFlight int
	// MaxHeld is how many bytes the requests and responses of those calls may have altogether. Default 4 * MaxResponse.
	// A request that doesn't fit gets LIMIT, a response that doesn't fit becomes an error of the kind "LimitExceeded".
	MaxHeld int64
}

// withDefaults replaces what is zero or less by the default.
func (o Options) withDefaults() Options {
	if o.MaxRequest <= 0 {
		o.MaxRequest = 16 << 20
	}
	if o.MaxResponse <= 0 {
		o.MaxResponse = 64 << 20
	}
	// Lengths and sizes are results of the ABI, whose negative half is for codes.
	o.MaxRequest = min(o.MaxRequest, math.MaxInt32)
	o.MaxResponse = min(o.MaxResponse, math.MaxInt32)
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 1024
	}
	if o.MaxHeld <= 0 {
		o.MaxHeld = 4 * o.MaxResponse
	}
	return o
}

// An Instance is the host's side of one guest instance: its options and its calls.
type Instance struct {
	opts Options
	run  atomic.Pointer[run] // the present run or, outside of a run, one that has ended
}

// NewInstance returns the host's side of a new guest.
func NewInstance(opts Options) *Instance {
	i := &Instance{opts: opts.withDefaults()}
	none := newRun(context.Background(), &i.opts, 0)
	none.end()
	i.run.Store(none)
	return i
}

// instanceKey is the key of the *Instance among a context's values.
type instanceKey struct{}

// Context returns a context for calls into the guest that i belongs to. Every call that may reach an import of the module
// needs one, inside of a run or not; it is best the outermost layer of the context, which makes it the fastest to find.
func (i *Instance) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, instanceKey{}, i)
}

// Begin starts a run: from now on the guest may submit calls, which live under ctx. When ctx ends their contexts end with
// it, and waiting guests are woken. A run that has not ended is ended first. Every Begin needs an [Instance.End], or ctx
// to end, for its resources to be freed.
func (i *Instance) Begin(ctx context.Context) {
	lastID := i.run.Load().end()
	i.run.Store(newRun(ctx, &i.opts, lastID))
}

// End ends the run: it cancels the calls in flight, waits for their handlers to return, drops all results and wakes a
// guest that waits. It may be called while the guest runs, and more than once, but not by a handler, for which it would
// wait for ever, nor at the same time as [Instance.Begin].
func (i *Instance) End() {
	i.run.Load().end()
}

// Calls is the number of calls that were accepted since the last [Instance.Begin].
func (i *Instance) Calls() int {
	return i.run.Load().accepted()
}
