package sandboxfs

import (
	"io/fs"
	"sort"

	"github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"
)

// Device numbers of what isn't on the host. They are large, so that no device of
// the host has them.
const (
	devShared = 0x73620001
	devMemory = 0x73620002
	devHost   = 0x73620003 // where the host has no number for its own
)

// node is a file, directory or symlink that isn't on the host.
type node struct {
	ino              uint64
	mode             fs.FileMode // type and permissions
	nlink            uint64
	atim, mtim, ctim int64 // Unix nanoseconds

	// shared marks what belongs to a Base, and the root: it never changes, and
	// other sessions may be reading it.
	shared bool

	dir    *directory // of a directory
	parent *node      // of a directory: what ".." means; the root is its own
	target string     // of a symlink
	data   data       // of a file; in a Base only the size

	device device // of a file of /dev

	// content loads a file of a Base; the result is never written to.
	content func() ([]byte, error)

	// opens counts handles: an unlinked file keeps its data until the last closes.
	opens int
}

func (n *node) isDir() bool     { return n.dir != nil }
func (n *node) isSymlink() bool { return n.mode&fs.ModeSymlink != 0 }

func (n *node) dev() uint64 {
	if n.shared {
		return devShared
	}
	return devMemory
}

func (n *node) stat() wasys.Stat_t {
	st := wasys.Stat_t{
		Dev:   deviceNumber(n.dev(), n.mode),
		Ino:   n.ino,
		Mode:  n.mode,
		Nlink: n.nlink,
		Size:  n.data.size,
		Atim:  n.atim,
		Mtim:  n.mtim,
		Ctim:  n.ctim,
	}
	switch {
	case n.isDir():
		st.Size = 4096
	case n.isSymlink():
		st.Size = int64(len(n.target))
	}
	return st
}

// within reports whether directory n is dir or lies below it.
func (n *node) within(dir *node) bool {
	for n != dir {
		if n.parent == n || n.parent == nil {
			return false
		}
		n = n.parent
	}
	return true
}

// read copies from a file at offset off ≥ 0.
func (n *node) read(p []byte, off int64) (int, sys.Errno) {
	if n.device != nil {
		return n.device(p), 0
	}
	if n.content == nil {
		return n.data.readAt(p, off), 0
	}
	content, err := n.content()
	if err != nil {
		return 0, sys.EIO
	}
	if off >= int64(len(content)) {
		return 0, 0
	}
	return copy(p, content[off:]), 0
}

// dirent is a name in a directory.
type dirent struct {
	name string
	node *node  // nil: removed
	seq  uint64 // position in listings, from 1
}

// directory holds names; see the package comment on listing.
type directory struct {
	names map[string]*dirent
	order []*dirent // by seq, with removed ones between
	last  uint64    // the highest seq given out
}

func (d *directory) lookup(name string) *node {
	if e := d.names[name]; e != nil {
		return e.node
	}
	return nil
}

// put adds a name, or replaces what it means.
func (d *directory) put(name string, n *node) {
	if e := d.names[name]; e != nil {
		e.node = n
		return
	}
	if d.names == nil {
		d.names = make(map[string]*dirent)
	}
	d.last++
	e := &dirent{name: name, node: n, seq: d.last}
	d.names[name] = e
	d.order = append(d.order, e)
}

func (d *directory) remove(name string) {
	e := d.names[name]
	delete(d.names, name)
	e.name, e.node = "", nil
	if len(d.order) > 2*len(d.names)+16 {
		d.compact()
	}
}

// compact forgets the removed names. Slices and maps keep the memory of their
// largest size, so it makes new ones: emptied directories could hold gigabytes.
func (d *directory) compact() {
	names, order := make(map[string]*dirent, len(d.names)), make([]*dirent, 0, len(d.names))
	for _, e := range d.order {
		if e.node != nil {
			names[e.name] = e
			order = append(order, e)
		}
	}
	d.names, d.order = names, order
}

// cursor is the place of a handle in a listing. The zero cursor is at the start.
type cursor struct {
	after uint64 // seq of the last name returned
	end   uint64 // seq of the last name that existed when the listing began
	begun bool
}

// list returns at most n of the next names, all of them if n ≤ 0.
func (d *directory) list(c *cursor, n int) []sys.Dirent {
	if !c.begun {
		*c = cursor{begun: true, end: d.last}
	}
	var names []sys.Dirent
	start := sort.Search(len(d.order), func(i int) bool { return d.order[i].seq > c.after })
	for _, e := range d.order[start:] {
		if e.seq > c.end || n > 0 && len(names) == n {
			break
		}
		c.after = e.seq
		if e.node != nil {
			names = append(names, sys.Dirent{Ino: e.node.ino, Name: e.name, Type: e.node.mode.Type()})
		}
	}
	return names
}
