package sandboxfs

import (
	"io"
	"math"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"
)

// noAccess is the flag of a handle that may neither read nor write.
const noAccess = sys.O_RDWR | sys.O_WRONLY

func canRead(flag sys.Oflag) bool {
	return flag&noAccess == sys.O_RDONLY || flag&noAccess == sys.O_RDWR
}

func canWrite(flag sys.Oflag) bool {
	return flag&noAccess == sys.O_WRONLY || flag&noAccess == sys.O_RDWR
}

// distance is Seek's first parameter. It has a name of its own because vet takes
// every Seek(int64, int) for an io.Seeker, which returns an error.
type distance = int64

// seek returns where Seek leads from offset, in a file of the given size.
func seek(offset, size, by int64, whence int) (int64, sys.Errno) {
	var from int64
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		from = offset
	case io.SeekEnd:
		from = size
	default:
		return 0, sys.EINVAL
	}
	if by > 0 && from > math.MaxInt64-by || from+by < 0 {
		return 0, sys.EINVAL
	}
	return from + by, 0
}

// file is a handle on a node: a file or directory in memory or in a Base.
type file struct {
	sys.UnimplementedFile

	f    *FS
	node *node

	path   string    // as opened; it may have been renamed since
	flag   sys.Oflag // access mode and O_APPEND
	offset int64
	list   cursor
	listed int // the most entries that wazero may hold of a listing
	closed bool
}

var _ sys.File = (*file)(nil)

// lock locks the FS, and reports EBADF if the handle or the FS was closed.
func (h *file) lock() sys.Errno {
	h.f.mu.Lock()
	if h.closed || h.f.closed {
		return sys.EBADF
	}
	return 0
}

func (h *file) unlock() { h.f.mu.Unlock() }

// Dev implements the same method of [sys.File].
func (h *file) Dev() (uint64, sys.Errno) { return h.node.dev(), 0 }

// Ino implements the same method of [sys.File].
func (h *file) Ino() (wasys.Inode, sys.Errno) { return h.node.ino, 0 }

// IsDir implements the same method of [sys.File].
func (h *file) IsDir() (bool, sys.Errno) { return h.node.isDir(), 0 }

// IsAppend implements the same method of [sys.File].
func (h *file) IsAppend() bool { return h.flag&sys.O_APPEND != 0 }

// SetAppend implements the same method of [sys.File].
func (h *file) SetAppend(enable bool) sys.Errno {
	errno := h.lock()
	defer h.unlock()
	if errno != 0 {
		return errno
	}
	if h.flag &^= sys.O_APPEND; enable {
		h.flag |= sys.O_APPEND
	}
	return 0
}

// Stat implements the same method of [sys.File].
func (h *file) Stat() (wasys.Stat_t, sys.Errno) {
	errno := h.lock()
	defer h.unlock()
	if errno != 0 {
		return wasys.Stat_t{}, errno
	}
	return h.node.stat(), 0
}

// Read implements the same method of [sys.File].
func (h *file) Read(p []byte) (int, sys.Errno) {
	errno := h.lock()
	defer h.unlock()
	if errno != 0 {
		return 0, errno
	}
	n, errno := h.read(p, h.offset)
	h.offset += int64(n)
	return n, errno
}

// Pread implements the same method of [sys.File].
func (h *file) Pread(p []byte, off int64) (int, sys.Errno) {
	errno := h.lock()
	defer h.unlock()
	if errno != 0 {
		return 0, errno
	}
	return h.read(p, off)
}

func (h *file) read(p []byte, off int64) (int, sys.Errno) {
	switch {
	case off < 0:
		return 0, sys.EINVAL
	case !canRead(h.flag):
		return 0, sys.EBADF
	case h.node.isDir():
		return 0, sys.EISDIR
	}
	n, errno := h.node.read(p, off)
	h.accessed()
	return n, h.f.report(errno)
}

// accessed keeps the access time as Linux does by default: it is brought up to
// date if it isn't newer than the last change, or a day old.
func (h *file) accessed() {
	n := h.node
	if n.shared {
		return
	}
	now := h.f.now().UnixNano()
	if n.atim <= n.mtim || n.atim <= n.ctim || now-n.atim > int64(24*time.Hour) {
		n.atim = now
	}
}

