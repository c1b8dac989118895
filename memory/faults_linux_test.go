package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codeexec/memory"
)

// configure gives a process that mounts file systems a mount namespace of its own.
func configure(cmd *exec.Cmd, task task) {
	if task.Name == "faults" {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
}

func TestFullAndReadOnlyDisks(t *testing.T) {
	state := t.TempDir()
	task := task{Name: "faults", Path: filepath.Join(state, "user_tools", "memory"), Lock: filepath.Join(state, "lock")}
	if err := os.MkdirAll(filepath.Dir(task.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd, start, output := spawn(t, task)
	start.WriteString("\n")
	if err := cmd.Wait(); strings.Contains(output.String(), cannotMount) {
		t.Skip(output)
	} else if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

const cannotMount = "can't mount"

// faults checks a store on a small disk, first full and then read-only. It runs in a process that
// sees mounts of its own.
func faults(dir *memory.Dir, task task) error {
	disk := filepath.Dir(task.Path)
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("%s: %w", cannotMount, err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256k"); err != nil {
		return fmt.Errorf("%s: %w", cannotMount, err)
	}
	ctx := context.Background()
	damaged := filepath.Join(task.Path, "damaged.json")
	before, err := memory.Save(ctx, dir, "k", json.RawMessage("1"), nil)
	if err != nil {
		return err
	}
	if err := os.WriteFile(damaged, []byte("{"), 0o600); err != nil {
		return err
	}
	names := func() string {
		entries, err := os.ReadDir(task.Path)
		return fmt.Sprint(entries, err)
	}
	files := names()
	unchanged := func(what string, err, want error) error {
		if !errors.Is(err, want) {
			return fmt.Errorf("%s: error %w, want %w", what, err, want)
		}
		if now := names(); now != files {
			return fmt.Errorf("%s: the files are %s, were %s", what, now, files)
		}
		rec, err := dir.Get(ctx, "k")
		if err != nil || rec.Revision != before.Revision {
			return fmt.Errorf("%s: the record is %+v, %w, was %+v", what, rec, err, before)
		}
		infos, err := dir.List(ctx, "")
		if err != nil || len(infos) != 2 {
			return fmt.Errorf("%s: the list is %v, %w", what, infos, err)
		}
		return nil
	}

	large := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	for _, key := range []string{"k", "new", "damaged"} {
		_, err := memory.Save(ctx, dir, key, large, nil)
		if err := unchanged("save of "+key+" on a full disk", err, syscall.ENOSPC); err != nil {
			return err
		}
	}

	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=256k"); err != nil {
		return fmt.Errorf("%s: %w", cannotMount, err)
	}
	for _, key := range []string{"k", "new", "damaged"} {
		_, err := memory.Save(ctx, dir, key, json.RawMessage("2"), nil)
		if err := unchanged("save of "+key+" on a read-only disk", err, syscall.EROFS); err != nil {
			return err
		}
	}
	if err := unchanged("delete", dir.Delete(ctx, "k"), syscall.EROFS); err != nil {
		return err
	}

	// The lock's disk may be read-only, too.
	locked, err := memory.OpenDir(filepath.Join(task.Lock+"s", "memory"), filepath.Join(disk, "lock"), memory.Limits{})
	if err != nil {
		return err
	}
	if _, err := memory.Save(ctx, locked, "k", json.RawMessage("2"), nil); !errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("lock on a read-only disk: error %w", err)
	}
	return nil
}
