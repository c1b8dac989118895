package memory

import "os"

// NoSync makes a store skip what matters only when the machine crashes.
func NoSync(d *Dir) { d.sync = func(*os.File) error { return nil } }

// Copy returns a store in the same directory, with which a synctest bubble shares no channels.
func Copy(d *Dir) *Dir {
	copied := *d
	copied.lock = newCommitLock(d.lock.Path())
	return &copied
}
