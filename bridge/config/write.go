package config

import (
	"io/fs"
	"os"
	"path/filepath"
)

// TempPrefix begins the names of the files that [ReplaceFile] makes beside the
// one that it replaces. One that is left behind is of a process that was killed.
const TempPrefix = ".codeexec-"

// WriteFile replaces a file by one of that mode, or leaves it as it was, also if
// the machine stops in the middle of it. Nobody else may enter a directory that
// has to be made.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return replaceFile(path, data, mode, true)
}

// ReplaceFile is as [WriteFile], but doesn't wait for the disk: if the machine
// stops soon after, the file may be damaged. It is for what can be made again.
func ReplaceFile(path string, data []byte, mode fs.FileMode) error {
	return replaceFile(path, data, mode, false)
}

func replaceFile(path string, data []byte, mode fs.FileMode, sync bool) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, TempPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close() // again, perhaps
			os.Remove(f.Name())
		}
	}()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if sync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
