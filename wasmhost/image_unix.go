//go:build unix

package wasmhost

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An image is a file without a name that holds the memory of the warm interpreter.
type image struct {
	file *os.File
	size int64
}

// newImage makes an image of size bytes that fill writes.
func newImage(size int64, fill func([]byte) error) (_ *image, err error) {
	file, err := anonymousFile()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if err := file.Truncate(size); err != nil {
		return nil, err
	}
	content, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	err = fill(content)
	if e := unix.Munmap(content); err == nil {
		err = os.NewSyscallError("munmap", e)
	}
	if err != nil {
		return nil, err
	}
	return &image{file: file, size: size}, nil
}

// fork maps the image, copy-on-write, at the start of a new region that is
// limit bytes long, or as long as the address space allows where that is less.
func (i *image) fork(limit int64) (*memory, error) {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE
	var region unsafe.Pointer
	var err error
	for {
		region, err = unix.MmapPtr(-1, 0, nil, uintptr(limit), unix.PROT_READ|unix.PROT_WRITE, flags)
		if err == nil {
			break
		}
		// Under ulimit -v less memory is better than no session.
		if smaller := max(limit/2, i.size); smaller < limit && errors.Is(err, unix.ENOMEM) {
			limit = smaller
			continue
		}
		return nil, fmt.Errorf("reserving %d bytes of address space: %w", limit, err)
	}
	_, err = unix.MmapPtr(int(i.file.Fd()), 0, region, uintptr(i.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mapping the snapshot: %w", err), unix.MunmapPtr(region, uintptr(limit)))
	}
	return &memory{
		region: unsafe.Slice((*byte)(region), limit),
		unmap: func() {
			if err := unix.MunmapPtr(region, uintptr(limit)); err != nil {
				panic(fmt.Sprintf("wasmhost: munmap of a region of our own: %v", err))
			}
		},
	}, nil
}

func (i *image) close() error { return i.file.Close() }
