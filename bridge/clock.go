package bridge

import (
	"context"
	"sync"
	"time"
)

// maxWaiting is how long a run's clock may stand still in all, since a person is asked.
const maxWaiting = 10 * time.Minute

// A clock is the context of a run: it ends when the run's time is used up. While a person is asked the clock
// stands still, or else nobody could answer within the seconds that a script has.
type clock struct {
	context.Context // ends with the cause context.DeadlineExceeded when the time is used up
	cancel          context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration // at since, if it is running
	since   time.Time     // when it was last started or stopped
	stopped int           // how many ask
	waited  time.Duration // in all, until since
}

// newClock starts a clock. The caller must call release in the end.
func newClock(ctx context.Context, limit time.Duration) *clock {
	c := &clock{left: limit, since: time.Now()}
	c.Context, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(limit, func() { c.cancel(context.DeadlineExceeded) })
	return c
}

// release ends the clock and frees what it holds.
func (c *clock) release() {
	c.cancel(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
}

// Deadline implements [context.Context]. It may be put off later.
func (c *clock) Deadline() (time.Time, bool) {
	c.mu.Lock()
	own := c.since.Add(c.left)
	c.mu.Unlock()
	if parent, ok := c.Context.Deadline(); ok && parent.Before(own) {
		return parent, true
	}
	return own, true
}

// Err implements [context.Context].
func (c *clock) Err() error {
	err := c.Context.Err()
	if err != nil && context.Cause(c.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}

// stop makes the clock stand still until the returned function is called.
func (c *clock) stop() (start func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped++; c.stopped == 1 {
		now := time.Now()
		c.left = max(c.left-now.Sub(c.since), 0)
		c.since = now
		c.timer.Reset(c.left + maxWaiting - c.waited)
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.stopped--; c.stopped > 0 {
			return
		}
		now := time.Now()
		c.waited += now.Sub(c.since)
		if over := c.waited - maxWaiting; over > 0 {
			c.left, c.waited = max(c.left-over, 0), maxWaiting
		}
		c.since = now
		c.timer.Reset(c.left)
	})
}
