package catalog

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	format    = 1
	maxHeader = 16 << 10 // bytes of a record's first line
	maxRecord = 32 << 20 // bytes of a record
	// MaxDescription is how much of a description is kept, in bytes.
	MaxDescription = 1000

	// A record that is still right is written again after this time, so that
	// it tells when its server last ran to about a day.
	rewriteAfter = 24 * time.Hour
)

// A Listing is what a server said when it last ran.
type Listing struct {
	Seen        time.Time // when that was
	Description string    // of the server, in its own words; empty if it has none
	Tools       []Tool    // in its own order
}

// A Summary is a [Listing] with a count in the place of the tools.
type Summary struct {
	Seen        time.Time
	Description string
	Tools       int
}

// A Record is what is known of one server. Its methods may be called
// concurrently.
type Record struct {
	catalog *Catalog
	server  string
	path    string // empty: only in memory
	log     *slog.Logger

	failing atomic.Bool // a failure may be recorded

	mu     sync.Mutex
	header *header // nil: nothing is known
	tools  []Tool  // if loaded
	loaded bool
	file   stamp // the file as it was when it was last read or written
}

// A header is the first line of a file. A later format may add fields, or
// change its number.
type header struct {
	Format      int       `json:"catalog"`
	Server      string    `json:"server"`
	Seen        time.Time `json:"seen"`
	Description string    `json:"description,omitempty"`
	Tools       int       `json:"tools"`
	Size        int64     `json:"size"` // bytes of the second line
	Sum         string    `json:"sum"`  // SHA-256 of it
}

// A stamp tells versions of a file apart.
type stamp struct {
	modified time.Time
	size     int64
}

// Summary returns what the server said when it last ran, in short; false if
// that isn't known.
func (r *Record) Summary() (Summary, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	if r.header == nil {
		return Summary{}, false
	}
	return Summary{r.header.Seen, r.header.Description, r.header.Tools}, true
}

// Tools returns the tools that the server listed when it last ran; false if
// that isn't known. As long as they are the same, so is the slice.
func (r *Record) Tools() ([]Tool, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	if r.header == nil {
		return nil, false
	}
	if !r.loaded {
		if err := r.load(); err != nil {
			r.damaged(err)
			return nil, false
		}
	}
	return r.tools, true
}

// Save records what the server has just said. The tools must not be modified
// afterwards.
func (r *Record) Save(l Listing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	head, data := encode(r.server, l)
	before := r.header
	if !r.loaded || before == nil || before.Sum != head.Sum {
		r.tools, r.loaded = l.Tools, true
	}
	r.header = head
	switch {
	case r.path == "":
		return
	case len(data) > maxRecord:
		r.log.Warn("not kept in the catalogue: its tools are too large", "bytes", len(data), "limit", maxRecord)
		return
	case before != nil && r.file != (stamp{}) && before.Sum == head.Sum && before.Description == head.Description &&
		head.Seen.Sub(before.Seen) < rewriteAfter:
		r.header = before // as it is in the file
		return
	}
	if err := r.catalog.write(r.path, data); err != nil {
		r.log.Warn("the catalogue can't be written", "error", err)
		return
	}
	if info, err := os.Stat(r.path); err == nil {
		r.file = stampOf(info)
	}
}

// look reads the header of the file if that isn't the one that was read last. A
// file that has gone changes nothing: what was known is still the best guess.
func (r *Record) look() {
	if r.path == "" {
		return
	}
	info, err := os.Stat(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.file = stamp{}
		return
	case err != nil || !info.Mode().IsRegular():
		r.log.Debug("the catalogue can't be read", "error", err)
		return
	}
	if r.file == stampOf(info) {
		return
	}
	r.file = stampOf(info)
	head, err := readHeader(r.path, info.Size())
	if err != nil {
		r.damaged(err)
		return
	}
	if r.header == nil || r.header.Sum != head.Sum {
		r.tools, r.loaded = nil, false
	}
	r.header = head
}

