package hostfuncs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"
)

// The codes of the ABI; the package documentation says what they mean.
const (
	codeTooBig      int32 = -1
	codeFault       int32 = -2
	codeInvalid     int32 = -3
	codeLimit       int32 = -4
	codeNoRun       int32 = -5
	codeIdle        int32 = -6
	codeInterrupted int32 = -7
)

// A run is the table of the calls of one run. A new run has a new table, so that nothing can leak from one into the next.
//
// The guest uses it from one goroutine at a time, but handlers finish and [Instance.End] comes from others.
type run struct {
	opts     *Options
	ctx      context.Context // ends with the context of Begin, or by end
	cancel   context.CancelFunc
	handlers sync.WaitGroup // Add only under mu and before ended

	mu       sync.Mutex
	ended    bool
	lastID   int32
	count    int             // calls accepted
	calls    map[int32]*call // what the guest may still ask for
	pending  int             // of these, how many aren't answered
	answered []*call         // of these, which are answered but not yet reported, in order of completion
	slots    int             // admitted calls that aren't done with, see MaxInFlight
	held     int64           // their bytes, see MaxHeld
	waiters  []*waiter
}

// A call is one request of the guest. Its fields but cancel and op belong to the run's mutex.
type call struct {
	id        int32
	op        string
	cancel    context.CancelFunc
	held      int64 // bytes that count in run.held: of the request, later of the reply
	done      bool  // reply is there
	forgotten bool  // read or cancelled: no longer in run.calls
	reply     reply
}

// A waiter is a guest that blocks in wait. There is one at most unless the host calls into a guest concurrently.
type waiter struct {
	id    int32         // what it waits for, 0 for any
	ready chan struct{} // has room for one token, which means: look again
}

func newRun(ctx context.Context, opts *Options, lastID int32) *run {
	ctx, cancel := context.WithCancel(ctx)
	return &run{opts: opts, ctx: ctx, cancel: cancel, lastID: lastID, calls: map[int32]*call{}}
}

// end makes the run over, waits until its handlers are gone, and returns the last id that it used.
func (r *run) end() (lastID int32) {
	r.mu.Lock()
	r.ended = true
	r.calls, r.answered, r.pending = nil, nil, 0
	lastID = r.lastID
	r.mu.Unlock()
	r.cancel() // also wakes waiters
	r.handlers.Wait()
	return lastID
}

func (r *run) accepted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// submit implements the import of that name.
func (r *run) submit(mem api.Memory, ptr, size uint32) int32 {
	view, code := guestRange(mem, ptr, size, r.opts.MaxRequest)
	if code = r.reserve(int64(size), code); code < 0 {
		return code
	}
	req, err := parseRequest(bytes.Clone(view))
	if err != nil {
		r.release(int64(size))
		return codeInvalid
	}
	return r.start(req, int64(size))
}

// reserve admits a call with a request of size bytes unless a code stands against it: code, or one of the run's own.
func (r *run) reserve(size int64, code int32) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
		return codeNoRun
	case r.ctx.Err() != nil:
		return codeInterrupted
	case code < 0:
		return code
	case r.slots >= r.opts.MaxInFlight || r.held+size > r.opts.MaxHeld:
		return codeLimit
	}
	r.slots++
	r.held += size
	return 0
}

// release takes a reservation back.
func (r *run) release(size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots--
	r.held -= size
}

// start makes a call with a reservation of size bytes and lets the handler loose on it.
func (r *run) start(req Request, size int64) int32 {
	ctx, cancel := context.WithCancel(r.ctx)
	c := &call{op: req.Op, cancel: cancel, held: size}

	r.mu.Lock()
	if r.ended { // since reserve
		r.mu.Unlock()
		cancel()
		r.release(size)
		return codeNoRun
	}
	c.id = r.nextID()
	r.calls[c.id] = c
	r.pending++
	r.count++
	r.handlers.Add(1)
	r.mu.Unlock()

	go r.serve(ctx, c, req)
	return c.id
}

// nextID counts on, from the largest number to 1, past ids that are in use. There is a free one because calls are
// far fewer than numbers.
func (r *run) nextID() int32 {
	for {
		if r.lastID == math.MaxInt32 {
			r.lastID = 0
		}
		r.lastID++
		if _, used := r.calls[r.lastID]; !used {
			return r.lastID
		}
	}
}

// serve has the request answered, come what may.
func (r *run) serve(ctx context.Context, c *call, req Request) {
	defer r.handlers.Done()
	var rep reply
	returned := false
	defer func() {
		if !returned {
			rep = r.failure(c.op, recover())
		}
		c.cancel()
		r.finish(c, rep)
	}()
	rep = r.answer(ctx, req)
	returned = true
}

// failure is the reply for a handler that didn't return but panicked or, if v is nil, ended its goroutine.
func (r *run) failure(op string, v any) reply {
	if v == nil {
		return (&Error{Message: fmt.Sprintf("the host gave no answer to %q", op)}).reply()
	}
	if r.opts.Panicked != nil {
		r.opts.Panicked(op, v, debug.Stack())
	}
	return (&Error{Message: fmt.Sprintf("the host failed at %q: %v", op, v)}).reply()
}

// answer calls the handler and encodes what it says.
func (r *run) answer(ctx context.Context, req Request) reply {
	if r.opts.Handler == nil {
		return (&Error{Kind: KindUnsupported, Message: fmt.Sprintf("this host answers no calls, so not %q either", req.Op)}).reply()
	}
	resp, err := r.opts.Handler.Handle(ctx, req)
	if err != nil {
		return errorReply(err)
	}
	return responseReply(resp)
}

