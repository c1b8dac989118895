package sandboxfs

import (
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// Linux's limits.
const (
	maxName  = 255  // bytes of a name (NAME_MAX)
	maxPath  = 4095 // bytes of a path or a symlink's target (PATH_MAX less its NUL)
	maxLinks = 40   // symlinks followed in one path
)

// follow says what becomes of a symlink that is the last name of a path.
type follow int

const (
	followNever  follow = iota // the operation is on the name: unlink, rename, mkdir, …
	followSlash                // only where a slash comes after it: lstat, readlink
	followBare                 // only where none does: creating, for which a slash is an error
	followAlways               // stat, open
)

func (l follow) follows(slash bool) bool {
	return l == followAlways || l == followSlash && slash || l == followBare && !slash
}

// place is where a path leads.
type place struct {
	// name is the last name of the path. It is empty for the root and /projects,
	// and where the path ends in "." or "..".
	name string

	// dir is the directory in which name is, or would be.
	dir *node

	// node is what is there; nil: nothing.
	node *node

	// slash: the path ends in a slash or "/.", so only a directory will do.
	slash bool

	// host: the place is in /projects, at the path rel in it ("." is /projects
	// itself), which has no "..". Whether anything is there isn't known; dir and
	// node are nil.
	host bool
	rel  string
}

// isMount reports whether at names one of the directories that always exist.
func (f *FS) isMount(at place) bool {
	switch {
	case at.host:
		return at.rel == "."
	case at.name == "":
		return at.node == f.root
	}
	return at.dir == f.root && (at.node == f.tmp || at.node == f.workspace)
}

// walk resolves a path from the root: absolute or not, it is the same. The last
// name need not exist.
func (f *FS) walk(name string, links follow) (place, sys.Errno) {
	if len(name) > maxPath {
		return place{}, sys.ENAMETOOLONG
	}
	if strings.IndexByte(name, 0) >= 0 {
		return place{}, sys.EINVAL
	}
	at := place{node: f.root}
	var rel []string // in /projects: the path below it
	followed := 0
	for rest := name; ; {
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			break
		}
		var elem string
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			elem, rest = rest[:i], rest[i:]
		} else {
			elem, rest = rest, ""
		}
		last := strings.TrimLeft(rest, "/") == ""
		at.slash = last && rest != ""

		if at.host {
			// Textually, as wazero does it with the guest's own paths: whether an
			// element is a symlink is os.Root's business.
			switch {
			case elem == ".":
				at = place{host: true, slash: true}
			case elem == ".." && len(rel) == 0:
				at = place{node: f.root}
			case elem == "..":
				at, rel = place{host: true, slash: true}, rel[:len(rel)-1]
			case len(elem) > maxName:
				return place{}, sys.ENAMETOOLONG
			default:
				at, rel = place{host: true, name: elem, slash: at.slash}, append(rel, elem)
			}
			continue
		}

		dir := at.node
		if !dir.isDir() {
			return place{}, sys.ENOTDIR
		}
		switch elem {
		case ".":
			at = place{node: dir}
			continue
		case "..":
			at = place{node: f.parent(dir)}
			continue
		}
		if len(elem) > maxName {
			return place{}, sys.ENAMETOOLONG
		}
		n := dir.dir.lookup(elem)
		at = place{dir: dir, name: elem, node: n, slash: at.slash}
		switch {
		case n == nil && last:
			return at, 0
		case n == nil:
			return place{}, sys.ENOENT
		case n == f.projectsDir:
			at, rel = place{host: true, slash: at.slash}, nil
		case n.isSymlink() && (!last || links.follows(at.slash)):
			if followed++; followed > maxLinks {
				return place{}, sys.ELOOP
			}
			at = place{node: dir}
			if n.target[0] == '/' {
				at.node = f.root
			}
			rest = n.target + rest
		}
	}
	if at.host {
		if at.rel = strings.Join(rel, "/"); at.rel == "" {
			at.rel = "."
		}
	}
	return at, 0
}

// parent returns what ".." means in dir. The top directories of a Base are below
// the Base's own root, which is not the session's.
func (f *FS) parent(dir *node) *node {
	if dir.shared && dir.parent.parent == dir.parent {
		return f.root
	}
	return dir.parent
}

// existing is walk for operations that need something to be there.
func (f *FS) existing(name string, links follow) (place, sys.Errno) {
	at, errno := f.walk(name, links)
	switch {
	case errno != 0 || at.host:
		return at, errno
	case at.node == nil:
		return at, sys.ENOENT
	case at.slash && !at.node.isDir():
		return at, sys.ENOTDIR
	}
	return at, 0
}
