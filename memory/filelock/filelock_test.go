package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeexec/memory/filelock"
)

func TestOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "lock")
	// Two locks of one file are as those of two processes.
	locks := []*filelock.Lock{filelock.New(path), filelock.New(path)}
	var holders, total atomic.Int32 // the race detector knows nothing of locked files
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			release, err := locks[i%2].Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if n := holders.Add(1); n != 1 {
				t.Errorf("%d have the lock", n)
			}
			total.Add(1)
			holders.Add(-1)
		})
	}
	group.Wait()
	if total.Load() != 20 {
		t.Errorf("%d had the lock", total.Load())
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held := filelock.New(path)
	release, err := held.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the cause")
	for _, lock := range []*filelock.Lock{held, filelock.New(path)} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, cause)
		defer cancel()
		if _, err := lock.Acquire(ctx); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	}
	// Who removes the file doesn't let a second one in beside later ones.
	if err := os.Remove(path); err == nil {
		other, err := filelock.New(path).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other()
	}
	release()
	again, err := held.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestWhereItCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.New(filepath.Join(file, "lock")).Acquire(t.Context()); err == nil {
		t.Error("there is a lock in a file")
	}
}