// finish takes the reply to c.
func (r *run) finish(c *call, rep reply) {
	size := rep.size()
	if limit := r.opts.MaxResponse; size > limit {
		rep = limitReply(size, limit, fmt.Sprintf(
			"the response to %q has %d bytes, above the limit of %d bytes", c.op, size, limit))
		size = rep.size()
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.held -= c.held
	c.held = 0
	if c.forgotten || r.ended {
		r.slots--
		return
	}
	if limit := r.opts.MaxHeld; r.held+size > limit {
		// The reply that says so is admitted all the same: it is small, and their number is bounded by MaxInFlight.
		rep = limitReply(size, limit, fmt.Sprintf(
			"no room for the response to %q of %d bytes: the responses that are not read yet may have %d bytes altogether",
			c.op, size, limit))
		size = rep.size()
	}
	r.held += size
	c.held = size
	c.reply = rep
	c.done = true
	r.pending--
	r.answered = append(r.answered, c)
	r.wake(c.id)
}

// wake makes those look again who wait for call id or for any. r.mu is held.
func (r *run) wake(id int32) {
	for _, w := range r.waiters {
		if w.id == 0 || w.id == id {
			select {
			case w.ready <- struct{}{}:
			default: // has a token already
			}
		}
	}
}

// wait implements the import of that name. A negative timeout means for ever.
func (r *run) wait(id int32, timeout time.Duration) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return codeNoRun
	}
	if result, ok := r.look(id, timeout); ok {
		return result
	}

	w := &waiter{id: id, ready: make(chan struct{}, 1)}
	r.waiters = append(r.waiters, w)
	defer func() { r.waiters = slices.DeleteFunc(r.waiters, func(o *waiter) bool { return o == w }) }()
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	for {
		r.mu.Unlock()
		select {
		case <-w.ready:
		case <-r.ctx.Done():
		case <-expired:
			timeout = 0 // a call that is answered in this very moment is still reported
		}
		r.mu.Lock()
		if result, ok := r.look(id, timeout); ok {
			return result
		}
	}
}

// look decides whether wait can return now, and what. r.mu is held.
func (r *run) look(id int32, timeout time.Duration) (result int32, ok bool) {
	if r.ended || r.ctx.Err() != nil {
		return codeInterrupted, true
	}
	if id != 0 {
		c := r.calls[id]
		if c == nil {
			return codeInvalid, true
		}
		if c.done {
			r.reported(c)
			return id, true
		}
	} else if len(r.answered) > 0 {
		c := r.answered[0]
		r.reported(c)
		return c.id, true
	} else if r.pending == 0 && timeout < 0 {
		return codeIdle, true
	}
	return 0, timeout == 0
}

// reported takes c from the calls that a wait for any is still to report. r.mu is held.
func (r *run) reported(c *call) {
	if k := slices.Index(r.answered, c); k >= 0 {
		r.answered = slices.Delete(r.answered, k, k+1)
	}
}

// size implements the import of that name.
func (r *run) size(id int32) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return codeNoRun
	}
	c := r.calls[id]
	if c == nil || !c.done {
		return codeInvalid
	}
	return int32(c.held)
}

// read implements the import of that name.
func (r *run) read(mem api.Memory, id int32, ptr, size uint32) int32 {
	view, fault := guestRange(mem, ptr, size, math.MaxUint32)
	c, code := r.take(id, size, fault)
	if code < 0 {
		return code
	}
	// Outside of the lock: this may be a long copy, and nobody changes the reply of a call that is done.
	return int32(len(c.reply.append(view[:0])))
}

// take forgets the call id, which must be answered, for a reader with a buffer of size bytes and the code fault.
func (r *run) take(id int32, size uint32, fault int32) (*call, int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[id]
	answered := c != nil && c.done
	switch {
	case r.ended:
		return nil, codeNoRun
	case answered && int64(size) < c.held:
		return nil, codeTooBig
	case fault < 0:
		return nil, fault
	case !answered:
		return nil, codeInvalid
	}
	r.forget(c)
	return c, 0
}

// drop implements the import cancel.
func (r *run) drop(id int32) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return codeNoRun
	}
	c := r.calls[id]
	if c == nil {
		return codeInvalid
	}
	r.forget(c)
	c.cancel()
	r.wake(id)
	return 0
}

// forget removes c from what the guest may ask for. r.mu is held.
func (r *run) forget(c *call) {
	c.forgotten = true
	delete(r.calls, c.id)
	if !c.done {
		r.pending-- // finish does the rest
		return
	}
	r.reported(c)
	r.slots--
	r.held -= c.held
}

// write implements the import of that name.
func (r *run) write(mem api.Memory, kind OutputKind, ptr, size uint32) int32 {
	view, fault := guestRange(mem, ptr, size, r.opts.MaxRequest)
	if r.isOver() {
		return codeNoRun
	}
	if fault < 0 {
		return fault
	}
	var valid bool
	switch kind {
	case OutputResult:
		valid = utf8.Valid(view) && json.Valid(view)
	case OutputDisplay:
		_, err := ParseFrame(view)
		valid = err == nil
	}
	switch {
	case !valid:
		return codeInvalid
	case r.opts.Output == nil:
		return 0
	case r.opts.Output(kind, bytes.Clone(view)) != nil:
		return codeLimit
	}
	return 0
}

func (r *run) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// guestRange returns the size bytes of guest memory at ptr, or a code. They are the guest's: they must neither be kept
// beyond the import call nor be read from another goroutine.
func guestRange(mem api.Memory, ptr, size uint32, limit int64) ([]byte, int32) {
	if int64(size) > limit {
		return nil, codeTooBig
	}
	view, ok := mem.Read(ptr, size)
	if !ok {
		return nil, codeFault
	}
	return view, 0
}
