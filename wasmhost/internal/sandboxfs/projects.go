package sandboxfs

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"
)

// projectsMount is where a guest finds Options.Projects.
const projectsMount = "/projects"

// nameCost is charged for a new file, directory or link on the host: a block.
const nameCost = 4096

// projects is the directory of the host behind /projects. Its methods take paths
// below that directory, as in place.rel.
type projects struct {
	root    *os.Root
	escapes error // what root answers where a path leads outside

	// handles are those open, to be closed with the FS, whose mutex guards both.
	handles map[*hostFile]struct{}
	lockers map[fileID]*locker

	quotaMu sync.Mutex
	quota   meter
}

func openProjects(dir string, quota int64) (*projects, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the host directory for %s: %w", projectsMount, err)
	}
	p := &projects{root: root, quota: meter{limit: quota}, handles: map[*hostFile]struct{}{}, lockers: map[fileID]*locker{}}
	// Package os doesn't export this error.
	_, err = root.Lstat("..")
	for ; err != nil; err = errors.Unwrap(err) {
		p.escapes = err
	}
	return p, nil
}

// close closes all handles and the directory.
func (p *projects) close() error {
	var errs []error
	for h := range p.handles {
		h.closed.Store(true)
		errs = append(errs, h.file.Close())
	}
	p.handles = nil
	for id := range p.lockers {
		errs = append(errs, p.unlock(id))
	}
	return errors.Join(append(errs, p.root.Close())...)
}

// take charges up to n bytes and returns how many.
func (p *projects) take(n int64) int64 {
	p.quotaMu.Lock()
	defer p.quotaMu.Unlock()
	n = min(n, p.quota.left())
	p.quota.used += n
	return n
}

// give takes back a charge of n bytes. Shortening a file that was there before
// doesn't make the quota larger.
func (p *projects) give(n int64) {
	p.quotaMu.Lock()
	defer p.quotaMu.Unlock()
	p.quota.used = max(0, p.quota.used-n)
}

func (p *projects) charged() int64 {
	p.quotaMu.Lock()
	defer p.quotaMu.Unlock()
	return p.quota.used
}

func (p *projects) renew() {
	p.quotaMu.Lock()
	defer p.quotaMu.Unlock()
	p.quota.used = 0
}

// naming runs a function that makes a new name, and charges for it.
func (p *projects) naming(create func() error) sys.Errno {
	if got := p.take(nameCost); got < nameCost {
		p.give(got)
		return ENOSPC
	}
	err := create()
	if err != nil {
		p.give(nameCost)
	}
	return p.errno(err)
}

// errno maps an error of package os or of a system call.
func (p *projects) errno(err error) sys.Errno {
	if err == nil {
		return 0
	}
	// A path leads outside: through a symlink, for the walk lets no ".." pass.
	if errors.Is(err, p.escapes) {
		return sys.EPERM
	}
	var host syscall.Errno
	if errors.As(err, &host) {
		if errno := platformErrno(host); errno != 0 {
			return errno
		}
		return sys.UnwrapOSError(host)
	}
	return sys.UnwrapOSError(err)
}

// stat returns what is at a place. Only links == followAlways follows a symlink
// that has no slash after it.
func (p *projects) stat(at place, links follow) (wasys.Stat_t, sys.Errno) {
	stat := p.root.Lstat
	if links == followAlways || at.slash {
		stat = p.root.Stat
	}
	info, err := stat(at.rel)
	switch {
	case err != nil:
		return wasys.Stat_t{}, p.errno(err)
	case at.slash && !info.IsDir():
		return wasys.Stat_t{}, sys.ENOTDIR
	}
	return hostStat(at.rel, info), 0
}

// hostStat returns what a guest sees of a file on the host.
func hostStat(rel string, info fs.FileInfo) wasys.Stat_t {
	st := wasys.NewStat_t(info)
	if st.Dev == 0 {
		st.Dev = devHost
	}
	if st.Ino == 0 { // Windows
		h := fnv.New64a()
		h.Write([]byte(rel))
		st.Ino = h.Sum64() | 1
	}
	st.Dev = deviceNumber(st.Dev, st.Mode)
	return st
}

// slashOK returns ENOTDIR if the place must be a directory and isn't one.
func (p *projects) slashOK(at place) sys.Errno {
	if !at.slash {
		return 0
	}
	info, err := p.root.Lstat(at.rel)
	if err == nil && !info.IsDir() {
		return sys.ENOTDIR
	}
	return p.errno(err)
}

func (p *projects) readlink(at place) (string, sys.Errno) {
	if at.slash {
		return "", p.unnamed(at, sys.EINVAL)
	}
	target, err := p.root.Readlink(at.rel)
	if err != nil {
		return "", p.errno(err)
	}
	target = filepath.ToSlash(target)
	if below, ok := strings.CutPrefix(target, wasAbsolute); ok {
		dir, errno := p.resolve(path.Dir(at.rel))
		if errno != 0 {
			return "", errno
		}
		if below = path.Join(dir, below); below != ".." && !strings.HasPrefix(below, "../") {
			return path.Join(projectsMount, below), 0
		}
	}
	return target, 0
}