// load reads the tools.
func (r *Record) load() error {
	data, err := readFile(r.path)
	if err != nil {
		return err
	}
	head, tools, err := decode(data)
	if err != nil {
		return err
	}
	r.header, r.tools, r.loaded = head, tools, true
	// Who tidies up goes by the time.
	if now := time.Now(); now.Sub(r.file.modified) > rewriteAfter && os.Chtimes(r.path, now, now) == nil {
		if info, err := os.Stat(r.path); err == nil {
			r.file = stampOf(info)
		}
	}
	return nil
}

// damaged forgets what is in the file, until another has taken its place.
func (r *Record) damaged(err error) {
	r.log.Warn("its record in the catalogue can't be used and will be replaced", "error", err)
	r.header, r.tools, r.loaded = nil, nil, false
}

func stampOf(info fs.FileInfo) stamp { return stamp{info.ModTime(), info.Size()} }

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxRecord+1)) // decode sees whether that is all
}

// readHeader reads the first line of a file that has so many bytes.
func readHeader(path string, size int64) (*header, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(io.LimitReader(f, maxHeader), maxHeader).ReadSlice('\n')
	if err != nil {
		return nil, errNoHeader
	}
	return decodeHeader(line, size)
}

var errNoHeader = errors.New("it doesn't begin with a line of JSON")

// decodeHeader reads the first line, with its newline, of a file that has so
// many bytes.
func decodeHeader(line []byte, size int64) (*header, error) {
	h := new(header)
	if err := json.Unmarshal(line, h); err != nil {
		return nil, errNoHeader
	}
	switch {
	case h.Format != format:
		return nil, fmt.Errorf("its format is %d, not %d", h.Format, format)
	case h.Size != size-int64(len(line)) || size > maxRecord:
		return nil, fmt.Errorf("it has %d bytes, not the %d that it should", size, h.Size+int64(len(line)))
	case h.Tools < 0 || len(h.Description) > MaxDescription:
		return nil, errors.New("its first line makes no sense")
	}
	return h, nil
}

// decode reads a file.
func decode(data []byte) (*header, []Tool, error) {
	end := bytes.IndexByte(data, '\n') + 1
	if end == 0 || end > maxHeader {
		return nil, nil, errNoHeader
	}
	h, err := decodeHeader(data[:end], int64(len(data)))
	if err != nil {
		return nil, nil, err
	}
	body := data[end:]
	if sum(body) != h.Sum {
		return nil, nil, errors.New("its tools aren't those that were written")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, nil, errors.New("its tools aren't a list")
	}
	if len(list) != h.Tools {
		return nil, nil, fmt.Errorf("it has %d tools, not %d", len(list), h.Tools)
	}
	tools := make([]Tool, len(list))
	for i, text := range list {
		if tools[i], err = ParseTool(text); err != nil {
			return nil, nil, err
		}
	}
	return h, tools, nil
}

// encode returns the file of a listing, and its header.
func encode(server string, l Listing) (*header, []byte) {
	if l.Tools == nil {
		l.Tools = []Tool{} // null is no list
	}
	body := line(l.Tools)
	h := &header{
		Format: format, Server: cut(server, 200), Seen: l.Seen.UTC().Round(0), Description: cut(l.Description, MaxDescription),
		Tools: len(l.Tools), Size: int64(len(body)), Sum: sum(body),
	}
	return h, append(line(h), body...)
}

// line encodes a value on one line that ends in a newline.
func line(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // a Tool's JSON was valid when it was parsed
	}
	return b.Bytes()
}

func sum(body []byte) string {
	s := sha256.Sum256(body)
	return hex.EncodeToString(s[:])
}

// cut shortens a text to n bytes at most.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for s = s[:n]; !utf8.ValidString(s); s = s[:len(s)-1] {
	}
	return s
}
