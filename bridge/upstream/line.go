package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// maxLine is the length in bytes of the longest message that is taken from a
// server.
const maxLine = 64 << 20

// shownPrefix is how much of a line that is skipped gets into the log.
const shownPrefix = 200

// A line is what a server wrote to its stdout up to a newline.
type line struct {
	// object is the line if it may be a JSON object: it begins with a brace.
	object []byte
	// prefix is the beginning of a line that isn't taken, for the log.
	prefix string
	// tooLong says that the line is a JSON object that is too long. id is then
	// the request that it answers, or 0 if it answers none.
	tooLong bool
	id      int64
}

// A lineReader reads the lines of an untrusted stream in bounded memory: only
// a line that begins like a JSON object is kept at all, and that up to a limit.
type lineReader struct {
	r     *bufio.Reader
	limit int
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line that isn't blank. A last line without a newline
// counts. The error is the stream's.
func (lr *lineReader) next() (line, error) {
	var (
		l    line
		id   answerID
		mode = lineUnknown
	)
	for {
		part, err := lr.r.ReadSlice('\n')
		if mode == lineUnknown {
			part = bytes.TrimLeft(bytes.TrimPrefix(part, []byte("\uFEFF")), " \t\r\n")
			switch {
			case len(part) == 0:
			case part[0] == '{':
				mode = lineObject
			default:
				mode = lineSkip
			}
		}
		switch mode {
		case lineObject:
			if len(l.object)+len(part) > lr.limit {
				l.prefix = string(l.object[:min(len(l.object), shownPrefix)])
				id.feed(l.object)
				id.feed(part)
				l.object = nil
				mode = lineTooLong
				break
			}
			l.object = append(l.object, part...)
		case lineTooLong:
			id.feed(part)
		case lineSkip:
			l.prefix += string(part[:min(len(part), shownPrefix-len(l.prefix))])
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == nil && mode == lineUnknown {
			continue // a blank line
		}
		if err != nil && mode == lineUnknown {
			return line{}, err
		}
		// An error comes again at the next call.
		if mode == lineTooLong {
			l.tooLong = true
			l.id = id.value()
		}
		return l, nil
	}
}

// What is done with the line that is being read.
const (
	lineUnknown = iota // blank so far
	lineObject         // keep it
	lineSkip           // drop it: it isn't JSON
	lineTooLong        // drop it, but find out what it answers
)

// An answerID finds the request that a JSON-RPC response answers, in a message
// that is too long to be kept. It follows the structure of the text without
// checking it.
type answerID struct {
	depth   int
	inText  bool
	escaped bool
	isKey   bool   // the next string at depth 1 is a key
	key     []byte // the last key at depth 1, cut
	literal []byte // the value of the key "id" so far, cut
	request bool   // there is a key "method"
}

func (a *answerID) feed(text []byte) {
	const enough = 24 // longer than any key or number that matters
	for _, c := range text {
		if a.inText {
			switch {
			case a.escaped:
				a.escaped = false
			case c == '\\':
				a.escaped = true
			case c == '"':
				a.inText = false
			}
			if a.inText && a.depth == 1 && a.isKey && len(a.key) < enough {
				a.key = append(a.key, c)
			}
			continue
		}
		switch c {
		case '"':
			a.inText = true
			if a.depth == 1 && a.isKey {
				a.key = a.key[:0]
			}
		case ':':
			if a.depth == 1 {
				a.isKey = false
				a.request = a.request || string(a.key) == "method"
			}
		case ',':
			a.isKey = a.depth == 1
		case '{', '[':
			a.depth++
			a.isKey = a.depth == 1
		case '}', ']':
			a.depth--
		default:
			if a.depth == 1 && !a.isKey && string(a.key) == "id" && len(a.literal) < enough {
				a.literal = append(a.literal, c)
			}
		}
	}
}

// value returns the id, or 0 if the message answers no request of ours: our
// ids are numbers from 1.
func (a *answerID) value() int64 {
	id, err := strconv.ParseInt(string(bytes.TrimSpace(a.literal)), 10, 64)
	if err != nil || a.request || id < 0 {
		return 0
	}
	return id
}

// String describes a line that was not taken, for the log.
func (l line) String() string {
	return fmt.Sprintf("%q", l.prefix)
}

// beginning returns as much of a message as is fit for the log.
func beginning(text []byte) string {
	return fmt.Sprintf("%q", text[:min(len(text), shownPrefix)])
}
