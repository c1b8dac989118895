package memory_test

import (
	"path/filepath"
	"testing"

	"codeexec/memory"
	"codeexec/memory/storetest"
)

// openDir returns an empty store that doesn't sync, and the path of its directory.
func openDir(t testing.TB, limits memory.Limits) (*memory.Dir, string) {
	t.Helper()
	state := t.TempDir()
	path := filepath.Join(state, "user_tools", "memory")
	dir, err := memory.OpenDir(path, filepath.Join(state, "memory.lock"), limits)
	if err != nil {
		t.Fatal(err)
	}
	memory.NoSync(dir)
	return dir, path
}

func TestDirIsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, limits memory.Limits) memory.Store {
		dir, _ := openDir(t, limits)
		return dir
	})
}
