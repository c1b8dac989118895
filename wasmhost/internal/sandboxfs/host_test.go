package sandboxfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sys"
)

func TestPermissions(t *testing.T) {
	for _, dir := range []string{"tmp", "projects"} {
		t.Run(dir, func(t *testing.T) {
			f, projects := newProjects(t, Options{})
			mode := func(name string) fs.FileMode {
				t.Helper()
				st, errno := f.Stat(name)
				want(t, "stat", errno, 0)
				if st.Dev>>32 != uint64(st.Mode.Perm()) {
					t.Errorf("%s: the guest gets %#o, of %v", name, st.Dev>>32, st.Mode)
				}
				return st.Mode.Perm()
			}
			f.setCreateMode(0o640)
			put(t, f, dir+"/a", "")
			put(t, f, dir+"/b", "")
			f.setCreateMode(0o750)
			want(t, "mkdir", f.Mkdir(dir+"/d", 0o700), 0)
			for name, perm := range map[string]fs.FileMode{"a": 0o640, "b": 0o600, "d": 0o750} {
				if got := mode(dir + "/" + name); got != perm {
					t.Errorf("%s has %#o, want %#o", name, got, perm)
				}
			}
			want(t, "chmod", f.Chmod(dir+"/a", 0o741), 0)
			if got := mode(dir + "/a"); got != 0o741 {
				t.Errorf("after chmod: %#o", got)
			}
			if info, err := os.Stat(filepath.Join(projects, "a")); dir == "projects" && (err != nil || info.Mode() != 0o741) {
				t.Errorf("on the host: %v, %v", info, err)
			}
		})
	}
}

func TestGuestChangesPermissions(t *testing.T) {
	const fault, noent, notdir, perm, rofs = 21, 44, 54, 63, 69
	f, projects, outside := trap(t)
	mustSymlink(t, filepath.Join(outside, "secret"), filepath.Join(projects, "out"))
	put(t, f, "tmp/x", "")
	g := newGuest(t, f, wazero.NewRuntimeConfig())
	chmod := func(name string) uint32 {
		p, n := g.put(path1At, name)
		return g.call("chmod", p, n, 0o7751)
	}
	wantWASI(t, "chmod", chmod("tmp/x"), 0)
	if st, _ := f.Stat("tmp/x"); st.Mode != 0o751 {
		t.Errorf("the mode is %v", st.Mode)
	}
	wantWASI(t, "of nothing", chmod("tmp/y"), noent)
	wantWASI(t, "below a file", chmod("tmp/x/y"), notdir)
	wantWASI(t, "of the root", chmod("."), rofs)
	wantWASI(t, "of what a link outside leads to", chmod("projects/out"), perm)
	wantWASI(t, "of a name outside of memory", g.call("chmod", 1<<20, 4, 0o600), fault)
	wantWASI(t, "of a name that wraps around", g.call("chmod", 10, 1<<32-5, 0o600), fault)
	f.Close()
	wantWASI(t, "after the end", chmod("tmp/x"), noent)
}

func TestDevices(t *testing.T) {
	f := newFS(t, Options{})
	for name, zeros := range map[string]bool{"null": false, "zero": true, "random": false, "urandom": false} {
		h := open(t, f, "dev/"+name, sys.O_RDWR|sys.O_CREAT|sys.O_TRUNC)
		buf := []byte(strings.Repeat("x", 64))
		n, errno := h.Read(buf)
		want(t, "read", errno, 0)
		if name == "null" && n != 0 || name != "null" && (n != 64 || string(buf) == strings.Repeat("x", 64)) || zeros && strings.Trim(string(buf), "\x00") != "" {
			t.Errorf("%s: read %q", name, buf[:n])
		}
		if n, errno := h.Write(buf); n != 64 || errno != 0 {
			t.Errorf("%s: wrote %d, %v", name, n, errno)
		}
		if st, _ := h.Stat(); st.Size != 0 || st.Mode&fs.ModeCharDevice == 0 {
			t.Errorf("%s is %v of %d bytes", name, st.Mode, st.Size)
		}
		want(t, "close", h.Close(), 0)
		want(t, "unlink", f.Unlink("dev/"+name), sys.EROFS)
		want(t, "chmod", f.Chmod("dev/"+name, 0), sys.EROFS)
	}
	want(t, "rmdir", f.Rmdir("dev"), EBUSY)
	if _, errno := f.OpenFile("dev/x", create, 0o600); errno != sys.EROFS {
		t.Errorf("creating: %v", errno)
	}
	if got := f.Usage(); got != (Usage{}) {
		t.Errorf("used is %+v", got)
	}
}

