package wasmhost

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The smallest module that has code to cache: one function that does nothing.
var tinyModule = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x0a\x04\x01\x02\x00\x0b")

// compileIn compiles the tiny module with a cache in dir and returns what was
// said of the progress.
func compileIn(t *testing.T, dir string) (progress []string) {
	t.Helper()
	e := &Engine{opts: Options{CacheDir: dir, Progress: func(s string) { progress = append(progress, s) }}.withDefaults()}
	if err := e.compile(t.Context(), tinyModule); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return progress
}

func cached(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestCacheIsMadeOnceAndPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if said := compileIn(t, dir); len(said) != 1 || !strings.Contains(said[0], "first run") {
		t.Errorf("the first time it said %q", said)
	}
	if said := compileIn(t, dir); len(said) != 0 {
		t.Errorf("the second time it said %q", said)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the cache may be read by others: %v, %v", info.Mode(), err)
	}
	if len(cached(t, dir)) == 0 {
		t.Error("nothing is cached")
	}
}

func TestDamagedCacheIsReplaced(t *testing.T) {
	dir := t.TempDir()
	compileIn(t, dir)
	for _, damage := range []func(string) error{
		func(name string) error { return os.Truncate(name, 3) },
		func(name string) error { return os.Truncate(name, 0) },
		func(name string) error {
			return os.WriteFile(name, []byte("garbage, and more of it than a header is long"), 0o600)
		},
	} {
		files := cached(t, dir)
		if len(files) == 0 {
			t.Fatal("nothing is cached")
		}
		for _, name := range files {
			if err := damage(name); err != nil {
				t.Fatal(err)
			}
		}
		compileIn(t, dir)
	}
}

func TestUnusableCacheIsDoneWithout(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	compileIn(t, filepath.Join(file, "cache"))
}

func TestCachesOfOldBuildsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	stale, recent := filepath.Join(dir, "native", "stale"), filepath.Join(dir, "native", "recent")
	for _, name := range []string{stale, recent} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * staleAfter)
	if err := os.Chtimes(stale, long, long); err != nil {
		t.Fatal(err)
	}
	compileIn(t, dir)
	entries, err := os.ReadDir(filepath.Join(dir, "native"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if slices.Contains(names, "stale") || !slices.Contains(names, "recent") || len(names) != 2 {
		t.Errorf("left: %q, want recent and the present build's", names)
	}
}
