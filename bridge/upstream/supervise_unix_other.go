//go:build unix && !linux

package upstream

import "syscall"

// adoptOrphans can't be done here: a process that leaves the program's group
// is out of reach.
func adoptOrphans() {}

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func descendants(int) []int { return nil }
