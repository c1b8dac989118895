package sandboxfs

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"
)

const create = sys.O_RDWR | sys.O_CREAT

func newFS(t testing.TB, opts Options) *FS {
	t.Helper()
	f, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// newProjects returns an FS with /projects, and the host's directory.
func newProjects(t testing.TB, opts Options) (*FS, string) {
	t.Helper()
	opts.Projects = t.TempDir()
	return newFS(t, opts), opts.Projects
}

func want(t testing.TB, what string, got, want sys.Errno) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %v (%d), want %v (%d)", what, got, got, want, want)
	}
}

func open(t testing.TB, f *FS, name string, flag sys.Oflag) sys.File {
	t.Helper()
	h, errno := f.OpenFile(name, flag, 0o600)
	want(t, "opening "+name, errno, 0)
	return h
}

func put(t testing.TB, f *FS, name, content string) {
	t.Helper()
	h := open(t, f, name, create|sys.O_TRUNC)
	defer h.Close()
	if n, errno := h.Write([]byte(content)); n != len(content) || errno != 0 {
		t.Fatalf("writing %s: %d, %v", name, n, errno)
	}
}

func get(t testing.TB, f *FS, name string) string {
	t.Helper()
	h := open(t, f, name, sys.O_RDONLY)
	defer h.Close()
	var content []byte
	buf := make([]byte, 100)
	for {
		n, errno := h.Read(buf)
		want(t, "reading "+name, errno, 0)
		if n == 0 {
			return string(content)
		}
		content = append(content, buf[:n]...)
	}
}

