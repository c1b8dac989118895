package sandboxfs

import (
	"crypto/rand"
	"io/fs"
)

// A device is a file of /dev: it has no content, takes every write, and reads as
// its function says.
type device func(p []byte) int

// devices are those that scripts and libraries count on.
var devices = [...]struct {
	name string
	read device
}{
	{"null", func([]byte) int { return 0 }},
	{"zero", func(p []byte) int { clear(p); return len(p) }},
	{"random", randomBytes},
	{"urandom", randomBytes},
}

func randomBytes(p []byte) int {
	n, _ := rand.Read(p) // never fails
	return n
}

// newDevices returns the directory /dev, which is read-only.
func (f *FS) newDevices(now int64) *node {
	dir := f.newNode(fs.ModeDir|0o555, now)
	dir.shared = true
	for _, d := range devices {
		n := f.newNode(fs.ModeDevice|fs.ModeCharDevice|0o666, now)
		n.shared, n.device = true, d.read
		dir.dir.put(d.name, n)
	}
	return dir
}
