package sandboxfs

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"
)

// Options configure an FS. The zero value is an empty read-only root with /dev,
// /tmp and /workspace, under the default limits.
type Options struct {
	// Base is what "/" holds besides the mounts, which hide names of its own.
	// Nil: nothing.
	Base *Base

	// Quota bounds what /tmp and /workspace hold together, in bytes. 0: 256 MiB.
	Quota int64

	// Entries bounds the names in /tmp and /workspace together. 0: 16,384.
	Entries int

	// Projects is the directory of the host that is /projects. It must exist.
	// Empty: there is no /projects.
	Projects string

	// ProjectsQuota bounds what the session adds to Projects, in bytes, counted as
	// the package comment says. 0: 1 GiB.
	ProjectsQuota int64

	// OpenFiles bounds the handles open at once. 0: 1,024.
	OpenFiles int

	// Now is the clock for the times of files in memory. Nil: time.Now.
	Now func() time.Time
}

// maxListed bounds the directory entries that wazero holds for all handles
// together: it keeps the last batch that it asked each of them for.
const maxListed = 1 << 18

// FS is the file system of one session. It implements wazero's
// [sys.FS], whose documentation describes the methods; paths are relative to
// "/". Errors are those of Linux.
//
// One guest may use an FS at a time. Usage and Close may be called meanwhile, and
// wait for the operation under way.
type FS struct {
	sys.UnimplementedFS

	openFiles int
	entries   int
	now       func() time.Time
	lastErrno atomic.Uint32 // for the listener of WithErrnos

	projects *projects // nil: none

	// mu guards everything below, all nodes that aren't shared, and their handles.
	// Operations on paths hold it, those on the host's disk included; reading,
	// writing and syncing a file on the host don't.
	mu sync.Mutex

	root                *node
	dev, tmp, workspace *node
	projectsDir         *node // stands for /projects in the listing of "/"

	memory meter
	names  int // in /tmp and /workspace
	inodes uint64
	open   int // handles, those on the host included
	listed int // see maxListed
	closed bool

	createMode    fs.FileMode // see HostModule
	createModeSet bool
}

var _ sys.FS = (*FS)(nil)

// New returns the file system of a new session. It fails if a limit is negative
// or Options.Projects isn't a directory that can be opened.
func New(opts Options) (*FS, error) {
	if opts.Quota < 0 || opts.Entries < 0 || opts.ProjectsQuota < 0 || opts.OpenFiles < 0 {
		return nil, fmt.Errorf("sandbox file system: a limit is negative: quota %d, entries %d, projects quota %d, open files %d",
			opts.Quota, opts.Entries, opts.ProjectsQuota, opts.OpenFiles)
	}
	f := &FS{
		openFiles: orDefault(opts.OpenFiles, 1024),
		entries:   orDefault(opts.Entries, 16384),
		memory:    meter{limit: orDefault(opts.Quota, 256<<20)},
		now:       opts.Now,
	}
	if f.now == nil {
		f.now = time.Now
	}
	now := f.now().UnixNano()

	f.root = &node{ino: 1, mode: fs.ModeDir | 0o555, nlink: 2, shared: true, dir: &directory{}, atim: now, mtim: now, ctim: now}
	f.root.parent = f.root
	if opts.Base != nil {
		for _, e := range opts.Base.root.dir.order {
			f.root.dir.put(e.name, e.node)
		}
		f.root.nlink = opts.Base.root.nlink
	}
	mount := func(name string, n *node) *node {
		n.parent = f.root
		f.root.dir.put(name, n)
		f.root.nlink++
		return n
	}
	f.dev = mount("dev", f.newDevices(now))
	f.tmp = mount("tmp", f.newNode(fs.ModeDir|0o777, now))
	f.workspace = mount("workspace", f.newNode(fs.ModeDir|0o777, now))
	if opts.Projects != "" {
		p, err := openProjects(opts.Projects, orDefault(opts.ProjectsQuota, 1<<30))
		if err != nil {
			return nil, err
		}
		f.projects = p
		f.projectsDir = mount("projects", f.newNode(fs.ModeDir|0o777, now))
	}
	return f, nil
}

func orDefault[T int | int64](n, def T) T {
	if n == 0 {
		return def
	}
	return n
}

// Usage is what a session uses of its limits.
type Usage struct {
	Bytes         int64 // held in memory for /tmp and /workspace
	Entries       int   // names in /tmp and /workspace
	OpenFiles     int   // handles
	ProjectsBytes int64 // charged for /projects since the start or RenewProjectsQuota
}