func list(t testing.TB, f *FS, dir string) []string {
	t.Helper()
	h := open(t, f, dir, sys.O_RDONLY|sys.O_DIRECTORY)
	defer h.Close()
	entries, errno := h.Readdir(0)
	want(t, "listing "+dir, errno, 0)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

// inBoth runs a test in memory and on the host.
func inBoth(t *testing.T, test func(t *testing.T, f *FS, dir string)) {
	for _, dir := range []string{"tmp", "projects"} {
		t.Run(dir, func(t *testing.T) {
			f, _ := newProjects(t, Options{})
			test(t, f, dir)
			if u := f.Usage(); u.OpenFiles != 0 {
				t.Errorf("%d handles are still open", u.OpenFiles)
			}
		})
	}
}

func TestWhatWasWrittenIsReadBack(t *testing.T) {
	inBoth(t, func(t *testing.T, f *FS, dir string) {
		long := strings.Repeat("0123456789abcdef", 20_000)
		put(t, f, dir+"/x", long)
		if got := get(t, f, dir+"/x"); got != long {
			t.Errorf("%d bytes came back of %d", len(got), len(long))
		}
		put(t, f, dir+"/x", "short")
		if got := get(t, f, dir+"/x"); got != "short" {
			t.Errorf("after truncating: %q", got)
		}
	})
}

func TestErrorsOfPaths(t *testing.T) {
	inBoth(t, func(t *testing.T, f *FS, dir string) {
		d := dir + "/"
		put(t, f, d+"file", "x")
		want(t, "mkdir", f.Mkdir(d+"dir", 0o700), 0)
		want(t, "mkdir", f.Mkdir(d+"full", 0o700), 0)
		put(t, f, d+"full/x", "x")
		want(t, "symlink", f.Symlink("file", d+"link"), 0)
		want(t, "symlink", f.Symlink("dir", d+"dirlink"), 0)
		want(t, "symlink", f.Symlink("loop", d+"loop"), 0)
		want(t, "symlink", f.Symlink("nothing", d+"dangling"), 0)
		long := strings.Repeat("n", 256)

		openWith := func(flag sys.Oflag) func(string) sys.Errno {
			return func(name string) sys.Errno {
				h, errno := f.OpenFile(name, flag, 0o600)
				if errno == 0 {
					h.Close()
				}
				return errno
			}
		}
		read := openWith(sys.O_RDONLY)
		stat := func(name string) sys.Errno { _, errno := f.Stat(name); return errno }
		lstat := func(name string) sys.Errno { _, errno := f.Lstat(name); return errno }
		readlink := func(name string) sys.Errno { _, errno := f.Readlink(name); return errno }
		mkdir := func(name string) sys.Errno { return f.Mkdir(name, 0o700) }
		renameTo := func(to string) func(string) sys.Errno {
			return func(name string) sys.Errno { return f.Rename(name, d+to) }
		}

		tests := []struct {
			name string
			do   func(string) sys.Errno
			path string
			want sys.Errno
		}{
			{"open what isn't there", read, "nothing", sys.ENOENT},
			{"open below what isn't there", read, "nothing/x", sys.ENOENT},
			{"open below a file", read, "file/x", sys.ENOTDIR},
			{"open a file with a slash", read, "file/", sys.ENOTDIR},
			{"open a file as a directory", openWith(sys.O_DIRECTORY), "file", sys.ENOTDIR},
			{"open a directory to write", openWith(sys.O_RDWR), "dir", sys.EISDIR},
			{"truncate a directory", openWith(sys.O_TRUNC), "dir", sys.EISDIR},
			{"create a directory by open", openWith(create), "new/", sys.EISDIR},
			{"create what is there", openWith(create | sys.O_EXCL), "file", sys.EEXIST},
			{"create over a symlink", openWith(create | sys.O_EXCL), "dangling", sys.EEXIST},
			{"open a loop", read, "loop", sys.ELOOP},
			{"open a link without following", openWith(sys.O_NOFOLLOW), "link", sys.ELOOP},
			{"open a link to a directory without following", openWith(sys.O_NOFOLLOW | sys.O_DIRECTORY), "dirlink", sys.ENOTDIR},
			{"open a dangling link", read, "dangling", sys.ENOENT},
			{"create with O_DIRECTORY", openWith(create | sys.O_DIRECTORY), "new", sys.EINVAL},
			{"create under a long name", openWith(create), long, sys.ENAMETOOLONG},
			{"open a long path", read, strings.Repeat("dir/../", 700) + "file", sys.ENAMETOOLONG},
			{"open a name with NUL", read, "a\x00b", sys.EINVAL},
			{"stat a link", stat, "link", 0},
			{"stat a dangling link", stat, "dangling", sys.ENOENT},
			{"lstat a dangling link", lstat, "dangling", 0},
			{"lstat a link to a file with a slash", lstat, "link/", sys.ENOTDIR},
			{"lstat a link to a directory with a slash", lstat, "dirlink/", 0},
			{"readlink of a file", readlink, "file", sys.EINVAL},
			{"readlink of a link", readlink, "link", 0},
			{"mkdir where a file is", mkdir, "file", sys.EEXIST},
			{"mkdir where a link is", mkdir, "dangling", sys.EEXIST},
			{"mkdir below a file", mkdir, "file/x", sys.ENOTDIR},
			{"mkdir with a slash", mkdir, "made/", 0},
			{"rmdir of a file", f.Rmdir, "file", sys.ENOTDIR},
			{"rmdir of a link to a directory", f.Rmdir, "dirlink", sys.ENOTDIR},
			{"rmdir of a full directory", f.Rmdir, "full", sys.ENOTEMPTY},
			{"rmdir of what isn't there", f.Rmdir, "nothing", sys.ENOENT},
			{"rmdir of the dot", f.Rmdir, "dir/.", sys.EINVAL},
			{"unlink of a directory", f.Unlink, "dir", sys.EISDIR},
			{"unlink of what isn't there", f.Unlink, "nothing", sys.ENOENT},
			{"unlink of a file with a slash", f.Unlink, "file/", sys.ENOTDIR},
			{"rename what isn't there", renameTo("x"), "nothing", sys.ENOENT},
			{"rename a directory over a file", renameTo("file"), "dir", sys.ENOTDIR},
			{"rename a file over a directory", renameTo("dir"), "file", sys.EISDIR},
			{"rename over a full directory", renameTo("full"), "dir", sys.ENOTEMPTY},
			{"rename into itself", renameTo("full/sub"), "full", sys.EINVAL},
			{"rename onto the parent", renameTo("full"), "full/x", sys.ENOTEMPTY},
			{"rename a file to a name with a slash", renameTo("new/"), "file", sys.ENOTDIR},
			{"rename a directory onto itself", renameTo("dir"), "dir", 0},
			{"link a directory", func(p string) sys.Errno { return f.Link(p, d+"hard") }, "dir", sys.EPERM},
			{"link over a file", func(p string) sys.Errno { return f.Link(p, d+"link") }, "file", sys.EEXIST},
			{"symlink over a file", func(p string) sys.Errno { return f.Symlink("x", p) }, "file", sys.EEXIST},
			{"symlink to a name with a slash", func(p string) sys.Errno { return f.Symlink("x", p) }, "new/", sys.ENOENT},
			{"empty symlink", func(p string) sys.Errno { return f.Symlink("", p) }, "new", sys.ENOENT},
			{"long symlink", func(p string) sys.Errno { return f.Symlink(strings.Repeat("x", 4096), p) }, "new", sys.ENAMETOOLONG},
			{"utimens of what isn't there", func(p string) sys.Errno { return f.Utimens(p, 1, 1) }, "nothing", sys.ENOENT},
		}
		for _, tc := range tests {
			t.Run(tc.name, func(t *testing.T) {
				want(t, tc.path, tc.do(d+tc.path), tc.want)
			})
		}
	})
}

func TestPathFormsThatWazeroPasses(t *testing.T) {
	inBoth(t, func(t *testing.T, f *FS, dir string) {
		want(t, "mkdir", f.Mkdir(dir+"/d", 0o700), 0)
		put(t, f, dir+"/d/x", "found")
		for _, form := range []string{"%s/d/x", "/%s/d/x", "%s/d//x", "%s/d/./x", "/%s//d/x", "./%s/d/x", "%s/d/../d/x"} {
			if got := get(t, f, fmt.Sprintf(form, dir)); got != "found" {
				t.Errorf("%s: %q", form, got)
			}
		}
		for _, form := range []string{"%s", "%s/", "/%s", "%s/.", "%s/d/.."} {
			if got := list(t, f, fmt.Sprintf(form, dir)); !slices.Equal(got, []string{"d"}) {
				t.Errorf("%s: %q", form, got)
			}
		}
	})
	f, _ := newProjects(t, Options{})
	for _, root := range []string{".", "/", "", "./", "/.", "tmp/..", "projects/..", "projects/../tmp/.."} {
		if got := list(t, f, root); !slices.Equal(got, []string{"dev", "projects", "tmp", "workspace"}) {
			t.Errorf("%q: %q", root, got)
		}
	}
}

func TestUnlinkedFileLivesUntilTheLastClose(t *testing.T) {
	inBoth(t, func(t *testing.T, f *FS, dir string) {
		put(t, f, dir+"/x", strings.Repeat("data", 1000))
		a, b := open(t, f, dir+"/x", sys.O_RDWR), open(t, f, dir+"/x", sys.O_RDONLY)
		want(t, "unlink", f.Unlink(dir+"/x"), 0)
		put(t, f, dir+"/x", "another file")

		if st, errno := a.Stat(); errno != 0 || st.Nlink != 0 || st.Size != 4000 {
			t.Errorf("stat of the unlinked file: %+v, %v", st, errno)
		}
		_, errno := a.Pwrite([]byte("DATA"), 3996)
		want(t, "write", errno, 0)
		a.Close()
		buf := make([]byte, 4)
		if n, errno := b.Pread(buf, 3996); n != 4 || errno != 0 || string(buf) != "DATA" {
			t.Errorf("read %q, %v", buf[:n], errno)
		}
		before := f.Usage().Bytes
		b.Close()
		if after := f.Usage().Bytes; dir == "tmp" && before-after < 4000 {
			t.Errorf("closing freed %d bytes", before-after)
		}
	})
}

func TestClosingTwiceIsHarmless(t *testing.T) {
	inBoth(t, func(t *testing.T, f *FS, dir string) {
		h := open(t, f, dir+"/x", create)
		want(t, "close", h.Close(), 0)
		want(t, "close", h.Close(), 0)
		_, errno := h.Read(make([]byte, 1))
		want(t, "read after close", errno, sys.EBADF)
		_, errno = h.Write(make([]byte, 1))
		want(t, "write after close", errno, sys.EBADF)
		_, errno = h.Stat()
		want(t, "stat after close", errno, sys.EBADF)
	})
}

func TestListingIsStableWhileTheDirectoryChanges(t *testing.T) {
	f := newFS(t, Options{})
	var stay []string
	for i := range 300 {
		name := fmt.Sprintf("file%03d", i)
		put(t, f, "tmp/"+name, "")
		if i%3 == 0 {
			stay = append(stay, name)
		}
	}
	h := open(t, f, "tmp", sys.O_RDONLY)
	defer h.Close()
	seen := map[string]int{}
	for round := 0; ; round++ {
		batch, errno := h.Readdir(10)
		want(t, "readdir", errno, 0)
		for _, e := range batch {
			seen[e.Name]++
		}
		if len(batch) < 10 {
			break
		}
		if round > 100 {
			t.Fatal("the listing doesn't end")
		}
		for i := range 300 {
			old := fmt.Sprintf("tmp/file%03d", i)
			switch i % 3 {
			case 1: // moved from one name to another, again and again
				f.Rename(old, fmt.Sprintf("tmp/moved%d-%d", round, i))
			case 2:
				f.Unlink(old)
			}
		}
		for i := range 20 {
			put(t, f, fmt.Sprintf("tmp/new%d-%d", round, i), "")
		}
	}
	for _, name := range stay {
		if seen[name] != 1 {
			t.Errorf("%s was listed %d times", name, seen[name])
		}
	}
	for name, n := range seen {
		if n > 1 {
			t.Errorf("%s was listed %d times", name, n)
		}
	}

	if _, errno := h.Seek(0, io.SeekStart); errno != 0 {
		t.Fatal(errno)
	}
	again, errno := h.Readdir(0)
	if names := list(t, f, "tmp"); errno != 0 || len(again) != len(names) {
		t.Errorf("after a rewind %d names of %d, %v", len(again), len(names), errno)
	}
}

func TestEmptiedDirectoryHoldsNoMemory(t *testing.T) {
	f := newFS(t, Options{})
	for i := range 10_000 {
		put(t, f, fmt.Sprintf("tmp/%d", i), "")
	}
	for i := range 10_000 {
		want(t, "unlink", f.Unlink(fmt.Sprintf("tmp/%d", i)), 0)
	}
	if n := cap(f.tmp.dir.order); n > 100 {
		t.Errorf("an empty directory has room for %d names", n)
	}
}

func TestHostListingSurvivesVanishingFiles(t *testing.T) {
	f, dir := newProjects(t, Options{})
	for i := range 200 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := open(t, f, "projects", sys.O_RDONLY)
	defer h.Close()
	first, errno := h.Readdir(5)
	want(t, "readdir", errno, 0)
	kept := first[0].Name
	for i := range 200 {
		if name := fmt.Sprint(i); name != kept && i%10 != 0 {
			os.Remove(filepath.Join(dir, name))
		}
	}
	seen := map[string]bool{}
	for _, e := range first {
		seen[e.Name] = true
	}
	for {
		batch, errno := h.Readdir(7)
		want(t, "readdir", errno, 0)
		for _, e := range batch {
			if e.Ino == 0 {
				t.Errorf("%s has no inode number", e.Name)
			}
			seen[e.Name] = true
		}
		if len(batch) < 7 {
			break
		}
	}
	for i := 0; i < 200; i += 10 {
		if !seen[fmt.Sprint(i)] {
			t.Errorf("%d is missing from the listing", i)
		}
	}
}

func TestStat(t *testing.T) {
	now := time.Unix(1_000_000_000, 123_456_789)
	f := newFS(t, Options{Now: func() time.Time { return now }})
	put(t, f, "tmp/x", "12345")
	want(t, "mkdir", f.Mkdir("tmp/d", 0o750), 0)
	want(t, "mkdir", f.Mkdir("tmp/d/e", 0o700), 0)
	want(t, "link", f.Link("tmp/x", "workspace/y"), 0)
	want(t, "symlink", f.Symlink("d/e", "tmp/l"), 0)

	x, _ := f.Stat("tmp/x")
	y, _ := f.Stat("workspace/y")
	if x != y || x.Ino == 0 || x.Nlink != 2 || x.Size != 5 || x.Mode != 0o600 {
		t.Errorf("a file with two names: %+v and %+v", x, y)
	}
	if ns := now.UnixNano(); x.Mtim != ns || x.Atim != ns || x.Ctim != ns {
		t.Errorf("times: %+v", x)
	}
	d, _ := f.Stat("tmp/d")
	if d.Nlink != 3 || d.Mode != fs.ModeDir|0o750 {
		t.Errorf("a directory with one in it: %+v", d)
	}
	l, _ := f.Lstat("tmp/l")
	if l.Size != 3 || l.Mode.Type() != fs.ModeSymlink {
		t.Errorf("a symlink: %+v", l)
	}
	seen := map[uint64]string{}
	for _, name := range []string{".", "tmp", "workspace", "tmp/x", "tmp/d", "tmp/d/e"} {
		st, errno := f.Lstat(name)
		want(t, name, errno, 0)
		if other, ok := seen[st.Ino^st.Dev<<32]; ok {
			t.Errorf("%s and %s have the same number", name, other)
		}
		seen[st.Ino^st.Dev<<32] = name
	}

	now = now.Add(time.Hour)
	want(t, "utimens", f.Utimens("tmp/x", 42, sys.UTIME_OMIT), 0)
	x, _ = f.Stat("tmp/x")
	if x.Atim != 42 || x.Mtim != y.Mtim || x.Ctim != now.UnixNano() {
		t.Errorf("after utimens: %+v", x)
	}
	now = now.Add(time.Hour)
	get(t, f, "tmp/x")
	if x, _ = f.Stat("tmp/x"); x.Atim != now.UnixNano() {
		t.Errorf("reading didn't set the access time: %+v", x)
	}
}

func TestTimesOfALinkItself(t *testing.T) {
	inBoth(t, func(t *testing.T, f *FS, dir string) {
		if dir == "projects" && runtime.GOOS == "windows" {
			t.Skip("there is no portable way to set them")
		}
		put(t, f, dir+"/x", "")
		want(t, "mkdir", f.Mkdir(dir+"/d", 0o700), 0)
		want(t, "symlink", f.Symlink("x", dir+"/l"), 0)
		want(t, "symlink", f.Symlink("nothing", dir+"/dangling"), 0)
		before, _ := f.Lstat(dir + "/x")
		for _, name := range []string{"/l", "/dangling", "/d", "/d/"} {
			// The way in which wazero implements utimensat(AT_SYMLINK_NOFOLLOW).
			h, errno := f.OpenFile(dir+name, sys.O_WRONLY, 0)
			want(t, "open", errno, 0)
			want(t, "utimens", h.Utimens(sys.UTIME_OMIT, 1_000_000_007), 0)
			h.Close()
			if st, _ := f.Lstat(dir + name); st.Mtim != 1_000_000_007 {
				t.Errorf("%s has %d", name, st.Mtim)
			}
		}
		if after, _ := f.Lstat(dir + "/x"); after.Mtim != before.Mtim {
			t.Error("the target's time changed")
		}
		h, errno := f.OpenFile(dir+"/nowhere/x", sys.O_WRONLY, 0)
		if errno == 0 {
			errno = h.Utimens(1, 1)
			h.Close()
		}
		want(t, "a missing file", errno, sys.ENOENT)
	})
}

func TestSymlinksAcrossMounts(t *testing.T) {
	f, dir := newProjects(t, Options{Base: testBase(t)})
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, f, "projects/a/b/x", "on the host")
	tests := []struct{ name, target, path, want string }{
		{"absolute into /projects", "/projects/a", "tmp/l/b/x", "on the host"},
		{"relative into /projects", "../projects/a/b", "tmp/l/x", "on the host"},
		{"through and back", "/projects/a/../../tmp/file", "tmp/l", "in memory"},
		{"to the base", "/usr/share/hello", "tmp/l", "hello"},
		{"to the other directory in memory", "../workspace/file", "tmp/l", "at work"},
		{"above the root", "../../../../tmp/file", "tmp/l", "in memory"},
	}
	put(t, f, "tmp/file", "in memory")
	put(t, f, "workspace/file", "at work")
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			want(t, "symlink", f.Symlink(tc.target, "tmp/l"), 0)
			defer f.Unlink("tmp/l")
			if got := get(t, f, tc.path); got != tc.want {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestFortySymlinksAreFollowed(t *testing.T) {
	f := newFS(t, Options{})
	put(t, f, "tmp/0", "end")
	for i := 1; i <= 41; i++ {
		want(t, "symlink", f.Symlink(fmt.Sprint(i-1), fmt.Sprintf("tmp/%d", i)), 0)
	}
	if got := get(t, f, "tmp/40"); got != "end" {
		t.Errorf("%q", got)
	}
	_, errno := f.Stat("tmp/41")
	want(t, "41 links", errno, sys.ELOOP)
}

func TestSymlinkTargetIsCopied(t *testing.T) {
	f := newFS(t, Options{})
	guest := []byte("target")
	want(t, "symlink", f.Symlink(bytesAsString(guest), "tmp/l"), 0)
	copy(guest, "XXXXXX")
	if got, _ := f.Readlink("tmp/l"); got != "target" {
		t.Errorf("%q", got)
	}
}

func TestDevicesAreApart(t *testing.T) {
	f, _ := newProjects(t, Options{Base: testBase(t)})
	put(t, f, "tmp/x", "")
	put(t, f, "projects/x", "")
	tests := []struct {
		name     string
		from, to string
		want     sys.Errno
	}{
		{"memory to the host", "tmp/x", "projects/y", EXDEV},
		{"the host to memory", "projects/x", "tmp/y", EXDEV},
		{"memory to the base", "tmp/x", "usr/y", EXDEV},
		{"the base to memory", "usr/share/hello", "tmp/y", EXDEV},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			want(t, "rename", f.Rename(tc.from, tc.to), tc.want)
			want(t, "link", f.Link(tc.from, tc.to), tc.want)
		})
	}
	want(t, "rename within memory", f.Rename("tmp/x", "workspace/x"), 0)
	for _, mount := range []string{"tmp", "workspace", "projects", "."} {
		want(t, "rename "+mount, f.Rename(mount, "tmp/z"), EBUSY)
		want(t, "rmdir "+mount, f.Rmdir(mount), EBUSY)
		want(t, "unlink "+mount, f.Unlink(mount), sys.EISDIR)
		want(t, "mkdir "+mount, f.Mkdir(mount, 0o700), sys.EEXIST)
	}
}

