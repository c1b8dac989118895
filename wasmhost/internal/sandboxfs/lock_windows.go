package sandboxfs

import (
	"errors"
	"math"
	"os"
	"slices"

	"golang.org/x/sys/windows"
)

// A locker holds the locks of a session on one file of the host, by an open file of
// its own.
type locker struct {
	file *os.File
	held []lockedRange
}

type lockedRange struct {
	kind          lockKind
	start, length int64
}

// reopen isn't to be had; a file that was moved while it is open can't be locked.
func reopen(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

// setLock sets or removes a lock. Windows doesn't change the kind or the bounds of
// one, so those that the range meets are given up as a whole, and taken again
// where the new one can't be had. SQLite locks and unlocks whole ranges.
func setLock(l *locker, kind lockKind, start, length int64) error {
	wanted := lockedRange{kind, start, length}
	var met []lockedRange
	l.held = slices.DeleteFunc(l.held, func(r lockedRange) bool {
		if r.meets(wanted) {
			met = append(met, r)
			r.call(l, false)
			return true
		}
		return false
	})
	if kind == lockNone {
		return nil
	}
	err := wanted.call(l, true)
	if err == nil {
		l.held = append(l.held, wanted)
		return nil
	}
	for _, r := range met {
		if r.call(l, true) == nil {
			l.held = append(l.held, r)
		}
	}
	return err
}

// getLock reports whether somebody else's lock is in the way of writing.
func getLock(l *locker, start, length int64) (bool, error) {
	wanted := lockedRange{lockWrite, start, length}
	if slices.ContainsFunc(l.held, wanted.meets) {
		return false, nil
	}
	err := wanted.call(l, true)
	if err == nil {
		return false, wanted.call(l, false)
	}
	return isLocked(err), nil
}

func isLocked(err error) bool {
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING)
}

// bytes is the length of the range, of which 0 is to the end.
func (r lockedRange) bytes() int64 {
	if r.length == 0 {
		return math.MaxInt64 - r.start
	}
	return r.length
}

func (r lockedRange) meets(other lockedRange) bool {
	return r.start < other.start+other.bytes() && other.start < r.start+r.bytes()
}

// call locks or unlocks the range.
func (r lockedRange) call(l *locker, lock bool) error {
	at := &windows.Overlapped{Offset: uint32(r.start), OffsetHigh: uint32(r.start >> 32)}
	low, high := uint32(r.bytes()), uint32(r.bytes()>>32)
	file := windows.Handle(l.file.Fd())
	if !lock {
		return windows.UnlockFileEx(file, 0, low, high, at)
	}
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if r.kind == lockWrite {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	return windows.LockFileEx(file, flags, 0, low, high, at)
}