// Usage returns what the session uses now. After Close it is zero.
func (f *FS) Usage() Usage {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return Usage{}
	}
	u := Usage{Bytes: f.memory.used, Entries: f.names, OpenFiles: f.open}
	if f.projects != nil {
		u.ProjectsBytes = f.projects.charged()
	}
	return u
}

// RenewProjectsQuota starts a new count against Options.ProjectsQuota.
func (f *FS) RenewProjectsQuota() {
	if f.projects != nil {
		f.projects.renew()
	}
}

// Close frees the files in memory and closes every handle on the host. A guest
// that still runs finds no file any more: paths give ENOENT, handles EBADF.
// Closing again does nothing.
func (f *FS) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	f.root = &node{ino: 1, mode: fs.ModeDir | 0o555, nlink: 2, shared: true, dir: &directory{}}
	f.root.parent = f.root
	f.dev, f.tmp, f.workspace, f.projectsDir = nil, nil, nil, nil
	if f.projects != nil {
		return f.projects.close()
	}
	return nil
}

func (f *FS) newNode(mode fs.FileMode, now int64) *node {
	f.inodes++
	n := &node{ino: f.inodes, mode: mode, nlink: 1, atim: now, mtim: now, ctim: now}
	if mode.IsDir() {
		n.nlink, n.dir = 2, &directory{}
	}
	return n
}

// create puts a new name into the directory of at, which has nothing there.
func (f *FS) create(at place, n *node) sys.Errno {
	if at.dir.shared {
		return sys.EROFS
	}
	if f.names >= f.entries {
		return ENOSPC
	}
	f.names++
	at.dir.dir.put(at.name, n)
	if n.isDir() {
		n.parent = at.dir
		at.dir.nlink++
	}
	f.changed(at.dir)
	return 0
}

// changed sets the times of a file or directory whose content changed.
func (f *FS) changed(n *node) {
	n.mtim = f.now().UnixNano()
	n.ctim = n.mtim
}

// erase removes a name, which is there.
func (f *FS) erase(at place) {
	at.dir.dir.remove(at.name)
	f.names--
	if at.node.isDir() {
		at.dir.nlink--
	}
	f.changed(at.dir)
	f.unlinked(at.node)
}

// unlinked is to be called when a name of n is gone.
func (f *FS) unlinked(n *node) {
	n.ctim = f.now().UnixNano()
	if n.nlink--; n.isDir() {
		n.nlink = 0
	}
	f.release(n)
}

// release frees the content of a node that has neither names nor handles.
func (f *FS) release(n *node) {
	if n.nlink > 0 || n.opens > 0 || n.shared || f.closed {
		return
	}
	n.data.truncate(&f.memory, 0)
	f.memory.give(int64(len(n.target)))
	n.target = ""
}

// OpenFile implements the same method of [sys.FS].
func (f *FS) OpenFile(name string, flag sys.Oflag, perm fs.FileMode) (sys.File, sys.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, errno := f.openFile(name, flag, perm)
	if errno != 0 {
		return nil, f.report(errno)
	}
	f.open++
	return h, 0
}

func (f *FS) openFile(name string, flag sys.Oflag, perm fs.FileMode) (sys.File, sys.Errno) {
	mode := perm
	if flag&sys.O_CREAT != 0 {
		mode = f.takeCreateMode(perm)
	}
	// See "Why some flags and permissions mean something odd".
	preopen := name == "." && flag == sys.O_RDONLY && perm == 0
	timesOnly := flag == sys.O_WRONLY && perm == 0

	links := followAlways
	switch {
	case flag&sys.O_CREAT != 0 && flag&(sys.O_EXCL|sys.O_NOFOLLOW) != 0:
		links = followNever
	case flag&sys.O_CREAT != 0:
		links = followBare
	case timesOnly || flag&sys.O_NOFOLLOW != 0:
		links = followSlash
	}
	at, errno := f.walk(name, links)
	switch {
	case errno != 0:
		return nil, errno
	case f.open >= f.openFiles && !preopen:
		return nil, EMFILE
	case flag&(sys.O_CREAT|sys.O_DIRECTORY) == sys.O_CREAT|sys.O_DIRECTORY:
		return nil, sys.EINVAL
	case at.host && timesOnly:
		return &hostTimes{f: f, at: at}, 0
	case at.host:
		return f.openHost(name, at, flag, mode)
	}

	access := flag & (sys.O_RDWR | sys.O_WRONLY)
	writes := access != sys.O_RDONLY || flag&sys.O_TRUNC != 0
	n := at.node
	h := &file{f: f, path: name, flag: access | flag&sys.O_APPEND}
	switch {
	case timesOnly && n != nil && !n.mode.IsRegular():
		h.flag = noAccess
	case flag&sys.O_CREAT != 0 && (at.slash || n != nil && n.isDir() && flag&sys.O_EXCL == 0):
		return nil, sys.EISDIR
	case n == nil && flag&sys.O_CREAT == 0:
		return nil, sys.ENOENT
	case n == nil:
		n = f.newNode(mode, f.now().UnixNano())
		if errno := f.create(at, n); errno != 0 {
			return nil, errno
		}
	case flag&(sys.O_CREAT|sys.O_EXCL) == sys.O_CREAT|sys.O_EXCL:
		return nil, sys.EEXIST
	case (at.slash || flag&sys.O_DIRECTORY != 0) && !n.isDir():
		return nil, sys.ENOTDIR
	case n.isSymlink(): // not followed
		return nil, sys.ELOOP
	case writes && n.isDir():
		return nil, sys.EISDIR
	case n.device != nil:
	case writes && n.shared:
		return nil, sys.EROFS
	case flag&sys.O_TRUNC != 0:
		n.data.truncate(&f.memory, 0)
		f.changed(n)
	}
	if !n.shared {
		n.opens++
	}
	h.node = n
	return h, 0
}

