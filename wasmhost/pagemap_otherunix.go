//go:build unix && !linux

package wasmhost

import "errors"

// A pageMap would tell which pages of a mapping were written to; here there is none.
type pageMap struct{}

func openPageMap() *pageMap { return nil }

func (*pageMap) private([]byte) ([]int, error) { return nil, errors.ErrUnsupported }

func (*pageMap) close() error { return nil }
