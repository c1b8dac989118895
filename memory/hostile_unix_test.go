//go:build unix

package memory_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codeexec/memory"
)

// What guest code can put into the directory, or in its place, neither leads outside nor blocks.
func TestHostileFiles(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.json")
	const secret = `{"key":"k","value":"secret"}`
	if err := os.WriteFile(outside, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	// A socket's path must be short.
	sockets, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	socket := filepath.Join(sockets, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	tests := []struct {
		name, reason string
		plant        func(path string) error
	}{
		{"link to outside", "symbolic link", func(path string) error { return os.Symlink(outside, path) }},
		{"relative link to outside", "symbolic link", func(path string) error {
			return os.Symlink(strings.Repeat("../", 20)+outside[1:], path)
		}},
		{"link to a device", "symbolic link", func(path string) error { return os.Symlink("/dev/zero", path) }},
		{"link to nothing", "symbolic link", func(path string) error { return os.Symlink("nothing", path) }},
		{"link to itself", "symbolic link", func(path string) error { return os.Symlink(filepath.Base(path), path) }},
		{"pipe", "pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"directory", "directory", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"socket", "socket", func(path string) error { return os.Link(socket, path) }},
		{"huge file", "more than", func(path string) error {
			if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir, path := openDir(t, memory.Limits{Value: 1000})
			mustSave(t, dir, "other", "1")
			testDamaged(t, dir, path, tc.reason, func(name string) {
				if err := tc.plant(filepath.Join(path, name)); err != nil {
					t.Skip(err)
				}
			})

			// Under the name of the temporary file it is replaced.
			if err := tc.plant(filepath.Join(path, ".commit.tmp")); err != nil {
				t.Fatal(err)
			}
			mustSave(t, dir, "k", "2")
			wantFiles(t, path, "k.json", "other.json")

			// In place of the directory it is an error.
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := tc.plant(path); err != nil {
				t.Fatal(err)
			}
			if tc.name != "directory" {
				if _, err := memory.Save(t.Context(), dir, "k", raw("3"), nil); err == nil {
					t.Error("a save succeeds")
				}
				if _, err := dir.Get(t.Context(), "k"); err == nil {
					t.Error("a load succeeds")
				}
			}
		})
	}
	if text, err := os.ReadFile(outside); string(text) != secret {
		t.Errorf("the file outside is now %s, %v", text, err)
	}
	if names := files(t, filepath.Dir(outside)); len(names) != 1 {
		t.Errorf("outside there are %q", names)
	}
}

func TestADirectoryWithFilesIsNotDeleted(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	write(t, filepath.Join(path, "k.json"), "file", "x")
	if err := dir.Delete(t.Context(), "k"); err == nil {
		t.Error("Delete succeeds")
	}
	mustSave(t, dir, "k", "1")
	wantFiles(t, path, "k.json", "k.json.damaged")
}

func TestFilesThatMayNotBeReadDoNotBlockOthers(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	dir, path := openDir(t, memory.Limits{})
	mustSave(t, dir, "k", "1")
	mustSave(t, dir, "l", "2")
	if err := os.Chmod(filepath.Join(path, "k.json"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Get(t.Context(), "k"); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Get: %v", err)
	}
	infos, err := dir.List(t.Context(), "")
	if err != nil || len(infos) != 2 || !errors.Is(infos[0].Err, os.ErrPermission) || infos[1].Err != nil {
		t.Errorf("List: %+v, %v", infos, err)
	}
}

// A link to a record inside the directory is followed, and replaced by a save.
func TestALinkInside(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	write(t, path, "target", `{"key":"k","value":1}`)
	if err := os.Symlink("target", filepath.Join(path, "k.json")); err != nil {
		t.Fatal(err)
	}
	if rec, err := dir.Get(t.Context(), "k"); err != nil || string(rec.Value) != "1" {
		t.Errorf("Get: %s, %v", rec.Value, err)
	}
	mustSave(t, dir, "k", "2")
	if text, err := os.ReadFile(filepath.Join(path, "target")); string(text) != `{"key":"k","value":1}` {
		t.Errorf("the target is now %s, %v", text, err)
	}
}

func TestNothingLeaks(t *testing.T) {
	descriptors := func() []string {
		names, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip(err)
		}
		var list []string
		for _, name := range names {
			list = append(list, name.Name())
		}
		return list
	}
	dir, path := openDir(t, memory.Limits{Keys: 5, Value: 100})
	run := func() {
		for _, name := range []string{"bad.json", "huge.json"} {
			write(t, path, name, strings.Repeat("x", 1000))
		}
		syscall.Mkfifo(filepath.Join(path, "fifo.json"), 0o600)
		os.Symlink("/etc/passwd", filepath.Join(path, "link.json"))
		for _, key := range []string{"a", "A", "b", "bad", "fifo", "link", "full"} {
			dir.Get(t.Context(), key)
			memory.Save(t.Context(), dir, key, raw("1"), nil)
			memory.Update(t.Context(), dir, key, func(memory.Record) (json.RawMessage, error) { return nil, errors.New("no") })
			memory.Commit(t.Context(), dir, key, "other", 5, raw("1"))
			memory.Attempt(t.Context(), dir, key, 5)
			dir.List(t.Context(), "")
			dir.Delete(t.Context(), key)
		}
	}
	run()
	before, goroutines := descriptors(), runtime.NumGoroutine()
	for range 5 {
		run()
	}
	if after := descriptors(); len(after) != len(before) {
		t.Errorf("descriptors %q are open, %q before", after, slices.Clone(before))
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines run, %d before", n, goroutines)
	}
}