// Lstat implements the same method of [sys.FS].
func (f *FS) Lstat(name string) (wasys.Stat_t, sys.Errno) {
	return f.stat(name, followSlash)
}

// Stat implements the same method of [sys.FS].
func (f *FS) Stat(name string) (wasys.Stat_t, sys.Errno) {
	return f.stat(name, followAlways)
}

func (f *FS) stat(name string, links follow) (wasys.Stat_t, sys.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, errno := f.existing(name, links)
	switch {
	case errno != 0:
		return wasys.Stat_t{}, errno
	case at.host:
		return f.projects.stat(at, links)
	}
	return at.node.stat(), 0
}

// Readlink implements the same method of [sys.FS].
func (f *FS) Readlink(name string) (string, sys.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, errno := f.existing(name, followSlash)
	switch {
	case errno != 0:
		return "", errno
	case at.host:
		return f.projects.readlink(at)
	case !at.node.isSymlink():
		return "", sys.EINVAL
	}
	return at.node.target, 0
}

// Mkdir implements the same method of [sys.FS].
func (f *FS) Mkdir(name string, perm fs.FileMode) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report(f.mkdir(name, perm))
}

func (f *FS) mkdir(name string, perm fs.FileMode) sys.Errno {
	perm = f.takeCreateMode(perm)
	at, errno := f.walk(name, followNever)
	switch {
	case errno != 0:
		return errno
	case at.host:
		return f.projects.mkdir(at, perm)
	case at.node != nil:
		return sys.EEXIST
	}
	return f.create(at, f.newNode(fs.ModeDir|perm, f.now().UnixNano()))
}

// Chmod implements the same method of [sys.FS]. Nothing checks the permissions of
// files in memory.
func (f *FS) Chmod(name string, perm fs.FileMode) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, errno := f.existing(name, followAlways)
	switch {
	case errno != 0:
		return errno
	case at.host:
		return f.report(f.projects.chmod(at.rel, perm&fs.ModePerm))
	case at.node.shared:
		return sys.EROFS
	}
	at.node.mode = at.node.mode.Type() | perm&fs.ModePerm
	at.node.ctim = f.now().UnixNano()
	return 0
}

// Rename implements the same method of [sys.FS].
func (f *FS) Rename(from, to string) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report(f.rename(from, to))
}

func (f *FS) rename(from, to string) sys.Errno {
	old, at, errno := f.walkBoth(f.walk, from, followNever, to)
	switch {
	case errno != 0:
		return errno
	case f.isMount(old) || f.isMount(at):
		return EBUSY
	case old.host && at.host:
		return f.projects.rename(old, at)
	case old.name == "" || at.name == "":
		return EBUSY
	case !old.host && old.node == nil:
		return sys.ENOENT
	case old.host != at.host || old.dir.shared != at.dir.shared:
		return EXDEV
	case at.dir.shared:
		return sys.EROFS
	}

	n, over := old.node, at.node
	switch {
	case !n.isDir() && (old.slash || at.slash):
		return sys.ENOTDIR
	case n.isDir() && at.dir.within(n):
		return sys.EINVAL
	case over != nil && over.isDir() && old.dir.within(over):
		return sys.ENOTEMPTY
	case over == n:
		return 0
	case over == nil:
	case n.isDir() && !over.isDir():
		return sys.ENOTDIR
	case !n.isDir() && over.isDir():
		return sys.EISDIR
	case over.isDir() && len(over.dir.names) > 0:
		return sys.ENOTEMPTY
	}

	old.dir.dir.remove(old.name)
	at.dir.dir.put(at.name, n)
	if n.isDir() {
		n.parent = at.dir
		old.dir.nlink--
		at.dir.nlink++
	}
	f.changed(old.dir)
	f.changed(at.dir)
	n.ctim = at.dir.ctim
	if over != nil {
		f.names--
		if over.isDir() {
			at.dir.nlink--
		}
		f.unlinked(over)
	}
	return 0
}

