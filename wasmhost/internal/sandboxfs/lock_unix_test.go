//go:build linux || darwin

package sandboxfs

import (
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"
)

func TestLocks(t *testing.T) {
	f, projects := newProjects(t, Options{})
	other := newFS(t, Options{Projects: projects})
	put(t, f, "projects/db", "")
	put(t, f, "projects/db2", "")
	a := open(t, f, "projects/db", sys.O_RDONLY)
	a2 := open(t, f, "projects/db", sys.O_RDWR)
	b := open(t, other, "projects/db", sys.O_RDWR)
	id := b.(*hostFile).id()

	want(t, "to read", f.lock(id, lockRead, 10, 5), 0)
	want(t, "to read, by the other", other.lock(id, lockRead, 10, 5), 0)
	want(t, "to write, beside it", f.lock(id, lockWrite, 20, 1), 0)
	want(t, "to write, in the same session", f.lock(id, lockWrite, 20, 1), 0)
	want(t, "to write, what another reads", f.lock(id, lockWrite, 12, 1), sys.EAGAIN)
	want(t, "to read, what another writes", other.lock(id, lockRead, 0, 0), sys.EAGAIN)
	if !other.locked(id, 20, 1) || f.locked(id, 20, 1) || other.locked(id, 30, 1) {
		t.Error("the write lock should be seen by the other session, and by it only")
	}

	want(t, "unlock", f.lock(id, lockNone, 20, 1), 0)
	want(t, "to write, once it is free", other.lock(id, lockWrite, 20, 1), 0)

	// A session that closes any of its handles loses its locks, and so does one that ends.
	want(t, "to read", f.lock(id, lockRead, 30, 1), 0)
	a.Close()
	want(t, "to write, after a close", other.lock(id, lockWrite, 30, 1), 0)
	other.Close()
	want(t, "to write, after the end of the other", f.lock(id, lockWrite, 0, 0), 0)
	a2.Close()
	if len(f.projects.lockers) != 0 {
		t.Errorf("%d lockers are left", len(f.projects.lockers))
	}
	want(t, "on a file that isn't open", f.lock(id, lockWrite, 0, 0), 0)

	for name, args := range map[string][2]int64{"before the start": {-1, 1}, "of negative length": {1, -1}, "past the end": {1 << 62, 1 << 62}} {
		want(t, name, f.lock(id, lockRead, args[0], args[1]), sys.EINVAL)
	}
	want(t, "of no kind", f.lock(id, 3, 0, 1), sys.EINVAL)
}

func TestLockOfARenamedFile(t *testing.T) {
	f, projects := newProjects(t, Options{})
	other := newFS(t, Options{Projects: projects})
	put(t, f, "projects/db", "")
	h := open(t, f, "projects/db", sys.O_RDWR).(*hostFile)
	want(t, "rename", f.Rename("projects/db", "projects/moved"), 0)
	put(t, f, "projects/db", "another")
	want(t, "lock", f.lock(h.id(), lockWrite, 0, 0), 0)
	moved := open(t, other, "projects/moved", sys.O_RDWR).(*hostFile)
	want(t, "lock by the other", other.lock(moved.id(), lockRead, 0, 0), sys.EAGAIN)
	db := open(t, other, "projects/db", sys.O_RDWR).(*hostFile)
	want(t, "lock of the new file", other.lock(db.id(), lockWrite, 0, 0), 0)
}

func TestFilesInMemoryNeedNoLocks(t *testing.T) {
	f := newFS(t, Options{})
	put(t, f, "tmp/db", "")
	st, _ := f.Stat("tmp/db")
	id := fileID{uint64(uint32(st.Dev)), st.Ino}
	want(t, "lock", f.lock(id, lockWrite, 0, 0), 0)
	if f.locked(id, 0, 0) {
		t.Error("it is locked")
	}
}
