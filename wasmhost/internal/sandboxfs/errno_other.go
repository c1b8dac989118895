//go:build !unix

package sandboxfs

import (
	"syscall"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// platformErrno maps the host's errors that wazero's set lacks; 0 means none of them.
//
// See https://learn.microsoft.com/en-us/windows/win32/debug/system-error-codes--0-499-
func platformErrno(err syscall.Errno) sys.Errno {
	switch err {
	case 4: // ERROR_TOO_MANY_OPEN_FILES
		return EMFILE
	case 17: // ERROR_NOT_SAME_DEVICE
		return EXDEV
	case 32: // ERROR_SHARING_VIOLATION
		return EBUSY
	case 39, 112: // ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL
		return ENOSPC
	}
	return 0
}
