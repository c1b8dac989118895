package memory

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
	// lockPoll is how often a process tries to get a lock that another one holds.
	lockPoll = time.Millisecond

	// lockPatience is how long it tries. A commit takes milliseconds.
	lockPatience = 30 * time.Second
)

// A commitLock lets one commit at a time run, of all processes that name the same file.
type commitLock struct {
	path string
	turn chan struct{} // holds a value while a goroutine of this process has the lock or tries to get it
}

func newCommitLock(path string) *commitLock {
	return &commitLock{path: path, turn: make(chan struct{}, 1)}
}

// acquire returns a function that gives the lock back.
func (l *commitLock) acquire(ctx context.Context) (release func(), err error) {
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

func (l *commitLock) acquireFile(ctx context.Context) (*flock.Flock, error) {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return nil, fmt.Errorf("locking memory: %w", err)
	}
	patient, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for {
		file := flock.New(l.path)
		if _, err := file.TryLockContext(patient, lockPoll); err != nil {
			file.Close()
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case errors.Is(err, context.DeadlineExceeded):
				return nil, &LockError{Path: l.path, Wait: lockPatience}
			}
			return nil, fmt.Errorf("locking memory: %w", err)
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
			return nil, fmt.Errorf("locking memory: %w", err)
		}
	}
}
