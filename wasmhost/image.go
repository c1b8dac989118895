package wasmhost

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// An image is the linear memory of the warm interpreter, from which sessions
// are forked. Its platform's half is in image_unix.go or image_other.go.

// A memory is the linear memory of one session, and wazero's
// experimental.LinearMemory. It lies at the start of a region that is as long
// as the limit, so that it grows in place.
type memory struct {
	region []byte
	used   uint64            // the most that the guest had of it, in bytes
	free   func(used uint64) // nil where the garbage collector frees the region
}

// Reallocate gives the guest size bytes, or nil where that is above the limit:
// memory.grow then fails, and Python raises MemoryError.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.region)) {
		return nil
	}
	m.used = max(m.used, size)
	return m.region[:size:size]
}

// Free implements experimental.LinearMemory and does nothing: wazero calls it
// as soon as a guest exits, when the host may still write words of the memory.
func (m *memory) Free() {}

// release gives the memory back. Nothing may use it any more.
func (m *memory) release() {
	if m.free != nil {
		m.free(m.used)
	}
	m.region, m.free = nil, nil
}

// word is the 32-bit word at an address of linear memory, which must be a
// multiple of four inside the image.
func (m *memory) word(address uint32) (*atomic.Uint32, error) {
	if uint64(address)+4 > uint64(len(m.region)) || address%4 != 0 {
		return nil, fmt.Errorf("the manifest names address %#x, which is not a word of linear memory", address)
	}
	return (*atomic.Uint32)(unsafe.Pointer(&m.region[address])), nil
}
