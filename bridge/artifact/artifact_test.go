package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2025, 7, 1, 12, 0, 0, 0, time.UTC)

func names(files []File) (list []string) {
	for _, f := range files {
		list = append(list, f.Name)
	}
	return list
}

// folders returns what is in the directory of folders.
func folders(t *testing.T, projects string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(projects, Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// makeFolder makes a folder of a run, as one that was finished.
func makeFolder(t testing.TB, projects string, at time.Time, id string, finished bool) string {
	t.Helper()
	f := Open(projects, Written, 0).Folder(id, at)
	dir := filepath.Join(projects, Dir, f.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if finished {
		if err := os.WriteFile(filepath.Join(dir, codeFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f.name
}

func TestFolder(t *testing.T) {
	projects := t.TempDir()
	f := Open(projects, Written, 0).Folder("ABCDEFGHIJ", noon)
	if got, want := f.Path(), "/projects/executions/20250701-120000-abcdefgh"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if files, err := f.Finish("x", "y"); err != nil || files != nil || folders(t, projects) != nil {
		t.Errorf("a run that saved nothing left %v, %v", folders(t, projects), err)
	}
	saved, err := f.Save("images/a b.png", []byte("12345"))
	if err != nil {
		t.Fatal(err)
	}
	if saved.Name != "images/a b.png" || saved.Path != f.name+"/images/a b.png" || saved.Size != 5 || !strings.HasSuffix(saved.URL, "/images/a%20b.png") {
		t.Errorf("got %+v", saved)
	}
	if _, err := f.Save("images/a b.png", nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file was replaced: %v", err)
	}
	files, err := f.Finish("print(1)", "1\n")
	if err != nil || !slices.Equal(names(files), []string{"images/a b.png"}) {
		t.Errorf("got %v, %v", files, err)
	}
	for name, want := range map[string]string{"code.py": "print(1)", "output.txt": "1\n"} {
		if got, err := os.ReadFile(filepath.Join(projects, Dir, f.name, name)); string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

func TestModes(t *testing.T) {
	tests := []struct {
		name     string
		projects bool
		mode     Mode
		want     int // folders after a run that saved nothing; -1: no store
	}{
		{"default", true, "", 0},
		{"written", true, Written, 0},
		{"all", true, All, 1},
		{"none", true, None, -1},
		{"no directory", false, All, -1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			projects := ""
			if tc.projects {
				projects = t.TempDir()
			}
			store := Open(projects, tc.mode, 0)
			if (store == nil) != (tc.want < 0) {
				t.Fatalf("the store is %v", store)
			}
			f := store.Folder("abc", noon)
			if _, err := f.Finish("x", "y"); err != nil {
				t.Error(err)
			}
			if n := len(folders(t, projects)); n != max(tc.want, 0) {
				t.Errorf("there are %d folders", n)
			}
			if f == nil && f.Path()+f.URL() != "" {
				t.Error("no folder has a path")
			}
		})
	}
}

// A script may put anything in its folder, and links in its place.
func TestFinishIsNotLedAway(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, projects, folder, victim string) error
		want []string // files
	}{
		{"code is a link", func(_ *testing.T, _, folder, victim string) error {
			return os.Symlink(victim, filepath.Join(folder, codeFile))
		}, nil},
		{"output is a folder", func(_ *testing.T, _, folder, _ string) error {
			return os.MkdirAll(filepath.Join(folder, outputFile, "x"), 0o700)
		}, nil},
		{"a link among the files", func(_ *testing.T, _, folder, victim string) error {
			return errors.Join(os.Symlink(victim, filepath.Join(folder, "link")), os.WriteFile(filepath.Join(folder, "b"), nil, 0o600))
		}, []string{"b"}},
		{"the folder is a link", func(_ *testing.T, projects, folder, _ string) error {
			return errors.Join(os.Remove(folder), os.Symlink(filepath.Join(projects, "other"), folder))
		}, nil},
		{"the directory is a link", func(_ *testing.T, projects, _, _ string) error {
			dir := filepath.Join(projects, Dir)
			return errors.Join(os.Rename(dir, dir+"-before"), os.Symlink(filepath.Join(projects, "other"), dir))
		}, nil},
		{"the directory is a file", func(_ *testing.T, projects, _, _ string) error {
			dir := filepath.Join(projects, Dir)
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			projects := t.TempDir()
			victim := filepath.Join(projects, "user_tools.py")
			other := filepath.Join(projects, "other")
			if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Mkdir(other, 0o700)); err != nil {
				t.Fatal(err)
			}
			makeFolder(t, other, noon, "old", true) // what a link could lead to
			f := Open(projects, Written, 1).Folder("abc", noon)
			folder := filepath.Join(projects, Dir, makeFolder(t, projects, noon, "abc", false))
			if err := tc.make(t, projects, folder, victim); err != nil {
				t.Skip(err)
			}
			files, _ := f.Finish("evil", "evil")
			if !slices.Equal(names(files), tc.want) {
				t.Errorf("files %v, want %v", names(files), tc.want)
			}
			if got, err := os.ReadFile(victim); string(got) != "precious" {
				t.Errorf("another file became %q, %v", got, err)
			}
			entries, err := os.ReadDir(other)
			if err != nil || len(entries) != 1 {
				t.Errorf("another folder has %v, %v", entries, err)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	projects := t.TempDir()
	long := noon.Add(-48 * time.Hour)
	var want []string
	for i := range 8 {
		name := makeFolder(t, projects, long.Add(time.Duration(i)*time.Minute), "run", i != 7)
		if i >= 5 { // with the new one four are kept
			want = append(want, name)
		}
	}
	// What isn't a folder of a run, or of one that is still going on, stays.
	for _, name := range []string{"notes", "20250601-120000", "20250601-120000-ABC", "20259901-120000-abc", "x20250601-120000-abc"} {
		if err := os.MkdirAll(filepath.Join(projects, Dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	file := "20250601-120000-file"
	if err := os.WriteFile(filepath.Join(projects, Dir, file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	want = append(want, file, makeFolder(t, projects, now.Add(-50*time.Minute), "busy", false))
	if err := os.Symlink(projects, filepath.Join(projects, Dir, "20250601-120000-link")); err == nil {
		want = append(want, "20250601-120000-link")
	}
	f := Open(projects, All, 4).Folder("new", now)
	if _, err := f.Finish("", ""); err != nil {
		t.Fatal(err)
	}
	want = append(want, f.name)
	slices.Sort(want)
	if got := folders(t, projects); !slices.Equal(got, want) {
		t.Errorf("there are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Two processes finish runs side by side: none fails, and the newest folders are there in the end.
func TestPruneBetweenProcesses(t *testing.T) {
	const runs, keep = 60, 5
	if projects := os.Getenv("ARTIFACT_TEST_PROJECTS"); projects != "" {
		store := Open(projects, Written, keep)
		for i := range runs {
			f := store.Folder(fmt.Sprintf("%02dp%d", i, os.Getpid()%10_000), time.Now())
			if _, err := f.Save("data/x", []byte("x")); err != nil {
				t.Errorf("run %d: %v", i, err)
			}
			if _, err := f.Finish("x", "y"); err != nil {
				t.Errorf("run %d: %v", i, err)
			}
		}
		return
	}
	projects := t.TempDir()
	var processes []*exec.Cmd
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPruneBetweenProcesses$", "-test.count=1")
		cmd.Env = append(os.Environ(), "ARTIFACT_TEST_PROJECTS="+projects)
		out := &strings.Builder{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	for _, cmd := range processes {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, cmd.Stdout)
		}
	}
	if t.Failed() {
		return
	}
	if _, err := Open(projects, All, keep).Folder("last", time.Now().Add(time.Hour)).Finish("", ""); err != nil {
		t.Fatal(err)
	}
	got := folders(t, projects)
	if len(got) != keep || !strings.HasSuffix(got[keep-1], "-last") {
		t.Errorf("there are %v", got)
	}
}

func TestFileURL(t *testing.T) {
	tests := []struct {
		name, path string
		windows    bool
		want       string
	}{
		{"plain", "/home/me/x.png", false, "file:///home/me/x.png"},
		{"escapes", "/home/mé/50% #1?.png", false, "file:///home/m%C3%A9/50%25%20%231%3F.png"},
		{"backslash", `/a\b`, false, "file:///a%5Cb"},
		{"two slashes", "//a/b", false, "file:////a/b"},
		{"drive", `C:\Users\me\x y.png`, true, "file:///C:/Users/me/x%20y.png"},
		{"long drive", `\\?\C:\x.png`, true, "file:///C:/x.png"},
		{"share", `\\server\share\x.png`, true, "file://server/share/x.png"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := fileURL(tc.path, tc.windows); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
