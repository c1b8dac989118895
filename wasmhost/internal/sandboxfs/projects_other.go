//go:build !linux && !darwin

package sandboxfs

import (
	"os"
	"syscall"
)

// openFlags are added to every open.
const openFlags = 0

func (p *projects) renameat(from, to string) error { return p.root.Rename(from, to) }

func (p *projects) rmdirat(rel string) error {
	info, err := p.root.Lstat(rel)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return syscall.ENOTDIR
	}
	return p.root.Remove(rel)
}

func (p *projects) unlinkat(rel string) error {
	info, err := p.root.Lstat(rel)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return syscall.EISDIR
	}
	return p.root.Remove(rel)
}

// lchtimes sets the times of what is at rel itself. A symlink keeps its own, for
// there is no portable way to set them.
func (p *projects) lchtimes(rel string, atim, mtim int64) error {
	info, err := p.root.Lstat(rel)
	if err != nil || info.Mode()&os.ModeSymlink != 0 {
		return err
	}
	return p.root.Chtimes(rel, hostTime(atim), hostTime(mtim))
}

// setAppend does nothing: hostFile finds the end before each write.
func setAppend(*os.File, bool) error { return nil }
