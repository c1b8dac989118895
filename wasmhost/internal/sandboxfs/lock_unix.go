//go:build linux || darwin

package sandboxfs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A locker holds the locks of a session on one file of the host, by an open file of
// its own.
type locker struct{ file *os.File }

// reopen returns another file for the same open file description: locks on that
// stay when the first is closed.
func reopen(f *os.File) (*os.File, error) {
	var again *os.File
	err := control(f, func(fd uintptr) error {
		dup, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			again = os.NewFile(uintptr(dup), f.Name())
		}
		return err
	})
	return again, err
}

// setLock sets or removes a lock that belongs to the open file description, not
// to the process: the process has other sessions. It fits the locks that
// programs of the host, such as the sqlite3 command, take by F_SETLK.
func setLock(l *locker, kind lockKind, start, length int64) error {
	types := [...]int16{lockRead: unix.F_RDLCK, lockWrite: unix.F_WRLCK, lockNone: unix.F_UNLCK}
	lock := unix.Flock_t{Type: types[kind], Whence: io.SeekStart, Start: start, Len: length}
	return control(l.file, func(fd uintptr) error { return unix.FcntlFlock(fd, ofdSetLock, &lock) })
}

// getLock reports whether somebody else's lock is in the way of writing.
func getLock(l *locker, start, length int64) (bool, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: start, Len: length}
	err := control(l.file, func(fd uintptr) error { return unix.FcntlFlock(fd, ofdGetLock, &lock) })
	return lock.Type != unix.F_UNLCK, err
}

// isLocked reports whether an error of setLock means that the lock is another's.
func isLocked(err error) bool { return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) }

// control calls do with the descriptor of f.
func control(f *os.File, do func(fd uintptr) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := conn.Control(func(fd uintptr) { result = do(fd) }); err != nil {
		return err
	}
	return result
}
