//go:build unix

package wasmhost

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxSpare is how many regions are kept for the next sessions.
	maxSpare = 4
	// maxRestored is how many bytes a session may have changed for its region to be kept. Each page that it
	// changed stays a page of our own.
	maxRestored = 4 << 20
)

// An image is a file without a name that holds the memory of the warm interpreter.
type image struct {
	file    *os.File
	size    int64
	content []byte   // the file, read-only
	pages   *pageMap // nil: regions are used once

	mu     sync.Mutex
	spare  [][]byte // regions that are as new
	closed bool
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
	if content, err = unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &image{file: file, size: size, content: content, pages: openPageMap()}, nil
}

// fork maps the image, copy-on-write, at the start of a new region that is
// limit bytes long, or as long as the address space allows where that is less.
func (i *image) fork(limit int64) (*memory, error) {
	if region := i.takeSpare(limit); region != nil {
		return i.memory(region), nil
	}
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
	return i.memory(unsafe.Slice((*byte)(region), limit)), nil
}

func (i *image) memory(region []byte) *memory {
	return &memory{region: region, free: func(used uint64) {
		if !i.keep(region, used) {
			unmap(region)
		}
	}}
}

func (i *image) takeSpare(limit int64) []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := len(i.spare) - 1
	if last < 0 || int64(len(i.spare[last])) != limit {
		return nil
	}
	region := i.spare[last]
	i.spare = i.spare[:last]
	return region
}

// keep makes a region as new as one that was never used, and keeps it for a later fork. It reports whether it did.
func (i *image) keep(region []byte, used uint64) bool {
	if i.pages == nil || !i.restore(region, used) {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || len(i.spare) >= maxSpare {
		return false
	}
	i.spare = append(i.spare, region)
	return true
}

// restore puts the image's bytes back wherever the region may differ from it. It reports whether it could, at
// a price that is worth it.
func (i *image) restore(region []byte, used uint64) bool {
	changed, err := i.pages.private(region[:i.size])
	size := os.Getpagesize()
	if err != nil || len(changed) > maxRestored/size {
		return false
	}
	if beyond := region[i.size:max(used, uint64(i.size))]; len(beyond) > 0 {
		if unix.Madvise(beyond, unix.MADV_DONTNEED) != nil { // zeroes it
			return false
		}
	}
	for _, page := range changed {
		copy(region[page*size:(page+1)*size], i.content[page*size:])
	}
	return true
}

func (i *image) close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	for _, region := range i.spare {
		unmap(region)
	}
	i.spare = nil
	return errors.Join(i.pages.close(), os.NewSyscallError("munmap", unix.Munmap(i.content)), i.file.Close())
}

// unmap gives a region back to the system.
func unmap(region []byte) {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(region)), uintptr(len(region))); err != nil {
		panic(fmt.Sprintf("wasmhost: munmap of a region of our own: %v", err))
	}
}
