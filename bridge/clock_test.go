package bridge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		took := func(c *clock) time.Duration {
			<-c.Done()
			d := time.Since(began)
			began = time.Now()
			return d
		}
		c := newClock(t.Context(), 30*time.Second)
		child, cancel := context.WithCancel(c)
		defer cancel()
		if got := took(c); got != 30*time.Second {
			t.Errorf("it took %v", got)
		}
		if c.Err() != context.DeadlineExceeded || context.Cause(c) != context.DeadlineExceeded {
			t.Errorf("%v, %v", c.Err(), context.Cause(c))
		}
		if <-child.Done(); context.Cause(child) != context.DeadlineExceeded {
			t.Errorf("%v", context.Cause(child))
		}
		c.release()

		// It stands still as long as anybody asks.
		c = newClock(t.Context(), 30*time.Second)
		time.Sleep(10 * time.Second)
		first, second := c.stop(), c.stop()
		time.Sleep(time.Minute)
		first()
		first()
		time.Sleep(time.Minute)
		second()
		if got := took(c); got != 150*time.Second {
			t.Errorf("it took %v", got)
		}
		c.release()

		// But not for ever, in one go or in several.
		c = newClock(t.Context(), 30*time.Second)
		c.stop()
		if got := took(c); got != 30*time.Second+maxWaiting {
			t.Errorf("it took %v", got)
		}
		c.release()
		c = newClock(t.Context(), 30*time.Second)
		for range 2 {
			start := c.stop()
			time.Sleep(maxWaiting/2 + 10*time.Second)
			start()
		}
		if got := took(c); got != 30*time.Second+maxWaiting {
			t.Errorf("it took %v", got)
		}
		c.release()

		// The end of what it is derived from is its own.
		parent, cancelParent := context.WithCancelCause(t.Context())
		c = newClock(parent, time.Hour)
		cause := errors.New("shutting down")
		cancelParent(cause)
		<-c.Done()
		if c.Err() != context.Canceled || context.Cause(c) != cause {
			t.Errorf("%v, %v", c.Err(), context.Cause(c))
		}
		c.release()
	})
}
