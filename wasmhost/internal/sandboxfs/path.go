package sandboxfs

import (
	"path"
	"strconv"
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
	return at.dir == f.root && (at.node == f.dev || at.node == f.tmp || at.node == f.workspace)
}

// walk resolves a path from the root: absolute or not, it is the same. The last
// name need not exist.
func (f *FS) walk(name string, links follow) (place, sys.Errno) {
	name, ok := unescape(name)
	if !ok || strings.IndexByte(name, 0) >= 0 {
		return place{}, sys.EINVAL
	}
	if len(name) > maxPath {
		return place{}, sys.ENAMETOOLONG
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
			// Whether an element is a symlink is os.Root's business, except before "..".
			switch {
			case elem == ".":
				at = place{host: true, slash: true}
			case elem == "..":
				dir, errno := f.projects.resolve(strings.Join(rel, "/"))
				switch parent := path.Dir(dir); {
				case errno != 0:
					return place{}, errno
				case dir == ".":
					at, rel = place{node: f.root}, nil
				case parent == ".":
					at, rel = place{host: true, slash: true}, nil
				default:
					at, rel = place{host: true, slash: true}, strings.Split(parent, "/")
				}
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

// walkBoth resolves the two paths of a rename or link, the old name by resolve,
// which is walk or existing. The new name isn't followed.
func (f *FS) walkBoth(resolve func(string, follow) (place, sys.Errno), from string, links follow, to string) (old, at place, errno sys.Errno) {
	if old, errno = resolve(from, links); errno != 0 {
		return old, at, errno
	}
	at, errno = f.walk(to, followNever)
	return old, at, errno
}

// parent returns what ".." means in dir. The top directories of a Base are below
// the Base's own root, which is not the session's.
func (f *FS) parent(dir *node) *node {
	if dir.shared && dir.parent.parent == dir.parent { // also of /dev
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

// escape introduces, in a path from a guest, what wazero would refuse or resolve
// by itself. See the package comment.
const escape = "\U0010FFFF"

// unescape returns the path that a guest means.
func unescape(name string) (string, bool) {
	if !strings.Contains(name, escape) {
		return name, true
	}
	var plain strings.Builder
	for rest := name; ; {
		before, after, found := strings.Cut(rest, escape)
		plain.WriteString(before)
		switch {
		case !found:
			return plain.String(), true
		case strings.HasPrefix(after, "."):
			plain.WriteString(".")
			rest = after[1:]
		case strings.HasPrefix(after, escape):
			plain.WriteString(escape)
			rest = after[len(escape):]
		case len(after) >= 2:
			b, err := strconv.ParseUint(after[:2], 16, 8)
			if err != nil {
				return "", false
			}
			plain.WriteByte(byte(b))
			rest = after[2:]
		default:
			return "", false
		}
	}
}
