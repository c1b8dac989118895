package sandboxfs

import (
	"fmt"
	"io/fs"
	"path"
	"sync"
	"time"
)

// Base is the read-only tree that sessions see at "/". It is immutable and may be
// shared by any number of sessions at once; none copies it.
type Base struct {
	root *node
}

// NewBase makes a Base of fsys: its directories, regular files, and symlinks if it
// has [fs.ReadLinkFS]. An absolute link target is a path in the sandbox.
//
// A file's content is read from fsys when a session first reads the file, and
// held from then on; fsys must not change. A file that has no time gets
// 1980-01-01, the earliest that a zip archive can hold.
func NewBase(fsys fs.FS) (*Base, error) {
	base := &Base{}
	dirs := map[string]*node{}
	ino := uint64(1) // 1 is the root of each session
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		when := info.ModTime()
		if when.IsZero() {
			when = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		ino++
		n := &node{ino: ino, nlink: 1, shared: true, atim: when.UnixNano(), mtim: when.UnixNano(), ctim: when.UnixNano()}
		switch d.Type() {
		case fs.ModeDir:
			n.mode, n.nlink, n.dir = fs.ModeDir|0o555, 2, &directory{}
			dirs[name] = n
		case fs.ModeSymlink:
			n.mode = fs.ModeSymlink | 0o777
			if n.target, err = fs.ReadLink(fsys, name); err != nil {
				return err
			}
			if n.target == "" {
				return fmt.Errorf("the symlink %s has no target", name)
			}
		case 0:
			n.mode = 0o444 | info.Mode()&0o111
			n.data.size = info.Size()
			n.content = sync.OnceValues(func() ([]byte, error) { return fs.ReadFile(fsys, name) })
		default:
			return fmt.Errorf("%s is neither a file nor a directory nor a symlink", name)
		}
		if name == "." {
			n.parent = n
			base.root = n
			return nil
		}
		parent := dirs[path.Dir(name)]
		if n.isDir() {
			n.parent = parent
			parent.nlink++
		}
		parent.dir.put(path.Base(name), n)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the sandbox's base tree: %w", err)
	}
	return base, nil
}
