//go:build linux || darwin

package sandboxfs

import (
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags are added to every open: a FIFO must not block.
const openFlags = syscall.O_NONBLOCK

// at calls do with the directory that rel is in, and its name there. System calls
// that don't follow that name stay inside the root.
func (p *projects) at(rel string, do func(dir int, name string) error) error {
	dir, err := p.root.OpenFile(path.Dir(rel), os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(int(dir.Fd()), path.Base(rel))
}

func (p *projects) renameat(from, to string) error {
	return p.at(from, func(fromDir int, fromName string) error {
		return p.at(to, func(toDir int, toName string) error {
			return unix.Renameat(fromDir, fromName, toDir, toName)
		})
	})
}

func (p *projects) rmdirat(rel string) error {
	return p.at(rel, func(dir int, name string) error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
}

func (p *projects) unlinkat(rel string) error {
	return p.at(rel, func(dir int, name string) error { return unix.Unlinkat(dir, name, 0) })
}

// lchtimes sets the times of what is at rel itself, be it a symlink.
func (p *projects) lchtimes(rel string, atim, mtim int64) error {
	return p.at(rel, func(dir int, name string) error {
		times := []unix.Timespec{unix.NsecToTimespec(atim), unix.NsecToTimespec(mtim)}
		return unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// setAppend makes the kernel append, or not: other processes may be appending to
// the same file.
func setAppend(f *os.File, enable bool) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err == nil {
			if flags &^= unix.O_APPEND; enable {
				flags |= unix.O_APPEND
			}
			_, err = unix.FcntlInt(fd, unix.F_SETFL, flags)
		}
		result = err
	})
	if err != nil {
		return err
	}
	return result
}
