package sandboxfs

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/unix"
)

func TestSpecialFilesAreRefusedWithoutBlocking(t *testing.T) {
	f, projects, _ := trap(t)
	if err := unix.Mkfifo(filepath.Join(projects, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(projects, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	names := []string{"fifo", "socket", "link"}
	if unix.Mknod(filepath.Join(projects, "null"), unix.S_IFCHR|0o600, 1<<8|3) == nil {
		names = append(names, "null")
	}
	mustSymlink(t, "fifo", filepath.Join(projects, "link"))
	for _, name := range names {
		for _, flag := range []sys.Oflag{sys.O_RDONLY, sys.O_WRONLY, sys.O_RDWR, create, sys.O_RDONLY | sys.O_TRUNC} {
			_, errno := f.OpenFile("projects/"+name, flag, 0o600)
			want(t, name, errno, sys.EACCES)
		}
		if _, errno := f.Stat("projects/" + name); errno != 0 {
			t.Errorf("stat of %s: %v", name, errno)
		}
	}
	want(t, "unlink", f.Unlink("projects/fifo"), 0)
}

func TestNoDescriptorOfTheHostLeaks(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	dir := t.TempDir()
	before := count()
	for range 50 {
		f, err := New(Options{Projects: dir})
		if err != nil {
			t.Fatal(err)
		}
		f.Mkdir("projects/d", 0o700)
		open(t, f, "projects/d", sys.O_RDONLY).Readdir(0)
		open(t, f, "projects/d/x", create).Write([]byte("x"))
		h := open(t, f, "projects/d/x", create)
		h.Close()
		f.OpenFile("projects/d/x/y", create, 0o600)
		f.OpenFile("projects/d/x", create|sys.O_EXCL, 0o600)
		f.Rename("projects/d/x", "projects/d/y")
		f.Rename("projects/d/none", "projects/none/y")
		f.Unlink("projects/d/y")
		f.Rmdir("projects/d")
		f.Symlink("d", "projects/l")
		if h, errno := f.OpenFile("projects/l", sys.O_WRONLY, 0); errno == 0 {
			h.Utimens(1, 1)
		}
		f.Unlink("projects/l")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}
