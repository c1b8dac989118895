//go:build unix && !linux

package wasmhost

import (
	"errors"
	"os"
)

// anonymousFile is a temporary file that is unlinked at once.
func anonymousFile() (*os.File, error) {
	file, err := os.CreateTemp("", "codeexec-snapshot-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
