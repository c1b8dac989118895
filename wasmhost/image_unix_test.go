//go:build unix

package wasmhost

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"
)

// A region that a session has used is given to the next one only as if it were new, whatever was done to it.
func TestForksFindTheImageAndNothingElse(t *testing.T) {
	const limit = 8 << 20
	content := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{7})
	if _, err := random.Read(content); err != nil {
		t.Fatal(err)
	}
	image, err := newImage(int64(len(content)), func(p []byte) error { copy(p, content); return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := image.close(); err != nil {
			t.Error(err)
		}
	}()
	zero := make([]byte, limit-len(content))
	var alive []*memory
	var sink byte // of reads
	check := func(m *memory) {
		t.Helper()
		if !bytes.Equal(m.region[:len(content)], content) {
			t.Fatal("a fork differs from the image")
		}
		if !bytes.Equal(m.region[len(content):], zero) {
			t.Fatal("a fork has more than the image")
		}
	}
	r := rand.New(random)
	for round := range 200 {
		m, err := image.fork(limit)
		if err != nil {
			t.Fatal(err)
		}
		used := m.Reallocate(uint64(len(content)))
		if round%3 == 0 { // some grow
			if used = m.Reallocate(uint64(len(content) + r.IntN(limit-len(content)))); used == nil {
				t.Fatal("no memory")
			}
		}
		for range r.IntN(400) { // reads, and writes of any length
			at := r.IntN(len(used))
			if r.IntN(4) == 0 {
				sink += used[at]
				continue
			}
			end := min(at+1+r.IntN(3*os.Getpagesize()), len(used))
			for i := at; i < end; i++ {
				used[i] = byte(round)
			}
		}
		alive = append(alive, m)
		for len(alive) > r.IntN(6) {
			alive[0].release()
			alive = alive[1:]
		}
		next, err := image.fork(limit)
		if err != nil {
			t.Fatal(err)
		}
		check(next)
		next.release()
	}
	t.Log(sink)
	for _, m := range alive {
		m.release()
	}
	if image.pages != nil && len(image.spare) == 0 {
		t.Error("no region was kept")
	}
	if len(image.spare) > maxSpare {
		t.Errorf("%d regions were kept, want at most %d", len(image.spare), maxSpare)
	}
	// Another limit is another region.
	m, err := image.fork(2 * limit)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.region) != 2*limit {
		t.Errorf("a region of %d bytes, want %d", len(m.region), 2*limit)
	}
	m.release()
}
