package sandboxfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// wasiCalls are the imports of the test guest, of WASI or HostModule, by their
// parameters: i is i32, I is i64. All return an i32.
var wasiCalls = [][2]string{
	{"fd_allocate", "iII"}, {"fd_close", "i"}, {"fd_fdstat_set_flags", "ii"}, {"fd_filestat_get", "ii"},
	{"fd_filestat_set_size", "iI"}, {"fd_pwrite", "iiiIi"}, {"fd_read", "iiii"}, {"fd_readdir", "iiiIi"}, {"fd_write", "iiii"},
	{"path_create_directory", "iii"}, {"path_filestat_get", "iiiii"}, {"path_filestat_set_times", "iiiiIIi"},
	{"path_link", "iiiiiii"}, {"path_open", "iiiiiIIii"}, {"path_readlink", "iiiiii"}, {"path_remove_directory", "iii"},
	{"path_rename", "iiiiii"}, {"path_symlink", "iiiii"}, {"path_unlink_file", "iii"},
	{HostModule + ".chmod", "iii"}, {HostModule + ".lock", "IIiII"}, {HostModule + ".locked", "IIII"},
}

// wasiGuest assembles a module that exports, for each import, a function which
// calls it with its own parameters. Calling the host's functions directly would
// be calls without a guest.
func wasiGuest() []byte {
	vec := func(items ...[]byte) []byte {
		return append(binary.AppendUvarint(nil, uint64(len(items))), bytes.Join(items, nil)...)
	}
	section := func(id byte, content []byte) []byte {
		return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
	}
	text := func(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }

	var types, imports, funcs, exports, code [][]byte
	for i, call := range wasiCalls {
		module, name, ok := strings.Cut(call[0], ".")
		if !ok {
			module, name = "wasi_snapshot_preview1", call[0]
		}
		params := call[1]
		valueTypes := []byte{byte(len(params))}
		body := []byte{0} // no locals
		for j, p := range params {
			valueTypes = append(valueTypes, map[rune]byte{'i': 0x7f, 'I': 0x7e}[p])
			body = append(body, 0x20, byte(j)) // local.get j
		}
		body = append(body, 0x10, byte(i), 0x0b) // call i, end
		types = append(types, slices.Concat([]byte{0x60}, valueTypes, []byte{1, 0x7f}))
		imports = append(imports, slices.Concat(text(module), text(name), []byte{0, byte(i)}))
		funcs = append(funcs, []byte{byte(i)})
		exports = append(exports, slices.Concat(text(name), []byte{0, byte(len(wasiCalls) + i)}))
		code = append(code, append(binary.AppendUvarint(nil, uint64(len(body))), body...))
	}
	exports = append(exports, append(text("memory"), 2, 0))
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vec(types...)), section(2, vec(imports...)), section(3, vec(funcs...)),
		section(5, vec([]byte{0, 1})), section(7, vec(exports...)), section(10, vec(code...)))
}

// guest is a WASI guest with an FS.
type guest struct {
	t   *testing.T
	ctx context.Context
	mod api.Module
}

func newGuest(t *testing.T, f *FS, config wazero.RuntimeConfig) *guest {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, config)
	t.Cleanup(func() { rt.Close(ctx) })
	if _, err := wasi_snapshot_preview1.Instantiate(WithErrnos(ctx), rt); err != nil {
		t.Fatal(err)
	}
	if err := Instantiate(ctx, rt); err != nil {
		t.Fatal(err)
	}
	mounts := wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(f, "/")
	mod, err := rt.InstantiateWithConfig(ctx, wasiGuest(), wazero.NewModuleConfig().WithFSConfig(mounts))
	if err != nil {
		t.Fatal(err)
	}
	return &guest{t: t, ctx: f.Context(ctx), mod: mod}
}

// The guest's memory: a result, an iovec, two paths, and a buffer.
const (
	resultAt = 0
	iovecAt  = 16
	path1At  = 1024
	path2At  = 8192
	bufAt    = 16384
	bufLen   = 32768
)