// resolve returns the path, without symlinks, of the directory at rel.
func (p *projects) resolve(rel string) (string, sys.Errno) {
	at, followed := ".", 0
	for rest := rel; rest != ""; {
		var elem string
		elem, rest, _ = strings.Cut(rest, "/")
		switch {
		case elem == "" || elem == ".":
			continue
		case elem == ".." && at == ".":
			return "", sys.EPERM // outside
		case elem == "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, elem)
		info, err := p.root.Lstat(next)
		switch {
		case err != nil:
			return "", p.errno(err)
		case info.IsDir():
			at = next
		case info.Mode().Type() != fs.ModeSymlink:
			return "", sys.ENOTDIR
		default:
			target, err := p.root.Readlink(next)
			target = filepath.ToSlash(target)
			if followed++; followed > maxLinks {
				return "", sys.ELOOP
			}
			if err != nil {
				return "", p.errno(err)
			}
			if path.IsAbs(target) || filepath.VolumeName(target) != "" {
				return "", sys.EPERM // outside
			}
			rest = target + "/" + rest
		}
	}
	return at, 0
}

// unnamed returns errno, the answer to an operation on a name where the path only
// has a directory, if the directory is there.
func (p *projects) unnamed(at place, errno sys.Errno) sys.Errno {
	if _, err := p.stat(at, followAlways); err != 0 {
		return err
	}
	return errno
}

func (p *projects) mkdir(at place, perm fs.FileMode) sys.Errno {
	if at.name == "" {
		return p.unnamed(at, sys.EEXIST)
	}
	return p.naming(func() error { return p.root.Mkdir(at.rel, perm) })
}

func (p *projects) chmod(rel string, perm fs.FileMode) sys.Errno {
	return p.errno(p.root.Chmod(rel, perm))
}

func (p *projects) rename(old, at place) sys.Errno {
	for _, at := range []place{old, at} {
		if at.name == "" {
			return p.unnamed(at, EBUSY)
		}
	}
	if errno := p.slashOK(old); errno != 0 {
		return errno
	}
	if at.slash {
		// The new name need not exist, but only a directory may get it.
		if errno := p.slashOK(place{rel: old.rel, slash: true}); errno != 0 {
			return errno
		}
	}
	return p.errno(p.renameat(old.rel, at.rel))
}

func (p *projects) rmdir(at place) sys.Errno {
	if at.name == "" {
		return p.unnamed(at, sys.EINVAL)
	}
	return p.errno(p.rmdirat(at.rel))
}

func (p *projects) unlink(at place) sys.Errno {
	if at.name == "" {
		return p.unnamed(at, sys.EISDIR)
	}
	errno := p.slashOK(at)
	if errno == 0 {
		errno = p.errno(p.unlinkat(at.rel))
	}
	if errno == sys.EPERM {
		// What POSIX has for a directory, and macOS too.
		if info, err := p.root.Lstat(at.rel); err == nil && info.IsDir() {
			return sys.EISDIR
		}
	}
	return errno
}

func (p *projects) link(old, at place) sys.Errno {
	if _, errno := p.stat(old, followSlash); errno != 0 {
		return errno
	}
	if at.name == "" {
		return p.unnamed(at, sys.EEXIST)
	}
	if errno := p.newName(at); errno != 0 {
		return errno
	}
	if old.slash {
		return sys.EPERM // a directory
	}
	return p.naming(func() error { return p.root.Link(old.rel, at.rel) })
}

// newName checks a name for something that isn't a directory.
func (p *projects) newName(at place) sys.Errno {
	if !at.slash {
		return 0
	}
	if _, err := p.root.Lstat(at.rel); err != nil {
		return p.errno(err)
	}
	return sys.EEXIST
}

func (p *projects) symlink(target string, at place) sys.Errno {
	if at.name == "" {
		return p.unnamed(at, sys.EEXIST)
	}
	if errno := p.newName(at); errno != 0 {
		return errno
	}
	target, errno := p.linkTarget(target, at.rel)
	if errno != 0 {
		return errno
	}
	return p.naming(func() error { return p.root.Symlink(target, at.rel) })
}

// wasAbsolute begins the target of a symlink that the guest made with an absolute
// one, so that readlink can give that back. To the host it means nothing.
const wasAbsolute = ".//"

// linkTarget returns what to store in a symlink at rel, so that for the host it
// means a place in the directory; see the package comment.
func (p *projects) linkTarget(target, rel string) (string, sys.Errno) {
	target = filepath.ToSlash(target)
	if filepath.VolumeName(target) != "" {
		return "", sys.EPERM
	}
	dir, errno := p.resolve(path.Dir(rel))
	if errno != 0 {
		return "", errno
	}
	depth := 0
	if dir != "." {
		depth = strings.Count(dir, "/") + 1
	}
	if path.IsAbs(target) {
		below, ok := strings.CutPrefix(path.Clean(target), projectsMount)
		if !ok || below != "" && below[0] != '/' {
			return "", sys.EPERM
		}
		return wasAbsolute + strings.Repeat("../", depth) + cmp.Or(strings.TrimPrefix(below, "/"), "."), 0
	}

	// ".." goes up from where a link leads, not from where it is: only at the
	// start of a target is it known where that is.
	ups, names := 0, false
	for elem := range strings.SplitSeq(target, "/") {
		switch elem {
		case "", ".":
		case "..":
			if ups++; names || ups > depth {
				return "", sys.EPERM
			}
		default:
			names = true
		}
	}
	if after, ok := strings.CutPrefix(target, wasAbsolute); ok {
		target = "./" + after
	}
	return target, 0
}

func (p *projects) utimens(at place, atim, mtim int64) sys.Errno {
	if at.slash {
		if _, errno := p.stat(at, followAlways); errno != 0 {
			return errno
		}
	}
	return p.errno(p.root.Chtimes(at.rel, hostTime(atim), hostTime(mtim)))
}

// hostTime returns the argument of Chtimes that stands for a time of wazero's.
func hostTime(ns int64) time.Time {
	if ns == sys.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
