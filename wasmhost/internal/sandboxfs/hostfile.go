package sandboxfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"
)

// hostFile is a handle on a file or directory in /projects. It keeps its own
// offset; that of the host's file is used by nothing.
type hostFile struct {
	sys.UnimplementedFile

	f    *FS
	file *os.File
	st   wasys.Stat_t // when it was opened: what can't change

	path   string    // as opened; it may have been renamed since
	rel    string    // the same below /projects
	flag   sys.Oflag // access mode and O_APPEND
	offset int64
	listed int // the most entries that wazero may hold of a listing
	closed atomic.Bool
}

var _ sys.File = (*hostFile)(nil)

// openHost opens a file in /projects.
func (f *FS) openHost(name string, at place, flag sys.Oflag, perm fs.FileMode) (sys.File, sys.Errno) {
	p := f.projects
	access := flag & (sys.O_RDWR | sys.O_WRONLY)
	writes := access != sys.O_RDONLY || flag&sys.O_TRUNC != 0
	creates := flag&sys.O_CREAT != 0

	switch {
	case creates && at.slash && at.name != "":
		return nil, p.unnamed(place{rel: path.Dir(at.rel), slash: true}, sys.EISDIR)
	case creates && at.name == "" && flag&sys.O_EXCL != 0:
		return nil, p.unnamed(at, sys.EEXIST)
	case creates && at.name == "":
		return nil, p.unnamed(at, sys.EISDIR)
	}

	// Looking before opening spares other programs the side effects that opening
	// their FIFOs and devices would have. It isn't what safety rests on.
	info, err := p.root.Lstat(at.rel)
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		switch {
		case creates && flag&sys.O_EXCL != 0:
			return nil, sys.EEXIST
		case at.slash || flag&sys.O_NOFOLLOW == 0:
		case flag&sys.O_DIRECTORY != 0:
			return nil, sys.ENOTDIR
		default:
			return nil, sys.ELOOP
		}
		info, err = p.root.Stat(at.rel)
	}
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return nil, p.errno(err)
	case creates && !missing && info.IsDir() && flag&sys.O_EXCL == 0:
		return nil, sys.EISDIR
	case missing && !creates:
		return nil, p.errno(err)
	case missing:
	case creates && flag&sys.O_EXCL != 0:
		return nil, sys.EEXIST
	case (at.slash || flag&sys.O_DIRECTORY != 0) && !info.IsDir():
		return nil, sys.ENOTDIR
	case writes && info.IsDir():
		return nil, sys.EISDIR
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil, sys.EACCES
	}

	osFlag := openFlags
	switch access {
	case sys.O_WRONLY:
		osFlag |= os.O_WRONLY
	case sys.O_RDWR:
		osFlag |= os.O_RDWR
	}
	if creates {
		osFlag |= os.O_CREATE
		if flag&sys.O_EXCL != 0 {
			osFlag |= os.O_EXCL
		}
	}
	if flag&sys.O_TRUNC != 0 && access == sys.O_RDONLY {
		// Only the kernel can truncate through such a handle. Otherwise Truncate
		// does it, which counts what it frees.
		osFlag |= os.O_TRUNC
	}
	var file *os.File
	open := func() (err error) {
		file, err = p.root.OpenFile(at.rel, osFlag, perm&fs.ModePerm)
		return err
	}
	var errno sys.Errno
	if missing {
		errno = p.naming(open)
	} else {
		errno = p.errno(open())
	}
	if errno != 0 {
		return nil, errno
	}

	info, err = file.Stat()
	h := &hostFile{f: f, file: file, path: name, rel: at.rel, flag: access}
	switch {
	case err != nil:
		errno = p.errno(err)
	case !info.IsDir() && !info.Mode().IsRegular(), info.IsDir() && writes:
		errno = sys.EACCES
	default:
		h.st = hostStat(at.rel, info)
		if flag&sys.O_TRUNC != 0 && access != sys.O_RDONLY {
			errno = h.truncate(0)
		}
		if errno == 0 && flag&sys.O_APPEND != 0 {
			errno = h.SetAppend(true)
		}
	}
	if errno != 0 {
		file.Close()
		return nil, errno
	}
	p.handles[h] = struct{}{}
	return h, 0
}

// errno maps an error of the host's file, which is closed if the handle is.
func (h *hostFile) errno(err error) sys.Errno { return h.f.projects.errno(err) }

func (h *hostFile) isDir() bool { return h.st.Mode.IsDir() }

// Dev implements the same method of [sys.File].
func (h *hostFile) Dev() (uint64, sys.Errno) { return h.id().dev, 0 }

