//go:build unix

package memory

import "syscall"

// nonblock is added to every open for reading: a pipe must not block.
const nonblock = syscall.O_NONBLOCK
