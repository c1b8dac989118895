package wasmbin

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// errEnd is why a read past the end of a section or a function fails.
var errEnd = errors.New("unexpected end")

// reader reads the primitive values of the binary format from buf. The first
// error sticks: from then on every read returns zero and consumes nothing, so
// that callers check err once after a group of reads.
type reader struct {
	buf  []byte
	pos  int
	base int // offset of buf in the module, for error messages
	err  error
}

// fail records err as the reader's error, with the offset of pos.
func (r *reader) fail(pos int, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("offset %#x: %w", r.base+pos, err)
	}
}

// at returns a reader of a part of what r reads.
func (r *reader) at(s span) *reader {
	return &reader{buf: r.buf[s.start:s.end], base: r.base + s.start}
}

func (r *reader) more() bool { return r.err == nil && r.pos < len(r.buf) }

// finish returns the reader's error, or one that says that bytes are left over.
func (r *reader) finish() error {
	if r.more() {
		r.fail(r.pos, fmt.Errorf("%d bytes left over", len(r.buf)-r.pos))
	}
	return r.err
}

func (r *reader) byte() byte {
	if !r.more() {
		r.fail(r.pos, errEnd)
		return 0
	}
	b := r.buf[r.pos]
	r.pos++
	return b
}

// bytes returns the next n bytes, which alias the module.
func (r *reader) bytes(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(len(r.buf)-r.pos) {
		r.fail(r.pos, errEnd)
		return nil
	}
	b := r.buf[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// u32 reads an unsigned LEB128 number of at most 32 bits, padded or not.
func (r *reader) u32() uint32 {
	start := r.pos
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		if shift == 28 && b > 0x0f {
			break
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.fail(start, errors.New("number is longer than 32 bits"))
	return 0
}

// signed reads a signed LEB128 number that has at most size bits.
func (r *reader) signed(size int) int64 {
	start := r.pos
	var v int64
	for shift := 0; shift < size; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if unused := 64 - shift - 7; unused > 0 {
				v = v << unused >> unused
			}
			return v
		}
	}
	r.fail(start, fmt.Errorf("number is longer than %d bits", size))
	return 0
}

// count reads the length of a vector whose elements take at least one byte
// each. A count that the remaining bytes can't hold is an error, so that it is
// safe to allocate as many elements.
func (r *reader) count() int {
	start := r.pos
	n := r.u32()
	if uint64(n) > uint64(len(r.buf)-r.pos) {
		r.fail(start, fmt.Errorf("%d elements in %d bytes", n, len(r.buf)-r.pos))
		return 0
	}
	return int(n)
}

// index reads an index that must be below n; what names its index space.
func (r *reader) index(n int, what string) uint32 {
	start := r.pos
	i := r.u32()
	if r.err == nil && uint64(i) >= uint64(n) {
		r.fail(start, fmt.Errorf("%s index %d is out of range, there are %d", what, i, n))
	}
	return i
}

func (r *reader) name() string {
	start := r.pos
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.fail(start, errors.New("name is not UTF-8"))
		return ""
	}
	return string(b)
}

func (r *reader) valueType() ValueType {
	start := r.pos
	t := ValueType(r.byte())
	if r.err == nil && !t.valid() {
		r.fail(start, fmt.Errorf("unknown value type %#x", byte(t)))
	}
	return t
}

func (r *reader) refType() {
	start := r.pos
	if t := ValueType(r.byte()); r.err == nil && t != FuncRef && t != ExternRef {
		r.fail(start, fmt.Errorf("unknown reference type %#x", byte(t)))
	}
}

func (r *reader) mutability() bool {
	start := r.pos
	b := r.byte()
	if b > 1 {
		r.fail(start, fmt.Errorf("unknown mutability %#x", b))
	}
	return b == 1
}

// limits reads the limits of a table or memory; minAt is the extent of the
// minimum's encoding in buf.
func (r *reader) limits() (l Limits, minAt span) {
	start := r.pos
	flags := r.byte()
	if flags > 3 || flags == 2 {
		r.fail(start, fmt.Errorf("unknown limits flags %#x", flags))
		return Limits{}, span{}
	}
	minAt.start = r.pos
	l.Min = r.u32()
	minAt.end = r.pos
	if flags&1 != 0 {
		l.HasMax = true
		l.Max = r.u32()
	}
	return l, minAt
}

// span is the extent of something within a byte slice.
type span struct{ start, end int }

// appendU32 appends v in its shortest LEB128 encoding.
func appendU32(b []byte, v uint32) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// appendS32 appends v in its shortest signed LEB128 encoding.
func appendS32(b []byte, v int32) []byte {
	for ; v < -0x40 || v >= 0x40; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v)&0x7f)
}

func appendName(b []byte, s string) []byte {
	return append(appendU32(b, uint32(len(s))), s...)
}

// splicer copies src to out with some extents replaced. The replacements come
// in ascending order.
type splicer struct {
	src  []byte
	done int // how much of src is in out
	out  []byte
}

// copyTo copies the bytes of src up to the offset end.
func (s *splicer) copyTo(end int) {
	s.out = append(s.out, s.src[s.done:end]...)
	s.done = end
}

// replace copies the bytes of src before at, and drops those within it; what
// takes their place is appended to out by the caller.
func (s *splicer) replace(at span) {
	s.copyTo(at.start)
	s.done = at.end
}
