package packages

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A wheelSpec is what a test's wheel is made of; makeWheel fills in what is missing.
type wheelSpec struct {
	name, version, tags string
	files               map[string]string
	metadata            string                            // more headers of METADATA
	wheel               string                            // in the place of WHEEL
	record              func(record string) string        // changes RECORD
	zip                 func(w *zip.Writer, t testing.TB) // adds what RECORD doesn't know
}

// make writes the wheel into a directory, and returns its path.
func (s wheelSpec) make(t testing.TB, dir string) string {
	t.Helper()
	s.version, s.tags = cmp.Or(s.version, "1.0"), cmp.Or(s.tags, "py3-none-any")
	path := filepath.Join(dir, s.name+"-"+s.version+"-"+s.tags+".whl")
	if err := os.WriteFile(path, s.zipped(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// zipped returns the wheel, which must have version and tags.
func (s wheelSpec) zipped(t testing.TB) []byte {
	t.Helper()
	info := s.name + "-" + s.version + ".dist-info"
	if s.wheel == "" {
		s.wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: " + s.tags + "\n"
	}
	files := maps.Clone(s.files)
	if files == nil {
		files = map[string]string{s.name + "/__init__.py": "version = '" + s.version + "'\n"}
	}
	files[info+"/METADATA"] = "Metadata-Version: 2.1\nName: " + s.name + "\nVersion: " + s.version + "\n" + s.metadata + "\nThe description.\n"
	files[info+"/WHEEL"] = s.wheel
	var lines []recordLine
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := sha256.New()
		h.Write([]byte(files[name]))
		lines = append(lines, recordLine{name, digest{"sha256", encodeSum(h), int64(len(files[name]))}})
	}
	record := string(formatRecord(append(lines, recordLine{path: info + "/RECORD"})))
	if s.record != nil {
		record = s.record(record)
	}
	files[info+"/RECORD"] = record
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entry, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		entry.Write([]byte(files[name]))
	}
	if s.zip != nil {
		s.zip(w, t)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// newFolder returns an empty folder, in a directory with nothing else but the lock.
func newFolder(t testing.TB) *Folder {
	state := t.TempDir()
	return Open(filepath.Join(state, "user_tools", "packages"), filepath.Join(state, "lock"))
}

// addWheel reads and adds a wheel.
func addWheel(f *Folder, path string) (Installed, error) {
	dist, err := ReadWheel(path, "")
	if err != nil {
		return Installed{}, err
	}
	defer dist.Close()
	added, err := f.Add(context.Background(), dist)
	if err != nil {
		return Installed{}, err
	}
	return added[0], nil
}

func mustAdd(t testing.TB, f *Folder, spec wheelSpec) Installed {
	t.Helper()
	added, err := addWheel(f, spec.make(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// tree returns the files of a directory with their contents, and empty directories with a slash.
func readTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			if inside, _ := os.ReadDir(path); len(inside) == 0 {
				found[rel+"/"] = ""
			}
			return nil
		}
		data, err := os.ReadFile(path)
		found[rel] = string(data)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}

func checkTree(t *testing.T, dir string, want ...string) {
	t.Helper()
	got := slices.Sorted(maps.Keys(readTree(t, dir)))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("in the folder are %q, want %q", got, want)
	}
}

func TestAddListReplaceRemove(t *testing.T) {
	f := newFolder(t)
	if all, err := f.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("at first: %v, %v", all, err)
	}
	added := mustAdd(t, f, wheelSpec{
		name: "my_pkg", files: map[string]string{"my_pkg/__init__.py": "1", "my_pkg/old.py": "2", "my_pkg/data/a.txt": "3", "single.py": "4"},
		metadata: "Summary: A package\nRequires-Dist: other (>=1)\nRequires-Dist: extra; extra == 'x'\n",
	})
	if added.Name != "my_pkg" || added.Version != "1.0" || added.Summary != "A package" || !slices.Equal(added.Needs, []string{"other"}) || added.Files != 8 {
		t.Errorf("added %+v", added)
	}
	info := "my_pkg-1.0.dist-info/"
	checkTree(t, f.Path(), "my_pkg/__init__.py", "my_pkg/old.py", "my_pkg/data/a.txt", "single.py",
		info+"METADATA", info+"WHEEL", info+"RECORD", info+"INSTALLER")
	record := readTree(t, f.Path())[info+"RECORD"]
	if want := "my_pkg/old.py,sha256=1HNeOiZeFu7gP1lxi5tdAwGcB9i2xR-Q2jpmbuwTqzU,1\n"; !strings.Contains(record, want) || !strings.HasSuffix(record, info+"RECORD,,\n") {
		t.Errorf("RECORD is\n%s", record)
	}

	// What Python compiles, and what is put there by hand.
	for _, name := range []string{"my_pkg/__pycache__/old.cpython-313.pyc", "__pycache__/single.cpython-313.pyc", "by_hand/__init__.py", "lone.py"} {
		path := filepath.Join(f.Path(), name)
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	added = mustAdd(t, f, wheelSpec{name: "My.Pkg", version: "2.0", files: map[string]string{"my_pkg/__init__.py": "new", "my_pkg/sub/x.py": ""}})
	if added.Replaced != "1.0" || added.Version != "2.0" {
		t.Errorf("replaced %+v", added)
	}
	mustAdd(t, f, wheelSpec{name: "other"})
	info = "My_Pkg-2.0.dist-info/"
	checkTree(t, f.Path(), "my_pkg/__init__.py", "my_pkg/sub/x.py", info+"METADATA", info+"WHEEL", info+"RECORD", info+"INSTALLER",
		"other/__init__.py", "other-1.0.dist-info/METADATA", "other-1.0.dist-info/WHEEL", "other-1.0.dist-info/RECORD", "other-1.0.dist-info/INSTALLER",
		"by_hand/__init__.py", "lone.py")
	all, err := f.List(t.Context())
	var names []string
	for _, p := range all {
		names = append(names, fmt.Sprint(p.Name, " ", p.Version, " ", p.ByHand, p.Problem))
	}
	if want := []string{"by_hand  true", "lone  true", "My.Pkg 2.0 false", "other 1.0 false"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the list is %q, %v, want %q", names, err, want)
	}

	if _, err := f.Remove(t.Context(), "by_hand"); err == nil || !strings.Contains(err.Error(), "put there by hand") {
		t.Errorf("removing what was put there by hand: %v", err)
	}
	if _, err := f.Remove(t.Context(), "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("removing nothing: %v", err)
	}
	for _, name := range []string{"MY-PKG", "other"} {
		if _, err := f.Remove(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	checkTree(t, f.Path(), "by_hand/__init__.py", "lone.py")
}

func TestNamespacePackagesShareADirectory(t *testing.T) {
	f := newFolder(t)
	mustAdd(t, f, wheelSpec{name: "a", files: map[string]string{"space/a/__init__.py": ""}})
	mustAdd(t, f, wheelSpec{name: "b", files: map[string]string{"space/b/__init__.py": ""}})
	if _, err := f.Remove(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if got := readTree(t, filepath.Join(f.Path(), "space")); len(got) != 1 {
		t.Errorf("left are %v", got)
	}
}

func TestDataDirectoriesOfWheels(t *testing.T) {
	f := newFolder(t)
	path := wheelSpec{name: "a", files: map[string]string{
		"a.py": "", "a-1.0.data/purelib/b/__init__.py": "", "a-1.0.data/platlib/c.py": "", "a-1.0.data/scripts/run": "#!python", "a-1.0.data/data/share/x": "",
	}}.make(t, t.TempDir())
	dist, err := ReadWheel(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer dist.Close()
	if got := strings.Join(dist.Notes, "; "); !strings.Contains(got, "1 of its scripts") || !strings.Contains(got, "1 of its data") {
		t.Errorf("the notes are %s", got)
	}
	if _, err := f.Add(t.Context(), dist); err != nil {
		t.Fatal(err)
	}
	checkTree(t, f.Path(), "a.py", "b/__init__.py", "c.py", "a-1.0.dist-info/METADATA", "a-1.0.dist-info/WHEEL", "a-1.0.dist-info/RECORD", "a-1.0.dist-info/INSTALLER")
}

func TestWheelsThatAreRefused(t *testing.T) {
	extra := func(name string, mode fs.FileMode) func(*zip.Writer, testing.TB) {
		return func(w *zip.Writer, t testing.TB) {
			header := &zip.FileHeader{Name: name}
			if mode != 0 {
				header.SetMode(mode)
			}
			entry, err := w.CreateHeader(header)
			if err != nil {
				t.Fatal(err)
			}
			entry.Write([]byte("x"))
		}
	}
	listed := func(line string) func(string) string { return func(r string) string { return r + line + "\n" } }
	tests := []struct {
		name string
		spec wheelSpec
		want string
	}{
		{"for a machine", wheelSpec{tags: "cp313-cp313-manylinux_2_17_x86_64"}, "cp313-cp313-manylinux_2_17_x86_64: it is compiled for a machine"},
		{"stable ABI", wheelSpec{tags: "cp39-abi3-win_amd64"}, "cp39-abi3-win_amd64: it is compiled"},
		{"for a platform", wheelSpec{tags: "py3-none-macosx_11_0_arm64"}, "it is compiled"},
		{"for Python 2", wheelSpec{tags: "py2-none-any"}, "it is for py2, and not for Python 3.13"},
		{"for a newer Python", wheelSpec{tags: "py314-none-any"}, "it is for py314"},
		{"no wheel's name", wheelSpec{tags: "none-any"}, "the name of a wheel is"},
		{"machine code inside", wheelSpec{files: map[string]string{"a/_x.cpython-313-x86_64-linux-gnu.so": "ELF"}}, "_x.cpython-313-x86_64-linux-gnu.so: it is compiled"},
		{"a library of Windows", wheelSpec{files: map[string]string{"a/B.DLL": ""}}, "it is compiled"},
		{"a versioned library", wheelSpec{files: map[string]string{"a/libx.so.1.2": ""}}, "it is compiled"},
		{"not purelib", wheelSpec{wheel: "Wheel-Version: 1.0\nRoot-Is-Purelib: false\n"}, "Root-Is-Purelib: false: it is compiled"},
		{"a newer format", wheelSpec{wheel: "Wheel-Version: 2.0\nRoot-Is-Purelib: true\n"}, `version "2.0" of the wheel format`},
		{"an older Python", wheelSpec{metadata: "Requires-Python: >=3.8,<3.13\n"}, "it is for Python >=3.8,<3.13, and the sandbox has 3.13"},
		{"outside", wheelSpec{zip: extra("../evil.py", 0)}, "leads out"},
		{"outside, deeper", wheelSpec{zip: extra("a/../../evil.py", 0)}, "leads out"},
		{"absolute", wheelSpec{zip: extra("/etc/evil.py", 0)}, "leads out"},
		{"a backslash", wheelSpec{zip: extra(`..\evil.py`, 0)}, "leads out"},
		{"a drive", wheelSpec{zip: extra("C:evil.py", 0)}, "leads out"},
		{"an empty part", wheelSpec{zip: extra("a//b.py", 0)}, "leads out"},
		{"outside by its data", wheelSpec{files: map[string]string{"a-1.0.data/purelib/../../../evil.py": ""}}, "leads out"},
		{"a directory outside", wheelSpec{zip: extra("../evil/", 0)}, "leads out"},
		{"a NUL", wheelSpec{zip: extra("a\x00b.py", 0)}, "is no name of a file"},
		{"reserved", wheelSpec{files: map[string]string{".codeexec-x/a.py": ""}}, "reserved"},
		{"a symbolic link", wheelSpec{zip: extra("link", 0o777|fs.ModeSymlink)}, "is a link or another special file"},
		{"a pipe", wheelSpec{zip: extra("pipe", 0o600|fs.ModeNamedPipe)}, "is a link or another special file"},
		{"case", wheelSpec{files: map[string]string{"a/Mod.py": "", "a/mod.py": ""}}, "are one file where case doesn't count"},
		{"case of directories", wheelSpec{files: map[string]string{"a/x.py": "", "A/y.py": ""}}, "are one file where case doesn't count"},
		{"case by its data", wheelSpec{files: map[string]string{"a/x.py": "", "a-1.0.data/purelib/a/X.py": ""}}, "are one file where case doesn't count"},
		{"twice", wheelSpec{files: map[string]string{"a/x.py": ""}, zip: extra("a/x.py", 0)}, "there are two files"},
		{"a file and a directory", wheelSpec{files: map[string]string{"a": "", "a/x.py": ""}}, "is a file and a directory"},
		{"not in RECORD", wheelSpec{zip: extra("a/evil.py", 0)}, `RECORD: it lacks "a/evil.py"`},
		{"only in RECORD", wheelSpec{record: listed("a/gone.py,sha256=AAAA,1")}, `RECORD: there is no file "a/gone.py"`},
		{"twice in RECORD", wheelSpec{record: func(r string) string { return r + strings.SplitAfter(r, "\n")[0] }}, "is there twice"},
		{"no hash", wheelSpec{zip: extra("a/x.py", 0), record: listed("a/x.py,,")}, "no hash that is good enough"},
		{"a weak hash", wheelSpec{zip: extra("a/x.py", 0), record: listed(fmt.Sprintf("a/x.py,md5=%x,1", md5.Sum([]byte("x"))))}, "no hash that is good enough"},
		{"another hash", wheelSpec{zip: extra("a/x.py", 0), record: listed("a/x.py,sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIg,1")}, "aren't what RECORD says"},
		{"another size", wheelSpec{zip: extra("a/x.py", 0), record: listed("a/x.py,sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE,2")}, "aren't what RECORD says"},
		{"no CSV", wheelSpec{record: func(string) string { return `"` }}, "RECORD: "},
		{"two of metadata", wheelSpec{files: map[string]string{"b-1.0.dist-info/METADATA": ""}}, "it has both"},
		{"too many files", wheelSpec{files: manyFiles(MaxFiles + 1)}, "more than 10000 files"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tc.spec.name = "a"
			f := newFolder(t)
			_, err := addWheel(f, tc.spec.make(t, t.TempDir()))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want …%s…", err, tc.want)
			}
			checkTree(t, filepath.Dir(filepath.Dir(f.Path())), stateFiles(t, f)...)
		})
	}
}

// stateFiles are what a refused wheel may leave: an empty folder.
func stateFiles(t *testing.T, f *Folder) []string {
	if _, err := os.Stat(f.Path()); err == nil {
		return []string{"user_tools/packages/"}
	}
	return nil
}

func manyFiles(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("a/%d.txt", i)] = ""
	}
	return files
}

func TestBombs(t *testing.T) {
	// A file of which the archive says that it is too large.
	path := wheelSpec{name: "a", zip: func(w *zip.Writer, t testing.TB) {
		if _, err := w.CreateRaw(&zip.FileHeader{Name: "a/zeros", UncompressedSize64: MaxBytes}); err != nil {
			t.Fatal(err)
		}
	}, record: func(r string) string { return r + "a/zeros,sha256=AAAA,\n" }}.make(t, t.TempDir())
	f := newFolder(t)
	if _, err := addWheel(f, path); err == nil || !strings.Contains(err.Error(), "more than 268435456 bytes") {
		t.Errorf("got %v", err)
	}
	checkTree(t, f.Path())

	// One of which it doesn't.
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	read := 0
	endless := file{path: "a/zeros", open: func() (io.ReadCloser, error) {
		return io.NopCloser(readerFunc(func(p []byte) (int, error) { read += len(p); return len(p), nil })), nil
	}}
	if _, err := writeFile(root, endless.path, endless, 1000); err == nil || !strings.Contains(err.Error(), "more than") || read > 1<<20 {
		t.Errorf("after %d bytes: %v", read, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestSHA256(t *testing.T) {
	path := wheelSpec{name: "a"}.make(t, t.TempDir())
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	for _, tc := range []struct {
		sum string
		ok  bool
	}{
		{strings.ToUpper(hex.EncodeToString(sum[:])), true},
		{hex.EncodeToString(make([]byte, 32)), false},
		{"x", false},
	} {
		dist, err := ReadWheel(path, tc.sum)
		if (err == nil) != tc.ok || err != nil && !strings.Contains(err.Error(), "its SHA-256 is") {
			t.Errorf("%s: got %v", tc.sum, err)
		}
		if err == nil {
			dist.Close()
		}
	}
}

func TestWhatIsInTheWayStays(t *testing.T) {
	f := newFolder(t)
	mustAdd(t, f, wheelSpec{name: "one", files: map[string]string{"shared.py": "1"}})
	mustAdd(t, f, wheelSpec{name: "two", files: map[string]string{"two.py": "old"}})
	before := readTree(t, f.Path())
	for _, spec := range []wheelSpec{
		{name: "two", version: "2.0", files: map[string]string{"aaa/bbb.py": "", "two.py": "new", "shared.py": "2"}},
		{name: "two", version: "2.0", files: map[string]string{"aaa/bbb.py": "", "two.py": "new", "shared.py/x.py": "2"}},
	} {
		_, err := addWheel(f, spec.make(t, t.TempDir()))
		if err == nil {
			t.Error("a file of another package is replaced")
		}
		if got := readTree(t, f.Path()); !maps.Equal(got, before) {
			t.Errorf("after %v there are %q, want %q", err, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(before)))
		}
	}
}

func TestNothingOutsideIsTouched(t *testing.T) {
	f := newFolder(t)
	mustAdd(t, f, wheelSpec{name: "a"})
	state := filepath.Dir(filepath.Dir(f.Path()))
	for _, name := range []string{"secret", "user_tools/secret", "user_tools/packages/b/secret.py"} {
		path := filepath.Join(state, name)
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if runtime.GOOS != "windows" {
		if err := os.Symlink("../..", filepath.Join(f.Path(), "up")); err != nil {
			t.Fatal(err)
		}
	}
	record := filepath.Join(f.Path(), "a-1.0.dist-info", "RECORD")
	forged := "../../secret,,\n../secret,,\n" + state + "/secret,,\nup/secret,,\nup/user_tools/secret,,\nb,,\n..,,\n.,,\n\"\",,\nup,,\n"
	if err := os.WriteFile(record, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Remove(t.Context(), "a")
	for _, name := range []string{"secret", "user_tools/secret", "user_tools/packages/b/secret.py"} {
		if _, err := os.Stat(filepath.Join(state, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestTheFolderMayBeALink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	f := newFolder(t)
	outside := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(f.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, f.Path()); err != nil {
		t.Fatal(err)
	}
	if _, err := addWheel(f, wheelSpec{name: "a"}.make(t, t.TempDir())); err == nil {
		t.Error("a package is added outside")
	}
	checkTree(t, outside)
}

func TestTrees(t *testing.T) {
	tests := []struct {
		name  string
		dir   string
		files map[string]string
		want  []string
		dist  string
		err   string
	}{
		{"a package", "my_pkg", map[string]string{"__init__.py": "", "sub/x.py": "", "data.txt": "", "__pycache__/x.pyc": "", ".git/config": ""},
			[]string{"my_pkg/__init__.py", "my_pkg/data.txt", "my_pkg/sub/x.py"}, "my_pkg-0", ""},
		{"a project", "repo", map[string]string{"pyproject.toml": "[project]\nname = 'my-pkg'\nversion = '1.2'\nrequires-python = '>=3.9'\ndependencies = ['attrs>=23']\n", "my_pkg/__init__.py": "", "tests/__init__.py": "", "setup.py": "1/0"},
			[]string{"my_pkg/__init__.py"}, "my_pkg-1.2", ""},
		{"a project with src", "repo", map[string]string{"pyproject.toml": "[project]\nname = 'x'\n", "src/a/__init__.py": "", "src/b.py": "", "c/__init__.py": ""},
			[]string{"a/__init__.py", "b.py"}, "x-0", ""},
		{"a module", "repo", map[string]string{"pyproject.toml": "[project]\nname = 'six'\nversion = '1'\n", "six.py": "", "setup.py": ""}, []string{"six.py"}, "six-1", ""},
		{"nothing", "repo", map[string]string{"README": ""}, nil, "", "it is no Python package"},
		{"machine code", "my_pkg", map[string]string{"__init__.py": "", "_x.so": ""}, nil, "", "it is compiled"},
		{"no name", "my-pkg", map[string]string{"__init__.py": ""}, nil, "", "can't be the name of a package"},
		{"broken", "repo", map[string]string{"pyproject.toml": "[", "a/__init__.py": ""}, nil, "", "pyproject.toml: it isn't TOML"},
		{"an older Python", "repo", map[string]string{"pyproject.toml": "[project]\nrequires-python = '<3'\n", "a/__init__.py": ""}, nil, "", "it is for Python <3"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), tc.dir)
			for name, text := range tc.files {
				path := filepath.Join(dir, name)
				os.MkdirAll(filepath.Dir(path), 0o700)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dist, err := ReadTree(dir)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want …%s…", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer dist.Close()
			f := newFolder(t)
			if _, err := f.Add(t.Context(), dist); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"METADATA", "WHEEL", "RECORD", "INSTALLER"} {
				tc.want = append(tc.want, tc.dist+".dist-info/"+name)
			}
			checkTree(t, f.Path(), tc.want...)
			if all, err := f.List(t.Context()); err != nil || len(all) != 1 || all[0].Problem != "" {
				t.Errorf("the list is %+v, %v", all, err)
			}
		})
	}
}

func TestLinksInTreesAreRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pkg")
	os.Mkdir(dir, 0o700)
	os.WriteFile(filepath.Join(dir, "__init__.py"), nil, 0o600)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "x.py")); err != nil {
		t.Skip(err)
	}
	if _, err := ReadTree(dir); err == nil || !strings.Contains(err.Error(), "x.py is a link") {
		t.Errorf("got %v", err)
	}
}

func TestAllowsPython(t *testing.T) {
	for requires, want := range map[string]bool{
		"": true, ">=3.8": true, ">=3.13": true, ">=3.13.1": true, ">=3.14": false, "<3.13": false, "<4": true, "<4.0,>=3.7": true, "~=3.7": true,
		"~=3.12.0": false, "~=3.13.0": true, "==3.*": true, "==3.12.*": false, "==3.13.*": true, "!=3.13.*": false, "!=3.0.*,>=2.7": true, "!=3.13.2": true,
		"<=3.12": false, "<=3.13": true, ">3.12": true, ">3.13": true, ">=3.13.1,<3.14": true, ">2": true, ">=2.7, !=3.0.*, !=3.1.*": true, "no version": true,
	} {
		if got := allowsPython(requires, Python); got != want {
			t.Errorf("%q: got %v", requires, got)
		}
	}
}

func TestIsRequirement(t *testing.T) {
	for text, want := range map[string]bool{
		"attrs": true, "attrs>=23": true, "a.b-c_d[x,y] >= 1, < 2": true, "attrs==23.*": true, "attrs~=1.0": true,
		"": false, "-r x": false, "--index-url=x": false, "attrs @ https://x/y.whl": false, "https://x/y.whl": false, "../x": false, "a b": false, "attrs; evil": false, "attrs\n-r x": false,
	} {
		if got := IsRequirement(text); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestConcurrentProcesses(t *testing.T) {
	f := newFolder(t)
	wheels := t.TempDir()
	var paths, owns []string
	for i := range 4 {
		owns = append(owns, wheelSpec{name: fmt.Sprintf("own%d", i)}.make(t, wheels))
		paths = append(paths, wheelSpec{name: "shared", version: fmt.Sprintf("%d", i), files: map[string]string{"shared/__init__.py": fmt.Sprint(i), fmt.Sprintf("shared/only%d.py", i): ""}}.make(t, wheels))
	}
	var group sync.WaitGroup
	for i, path := range paths {
		group.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childVariable+"="+strings.Join([]string{f.Path(), f.lock.Path(), path, owns[i]}, "\n"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	group.Wait()
	all, err := f.List(t.Context())
	if err != nil || len(all) != 1+len(paths) {
		t.Fatalf("the list is %+v, %v", all, err)
	}
	version := all[len(all)-1].Version
	got := readTree(t, filepath.Join(f.Path(), "shared"))
	if want := map[string]string{"__init__.py": version, "only" + version + ".py": ""}; !maps.Equal(got, want) {
		t.Errorf("of version %s there is %v", version, got)
	}
}

const childVariable = "CODEEXEC_PACKAGES_TEST"

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(childVariable); ok {
		args := strings.Split(text, "\n")
		do := child
		if len(args) > 4 {
			do = childForever
		}
		if err := do(Open(args[0], args[1]), args[2], args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child adds a wheel several times, and then one of its own.
func child(f *Folder, wheel, own string) error {
	for range 5 {
		if _, err := addWheel(f, wheel); err != nil {
			return err
		}
	}
	_, err := addWheel(f, own)
	return err
}

func TestDownload(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for pip is a shell script")
	}
	wheels, bin, dir := t.TempDir(), t.TempDir(), t.TempDir()
	wheelSpec{name: "attrs"}.make(t, wheels)
	wheelSpec{name: "a_first"}.make(t, wheels)
	pip := "#!/bin/sh\nfor last; do :; done\necho \"$@\" >" + bin + "/args\ncase $last in bad) echo 'ERROR: No matching distribution found' >&2; exit 1;; slow) exec sleep 60;; esac\n" +
		"while [ \"$1\" != --dest ]; do shift; done\ncp " + wheels + "/*.whl \"$2\"\n"
	if err := os.WriteFile(filepath.Join(bin, "pip3"), []byte(pip), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	got, err := Download(t.Context(), "attrs>=23", dir)
	if err != nil || len(got) != 2 || !strings.Contains(got[0], "attrs-1.0") {
		t.Errorf("got %v, %v", got, err)
	}
	args, _ := os.ReadFile(filepath.Join(bin, "args"))
	if want := "download --only-binary=:all: --platform any --python-version 3.13 --implementation py --abi none --dest " + dir; !strings.HasPrefix(string(args), want) || !strings.HasSuffix(string(args), " -- attrs>=23\n") {
		t.Errorf("pip was called with %s", args)
	}
	if _, err := Download(t.Context(), "bad", dir); err == nil || !strings.Contains(err.Error(), "ERROR: No matching distribution found") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Download(ctx, "slow", dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Download(t.Context(), "attrs", dir); !errors.Is(err, ErrNoPip) {
		t.Errorf("got %v", err)
	}
}

// Whatever a file says that calls itself a wheel, it is added as a whole or not at all, and nothing is written
// elsewhere.
func FuzzWheel(f *testing.F) {
	for _, spec := range []wheelSpec{
		{},
		{files: map[string]string{"a-1.0.data/purelib/x.py": "", "a/b/c.py": "1"}, metadata: "Requires-Python: >=3\n"},
		{zip: func(w *zip.Writer, t testing.TB) { w.Create("../x") }},
	} {
		spec.name, spec.version, spec.tags = "a", "1.0", "py3-none-any"
		f.Add(spec.zipped(f))
	}
	folder := newFolder(f)
	f.Fuzz(func(t *testing.T, data []byte) { addWhole(t, folder, data) })
}

// That is also so where all hashes are right, which a change of single bytes hardly comes to: here the parts of a
// wheel change, and it is put together of them.
func FuzzWheelContents(f *testing.F) {
	f.Add("a/__init__.py", "x = 1\n", "b.py", "Requires-Dist: c\n", "", "")
	f.Add("a-1.0.data/purelib/x.py", "", "a-1.0.data/scripts/run", "Requires-Python: >=3\n", "Wheel-Version: 1.9\nRoot-Is-Purelib: True\n", "")
	f.Add("../x", "y", "a-1.0.dist-info/INSTALLER", "Name: b\n", "", "../y,sha256=AAAA,1\n")
	folder := newFolder(f)
	f.Fuzz(func(t *testing.T, name, contents, other, metadata, header, record string) {
		spec := wheelSpec{
			name: "a", version: "1.0", tags: "py3-none-any", files: map[string]string{name: contents, other: ""},
			metadata: metadata, wheel: header, record: func(r string) string { return r + record },
		}
		addWhole(t, folder, spec.zipped(t))
	})
}

// addWhole adds what may be a wheel to an empty folder, checks that it is added as a whole or not at all, and
// removes it.
func addWhole(t *testing.T, folder *Folder, data []byte) {
	// Most are refused here, and the disk is slow.
	dist, err := readWheel(bytes.NewReader(data), int64(len(data)), "a-1.0-py3-none-any.whl", "")
	if err != nil {
		return
	}
	_, err = folder.Add(t.Context(), dist)
	state := filepath.Dir(filepath.Dir(folder.Path()))
	for name := range readTree(t, state) {
		if name != "lock" && name != "user_tools/packages/" && (err != nil || !strings.HasPrefix(name, "user_tools/packages/")) {
			t.Errorf("there is %q after %v", name, err)
		}
	}
	if err == nil {
		if _, err := folder.Remove(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		checkTree(t, folder.Path())
	}
}
