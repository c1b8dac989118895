//go:build !unix

package wasmhost

// An image is the memory of the warm interpreter, which each fork copies.
type image struct {
	content []byte
}

func newImage(size int64, fill func([]byte) error) (*image, error) {
	i := &image{content: make([]byte, size)}
	if err := fill(i.content); err != nil {
		return nil, err
	}
	return i, nil
}

// fork copies the image to the start of a region of limit bytes. Go takes the
// region from the operating system as zero pages, which cost nothing until used.
func (i *image) fork(limit int64) (*memory, error) {
	region := make([]byte, limit)
	copy(region, i.content)
	return &memory{region: region}, nil
}

func (i *image) close() error { return nil }
