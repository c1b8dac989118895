package sandboxfs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// bytesAsString returns a string over memory that may change, as wazero does.
func bytesAsString(b []byte) string { return unsafe.String(&b[0], len(b)) }

const secret = "secret of the host"

// trap returns an FS whose /projects lies beside a secret.
func trap(t *testing.T) (f *FS, projects, outside string) {
	t.Helper()
	top := t.TempDir()
	projects, outside = filepath.Join(top, "projects"), filepath.Join(top, "outside")
	for _, dir := range []string{projects, outside, filepath.Join(projects, "dir/sub")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return newFS(t, Options{Projects: projects}), projects, outside
}

func mustSymlink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skip("this host makes no symlinks:", err)
	}
}

func TestNoPathLeadsOutOfProjects(t *testing.T) {
	f, projects, outside := trap(t)
	mustSymlink(t, outside, filepath.Join(projects, "absolute"))
	mustSymlink(t, "../outside", filepath.Join(projects, "relative"))
	mustSymlink(t, "../../outside", filepath.Join(projects, "dir/deep"))
	mustSymlink(t, "dir/sub/../../../outside", filepath.Join(projects, "winding"))
	mustSymlink(t, "relative", filepath.Join(projects, "twice"))
	mustSymlink(t, filepath.Join(outside, "secret"), filepath.Join(projects, "file"))
	mustSymlink(t, filepath.Join(outside, "new"), filepath.Join(projects, "dangling"))
	mustSymlink(t, "/", filepath.Join(projects, "root"))

	for _, name := range []string{
		"absolute/secret", "relative/secret", "dir/deep/secret", "winding/secret", "twice/secret", "file", "root/etc/passwd",
		"../outside/secret", "dir/../../outside/secret", "/../../../../../etc/passwd",
	} {
		path := "projects/" + name
		if h, errno := f.OpenFile(path, sys.O_RDONLY, 0o600); errno == 0 {
			t.Errorf("%s was opened", name)
			h.Close()
		}
		if _, errno := f.Stat(path); errno == 0 {
			t.Errorf("%s has a stat", name)
		}
		if errno := f.Utimens(path, 1, 1); errno == 0 {
			t.Errorf("the times of %s were set", name)
		}
		if errno := f.Chmod(path, 0o777); errno == 0 {
			t.Errorf("the mode of %s was set", name)
		}
		if errno := f.Rename(path, "projects/stolen"); errno == 0 && name != "file" {
			t.Errorf("%s was renamed", name)
		}
		f.Rename("projects/stolen", path)
		if errno := f.Link(path, "projects/stolen"); errno == 0 && name != "file" {
			t.Errorf("%s was linked", name)
		}
		f.Unlink("projects/stolen")
	}
	for _, name := range []string{"absolute/new", "relative/new", "dir/deep/new", "twice/new", "dangling", "root/tmp/new"} {
		path := "projects/" + name
		if _, errno := f.OpenFile(path, create, 0o600); errno != sys.EPERM {
			t.Errorf("creating %s: %v", name, errno)
		}
		if errno := f.Mkdir(path, 0o700); errno == 0 {
			t.Errorf("%s was made", name)
		}
		if errno := f.Symlink("x", path); errno == 0 {
			t.Errorf("%s was linked", name)
		}
	}
	for _, name := range []string{"absolute", "relative", "root", "twice", "winding"} {
		if _, errno := f.OpenFile("projects/"+name, sys.O_RDONLY|sys.O_DIRECTORY, 0o600); errno != sys.EPERM {
			t.Errorf("listing %s: %v", name, errno)
		}
		if errno := f.Rmdir("projects/" + name + "/"); errno == 0 {
			t.Errorf("%s was removed", name)
		}
		if _, errno := f.Lstat("projects/" + name); errno != 0 {
			t.Errorf("lstat of %s itself: %v", name, errno)
		}
	}
	want(t, "unlink of a link", f.Unlink("projects/file"), 0)

	if got, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(got) != secret {
		t.Errorf("the secret is %q, %v", got, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside has %v", entries)
	}
}

func TestHardLinkToASymlinkIsNoWayOut(t *testing.T) {
	f, projects, outside := trap(t)
	mustSymlink(t, filepath.Join(outside, "secret"), filepath.Join(projects, "file"))
	if errno := f.Link("projects/file", "projects/hard"); errno != 0 {
		t.Skip("this host doesn't link symlinks:", errno)
	}
	if _, errno := f.OpenFile("projects/hard", sys.O_RDONLY, 0o600); errno != sys.EPERM {
		t.Errorf("the link was opened: %v", errno)
	}
}

func TestSymlinksThatAGuestMakesStayInside(t *testing.T) {
	f, projects, _ := trap(t)
	mustSymlink(t, "..", filepath.Join(projects, "dir/sub/up"))
	mustSymlink(t, "dir/sub", filepath.Join(projects, "down"))
	tests := []struct {
		name, target, at string
		want             sys.Errno
		stored           string
	}{
		{"to a sibling", "dir", "l", 0, "dir"},
		{"to what isn't there", "some/day", "l", 0, "some/day"},
		{"up, but not out", "../../x", "dir/sub/l", 0, "../../x"},
		{"to the top", "..", "dir/l", 0, ".."},
		{"absolute", "/projects/dir/sub", "l", 0, ".//dir/sub"},
		{"absolute, from below", "/projects/x", "dir/sub/l", 0, ".//../../x"},
		{"absolute, to the top", "/projects", "l", 0, ".//."},
		{"absolute, to the top from below", "/projects/", "dir/l", 0, ".//../."},
		{"absolute, in a directory behind a link", "/projects/x", "down/l", 0, ".//../../x"},
		{"relative, but looking like one that was absolute", ".//dir", "l", 0, "./dir"},
		{"absolute, into memory", "/tmp/x", "l", sys.EPERM, ""},
		{"absolute, on the host", "/etc/passwd", "l", sys.EPERM, ""},
		{"absolute, leaving again", "/projects/../etc/passwd", "l", sys.EPERM, ""},
		{"absolute, to a longer name", "/projectsx/y", "l", sys.EPERM, ""},
		{"out", "../outside", "l", sys.EPERM, ""},
		{"out from below", "../../../outside", "dir/sub/l", sys.EPERM, ""},
		{"out after going down", "dir/../../outside", "l", sys.EPERM, ""},
		{"up through a link that leads up", "dir/sub/up/../..", "l", sys.EPERM, ""},
		{"up, in a directory behind a link", "../../x", "dir/sub/up/sub/l", 0, "../../x"},
		{"up, in a directory behind a link down", "../../x", "down/l", 0, "../../x"},
		{"out, in a directory behind a link down", "../../../x", "down/l", sys.EPERM, ""},
		{"out, in a directory behind a link up", "../../x", "dir/sub/up/l", sys.EPERM, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			want(t, "symlink", f.Symlink(tc.target, "projects/"+tc.at), tc.want)
			if tc.want != 0 {
				return
			}
			stored, err := os.Readlink(filepath.Join(projects, tc.at))
			if err != nil || filepath.ToSlash(stored) != tc.stored {
				t.Errorf("stored is %q, %v", stored, err)
			}
			read, errno := f.Readlink("projects/" + tc.at)
			if like := path.Clean(tc.target); errno != 0 || path.Clean(read) != like || path.IsAbs(read) != path.IsAbs(like) {
				t.Errorf("read is %q, %v", read, errno)
			}
			f.Unlink("projects/" + tc.at)
		})
	}
}