func TestEscapes(t *testing.T) {
	tests := []struct {
		name, escaped, plain string
		bad                  bool
	}{
		{name: "nothing to escape", escaped: "a/ü/..", plain: "a/ü/.."},
		{name: "dots", escaped: escape + "./" + escape + "../a", plain: "./../a"},
		{name: "bytes", escaped: "a" + escape + "ff" + escape + "2fb", plain: "a\xff/b"},
		{name: "the escape itself", escaped: "a" + escape + escape + "ff", plain: "a" + escape + "ff"},
		{name: "at the end", escaped: "a" + escape, bad: true},
		{name: "cut short", escaped: "a" + escape + "f", bad: true},
		{name: "no digits", escaped: "a" + escape + "+1", bad: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if plain, ok := unescape(tc.escaped); plain != tc.plain || ok == tc.bad {
				t.Errorf("got %q, %v", plain, ok)
			}
		})
	}
}

func TestDotDotIsWhereTheLinkLeads(t *testing.T) {
	const up = escape + ".."
	for _, dir := range []string{"tmp", "projects"} {
		t.Run(dir, func(t *testing.T) {
			f, _ := newProjects(t, Options{})
			for _, d := range []string{"a", "a/b", "c"} {
				want(t, "mkdir", f.Mkdir(dir+"/"+d, 0o700), 0)
			}
			put(t, f, dir+"/a/x", "in a")
			put(t, f, dir+"/x", "at the top")
			want(t, "symlink", f.Symlink("../a/b", dir+"/c/l"), 0)
			for name, content := range map[string]string{"c/l/" + up + "/x": "in a", "c/l/" + up + "/" + up + "/x": "at the top", "a/b/" + up + "/x": "in a"} {
				if got := get(t, f, dir+"/"+name); got != content {
					t.Errorf("%s is %q", name, got)
				}
			}
			for name, errno := range map[string]sys.Errno{"none/" + up + "/x": sys.ENOENT, "x/" + up + "/x": sys.ENOTDIR} {
				if _, got := f.Stat(dir + "/" + name); got != errno {
					t.Errorf("%s: %v, want %v", name, got, errno)
				}
			}
			if got := list(t, f, dir+"/c/"+up+"/"+up+"/"+up); len(got) != 4 {
				t.Errorf("above: %q", got)
			}
		})
	}
}

// No path that a guest can spell, escapes and all, leads to the secret.
func FuzzPathsStayInside(fz *testing.F) {
	for _, name := range []string{
		"projects/out/secret", "projects/" + escape + "../outside/secret", "projects/dir/sub/up/" + escape + ".." + escape + "2f" + escape + "../outside/secret",
		"projects/dir/sub/up/" + escape + "../" + escape + "../" + escape + "../outside/secret", "tmp/l/outside/secret", "projects/x" + escape,
	} {
		fz.Add(name, ".."+"/outside")
	}
	fz.Fuzz(func(t *testing.T, name, target string) {
		f, projects, outside := trap(t)
		mustSymlink(t, outside, filepath.Join(projects, "out"))
		mustSymlink(t, "../..", filepath.Join(projects, "dir/sub/up"))
		f.Symlink("/projects/..", "tmp/l")
		f.Symlink(strings.Clone(target), "projects/dir/made")
		for _, name := range []string{name, "projects/dir/made/" + name} {
			if h, errno := f.OpenFile(name, sys.O_RDONLY, 0o600); errno == 0 {
				buf := make([]byte, len(secret))
				if n, _ := h.Read(buf); string(buf[:n]) == secret {
					t.Errorf("%q leads outside", name)
				}
				h.Close()
			}
			f.Chmod(name, 0o777)
			f.Readlink(name)
		}
		if info, err := os.Stat(filepath.Join(outside, "secret")); err != nil || info.Mode() != 0o600 {
			t.Errorf("the secret is %v, %v", info, err)
		}
		// What the guest made is no trap for programs of the host either.
		if data, err := os.ReadFile(filepath.Join(projects, "dir/made/secret")); err == nil {
			t.Errorf("the link to %q leads the host to %q", target, data)
		}
	})
}
