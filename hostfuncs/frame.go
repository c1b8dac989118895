package hostfuncs

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxAttachments bounds the attachments of a frame from the guest: empty ones cost the guest 4 bytes and us a slice header.
const maxAttachments = 1024

// A Frame is the unit of exchange with a guest: a JSON header and binary attachments. See the package documentation for
// its encoding.
type Frame struct {
	Header      json.RawMessage // one JSON text
	Attachments [][]byte
}

// ParseFrame takes p apart. It fails, saying where, if a length doesn't fit p, there are more than 1,024 attachments, or
// the header is not a JSON text in UTF-8. The parts of the frame alias p.
func ParseFrame(p []byte) (Frame, error) {
	header, rest, err := cutBlock(p)
	if err != nil {
		return Frame{}, fmt.Errorf("frame of %d bytes: header: %w", len(p), err)
	}
	if !utf8.Valid(header) || !json.Valid(header) {
		return Frame{}, fmt.Errorf("frame of %d bytes: the header is not JSON in UTF-8", len(p))
	}
	f := Frame{Header: header}
	for len(rest) > 0 {
		if len(f.Attachments) == maxAttachments {
			return Frame{}, fmt.Errorf("frame of %d bytes: more than %d attachments", len(p), maxAttachments)
		}
		var block []byte
		block, rest, err = cutBlock(rest)
		if err != nil {
			return Frame{}, fmt.Errorf("frame of %d bytes: attachment %d: %w", len(p), len(f.Attachments), err)
		}
		f.Attachments = append(f.Attachments, block)
	}
	return f, nil
}

// cutBlock splits p after its leading block, which is a length and that many bytes.
func cutBlock(p []byte) (block, rest []byte, err error) {
	if len(p) < 4 {
		return nil, nil, errors.New("the length is cut short")
	}
	n := binary.LittleEndian.Uint32(p)
	p = p[4:]
	if uint64(n) > uint64(len(p)) {
		return nil, nil, fmt.Errorf("has a length of %d bytes, but %d are left", n, len(p))
	}
	return p[:n:n], p[n:], nil // the capacity keeps an append from running into the next block
}

// Size is the length of the encoded frame in bytes.
func (f Frame) Size() int64 { return frameSize(len(f.Header), f.Attachments) }

// Append appends the encoded frame to dst. The header and each attachment must be shorter than 4 GiB.
func (f Frame) Append(dst []byte) []byte { return appendFrame(dst, f.Attachments, f.Header) }

func frameSize(header int, attachments [][]byte) int64 {
	n := 4 + int64(header)
	for _, a := range attachments {
		n += 4 + int64(len(a))
	}
	return n
}

// appendFrame encodes a frame whose header is the concatenation of parts, so that a response needn't be copied to get
// its wrapping.
func appendFrame(dst []byte, attachments [][]byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	for _, p := range parts {
		dst = append(dst, p...)
	}
	for _, a := range attachments {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(a)))
		dst = append(dst, a...)
	}
	return dst
}
