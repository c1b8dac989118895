package upstream

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"
)

// An event is one of an event stream
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
type event struct {
	name  string // empty means "message"
	id    string // cut; see hasID
	hasID bool
	retry time.Duration // how long to wait before connecting again; 0 if it doesn't say
	data  []byte        // nil if tooLong is set
	// tooLong says that the data is longer than it may be. answers is then the
	// request that it answers, or 0 if it answers none.
	tooLong bool
	answers int64
}

// maxEventField is the length in bytes of the longest name and id of an event
// that is kept.
const maxEventField = 4 << 10

// An eventReader reads the events of an untrusted stream in bounded memory.
type eventReader struct {
	r     *bufio.Reader
	limit int // bytes of data of one event
	begun bool
	crlf  bool // the last line ended with a CR, to which a LF may belong
}

func newEventReader(r io.Reader, limit int) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next event that says something. An event that the end of the
// stream cuts off doesn't count. The error is the stream's.
func (er *eventReader) next() (event, error) {
	var (
		e     event
		id    answerID
		lines int  // of data
		some  bool // there was a field
	)
	feed := func(part []byte) {
		switch {
		case e.tooLong:
			id.feed(part)
		case len(e.data)+len(part) > er.limit:
			e.tooLong = true
			id.feed(e.data)
			id.feed(part)
			e.data = nil
		default:
			e.data = append(e.data, part...)
		}
	}
	for {
		name, blank, value, err := er.field()
		if err != nil {
			return event{}, err
		}
		if blank {
			if !some {
				continue
			}
			if e.tooLong {
				e.answers = id.value()
			}
			return e, nil
		}
		if name == "data" {
			some = true
			if lines++; lines > 1 {
				feed([]byte("\n"))
			}
			if err := er.rest(value, feed); err != nil {
				return event{}, err
			}
			continue
		}
		var text []byte
		err = er.rest(value, func(part []byte) {
			text = append(text, part[:min(len(part), maxEventField-len(text))]...)
		})
		if err != nil {
			return event{}, err
		}
		switch name {
		case "event":
			some, e.name = true, string(text)
		case "id":
			if !bytes.ContainsRune(text, 0) {
				some, e.id, e.hasID = true, string(text), true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(text), 10, 31); err == nil {
				some, e.retry = true, time.Duration(ms)*time.Millisecond
			}
		}
	}
}

// field reads the name of the next field, up to where its value begins. hasValue
// says that there is a value to be read. Comments are fields without a name.
func (er *eventReader) field() (name string, blank, hasValue bool, err error) {
	if !er.begun {
		er.begun = true
		if bom, _ := er.r.Peek(3); string(bom) == "\uFEFF" {
			er.r.Discard(3)
		}
	}
	var text []byte
	for {
		c, err := er.r.ReadByte()
		if err != nil {
			return "", false, false, err
		}
		after := er.crlf
		er.crlf = false
		switch c {
		case '\n':
			if after && len(text) == 0 {
				continue // the second half of the last line's end
			}
			return string(text), len(text) == 0, false, nil
		case '\r':
			er.crlf = true
			return string(text), len(text) == 0, false, nil
		case ':':
			if next, err := er.r.Peek(1); err == nil && next[0] == ' ' {
				er.r.Discard(1)
			}
			return string(text), false, true, nil
		}
		if len(text) < 16 { // longer than the names that matter
			text = append(text, c)
		}
	}
}

// rest hands the value of a field to use, in parts that are valid until use
// returns.
func (er *eventReader) rest(hasValue bool, use func([]byte)) error {
	for hasValue {
		if er.r.Buffered() == 0 {
			if _, err := er.r.Peek(1); err != nil {
				return err
			}
		}
		part, _ := er.r.Peek(er.r.Buffered())
		end := bytes.IndexAny(part, "\r\n")
		if end < 0 {
			use(part)
			er.r.Discard(len(part))
			continue
		}
		use(part[:end])
		er.crlf = part[end] == '\r'
		er.r.Discard(end + 1)
		return nil
	}
	return nil
}
