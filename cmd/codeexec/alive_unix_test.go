//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// alive reports whether a process runs. One that has ended, but that nobody has waited for, doesn't.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // a system without /proc
	}
	// The state comes after the program's name in parentheses, which may have any character in it.
	return !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z"))
}
