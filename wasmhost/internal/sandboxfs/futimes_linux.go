package sandboxfs

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// chtimes sets the times of the open file.
func (h *hostFile) chtimes(atim, mtim int64) error {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		times := []unix.Timespec{timespec(atim), timespec(mtim)}
		result = unix.UtimesNanoAt(int(fd), "", times, unix.AT_EMPTY_PATH)
	})
	if err != nil {
		return err
	}
	if errors.Is(result, unix.EINVAL) || errors.Is(result, unix.ENOENT) { // Linux before 5.8
		return h.chtimesByPath(atim, mtim)
	}
	return result
}

func timespec(ns int64) unix.Timespec {
	if ns == sys.UTIME_OMIT {
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	}
	return unix.NsecToTimespec(ns)
}
