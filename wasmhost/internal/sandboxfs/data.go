package sandboxfs

// chunkSize is how much of a file's data is allocated in one piece.
const chunkSize = 64 << 10

// slotSize is what an entry of data.chunks costs: a slice header.
const slotSize = 24

// maxFileSize bounds a file's length, holes included.
const maxFileSize = 1 << 40

// meter counts bytes against a limit.
type meter struct {
	limit, used int64
}

func (m *meter) left() int64 { return m.limit - m.used }

// take charges n bytes if they fit.
func (m *meter) take(n int64) bool {
	if n > m.left() {
		return false
	}
	m.used += n
	return true
}

func (m *meter) give(n int64) { m.used -= n }

// data is the content of a file in memory.
//
// Chunk i holds the bytes from i*chunkSize on. A chunk may be shorter than
// chunkSize, absent (nil) or beyond the end of chunks: the rest is a hole, which
// reads as zeros. Bytes of a chunk past size are always zero, so that growing
// the file exposes nothing.
type data struct {
	size    int64
	chunks  [][]byte
	charged int64 // what the meter was charged: all chunks, and the slots of chunks
}

// readAt fills p from offset off ≥ 0 and returns how many bytes there were.
func (d *data) readAt(p []byte, off int64) int {
	if off >= d.size {
		return 0
	}
	p = p[:min(int64(len(p)), d.size-off)]
	for n := 0; n < len(p); {
		at := off + int64(n)
		i, from := int(at/chunkSize), int(at%chunkSize)
		part := p[n:min(len(p), n+chunkSize-from)]
		copied := 0
		if i < len(d.chunks) && from < len(d.chunks[i]) {
			copied = copy(part, d.chunks[i][from:])
		}
		clear(part[copied:])
		n += len(part)
	}
	return len(p)
}

// writeAt writes as much of p at offset off as the meter allows, and returns how
// much that was. The caller sees to it that the end is within maxFileSize.
func (d *data) writeAt(m *meter, p []byte, off int64) int {
	n := 0
	for n < len(p) {
		at := off + int64(n)
		i, from := int(at/chunkSize), int(at%chunkSize)
		want := min(len(p)-n, chunkSize-from)
		room := min(want, d.provide(m, i, from+want)-from)
		if room <= 0 {
			break
		}
		copy(d.chunks[i][from:from+room], p[n:])
		n += room
		if room < want {
			break
		}
	}
	if n > 0 {
		d.size = max(d.size, off+int64(n))
	}
	return n
}

// provide makes chunk i at least end bytes long, or as long as the meter allows,
// and returns its length.
func (d *data) provide(m *meter, i, end int) int {
	if i >= len(d.chunks) && !d.extend(m, i+1) {
		return 0
	}
	old := d.chunks[i]
	if len(old) >= end {
		return len(old)
	}
	// Doubling keeps small files small and the copying linear. A file that has
	// filled its previous chunk is being written from front to back.
	size := 64
	if i > 0 {
		size = 4096
		if len(d.chunks[i-1]) == chunkSize {
			size = chunkSize
		}
	}
	for size < end {
		size *= 2
	}
	size = int(min(int64(size), int64(len(old))+m.left()))
	if size <= len(old) {
		return len(old)
	}
	m.take(int64(size - len(old)))
	d.charged += int64(size - len(old))
	grown := make([]byte, size)
	copy(grown, old)
	d.chunks[i] = grown
	return size
}

// extend makes room for n chunks. It reports whether the meter allowed it.
func (d *data) extend(m *meter, n int) bool {
	if n > cap(d.chunks) {
		slots := max(n, 2*cap(d.chunks))
		if int64(slots-cap(d.chunks))*slotSize > m.left() {
			slots = n
		}
		cost := int64(slots-cap(d.chunks)) * slotSize
		if !m.take(cost) {
			return false
		}
		d.charged += cost
		grown := make([][]byte, len(d.chunks), slots)
		copy(grown, d.chunks)
		d.chunks = grown
	}
	d.chunks = d.chunks[:n]
	return true
}

// truncate sets the length. It frees what lies past it and allocates nothing new.
func (d *data) truncate(m *meter, size int64) {
	before := d.charged
	keep := int((size + chunkSize - 1) / chunkSize)
	if keep < len(d.chunks) {
		for _, c := range d.chunks[keep:] {
			d.charged -= int64(len(c))
		}
		clear(d.chunks[keep:])
		d.chunks = d.chunks[:keep]
		if cap(d.chunks) > 2*keep+8 || keep == 0 {
			d.charged -= int64(cap(d.chunks)-keep) * slotSize
			kept := make([][]byte, keep)
			copy(kept, d.chunks)
			d.chunks = kept
		}
	}
	if last := int(size % chunkSize); last > 0 && keep == len(d.chunks) {
		if c := d.chunks[keep-1]; len(c) > last {
			clear(c[last:])
			if len(c) >= 2*last {
				d.charged -= int64(len(c) - last)
				d.chunks[keep-1] = append(make([]byte, 0, last), c[:last]...)
			}
		}
	}
	d.size = size
	m.give(before - d.charged)
}