// Rmdir implements the same method of [sys.FS].
func (f *FS) Rmdir(name string) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report(f.rmdir(name))
}

func (f *FS) rmdir(name string) sys.Errno {
	at, errno := f.walk(name, followNever)
	switch {
	case errno != 0:
		return errno
	case f.isMount(at):
		return EBUSY
	case at.host:
		return f.projects.rmdir(at)
	case at.name == "":
		return sys.EINVAL
	case at.node == nil:
		return sys.ENOENT
	case at.dir.shared:
		return sys.EROFS
	case !at.node.isDir():
		return sys.ENOTDIR
	case len(at.node.dir.names) > 0:
		return sys.ENOTEMPTY
	}
	f.erase(at)
	return 0
}

// Unlink implements the same method of [sys.FS].
func (f *FS) Unlink(name string) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report(f.unlink(name))
}

func (f *FS) unlink(name string) sys.Errno {
	at, errno := f.walk(name, followNever)
	switch {
	case errno != 0:
		return errno
	case at.host:
		return f.projects.unlink(at)
	case at.node == nil:
		return sys.ENOENT
	case at.node.isDir():
		return sys.EISDIR
	case at.dir.shared:
		return sys.EROFS
	case at.slash:
		return sys.ENOTDIR
	}
	f.erase(at)
	return 0
}

// Link implements the same method of [sys.FS]. It links a symlink itself, not
// its target.
func (f *FS) Link(from, to string) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report(f.link(from, to))
}

func (f *FS) link(from, to string) sys.Errno {
	old, at, errno := f.walkBoth(f.existing, from, followSlash, to)
	switch {
	case errno != 0:
		return errno
	case old.host && at.host:
		return f.projects.link(old, at)
	case !at.host && at.node != nil:
		return sys.EEXIST
	case !at.host && at.slash:
		return sys.ENOENT
	case old.host != at.host || old.node.shared != at.dir.shared:
		return EXDEV
	case old.node.isDir():
		return sys.EPERM
	}
	if errno := f.create(at, old.node); errno != 0 {
		return errno
	}
	old.node.nlink++
	old.node.ctim = at.dir.ctim
	return 0
}

// Symlink implements the same method of [sys.FS].
func (f *FS) Symlink(target, name string) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	// A clone, for wazero's string is guest memory, which changes.
	return f.report(f.symlink(strings.Clone(target), name))
}

func (f *FS) symlink(target, name string) sys.Errno {
	switch {
	case target == "":
		return sys.ENOENT
	case len(target) > maxPath:
		return sys.ENAMETOOLONG
	case strings.IndexByte(target, 0) >= 0:
		return sys.EINVAL
	}
	at, errno := f.walk(name, followNever)
	switch {
	case errno != 0:
		return errno
	case at.host:
		return f.projects.symlink(target, at)
	case at.node != nil:
		return sys.EEXIST
	case at.slash:
		return sys.ENOENT
	case int64(len(target)) > f.memory.left():
		return ENOSPC
	}
	n := f.newNode(fs.ModeSymlink|0o777, f.now().UnixNano())
	n.target = target
	if errno := f.create(at, n); errno != 0 {
		return errno
	}
	f.memory.take(int64(len(target)))
	return 0
}

// Utimens implements the same method of [sys.FS].
func (f *FS) Utimens(name string, atim, mtim int64) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, errno := f.existing(name, followAlways)
	switch {
	case errno != 0:
		return errno
	case at.host:
		return f.report(f.projects.utimens(at, atim, mtim))
	}
	return f.setTimes(at.node, atim, mtim)
}

func (f *FS) setTimes(n *node, atim, mtim int64) sys.Errno {
	if n.shared {
		return sys.EROFS
	}
	if atim != sys.UTIME_OMIT {
		n.atim = atim
	}
	if mtim != sys.UTIME_OMIT {
		n.mtim = mtim
	}
	n.ctim = f.now().UnixNano()
	return 0
}
