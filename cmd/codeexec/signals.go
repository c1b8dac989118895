package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// A signalError is the cause of the end of the context of [withSignals].
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return fmt.Sprintf("stopped by signal: %v", e.signal) }

// exitCode is what a shell reports for a process that the signal killed.
func (e *signalError) exitCode() int {
	if n, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitFailure
}

// withSignals returns a context that ends at the first signal that asks the process to stop. At the second
// one the process exits at once; even then no child survives it, since each has a supervisor that notices.
func withSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			cancel(&signalError{s})
		case <-done:
			return
		}
		select {
		case s := <-signals:
			os.Exit((&signalError{s}).exitCode())
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}
