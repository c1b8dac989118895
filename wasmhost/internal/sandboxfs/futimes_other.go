//go:build !linux

package sandboxfs

// chtimes sets the times of the open file.
func (h *hostFile) chtimes(atim, mtim int64) error {
	return h.chtimesByPath(atim, mtim)
}
