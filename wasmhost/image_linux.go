package wasmhost

import (
	"os"

	"golang.org/x/sys/unix"
)

// anonymousFile is a file in memory: nobody can truncate it under a mapping.
func anonymousFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("codeexec-snapshot", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "codeexec-snapshot"), nil
}
