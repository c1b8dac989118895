package sandboxfs

import (
	"errors"
	"io/fs"
	"math"
	"os"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// fileID says which file a guest means: what it gets for the file by stat,
// without the permissions.
type fileID struct{ dev, ino uint64 }

func (h *hostFile) id() fileID {
	return fileID{uint64(uint32(h.st.Dev)), h.st.Ino}
}

// lockKind is what lock is asked for.
type lockKind uint32

const (
	lockRead lockKind = iota
	lockWrite
	lockNone
)

// lock sets or removes a lock on a range of an open file, as POSIX has it: the
// locks of a session don't exclude each other, they are advisory, and all of a
// session's on a file are gone when it closes any of its handles on the file.
//
// Files in memory belong to one session, so theirs always succeed.
func (f *FS) lock(id fileID, kind lockKind, start, length int64) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind > lockNone || start < 0 || length < 0 || start > math.MaxInt64-length {
		return sys.EINVAL
	}
	p := f.projects
	if p == nil || f.closed {
		return 0
	}
	l := p.lockers[id]
	if l == nil {
		if kind == lockNone {
			return 0
		}
		var errno sys.Errno
		if l, errno = p.newLocker(id); l == nil {
			return errno
		}
	}
	err := setLock(l, kind, start, length)
	if isLocked(err) {
		return sys.EAGAIN
	}
	return p.errno(err)
}

// newLocker opens once more the file that id names, to hold the session's locks on
// it. It returns nil where no handle on it is open, which is so for files in memory.
//
// The handle may be one to read, and the next to write, so the file is opened for
// both if it can be, and if it still is where it was.
func (p *projects) newLocker(id fileID) (*locker, sys.Errno) {
	var of *hostFile
	for h := range p.handles {
		if h.id() == id && !h.isDir() && (of == nil || canWrite(h.flag)) {
			of = h
		}
	}
	if of == nil {
		return nil, 0
	}
	file, err := p.root.OpenFile(of.rel, os.O_RDWR|openFlags, 0)
	if err == nil && !sameFile(file, of.file) {
		file.Close()
		err = fs.ErrNotExist
	}
	if err != nil {
		file, err = reopen(of.file)
	}
	if err != nil {
		return nil, p.errno(err)
	}
	l := &locker{file: file}
	p.lockers[id] = l
	return l, 0
}

func sameFile(a, b *os.File) bool {
	one, err1 := a.Stat()
	two, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(one, two)
}

// locked reports whether another session or process holds a lock that is in the
// way of writing to a range of an open file.
func (f *FS) locked(id fileID, start, length int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.projects == nil || f.closed || start < 0 || length < 0 || start > math.MaxInt64-length {
		return false
	}
	l := f.projects.lockers[id]
	if l == nil {
		if l, _ = f.projects.newLocker(id); l == nil {
			return false
		}
	}
	held, err := getLock(l, start, length)
	return held && err == nil
}

// unlock removes all locks of the session on a file.
func (p *projects) unlock(id fileID) error {
	l := p.lockers[id]
	if l == nil {
		return nil
	}
	delete(p.lockers, id)
	return errors.Join(setLock(l, lockNone, 0, 0), l.file.Close())
}
