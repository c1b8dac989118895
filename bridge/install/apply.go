package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"codeexec/bridge/config"
)

// BackupPath is where the contents of a client's file are kept that Apply
// replaces. It is beside the file, where its owner will look.
func BackupPath(file string) string { return file + ".before-codeexec" }

// Apply writes the client's file, and keeps what was in it at [BackupPath]; a
// backup that is the same as what is written is removed, since it has served. It
// fails if the file has changed since the change was planned. The file is
// replaced as a whole or not at all, and keeps its permissions; where it is a
// symbolic link, what it leads to is replaced.
func (p *Plan) Apply() error {
	now, err := read(p.File)
	if err != nil {
		return fmt.Errorf("%s: %w", p.File, err)
	}
	if (now == nil) != (p.Before == nil) || !bytes.Equal(now, p.Before) {
		return fmt.Errorf("%s has changed in the meantime; try again", p.File)
	}
	if p.record != nil { // first: a record of what wasn't done does no harm
		if err := remember(p.stateDir, p.File, p.record); err != nil {
			return fmt.Errorf("remembering what was installed: %w", err)
		}
	}
	if p.Changed() {
		if err := p.write(); err != nil {
			return err
		}
	}
	if p.record == nil {
		if err := remember(p.stateDir, p.File, nil); err != nil {
			return fmt.Errorf("forgetting what was installed: %w", err)
		}
	}
	return nil
}

func (p *Plan) write() error {
	backup := BackupPath(p.File)
	if p.After == nil {
		return os.Remove(p.File)
	}
	if p.Before == nil {
		return config.WriteFile(p.File, p.After, 0o600)
	}
	target, err := filepath.EvalSymlinks(p.File)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	kept, err := read(backup)
	served := err == nil && kept != nil && bytes.Equal(kept, p.After)
	if !served {
		if err := config.WriteFile(backup, p.Before, info.Mode().Perm()); err != nil {
			return fmt.Errorf("keeping a backup: %w", err)
		}
	}
	if err := config.WriteFile(target, p.After, info.Mode().Perm()); err != nil {
		return err
	}
	if served {
		return os.Remove(backup)
	}
	return nil
}

// read returns a file's contents, and nil if there is no file.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return nil, errors.New("it is a symbolic link that leads nowhere")
		}
		return nil, nil
	case err != nil:
		return nil, reason(err)
	case !info.Mode().IsRegular(): // opening a named pipe would wait for its writer
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, config.MaxClientFileSize+1))
	if err != nil {
		return nil, reason(err)
	}
	if len(data) > config.MaxClientFileSize {
		return nil, fmt.Errorf("it is larger than %d bytes", config.MaxClientFileSize)
	}
	return data, nil
}

// reason is err without the path that is named anyway.
func reason(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
