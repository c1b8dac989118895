package wasmhost_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"codeexec/wasmhost"
)

// Files have permissions, and so has what is packed from them: an archive that a
// script makes can be read where it is unpacked.
func TestPermissions(t *testing.T) {
	projects := t.TempDir()
	s := newSession(t, wasmhost.SessionOptions{Projects: projects})
	tests := []struct{ name, code, want string }{
		{"new files and folders", "open('f', 'w').close(); os.mkdir('d'); print(mode('f'), mode('d'))", "644 755\n"},
		{"private ones", "f = tempfile.NamedTemporaryFile(dir='.'); d = tempfile.mkdtemp(dir='.'); print(mode(f.name), mode(d))", "600 700\n"},
		{"umask", "print(oct(os.umask(0o077))); open('u', 'w').close(); os.mkdir('v'); print(mode('u'), mode('v'), oct(os.umask(0o022)))", "0o22\n600 700 0o77\n"},
		{"chmod", "os.chmod('f', 0o751); print(mode('f'), os.access('f', os.X_OK)); pathlib.Path('f').chmod(0o640); print(mode('f'), os.access('f', os.X_OK))", "751 True\n640 False\n"},
		{"copies", "os.chmod('f', 0o750); shutil.copy('f', 'g'); print(mode('g'))", "750\n"},
		{"in a zip", "with zipfile.ZipFile('z', 'w') as z: z.write('g')\nprint(oct(zipfile.ZipFile('z').getinfo('g').external_attr >> 16))", "0o100750\n"},
		{"in a tar", "with tarfile.open('t', 'w') as t: t.add('g')\nprint(oct(tarfile.open('t').getmember('g').mode))", "0o750\n"},
		{"errors", "try: os.chmod('none', 0o600)\nexcept FileNotFoundError as e: print(e.filename)\ntry: os.chmod('/usr', 0o700)\nexcept OSError as e: print(e.strerror)", "none\nRead-only file system\n"},
	}
	for _, dir := range []string{"/workspace", "/projects"} {
		mustPrint(t, s, "import os, pathlib, shutil, tarfile, tempfile, zipfile\nos.chdir('"+dir+"')\ndef mode(p): return oct(os.stat(p).st_mode & 0o7777)[2:]", "")
		for _, tc := range tests {
			t.Run(tc.name+" in "+dir, func(t *testing.T) {
				if dir == "/projects" && runtime.GOOS == "windows" {
					t.Skip("the host has no such permissions")
				}
				mustPrint(t, s, tc.code, tc.want)
			})
		}
	}
	if info, err := os.Stat(filepath.Join(projects, "g")); runtime.GOOS != "windows" && (err != nil || info.Mode() != 0o750) {
		t.Errorf("the host sees %v, %v", info, err)
	}
}

// Paths mean what they mean on Linux, where wazero and WASI's libc know better.
func TestPaths(t *testing.T) {
	projects := t.TempDir()
	s := newSession(t, wasmhost.SessionOptions{Projects: projects})
	const setUp = "import os\nos.makedirs('a/b'); os.makedirs('c'); os.symlink('../a/b', 'c/l'); os.symlink(os.path.abspath('a/b'), 'm'); home = os.getcwd()"
	tests := []struct{ name, code, want string }{
		{"dots after a link", "print(os.listdir('c/l/..'), os.listdir('c/./l/.'))", "['b'] []\n"},
		{"dots after nothing", "for p in 'none/..', 'none/.', 'none/../a':\n try: os.stat(p)\n except FileNotFoundError as e: print(e.filename)", "none/..\nnone/.\nnone/../a\n"},
		{"no path", "for f in os.stat, os.listdir, os.chdir, open, os.mkdir, os.remove:\n try: f('')\n except FileNotFoundError: print(f.__name__)", "stat\nlistdir\nchdir\nopen\nmkdir\nremove\n"},
		{"the working folder has no links in it", "os.chdir('m'); print(os.path.relpath(os.getcwd(), home)); os.chdir('..'); print(os.path.relpath(os.getcwd(), home)); os.chdir(home)", "a/b\na\n"},
		{"a link with an absolute target is read as it was made", "print(os.readlink('m') == os.path.abspath('a/b'), os.readlink('c/l'))", "True ../a/b\n"},
		{"a link is copied", "import shutil; shutil.copytree('.', 'd', symlinks=True); print(os.readlink('d/m') == os.readlink('m'), os.path.samefile('d/m', 'a/b')); shutil.rmtree('d'); print(os.listdir('a'))", "True True\n['b']\n"},
		{"the escape in a name", "open('x\\U0010ffff.', 'w').close(); print('x\\U0010ffff.' in os.listdir()); os.remove('x\\U0010ffff.')", "True\n"},
	}
	if runtime.GOOS == "linux" {
		tests = append(tests, struct{ name, code, want string }{"bytes that aren't text",
			"os.mkdir(b'\\xff'); os.chdir(b'\\xff'); open(b'\\xfe', 'w').close(); print(os.listdir(b'.'), os.path.basename(os.getcwdb())); os.chdir('..'); print(os.listdir('\\udcff'))",
			"[b'\\xfe'] b'\\xff'\n['\\udcfe']\n"})
	}
	for _, dir := range []string{"/tmp", "/projects"} {
		mustPrint(t, s, "import os; os.chdir('"+dir+"')\n"+setUp, "")
		for _, tc := range tests {
			t.Run(tc.name+" in "+dir, func(t *testing.T) { mustPrint(t, s, tc.code, tc.want) })
		}
	}
}