// call returns WASI's error number.
func (g *guest) call(name string, args ...uint64) uint32 {
	g.t.Helper()
	results, err := g.mod.ExportedFunction(name).Call(g.ctx, args...)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	return uint32(results[0])
}

func (g *guest) result() uint64 {
	n, _ := g.mod.Memory().ReadUint32Le(resultAt)
	return uint64(n)
}

func (g *guest) put(at uint32, s string) (uint64, uint64) {
	g.mod.Memory().WriteString(at, s)
	return uint64(at), uint64(len(s))
}

const (
	oCreat, oDirectory, oExcl, oTrunc = 1, 2, 4, 8
	rights                            = 1<<1 | 1<<6 // FD_READ, FD_WRITE
	preopenFD                         = 3
)

func (g *guest) open(dir uint64, name string, oflags, rights uint64) (uint64, uint32) {
	g.t.Helper()
	p, n := g.put(path1At, name)
	errno := g.call("path_open", dir, 1, p, n, oflags, rights, 0, 0, resultAt)
	return g.result(), errno
}

func (g *guest) write(fd uint64, data string) (uint64, uint32) {
	g.t.Helper()
	p, n := g.put(bufAt, data)
	g.mod.Memory().WriteUint64Le(iovecAt, p|n<<32)
	errno := g.call("fd_write", fd, iovecAt, 1, resultAt)
	return g.result(), errno
}

func (g *guest) path(call string, name string) uint32 {
	g.t.Helper()
	p, n := g.put(path1At, name)
	return g.call(call, preopenFD, p, n)
}

func (g *guest) paths(call, from, to string) uint32 {
	g.t.Helper()
	p, n := g.put(path1At, from)
	q, m := g.put(path2At, to)
	switch call {
	case "path_link":
		return g.call(call, preopenFD, 0, p, n, preopenFD, q, m)
	case "path_symlink":
		return g.call(call, p, n, preopenFD, q, m)
	}
	return g.call(call, preopenFD, p, n, preopenFD, q, m)
}

// readdir lists a directory as wasi-libc does, in small pieces.
func (g *guest) readdir(fd uint64, size uint64, each func(name string)) []string {
	g.t.Helper()
	var names []string
	for cookie := uint64(0); ; {
		if errno := g.call("fd_readdir", fd, bufAt, size, cookie, resultAt); errno != 0 {
			g.t.Fatalf("fd_readdir: %d", errno)
		}
		used := g.result()
		buf, _ := g.mod.Memory().Read(bufAt, uint32(used))
		buf = bytes.Clone(buf)
		for len(buf) >= 24 {
			n := binary.LittleEndian.Uint32(buf[16:])
			if len(buf) < 24+int(n) {
				break
			}
			name := string(buf[24 : 24+n])
			cookie = binary.LittleEndian.Uint64(buf)
			buf = buf[24+n:]
			names = append(names, name)
			if each != nil {
				each(name)
			}
		}
		if used < size {
			return names
		}
	}
}

func wantWASI(t *testing.T, what string, got, want uint32) {
	t.Helper()
	if got != want {
		t.Errorf("%s: WASI error %d, want %d", what, got, want)
	}
}