// Ino implements the same method of [sys.File].
func (h *hostFile) Ino() (wasys.Inode, sys.Errno) { return h.st.Ino, 0 }

// IsDir implements the same method of [sys.File].
func (h *hostFile) IsDir() (bool, sys.Errno) { return h.isDir(), 0 }

// IsAppend implements the same method of [sys.File].
func (h *hostFile) IsAppend() bool { return h.flag&sys.O_APPEND != 0 }

// SetAppend implements the same method of [sys.File].
func (h *hostFile) SetAppend(enable bool) sys.Errno {
	if h.closed.Load() {
		return sys.EBADF
	}
	if enable == h.IsAppend() {
		return 0
	}
	if err := setAppend(h.file, enable); err != nil {
		return h.errno(err)
	}
	h.flag ^= sys.O_APPEND
	return 0
}

// Stat implements the same method of [sys.File].
func (h *hostFile) Stat() (wasys.Stat_t, sys.Errno) {
	info, err := h.file.Stat()
	if err != nil {
		return wasys.Stat_t{}, h.errno(err)
	}
	st := hostStat(h.rel, info)
	st.Ino = h.st.Ino
	return st, 0
}

// Read implements the same method of [sys.File].
func (h *hostFile) Read(p []byte) (int, sys.Errno) {
	n, errno := h.Pread(p, h.offset)
	h.offset += int64(n)
	return n, errno
}

// Pread implements the same method of [sys.File].
func (h *hostFile) Pread(p []byte, off int64) (int, sys.Errno) {
	switch {
	case h.closed.Load() || !canRead(h.flag):
		return 0, sys.EBADF
	case off < 0:
		return 0, sys.EINVAL
	case h.isDir():
		return 0, sys.EISDIR
	}
	n, err := h.file.ReadAt(p, off)
	if n > 0 || errors.Is(err, io.EOF) {
		return n, 0
	}
	return 0, h.f.report(h.errno(err))
}

// Write implements the same method of [sys.File].
func (h *hostFile) Write(p []byte) (int, sys.Errno) {
	n, end, errno := h.write(p, h.offset)
	if n > 0 {
		h.offset = end
	}
	return n, h.f.report(errno)
}

// Pwrite implements the same method of [sys.File]. As on Linux, a handle in append
// mode appends.
func (h *hostFile) Pwrite(p []byte, off int64) (int, sys.Errno) {
	n, _, errno := h.write(p, off)
	return n, h.f.report(errno)
}

// write writes at off, or at the end in append mode, and returns how much it wrote
// and where that ended.
func (h *hostFile) write(p []byte, off int64) (n int, end int64, errno sys.Errno) {
	switch {
	case h.closed.Load() || !canWrite(h.flag):
		return 0, 0, sys.EBADF
	case off < 0:
		return 0, 0, sys.EINVAL
	case len(p) == 0:
		return 0, off, 0
	}
	info, err := h.file.Stat()
	if err != nil {
		return 0, 0, h.errno(err)
	}
	size := info.Size()
	if h.IsAppend() {
		off = size
	}
	if off > maxFileSize-int64(len(p)) {
		return 0, 0, EFBIG
	}

	growth := max(0, off+int64(len(p))-size)
	got := h.f.projects.take(growth)
	if short := growth - got; short > 0 {
		if short >= int64(len(p)) {
			h.f.projects.give(got)
			return 0, 0, ENOSPC
		}
		p = p[:int64(len(p))-short]
	}
	// In append mode the kernel ignores the offset, so that it may append after
	// what another process just appended.
	n, err = h.file.WriteAt(p, off)
	h.f.projects.give(got - max(0, off+int64(n)-size))
	if n == 0 {
		return 0, 0, h.errno(err)
	}
	// A short write must not also be an error: wazero would drop the count.
	return n, off + int64(n), 0
}

// Truncate implements the same method of [sys.File].
func (h *hostFile) Truncate(size int64) sys.Errno {
	switch {
	case h.closed.Load():
		return sys.EBADF
	case size < 0 || !canWrite(h.flag):
		return sys.EINVAL
	case size > maxFileSize:
		return h.f.report(EFBIG)
	}
	return h.f.report(h.truncate(size))
}

func (h *hostFile) truncate(size int64) sys.Errno {
	p := h.f.projects
	info, err := h.file.Stat()
	if err != nil {
		return h.errno(err)
	}
	growth := max(0, size-info.Size())
	if got := p.take(growth); got < growth {
		p.give(got)
		return ENOSPC
	}
	if err := h.file.Truncate(size); err != nil {
		p.give(growth)
		return h.errno(err)
	}
	p.give(max(0, info.Size()-size))
	return 0
}

