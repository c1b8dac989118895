//go:build unix

package sandboxfs

import (
	"syscall"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// platformErrno maps the host's errors that wazero's set lacks; 0 means none of them.
func platformErrno(err syscall.Errno) sys.Errno {
	switch err {
	case syscall.EBUSY:
		return EBUSY
	case syscall.EDQUOT:
		return EDQUOT
	case syscall.EFBIG:
		return EFBIG
	case syscall.EMFILE, syscall.ENFILE:
		return EMFILE
	case syscall.EMLINK:
		return EMLINK
	case syscall.ENOSPC:
		return ENOSPC
	case syscall.ENXIO:
		return ENXIO
	case syscall.ETXTBSY:
		return ETXTBSY
	case syscall.EXDEV:
		return EXDEV
	}
	return 0
}