func TestGuestGetsErrorsThatWazeroLacks(t *testing.T) {
	const busy, exist, fbig, mfile, nospc, xdev = 10, 20, 22, 33, 51, 75
	configs := map[string]wazero.RuntimeConfig{"interpreter": wazero.NewRuntimeConfigInterpreter()}
	if config, ok := compilerConfig(t); ok {
		configs["compiler"] = config
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			f, _ := newProjects(t, Options{Quota: 10_000, Entries: 4, OpenFiles: 3})
			g := newGuest(t, f, config)
			fd, errno := g.open(preopenFD, "tmp/x", oCreat, rights)
			wantWASI(t, "open", errno, 0)
			n, errno := g.write(fd, strings.Repeat("x", 20_000))
			wantWASI(t, "a write that is too long", errno, 0)
			if n < 9000 || n > 10_000 {
				t.Errorf("wrote %d", n)
			}
			_, errno = g.write(fd, "x")
			wantWASI(t, "a write to a full disk", errno, nospc)
			wantWASI(t, "truncate", g.call("fd_filestat_set_size", fd, 1<<60), fbig)
			wantWASI(t, "rename", g.paths("path_rename", "tmp/x", "projects/x"), xdev)
			wantWASI(t, "link", g.paths("path_link", "tmp/x", "projects/x"), xdev)
			wantWASI(t, "rmdir of a mount", g.path("path_remove_directory", "tmp"), busy)
			wantWASI(t, "symlink", g.paths("path_symlink", "a", "tmp/l1"), nospc)
			wantWASI(t, "an ordinary error", g.path("path_create_directory", "tmp/x"), exist)
			g.call("fd_filestat_set_size", fd, 0)
			for i := range 3 {
				wantWASI(t, "mkdir", g.path("path_create_directory", fmt.Sprint("tmp/", i)), 0)
			}
			wantWASI(t, "mkdir", g.path("path_create_directory", "tmp/3"), nospc)
			_, errno = g.open(preopenFD, "tmp/x", 0, rights)
			wantWASI(t, "open", errno, 0)
			_, errno = g.open(preopenFD, "tmp/x", 0, rights)
			wantWASI(t, "one handle too many", errno, mfile)
		})
	}
}

func compilerConfig(t *testing.T) (config wazero.RuntimeConfig, ok bool) {
	t.Helper()
	defer func() { recover() }() // wazero panics where it has no compiler
	config = wazero.NewRuntimeConfigCompiler()
	rt := wazero.NewRuntimeWithConfig(context.Background(), config)
	rt.Close(context.Background())
	return config, true
}

func TestGuestListsDirectories(t *testing.T) {
	for _, dir := range []string{"tmp", "projects"} {
		t.Run(dir, func(t *testing.T) {
			f, _ := newProjects(t, Options{})
			expected := []string{".", ".."}
			for i := range 500 {
				name := fmt.Sprintf("%d-%s", i, strings.Repeat("n", i%200))
				put(t, f, dir+"/"+name, "")
				expected = append(expected, name)
			}
			slices.Sort(expected)
			g := newGuest(t, f, wazero.NewRuntimeConfig())
			for _, size := range []uint64{300, 4096, bufLen} {
				fd, errno := g.open(preopenFD, dir, oDirectory, 1<<14)
				wantWASI(t, "open", errno, 0)
				names := g.readdir(fd, size, nil)
				if slices.Sort(names); !slices.Equal(names, expected) {
					t.Errorf("with a buffer of %d: %d names, want %d", size, len(names), len(expected))
				}
				again := g.readdir(fd, size, nil)
				if slices.Sort(again); !slices.Equal(again, expected) {
					t.Errorf("after a rewind: %d names", len(again))
				}
				wantWASI(t, "close", g.call("fd_close", fd), 0)
			}
		})
	}
}

func TestGuestRemovesATreeWhileListingIt(t *testing.T) {
	f, _ := newProjects(t, Options{})
	for i := range 1000 {
		put(t, f, fmt.Sprintf("tmp/%d", i), "")
	}
	g := newGuest(t, f, wazero.NewRuntimeConfig())
	fd, _ := g.open(preopenFD, "tmp", oDirectory, 1<<14)
	g.readdir(fd, 4096, func(name string) {
		if name != "." && name != ".." {
			wantWASI(t, name, g.path("path_unlink_file", "tmp/"+name), 0)
		}
	})
	if left := list(t, f, "tmp"); len(left) != 0 {
		t.Errorf("%d files are left", len(left))
	}
}

