package packages

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// versions are wheels of one package that have some files in common, some not, and a directory each.
func versions(t testing.TB) (one, two string) {
	dir := t.TempDir()
	wheel := func(version string, names ...string) string {
		files := map[string]string{}
		for _, name := range names {
			files[name] = strings.Repeat(version, 3000)
		}
		return wheelSpec{name: "p", version: version, files: files}.make(t, dir)
	}
	return wheel("1", "p/__init__.py", "p/only1/x.py"),
		wheel("2", "p/__init__.py", "p/only2/x.py")
}

// A process may be killed before any of the moves of a change, and again while that is undone.
func TestAChangeThatIsCutShortIsUndone(t *testing.T) {
	one, two := versions(t)
	type killed struct{}
	// die panics in the nth call, where nothing is done any more, as where a process is killed.
	die := func(n int) func() {
		return func() {
			if n--; n < 0 {
				panic(killed{})
			}
		}
	}
	// until reports whether fn came to an end.
	until := func(fn func()) (done bool) {
		defer func() {
			if r := recover(); r != nil && r != any(killed{}) {
				panic(r)
			}
		}()
		fn()
		return true
	}
	for first := 0; ; first++ {
		finished := false
		for second := 0; ; second += 3 {
			f := newFolder(t)
			if _, err := addWheel(f, one); err != nil {
				t.Fatal(err)
			}
			before := readTree(t, f.Path())
			dist, err := ReadWheel(two, "")
			if err != nil {
				t.Fatal(err)
			}
			defer dist.Close()
			root, err := f.open(false)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			installed, err := list(root)
			if err != nil {
				t.Fatal(err)
			}
			old := map[string]bool{}
			for _, name := range installed[0].files {
				old[name] = true
			}
			s := newSwap(root)
			new, err := stage(t.Context(), root, s.new(), dist)
			if err != nil {
				t.Fatal(err)
			}
			s.moving = die(first)
			if until(func() { err = s.replace(new, old) }) {
				if err != nil {
					t.Fatal(err)
				}
				finished = true
				break
			}
			s.moving = die(second)
			undone := until(func() { err = s.undo() })
			if undone && err != nil {
				t.Fatal(err)
			}
			if all, err := f.List(t.Context()); err != nil || len(all) != 1 || all[0].Version != "1" {
				t.Fatalf("killed before moves %d and %d: %+v, %v", first, second, all, err)
			}
			s.close() // it is too young for others
			if got := readTree(t, f.Path()); !maps.Equal(got, before) {
				t.Fatalf("killed before moves %d and %d: %q are left, want %q", first, second, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(before)))
			}
			if undone {
				break
			}
		}
		if finished {
			if first < 12 {
				t.Errorf("there are %d moves only", first)
			}
			return
		}
	}
}

func TestAForgedJournal(t *testing.T) {
	f := newFolder(t)
	mustAdd(t, f, wheelSpec{name: "a"})
	secret := filepath.Join(filepath.Dir(f.Path()), "secret")
	aside := filepath.Join(f.Path(), asidePrefix+"forged")
	for path, text := range map[string]string{
		secret:                             "1",
		filepath.Join(aside, "journal"):    "../secret\n/etc/passwd\n\n..\na/__init__.py/x\nno/such.py\nx\x00y",
		filepath.Join(aside, "old", "odd"): "2",
	} {
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.Symlink("../../../..", filepath.Join(aside, "old", "up"))
	if _, err := f.List(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error(err)
	}
	if _, err := f.Remove(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestWhatKilledProcessesLeaveIsRemoved(t *testing.T) {
	f := newFolder(t)
	mustAdd(t, f, wheelSpec{name: "a"})
	for _, name := range []string{"old", "young"} {
		if err := os.MkdirAll(filepath.Join(f.Path(), asidePrefix+name, "new"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * staleAfter)
	if err := os.Chtimes(filepath.Join(f.Path(), asidePrefix+"old"), long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	checkTree(t, f.Path(), asidePrefix+"young/new/")
}

func TestAKilledProcessLeavesTheOldOrTheNewVersion(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	one, two := versions(t)
	f := newFolder(t)
	whole := map[string]map[string]string{}
	for _, wheel := range []string{two, one} {
		added, err := addWheel(f, wheel)
		if err != nil {
			t.Fatal(err)
		}
		whole[added.Version] = readTree(t, f.Path())
	}
	seen := map[string]int{}
	for range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+strings.Join([]string{f.Path(), f.lock.Path(), one, two, "forever"}, "\n"))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Skip(err)
		}
		var line [1]byte
		out.Read(line[:])
		time.Sleep(rand.N(40 * time.Millisecond)) // it is the moment that is tested
		cmd.Process.Kill()
		cmd.Wait()

		all, err := f.List(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("the list is %+v, %v", all, err)
		}
		got := readTree(t, f.Path())
		maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasPrefix(name, asidePrefix) })
		if !maps.Equal(got, whole[all[0].Version]) {
			t.Errorf("of version %s there are %q", all[0].Version, slices.Sorted(maps.Keys(got)))
		}
		seen[all[0].Version]++
	}
	t.Log("versions found: ", seen)
}

// childForever adds two wheels by turns, and says when it begins.
func childForever(f *Folder, one, two string) error {
	fmt.Println()
	for {
		for _, wheel := range []string{one, two} {
			dist, err := ReadWheel(wheel, "")
			if err != nil {
				return err
			}
			if _, err := f.Add(context.Background(), dist); err != nil {
				return err
			}
			dist.Close()
		}
	}
}