func TestMovedSymlinkDirectoryLeadsNowhere(t *testing.T) {
	f, _, _ := trap(t)
	want(t, "symlink", f.Symlink("../../outside", "projects/dir/sub/link"), 0)
	want(t, "rename", f.Rename("projects/dir/sub", "projects/moved"), 0)
	want(t, "rename", f.Rename("projects/moved/link", "projects/link"), 0)
	_, errno := f.OpenFile("projects/link/secret", sys.O_RDONLY, 0o600)
	want(t, "opening", errno, sys.EPERM)
}

func TestRacingSymlinksDontLeadOut(t *testing.T) {
	f, projects, outside := trap(t)
	swap := filepath.Join(projects, "swap")
	stop, stopped := make(chan struct{}), make(chan struct{})
	mustSymlink(t, outside, swap)
	go func() { // the host, or another session, turns a directory into a link and back
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Remove(swap)
			os.Mkdir(swap, 0o700)
			os.WriteFile(filepath.Join(swap, "secret"), []byte("harmless"), 0o600)
			os.RemoveAll(swap)
			os.Symlink(outside, swap)
		}
	}()
	for i := range 3000 {
		if h, errno := f.OpenFile("projects/swap/secret", sys.O_RDWR, 0o600); errno == 0 {
			buf := make([]byte, 100)
			n, _ := h.Read(buf)
			if strings.Contains(string(buf[:n]), secret) {
				t.Fatal("the secret was read")
			}
			h.Pwrite([]byte("overwritten"), 0)
			h.Close()
		}
		f.Unlink("projects/swap/secret")
		f.Rename("projects/swap/secret", "projects/stolen")
		f.Mkdir(fmt.Sprintf("projects/swap/%d", i), 0o700)
		f.Utimens("projects/swap/secret", 1, 1)
	}
	close(stop)
	<-stopped
	if got, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(got) != secret {
		t.Errorf("the secret is %q, %v", got, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside has %v", entries)
	}
}