func TestGuestWorksBelowADirectoryDescriptor(t *testing.T) {
	for _, dir := range []string{"tmp", "projects"} {
		f, _ := newProjects(t, Options{})
		g := newGuest(t, f, wazero.NewRuntimeConfig())
		wantWASI(t, "mkdir", g.path("path_create_directory", dir+"/d/"), 0)
		for _, form := range []string{dir + "/d", dir + "/d/", "./" + dir + "//d/."} {
			d, errno := g.open(preopenFD, form, oDirectory, 1<<14)
			wantWASI(t, form, errno, 0)
			fd, errno := g.open(d, "x", oCreat, rights)
			wantWASI(t, "openat", errno, 0)
			g.write(fd, "data")
			p, n := g.put(path1At, ".")
			wantWASI(t, "stat of the dot", g.call("path_filestat_get", d, 1, p, n, bufAt), 0)
			p, n = g.put(path1At, "x")
			wantWASI(t, "unlinkat", g.call("path_unlink_file", d, p, n), 0)
			g.call("fd_close", fd)
			g.call("fd_close", d)
		}
	}
}

func TestGuestReadsItsSymlinkAfterReusingTheMemory(t *testing.T) {
	f := newFS(t, Options{})
	g := newGuest(t, f, wazero.NewRuntimeConfig())
	wantWASI(t, "symlink", g.paths("path_symlink", "target", "tmp/l"), 0)
	p, n := g.put(path1At, "tmp/l")
	wantWASI(t, "readlink", g.call("path_readlink", preopenFD, p, n, bufAt, 100, resultAt), 0)
	if got, _ := g.mod.Memory().Read(bufAt, uint32(g.result())); string(got) != "target" {
		t.Errorf("%q", got)
	}
	const mtimeGiven = 4
	wantWASI(t, "utimensat", g.call("path_filestat_set_times", preopenFD, 0, p, n, 0, 77, mtimeGiven), 0)
	if st, _ := f.Lstat("tmp/l"); st.Mtim != 77 {
		t.Errorf("the link's time is %d", st.Mtim)
	}
}

func TestGuestThatOutlivesItsFileSystem(t *testing.T) {
	f, _ := newProjects(t, Options{})
	g := newGuest(t, f, wazero.NewRuntimeConfig())
	fd, _ := g.open(preopenFD, "projects/x", oCreat, rights)
	f.Close()
	const badf = 8
	_, errno := g.write(fd, "x")
	wantWASI(t, "write", errno, badf)
	if _, errno := g.open(preopenFD, "tmp/x", 0, rights); errno == 0 {
		t.Error("a file was opened")
	}
	wantWASI(t, "close", g.call("fd_close", fd), 0)
}

// A write(2) of a guest: what the listener of WithErrnos costs on it.
func BenchmarkGuestWrite(b *testing.B) {
	ctx := context.Background()
	for _, tc := range []struct {
		name string
		ctx  context.Context
	}{{"with errnos", WithErrnos(ctx)}, {"without", ctx}} {
		b.Run(tc.name, func(b *testing.B) {
			f := newFS(b, Options{})
			rt := wazero.NewRuntime(ctx)
			defer rt.Close(ctx)
			wasi_snapshot_preview1.MustInstantiate(tc.ctx, rt)
			if err := Instantiate(ctx, rt); err != nil {
				b.Fatal(err)
			}
			mounts := wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(f, "/")
			mod, err := rt.InstantiateWithConfig(ctx, wasiGuest(), wazero.NewModuleConfig().WithFSConfig(mounts))
			if err != nil {
				b.Fatal(err)
			}
			mod.Memory().WriteString(path1At, "tmp/x")
			if r, err := mod.ExportedFunction("path_open").Call(ctx, preopenFD, 1, path1At, 5, oCreat, rights, 0, 0, resultAt); err != nil || r[0] != 0 {
				b.Fatal(r, err)
			}
			fd, _ := mod.Memory().ReadUint32Le(resultAt)
			mod.Memory().WriteUint64Le(iovecAt, bufAt|100<<32)
			write := mod.ExportedFunction("fd_pwrite")
			for b.Loop() {
				if _, err := write.Call(ctx, uint64(fd), iovecAt, 1, 0, resultAt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
