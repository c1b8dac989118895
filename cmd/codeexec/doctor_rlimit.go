//go:build linux || darwin

package main

import "golang.org/x/sys/unix"

// addressSpace is the limit on the process's address space in bytes, as ulimit -v sets it; 0 means none.
func addressSpace() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return 0
	}
	return limit.Cur
}