func TestDevNull(t *testing.T) {
	mustPrint(t, newSession(t, wasmhost.SessionOptions{}), `
import contextlib, os
with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink):
    print("lost")
print(open(os.devnull).read(), open(os.devnull).isatty(), len(set(open("/dev/urandom", "rb").read(64))) > 8)
`, " False True\n")
}

// A database is locked while another session writes to it, and no longer than
// that session lives, however it ends.
func TestDatabaseLocks(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the host's locks aren't used")
	}
	projects := t.TempDir()
	const insert = `
import sqlite3
con = sqlite3.connect("/projects/db", timeout=0)
try:
    con.execute("insert into t values (1)")
except sqlite3.OperationalError as e:
    print(e)
    con.rollback()
print(con.execute("select count(*) from t").fetchone()[0])
`
	first := newSession(t, wasmhost.SessionOptions{Projects: projects})
	mustPrint(t, first, "import sqlite3\nc = sqlite3.connect('/projects/db'); c.execute('create table t (n)'); c.commit(); c.close()", "")
	mustPrint(t, first, insert, "1\n")
	second := newSession(t, wasmhost.SessionOptions{Projects: projects})
	mustPrint(t, second, insert, "database is locked\n0\n")

	r := run(t, first, "import os\nos.abort()") // with the transaction open
	if r.Reset == "" {
		t.Fatalf("the session was to end: %+v", r)
	}
	mustPrint(t, second, insert+"con.commit()", "1\n")
	mustPrint(t, first, insert, "2\n")
	entries, err := os.ReadDir(projects)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "db" && e.Name() != "db-journal" {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// Two connections of one session may both read, on either disk.
func TestConnectionsOfOneSession(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{Projects: t.TempDir()})
	for _, dir := range []string{"/tmp", "/projects"} {
		mustPrint(t, s, "dir = '"+dir+`'
import sqlite3
a = sqlite3.connect(dir + "/db", timeout=0)
a.execute("create table t (n)"); a.execute("insert into t values (1), (2)"); a.commit()
r = sqlite3.connect(f"file:{dir}/db?mode=ro", uri=True, timeout=0)
rows = r.execute("select n from t"); print(next(rows))
b = sqlite3.connect(dir + "/db", timeout=0)
print(b.execute("select count(*) from t").fetchone())
b.execute("insert into t values (3)")
try: b.commit()
except sqlite3.OperationalError as e: print(e)
rows.close(); b.commit()
print(a.execute("select count(*) from t").fetchone())
for c in a, b, r: c.close()
`, "(1,)\n(2,)\ndatabase is locked\n(3,)\n")
	}
}

// Functions of the standard library that ask for their module's file work
// although it is frozen, and os.close as a class's attribute isn't its method.
func TestFrozenModules(t *testing.T) {
	mustPrint(t, newSession(t, wasmhost.SessionOptions{}), `
import datetime, os, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(datetime.datetime.strptime("03-14", "%m-%d").day, caught[0].filename)
class File:
    close = os.close
File().close(os.open("/tmp/x", os.O_CREAT))
`, "14 <cell 1>\n")
}
