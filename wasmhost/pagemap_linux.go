package wasmhost

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"
)

// A pageMap tells which pages of a private mapping of a file differ from the file: the kernel has made copies of
// them, when they were written to. See https://docs.kernel.org/admin-guide/mm/pagemap.html.
type pageMap struct{ file *os.File }

// Bits of an entry of /proc/self/pagemap.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62 // or on its way elsewhere
	pageOfFile  = 1 << 61 // or of shared memory
)

// openPageMap returns nil where the kernel doesn't tell.
func openPageMap() *pageMap {
	file, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	return &pageMap{file}
}

// private returns the numbers of the pages of memory, counted from 0, that aren't the file's own, in order.
// Memory must begin at a page.
func (p *pageMap) private(memory []byte) ([]int, error) {
	const entry = 8
	size := os.Getpagesize()
	entries := make([]byte, (len(memory)+size-1)/size*entry)
	first := uintptr(unsafe.Pointer(unsafe.SliceData(memory))) / uintptr(size)
	if _, err := p.file.ReadAt(entries, int64(first)*entry); err != nil {
		return nil, fmt.Errorf("reading the page map: %w", err)
	}
	var pages []int
	for i := 0; i < len(entries); i += entry {
		e := binary.NativeEndian.Uint64(entries[i:])
		if e&pageSwapped != 0 || e&pagePresent != 0 && e&pageOfFile == 0 {
			pages = append(pages, i/entry)
		}
	}
	return pages, nil
}

func (p *pageMap) close() error {
	if p == nil {
		return nil
	}
	return p.file.Close()
}
