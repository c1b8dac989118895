// Package filelock provides a lock that the goroutines of several processes share: one of all that
// name the same file has it at a time. It is meant for work that takes milliseconds. What a killed
// process had locked is free at once.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	// poll is how often a process tries to get a lock that another one holds.
	poll = time.Millisecond

	// patience is how long it tries.
	patience = 30 * time.Second
)

// A Lock is a process's end of the lock. A process should have one for each file: its goroutines then
// queue for it fairly. It holds nothing open while it isn't locked.
type Lock struct {
	path string
	turn chan struct{} // holds a value while a goroutine of this process has the lock or tries to get it
}

// New returns the lock of a file, which is made when it is first acquired, and never removed. Untrusted
// code must not be able to write where it is: what it removes or replaces locks nobody out.
func New(path string) *Lock {
	return &Lock{path: path, turn: make(chan struct{}, 1)}
}

// Path returns the path of the file.
func (l *Lock) Path() string { return l.path }

// Acquire waits for the lock and returns a function that gives it back. The error is a *HeldError if
// another process holds it for longer than half a minute.
func (l *Lock) Acquire(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	file, err := l.acquireFile(ctx)
	if err != nil {
		<-l.turn
		return nil, err
	}
	return func() {
		file.Unlock() // the file is closed in any case, and that unlocks it
		<-l.turn
	}, nil
}

func (l *Lock) acquireFile(ctx context.Context) (*flock.Flock, error) {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		file := flock.New(l.path)
		if _, err := file.TryLockContext(patient, poll); err != nil {
			file.Close()
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case errors.Is(err, context.DeadlineExceeded):
				return nil, &HeldError{Path: l.path, Wait: patience}
			}
			return nil, fmt.Errorf("locking: %w", err)
		}
		// If somebody has removed the file, others lock a new one.
		held, err := file.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = os.Stat(l.path); err == nil && os.SameFile(held, named) {
				return file, nil
			}
		}
		file.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("locking: %w", err)
		}
	}
}

// A HeldError reports that another process has held a lock for too long.
type HeldError struct {
	Path string
	Wait time.Duration
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("another process has held the lock %s for %v; is it stopped?", e.Path, e.Wait)
}
