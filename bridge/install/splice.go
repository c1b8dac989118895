package install

import (
	"bytes"
	"slices"
	"strings"
)

// A splice puts one text in the place of another. All around it stays.
type splice struct {
	Offset int    `json:"offset"` // of Old before, and New after
	Old    string `json:"old"`
	New    string `json:"new"`
}

func (s splice) apply(data []byte) []byte {
	after := make([]byte, 0, len(data)+len(s.New)-len(s.Old)) // not nil, which is no file
	after = append(after, data[:s.Offset]...)
	after = append(after, s.New...)
	return append(after, data[s.Offset+len(s.Old):]...)
}

// undo returns data as it would be without the splice, which may have moved
// since. Of several places where it may be, it takes the nearest that valid
// accepts.
func (s splice) undo(data []byte, valid func([]byte) bool) ([]byte, bool) {
	var places []int
	if s.New == "" {
		places = []int{s.Offset}
	}
	for at := 0; s.New != "" && len(places) < maxPlaces; at++ {
		next := bytes.Index(data[at:], []byte(s.New))
		if next < 0 {
			break
		}
		at += next
		places = append(places, at)
	}
	slices.SortStableFunc(places, func(a, b int) int { return distance(a, s.Offset) - distance(b, s.Offset) })
	for _, at := range places {
		if at > len(data) {
			continue
		}
		if before := (splice{at, s.New, s.Old}).apply(data); valid(before) {
			return before, true
		}
	}
	return nil, false
}

// maxPlaces bounds how often the text of an entry is looked for; there is one,
// unless somebody has copied it into comments.
const maxPlaces = 16

func distance(a, b int) int { return max(a-b, b-a) }

// newlineOf returns how lines end in a text.
func newlineOf(data []byte) string {
	if bytes.Contains(data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// indentAt returns the white space that the line of an offset begins with.
func indentAt(data []byte, offset int) string {
	line := data[bytes.LastIndexByte(data[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

const blanks = " \t\r\n"

func isBlank(text string) bool { return strings.Trim(text, blanks) == "" }