func testBase(t testing.TB) *Base {
	t.Helper()
	base, err := NewBase(fstest.MapFS{
		"usr/share/hello":  {Data: []byte("hello"), ModTime: time.Unix(5, 7)},
		"usr/share/link":   {Data: []byte("hello"), Mode: fs.ModeSymlink},
		"usr/share/abs":    {Data: []byte("/tmp"), Mode: fs.ModeSymlink},
		"usr/share/up":     {Data: []byte("../../tmp"), Mode: fs.ModeSymlink},
		"tmp/hidden":       {Data: []byte("by the mount")},
		"etc/localtime":    {Data: []byte("UTC")},
		"etc/empty/.gitig": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func TestBaseIsReadOnly(t *testing.T) {
	f := newFS(t, Options{Base: testBase(t)})
	if got := get(t, f, "usr/share/link"); got != "hello" {
		t.Errorf("read %q", got)
	}
	if got := list(t, f, "."); !slices.Equal(got, []string{"dev", "etc", "tmp", "usr", "workspace"}) {
		t.Errorf("/ has %q", got)
	}
	if got := list(t, f, "tmp"); len(got) != 0 {
		t.Errorf("/tmp has %q", got)
	}
	put(t, f, "tmp/x", "through a link")
	for _, name := range []string{"usr/share/abs/x", "usr/share/up/x", "usr/../tmp/x"} {
		if got := get(t, f, name); got != "through a link" {
			t.Errorf("%s has %q", name, got)
		}
	}
	st, _ := f.Stat("usr/share/hello")
	if st.Mtim != 5_000_000_007 || st.Size != 5 || st.Mode != 0o444 {
		t.Errorf("stat: %+v", st)
	}
	openWith := func(flag sys.Oflag, name string) sys.Errno {
		_, errno := f.OpenFile(name, flag, 0o600)
		return errno
	}
	tests := []struct {
		name string
		got  sys.Errno
		want sys.Errno
	}{
		{"write", openWith(sys.O_RDWR, "usr/share/hello"), sys.EROFS},
		{"truncate", openWith(sys.O_RDONLY|sys.O_TRUNC, "usr/share/hello"), sys.EROFS},
		{"create", openWith(create, "usr/new"), sys.EROFS},
		{"create in the root", openWith(create, "new"), sys.EROFS},
		{"create what is there", openWith(create|sys.O_EXCL, "usr/share/hello"), sys.EEXIST},
		{"write a directory", openWith(sys.O_RDWR, "usr"), sys.EISDIR},
		{"mkdir", f.Mkdir("usr/new", 0o700), sys.EROFS},
		{"mkdir in the root", f.Mkdir("new", 0o700), sys.EROFS},
		{"mkdir what is there", f.Mkdir("usr", 0o700), sys.EEXIST},
		{"unlink", f.Unlink("usr/share/hello"), sys.EROFS},
		{"rmdir", f.Rmdir("etc/empty"), sys.EROFS},
		{"rename", f.Rename("usr/share/hello", "usr/x"), sys.EROFS},
		{"link", f.Link("usr/share/hello", "usr/x"), sys.EROFS},
		{"symlink", f.Symlink("x", "usr/x"), sys.EROFS},
		{"utimens", f.Utimens("usr/share/hello", 1, 1), sys.EROFS},
		{"chmod", f.Chmod("usr/share/hello", 0o777), sys.EROFS},
	}
	for _, tc := range tests {
		want(t, tc.name, tc.got, tc.want)
	}
}

func TestBaseIsSharedByConcurrentSessions(t *testing.T) {
	base := testBase(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			f := newFS(t, Options{Base: base})
			if got := get(t, f, "usr/share/hello"); got != "hello" {
				t.Errorf("read %q", got)
			}
			put(t, f, "usr/share/abs/x", "mine")
			if got := list(t, f, "tmp"); !slices.Equal(got, []string{"x"}) {
				t.Errorf("/tmp has %q", got)
			}
		})
	}
	wg.Wait()
}

func TestQuotaOfMemory(t *testing.T) {
	const quota = 1 << 20
	f := newFS(t, Options{Quota: quota})
	h := open(t, f, "tmp/x", create)
	defer h.Close()

	n, errno := h.Write(make([]byte, 2*quota))
	want(t, "a write that is too long", errno, 0)
	if n < quota-quota/100 || n > quota {
		t.Errorf("%d bytes fit into %d", n, quota)
	}
	_, errno = h.Write([]byte("x"))
	want(t, "writing to a full disk", errno, ENOSPC)
	_, errno = f.OpenFile("tmp/empty", create, 0o600)
	want(t, "an empty file on a full disk", errno, 0)
	want(t, "a symlink on a full disk", f.Symlink(strings.Repeat("x", 4000), "tmp/l"), ENOSPC)
	if u := f.Usage(); u.Bytes > quota || u.Bytes < int64(n) || u.Entries != 2 {
		t.Errorf("usage %+v", u)
	}

	want(t, "truncate", h.Truncate(10), 0)
	if u := f.Usage(); u.Bytes > 1000 {
		t.Errorf("after truncating %+v", u)
	}
	n, errno = h.Pwrite(make([]byte, quota/2), 0)
	if n != quota/2 || errno != 0 {
		t.Errorf("after truncating %d, %v", n, errno)
	}
	want(t, "unlink", f.Unlink("tmp/x"), 0)
	h.Close()
	if u := f.Usage(); u.Bytes != 0 {
		t.Errorf("after unlinking %+v", u)
	}
}

func TestQuotaOfEntries(t *testing.T) {
	f := newFS(t, Options{Entries: 3})
	put(t, f, "tmp/a", "")
	want(t, "mkdir", f.Mkdir("tmp/b", 0o700), 0)
	want(t, "link", f.Link("tmp/a", "tmp/c"), 0)
	want(t, "symlink", f.Symlink("x", "tmp/d"), ENOSPC)
	want(t, "mkdir", f.Mkdir("tmp/d", 0o700), ENOSPC)
	want(t, "rename", f.Rename("tmp/a", "tmp/d"), 0)
	want(t, "rename over", f.Rename("tmp/c", "tmp/e"), 0)
	want(t, "rmdir", f.Rmdir("tmp/b"), 0)
	put(t, f, "tmp/b", "")
}

func TestHolesAreFreeAndReadAsZeros(t *testing.T) {
	f := newFS(t, Options{Quota: 1 << 20})
	h := open(t, f, "tmp/x", create)
	defer h.Close()
	want(t, "truncate", h.Truncate(maxFileSize), 0)
	if u := f.Usage(); u.Bytes != 0 {
		t.Errorf("a hole takes %d bytes", u.Bytes)
	}
	buf := []byte("????")
	if n, errno := h.Pread(buf, maxFileSize-4); n != 4 || errno != 0 || !bytes.Equal(buf, make([]byte, 4)) {
		t.Errorf("a hole reads %d %q, %v", n, buf, errno)
	}
	want(t, "truncate", h.Truncate(1<<60), EFBIG)
	want(t, "truncate", h.Truncate(math.MaxInt64), EFBIG)
	want(t, "truncate", h.Truncate(-1), sys.EINVAL)
	_, errno := h.Pwrite([]byte("x"), maxFileSize)
	want(t, "write past the largest file", errno, EFBIG)
	_, errno = h.Pwrite([]byte("x"), math.MaxInt64)
	want(t, "write at the largest offset", errno, EFBIG)
	_, errno = h.Pwrite([]byte("x"), 1<<39)
	want(t, "write far out, where the table alone is too much", errno, ENOSPC)
	if u := f.Usage(); u.Bytes != 0 {
		t.Errorf("a write that failed takes %d bytes", u.Bytes)
	}
	if n, errno := h.Write([]byte("xy")); n != 2 || errno != 0 {
		t.Errorf("after all that: %d, %v", n, errno)
	}

	// What is cut off doesn't come back.
	want(t, "truncate", h.Truncate(1), 0)
	want(t, "truncate", h.Truncate(3), 0)
	if n, _ := h.Pread(buf, 0); n != 3 || string(buf[:3]) != "x\x00\x00" {
		t.Errorf("%q", buf[:n])
	}
}

func TestSparseWritesStayWithinTheQuota(t *testing.T) {
	const quota = 4 << 20
	f := newFS(t, Options{Quota: quota})
	full := false
	for i := 0; i < 2000 && !full; i++ {
		h := open(t, f, fmt.Sprintf("tmp/%d", i), create)
		_, errno := h.Pwrite([]byte("x"), int64(i%50)*1_000_000+65_535)
		full = errno == ENOSPC
		h.Close()
	}
	if !full {
		t.Error("nothing stopped sparse files")
	}
	var held int64
	for _, e := range f.tmp.dir.names {
		for _, c := range e.node.data.chunks {
			held += int64(cap(c))
		}
		held += int64(cap(e.node.data.chunks)) * slotSize
	}
	if u := f.Usage(); held > quota || u.Bytes != held {
		t.Errorf("%d bytes are held, %d charged, %d allowed", held, u.Bytes, quota)
	}
}

func TestAppendingByteByByteIsCheap(t *testing.T) {
	f := newFS(t, Options{})
	h := open(t, f, "tmp/x", create|sys.O_APPEND)
	defer h.Close()
	line := bytes.Repeat([]byte("x"), 100)
	allocated := testing.AllocsPerRun(1, func() {
		for range 50_000 {
			if n, errno := h.Write(line); n != 100 || errno != 0 {
				t.Fatalf("%d, %v", n, errno)
			}
		}
	})
	// 5 MB are 77 chunks; the first is doubled into being.
	if allocated > 1000 {
		t.Errorf("%.0f allocations for 5 MB", allocated)
	}
}

func TestOpenFilesAreLimited(t *testing.T) {
	f, _ := newProjects(t, Options{OpenFiles: 3})
	preopen, errno := f.OpenFile(".", sys.O_RDONLY, 0)
	want(t, "the preopen", errno, 0)
	a, b := open(t, f, "tmp/a", create), open(t, f, "projects/b", create)
	_, errno = f.OpenFile("tmp/c", create, 0o600)
	want(t, "one too many", errno, EMFILE)
	_, errno = f.Stat("tmp/c")
	want(t, "the file that couldn't be opened", errno, sys.ENOENT)
	_, errno = f.OpenFile(".", sys.O_RDONLY, 0)
	want(t, "another preopen, whose failure wazero would panic at", errno, 0)
	a.Close()
	a.Close()
	b.Close()
	open(t, f, "projects/c", create)
	preopen.Close()
}

func TestListingsThatWazeroHoldsAreLimited(t *testing.T) {
	f := newFS(t, Options{})
	for i := range 16_000 {
		put(t, f, fmt.Sprintf("tmp/%d", i), "")
	}
	held := 0
	var errno sys.Errno
	for i := 0; i < 100 && errno == 0; i++ {
		var names []sys.Dirent
		names, errno = open(t, f, "tmp", sys.O_RDONLY).Readdir(1 << 30)
		held += len(names)
	}
	want(t, "too many names at once", errno, EMFILE)
	if held > maxListed {
		t.Errorf("%d names are held", held)
	}
}

func TestAccessModeOfHandles(t *testing.T) {
	inBoth(t, func(t *testing.T, f *FS, dir string) {
		put(t, f, dir+"/x", "data")
		r, w, d := open(t, f, dir+"/x", sys.O_RDONLY), open(t, f, dir+"/x", sys.O_WRONLY), open(t, f, dir, sys.O_RDONLY)
		defer r.Close()
		defer w.Close()
		defer d.Close()
		buf := make([]byte, 4)
		_, errno := r.Write(buf)
		want(t, "write a file open for reading", errno, sys.EBADF)
		_, errno = r.Pwrite(buf, 0)
		want(t, "pwrite a file open for reading", errno, sys.EBADF)
		want(t, "truncate a file open for reading", r.Truncate(0), sys.EINVAL)
		_, errno = w.Read(buf)
		want(t, "read a file open for writing", errno, sys.EBADF)
		_, errno = w.Pread(buf, 0)
		want(t, "pread a file open for writing", errno, sys.EBADF)
		_, errno = d.Read(buf)
		want(t, "read a directory", errno, sys.EISDIR)
		_, errno = d.Write(buf)
		want(t, "write a directory", errno, sys.EBADF)
		_, errno = r.Readdir(1)
		want(t, "list a file", errno, sys.ENOTDIR)
		_, errno = r.Seek(-1, io.SeekStart)
		want(t, "seek before the start", errno, sys.EINVAL)
		_, errno = r.Seek(math.MaxInt64, io.SeekEnd)
		want(t, "seek past int64", errno, sys.EINVAL)
		_, errno = r.Seek(0, 9)
		want(t, "seek from nowhere", errno, sys.EINVAL)
		_, errno = w.Pwrite(buf, -1)
		want(t, "write before the start", errno, sys.EINVAL)
	})
}

func TestAppend(t *testing.T) {
	inBoth(t, func(t *testing.T, f *FS, dir string) {
		a, b := open(t, f, dir+"/x", create|sys.O_APPEND), open(t, f, dir+"/x", create)
		defer a.Close()
		defer b.Close()
		if !a.IsAppend() || b.IsAppend() {
			t.Error("IsAppend is wrong")
		}
		b.Write([]byte("1"))
		a.Write([]byte("2"))
		b.Write([]byte("3"))
		a.Write([]byte("4"))
		want(t, "append off", a.SetAppend(false), 0)
		a.Write([]byte("5"))
		want(t, "append on", b.SetAppend(true), 0)
		b.Write([]byte("6"))
		if got := get(t, f, dir+"/x"); got != "13456" {
			t.Errorf("%q", got)
		}
	})
}

func TestCloseFreesEverything(t *testing.T) {
	f, _ := newProjects(t, Options{Base: testBase(t)})
	put(t, f, "tmp/a", "x")
	handles := []sys.File{
		open(t, f, "tmp/a", sys.O_RDWR), open(t, f, "tmp", sys.O_RDONLY), open(t, f, "usr/share/hello", sys.O_RDONLY),
		open(t, f, "projects/b", create), open(t, f, "projects", sys.O_RDONLY), open(t, f, ".", sys.O_RDONLY),
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, h := range handles {
		_, errno := h.Stat()
		want(t, fmt.Sprint("stat of handle ", i), errno, sys.EBADF)
		if _, errno = h.Read(make([]byte, 1)); errno == 0 {
			t.Errorf("handle %d can be read", i)
		}
		if _, errno = h.Write(make([]byte, 1)); errno == 0 {
			t.Errorf("handle %d can be written", i)
		}
		if _, errno = h.Readdir(1); errno == 0 {
			t.Errorf("handle %d can be listed", i)
		}
		want(t, "close", h.Close(), 0)
	}
	for _, name := range []string{"tmp/a", "usr/share/hello", "projects/b"} {
		_, errno := f.OpenFile(name, sys.O_RDONLY, 0o600)
		want(t, name, errno, sys.ENOENT)
	}
	if _, errno := f.OpenFile(".", sys.O_RDONLY, 0); errno != 0 && errno != sys.ENOENT {
		t.Errorf("wazero would panic at %v", errno)
	}
	if u := f.Usage(); u.Bytes != 0 || u.Entries != 0 || u.ProjectsBytes != 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestCloseAndUsageWhileAGuestWorks(t *testing.T) {
	for range 20 {
		f, _ := newProjects(t, Options{})
		started := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				if i == 10 {
					close(started)
				}
				for _, dir := range []string{"tmp", "projects"} {
					h, errno := f.OpenFile(fmt.Sprintf("%s/%d", dir, i), create, 0o600)
					if errno != 0 {
						return
					}
					h.Write([]byte("data"))
					h.Pread(make([]byte, 4), 0)
					h.Truncate(2)
					h.Stat()
					if i%2 == 0 {
						h.Close()
					}
					f.Rename(fmt.Sprintf("%s/%d", dir, i), dir+"/x")
				}
			}
		}()
		<-started
		f.Usage()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		<-done
	}
}

func TestNewRejects(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		opts Options
		want string
	}{
		{"a negative limit", Options{Quota: -1}, "negative"},
		{"a projects directory that isn't there", Options{Projects: file + "s"}, "/projects"},
		{"a projects directory that is a file", Options{Projects: file}, "/projects"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := New(tc.opts); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	base := testBase(b)
	for _, tc := range []struct{ name, projects string }{{"memory", ""}, {"projects", b.TempDir()}} {
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, err := New(Options{Base: base, Projects: tc.projects})
				if err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	f := newFS(b, Options{})
	h := open(b, f, "tmp/x", create)
	p := make([]byte, 8192)
	b.SetBytes(int64(len(p)))
	for i := 0; b.Loop(); i++ {
		h.Pwrite(p, int64(i%10_000)*8192)
		if i%10_000 == 9_999 {
			h.Truncate(0)
		}
	}
}