func TestQuotaOfProjects(t *testing.T) {
	f, projects := newProjects(t, Options{ProjectsQuota: 100_000})
	if err := os.WriteFile(filepath.Join(projects, "old"), make([]byte, 500_000), 0o600); err != nil {
		t.Fatal(err)
	}
	charged := func(what string, want int64) {
		t.Helper()
		if got := f.Usage().ProjectsBytes; got != want {
			t.Errorf("after %s: %d bytes are charged, want %d", what, got, want)
		}
	}
	old := open(t, f, "projects/old", sys.O_RDWR)
	defer old.Close()
	old.Write(make([]byte, 400_000))
	charged("overwriting an old file", 0)
	old.Pwrite(make([]byte, 10), 499_995)
	charged("making it longer", 5)
	want(t, "truncate", old.Truncate(500_105), 0)
	charged("making it longer by truncating", 105)
	want(t, "truncate", old.Truncate(500_005), 0)
	charged("making it shorter", 5)
	want(t, "truncate", old.Truncate(400_000), 0)
	charged("making it shorter than it ever was", 0)
	want(t, "truncate", old.Truncate(600_001), ENOSPC)
	charged("a truncate that failed", 0)

	h := open(t, f, "projects/new", create)
	defer h.Close()
	charged("a new file", nameCost)
	n, errno := h.Write(make([]byte, 200_000))
	if n != 100_000-nameCost || errno != 0 {
		t.Errorf("a write that is too long: %d, %v", n, errno)
	}
	_, errno = h.Write([]byte("x"))
	want(t, "a write to a full disk", errno, ENOSPC)
	_, errno = h.Pwrite([]byte("x"), 1_000_000)
	want(t, "a hole on a full disk", errno, ENOSPC)
	if n, errno := h.Pwrite([]byte("xyz"), 0); n != 3 || errno != 0 {
		t.Errorf("overwriting on a full disk: %d, %v", n, errno)
	}
	want(t, "a directory on a full disk", f.Mkdir("projects/dir", 0o700), ENOSPC)
	want(t, "a symlink on a full disk", f.Symlink("new", "projects/link"), ENOSPC)
	want(t, "a link on a full disk", f.Link("projects/new", "projects/link"), ENOSPC)
	_, errno = f.OpenFile("projects/another", create, 0o600)
	want(t, "a file on a full disk", errno, ENOSPC)
	want(t, "rename", f.Rename("projects/new", "projects/renamed"), 0)

	want(t, "unlink", f.Unlink("projects/renamed"), 0)
	charged("removing a file that may still be open elsewhere", 100_000)
	open(t, f, "projects/old", sys.O_RDWR|sys.O_TRUNC).Close()
	charged("truncating at open", 0)
	h.Write(make([]byte, 500))
	f.RenewProjectsQuota()
	charged("renewal", 0)
}

func TestFailedCreationIsNotCharged(t *testing.T) {
	f, _, _ := trap(t)
	f.Mkdir("projects/dir", 0o700)
	f.OpenFile("projects/nothing/x", create, 0o600)
	f.Link("projects/dir", "projects/x")
	if u := f.Usage(); u.ProjectsBytes != 0 || u.OpenFiles != 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestTwoSessionsShareProjects(t *testing.T) {
	dir := t.TempDir()
	a, b := newFS(t, Options{Projects: dir}), newFS(t, Options{Projects: dir})
	put(t, a, "projects/x", "from a")
	if got := get(t, b, "projects/x"); got != "from a" {
		t.Errorf("%q", got)
	}
	ha, hb := open(t, a, "projects/log", create|sys.O_APPEND), open(t, b, "projects/log", create|sys.O_APPEND)
	defer ha.Close()
	defer hb.Close()
	for range 100 {
		ha.Write([]byte("a\n"))
		hb.Write([]byte("b\n"))
	}
	if got := get(t, a, "projects/log"); got != strings.Repeat("a\nb\n", 100) {
		t.Errorf("lines were overwritten: %d bytes", len(got))
	}
}