// Seek implements the same method of [sys.File].
func (h *hostFile) Seek(by distance, whence int) (int64, sys.Errno) {
	if h.closed.Load() {
		return 0, sys.EBADF
	}
	if h.isDir() {
		if by != 0 || whence != io.SeekStart {
			return 0, sys.EINVAL
		}
		_, err := h.file.Seek(0, io.SeekStart)
		return 0, h.errno(err)
	}
	var size int64
	if whence == io.SeekEnd {
		info, err := h.file.Stat()
		if err != nil {
			return 0, h.errno(err)
		}
		size = info.Size()
	}
	offset, errno := seek(h.offset, size, by, whence)
	if errno != 0 {
		return 0, errno
	}
	h.offset = offset
	return offset, 0
}

// Readdir implements the same method of [sys.File].
func (h *hostFile) Readdir(n int) ([]sys.Dirent, sys.Errno) {
	switch {
	case h.closed.Load():
		return nil, sys.EBADF
	case !h.isDir():
		return nil, sys.ENOTDIR
	}
	if n <= 0 || n > maxListed {
		n = maxListed + 1 // which is refused below
	}
	var names []sys.Dirent
	// ReadDir may return fewer than it was asked for if files vanish meanwhile;
	// for wazero that would be the end.
	for len(names) < n {
		entries, err := h.file.ReadDir(min(n-len(names), 1024))
		for _, e := range entries {
			d := sys.Dirent{Name: e.Name(), Type: e.Type()}
			if info, err := e.Info(); err == nil {
				d.Ino = hostStat(h.rel+"/"+d.Name, info).Ino
			}
			names = append(names, d)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, h.f.report(h.errno(err))
		}
	}
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if errno := h.f.holds(&h.listed, len(names)); errno != 0 {
		return nil, h.f.report(errno)
	}
	return names, 0
}

// Sync implements the same method of [sys.File].
func (h *hostFile) Sync() sys.Errno {
	if h.closed.Load() {
		return sys.EBADF
	}
	return h.f.report(h.errno(h.file.Sync()))
}

// Datasync implements the same method of [sys.File].
func (h *hostFile) Datasync() sys.Errno { return h.Sync() }

// Utimens implements the same method of [sys.File].
func (h *hostFile) Utimens(atim, mtim int64) sys.Errno {
	if h.closed.Load() {
		return sys.EBADF
	}
	return h.f.report(h.errno(h.chtimes(atim, mtim)))
}

// chtimesByPath sets the times of the file by the path it was opened with, if that
// still is its path.
func (h *hostFile) chtimesByPath(atim, mtim int64) error {
	now, err := h.f.projects.root.Stat(h.rel)
	if err != nil {
		return err
	}
	opened, err := h.file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(now, opened) {
		return sys.ENOENT
	}
	return h.f.projects.root.Chtimes(h.rel, hostTime(atim), hostTime(mtim))
}

// Close implements the same method of [sys.File]. It always succeeds.
func (h *hostFile) Close() sys.Errno {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if h.closed.Swap(true) {
		return 0
	}
	h.f.open--
	h.f.listed -= h.listed
	delete(h.f.projects.handles, h)
	h.f.projects.unlock(h.id())
	h.file.Close()
	return 0
}

// hostTimes is the handle with which wazero sets the times of a file in /projects
// without following a symlink. It can do nothing else, and opens nothing.
type hostTimes struct {
	sys.UnimplementedFile
	f      *FS
	at     place
	closed bool
}

// Utimens implements the same method of [sys.File].
func (h *hostTimes) Utimens(atim, mtim int64) sys.Errno {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if h.f.closed {
		return sys.EBADF
	}
	p := h.f.projects
	st, errno := p.stat(h.at, followSlash)
	switch {
	case errno != 0:
		return h.f.report(errno)
	case h.at.slash:
		return h.f.report(p.utimens(h.at, atim, mtim))
	}
	// Not every host can leave one of them alone.
	if atim == sys.UTIME_OMIT {
		atim = st.Atim
	}
	if mtim == sys.UTIME_OMIT {
		mtim = st.Mtim
	}
	return h.f.report(p.errno(p.lchtimes(h.at.rel, atim, mtim)))
}

// Close implements the same method of [sys.File].
func (h *hostTimes) Close() sys.Errno {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if !h.closed && !h.f.closed {
		h.f.open--
	}
	h.closed = true
	return 0
}
