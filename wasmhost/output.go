package wasmhost

import "io"

// Output is what a run wrote to one of its streams: all of it, or its head and
// its tail where it was more than is kept.
type Output struct {
	Head, Tail []byte // Tail follows Head directly where Dropped is 0
	Dropped    int64  // bytes between them that were not kept
}

// String is the output with nothing to mark what was dropped.
func (o Output) String() string { return string(o.Head) + string(o.Tail) }

// Total is how many bytes the run wrote.
func (o Output) Total() int64 { return int64(len(o.Head)+len(o.Tail)) + o.Dropped }

// keep is how many bytes of each stream are kept, half of them at either end.
const keep = 16 << 20

// A capture keeps the head and the tail of what is written, and passes all of
// it on. It never fails: what takes the output can't stop the guest.
type capture struct {
	next io.Writer // may be nil; not written to again after it fails

	head  []byte
	ring  []byte // the tail; oldest byte at start once it is full
	start int
	total int64
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if c.next != nil {
		if _, err := c.next.Write(p); err != nil {
			c.next = nil
		}
	}
	if room := keep/2 - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > keep/2 {
		p = p[len(p)-keep/2:]
	}
	if room := keep/2 - len(c.ring); room > 0 {
		k := min(room, len(p))
		c.ring = append(c.ring, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(c.ring[c.start:], p)
		c.start = (c.start + k) % len(c.ring)
		p = p[k:]
	}
	return n, nil
}

func (c *capture) output() Output {
	o := Output{Head: c.head, Tail: c.ring}
	if c.start != 0 {
		o.Tail = append(append(make([]byte, 0, len(c.ring)), c.ring[c.start:]...), c.ring[:c.start]...)
	}
	o.Dropped = c.total - int64(len(o.Head)+len(o.Tail))
	return o
}