// Write implements the same method of [sys.File].
func (h *file) Write(p []byte) (int, sys.Errno) {
	errno := h.lock()
	defer h.unlock()
	if errno != 0 {
		return 0, errno
	}
	off := h.offset
	if h.IsAppend() {
		off = h.node.data.size
	}
	n, errno := h.write(p, off)
	if n > 0 {
		h.offset = off + int64(n)
	}
	return n, h.f.report(errno)
}

// Pwrite implements the same method of [sys.File]. As on Linux, a handle in append
// mode appends.
func (h *file) Pwrite(p []byte, off int64) (int, sys.Errno) {
	errno := h.lock()
	defer h.unlock()
	if errno != 0 {
		return 0, errno
	}
	if off >= 0 && h.IsAppend() {
		off = h.node.data.size
	}
	n, errno := h.write(p, off)
	return n, h.f.report(errno)
}

func (h *file) write(p []byte, off int64) (int, sys.Errno) {
	switch {
	case off < 0:
		return 0, sys.EINVAL
	case !canWrite(h.flag):
		return 0, sys.EBADF
	case len(p) == 0:
		return 0, 0
	case h.node.device != nil:
		return len(p), 0
	case off >= maxFileSize:
		return 0, EFBIG
	}
	p = p[:min(int64(len(p)), maxFileSize-off)]
	// A short write must not also be an error: wazero would drop the count.
	n := h.node.data.writeAt(&h.f.memory, p, off)
	if n == 0 {
		return 0, ENOSPC
	}
	h.f.changed(h.node)
	return n, 0
}

// Truncate implements the same method of [sys.File].
func (h *file) Truncate(size int64) sys.Errno {
	errno := h.lock()
	defer h.unlock()
	switch {
	case errno != 0:
		return errno
	case size < 0 || !canWrite(h.flag) || h.node.device != nil:
		return sys.EINVAL
	case size > maxFileSize:
		return h.f.report(EFBIG)
	}
	h.node.data.truncate(&h.f.memory, size)
	h.f.changed(h.node)
	return 0
}

// Seek implements the same method of [sys.File].
func (h *file) Seek(by distance, whence int) (int64, sys.Errno) {
	errno := h.lock()
	defer h.unlock()
	if errno != 0 {
		return 0, errno
	}
	if h.node.isDir() {
		if by != 0 || whence != io.SeekStart {
			return 0, sys.EINVAL
		}
		h.list = cursor{}
		return 0, 0
	}
	if h.node.device != nil {
		return 0, 0 // as Linux does it
	}
	offset, errno := seek(h.offset, h.node.data.size, by, whence)
	if errno != 0 {
		return 0, errno
	}
	h.offset = offset
	return offset, 0
}

// Readdir implements the same method of [sys.File].
func (h *file) Readdir(n int) ([]sys.Dirent, sys.Errno) {
	errno := h.lock()
	defer h.unlock()
	switch {
	case errno != 0:
		return nil, errno
	case !h.node.isDir():
		return nil, sys.ENOTDIR
	}
	before := h.list
	names := h.node.dir.list(&h.list, n)
	if errno := h.f.holds(&h.listed, len(names)); errno != 0 {
		h.list = before
		return nil, h.f.report(errno)
	}
	return names, 0
}

// holds accounts for a batch of n entries that was read from a handle whose
// largest batch so far is *most. See maxListed.
func (f *FS) holds(most *int, n int) sys.Errno {
	if n <= *most {
		return 0
	}
	if f.listed+n-*most > maxListed {
		return EMFILE
	}
	f.listed += n - *most
	*most = n
	return 0
}

// Sync implements the same method of [sys.File].
func (h *file) Sync() sys.Errno {
	errno := h.lock()
	defer h.unlock()
	return errno
}

// Datasync implements the same method of [sys.File].
func (h *file) Datasync() sys.Errno { return h.Sync() }

// Utimens implements the same method of [sys.File].
func (h *file) Utimens(atim, mtim int64) sys.Errno {
	errno := h.lock()
	defer h.unlock()
	if errno != 0 {
		return errno
	}
	return h.f.setTimes(h.node, atim, mtim)
}

// Close implements the same method of [sys.File]. It always succeeds.
func (h *file) Close() sys.Errno {
	errno := h.lock()
	defer h.unlock()
	if errno != 0 {
		return 0
	}
	h.closed = true
	h.f.open--
	h.f.listed -= h.listed
	if !h.node.shared {
		h.node.opens--
		h.f.release(h.node)
	}
	return 0
}
