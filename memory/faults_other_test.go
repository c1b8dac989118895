//go:build !linux

package memory_test

import (
	"errors"
	"os/exec"

	"codeexec/memory"
)

func configure(*exec.Cmd, task) {}

func faults(*memory.Dir, task) error { return errors.New("not on this system") }
