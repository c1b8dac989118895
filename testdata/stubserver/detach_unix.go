//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detach lets cmd start in a session of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
