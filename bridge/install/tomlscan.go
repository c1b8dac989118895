package install

import (
	"slices"
	"strconv"
	"strings"
)

// A statement of a TOML file is a header of a table, or a key with its value. The
// offsets are those of whole lines, with their newline, and of the value.
type statement struct {
	header             bool
	path               []string // from the root: of the table, or of the value
	start, end         int
	valueFrom, valueTo int // 0 for a header
}

// within reports whether the statement belongs to the table or value of a path.
func (s statement) within(path []string) bool {
	return len(s.path) >= len(path) && slices.Equal(s.path[:len(path)], path)
}

// statements finds the statements of a text that a parser has found valid: it
// needn't look at what values mean, only at where they end. It knows no
// difference between [table] and [[table]].
func statements(text string) []statement {
	var found []statement
	var table []string
	s := scanner{text: text}
	for {
		lineStart := s.at
		s.skip(blanks)
		if i := strings.LastIndexByte(text[:s.at], '\n') + 1; i > lineStart {
			lineStart = i
		}
		switch {
		case s.at == len(text):
			return found
		case text[s.at] == '#':
			s.comment()
			continue
		case text[s.at] == '[':
			for s.peek() == '[' {
				s.at++
			}
			table = s.key()
			for s.peek() == ']' {
				s.at++
			}
			s.restOfLine()
			found = append(found, statement{header: true, path: table, start: lineStart, end: s.at})
		default:
			path := slices.Concat(table, s.key())
			s.at = min(s.at+1, len(text)) // =
			s.skip(" \t")
			from := s.at
			s.value()
			to := s.at
			s.restOfLine()
			found = append(found, statement{path: path, start: lineStart, end: s.at, valueFrom: from, valueTo: to})
		}
	}
}

// A scanner moves over a valid TOML file. On any other it ends somewhere.
type scanner struct {
	text string
	at   int
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) skip(set string) {
	s.at = len(s.text) - len(strings.TrimLeft(s.text[s.at:], set))
}

// until moves to before the next of some bytes.
func (s *scanner) until(set string) {
	if i := strings.IndexAny(s.text[s.at:], set); i >= 0 {
		s.at += i
	} else {
		s.at = len(s.text)
	}
}

func (s *scanner) comment() { s.until("\n") }

func (s *scanner) restOfLine() {
	s.until("\n")
	s.at = min(s.at+1, len(s.text))
}

// key reads the parts of a dotted key, and stops at what follows it.
func (s *scanner) key() []string {
	var parts []string
	for {
		s.skip(" \t")
		from := s.at
		switch s.peek() {
		case '"':
			s.quoted()
			part, err := strconv.Unquote(s.text[from:s.at])
			if err != nil {
				part = s.text[from:s.at] // an escape that Go doesn't have: none of the keys looked for
			}
			parts = append(parts, part)
		case '\'':
			s.quoted()
			parts = append(parts, strings.Trim(s.text[from:s.at], "'"))
		default:
			s.until(" \t.=]\r\n")
			parts = append(parts, s.text[from:s.at])
		}
		s.skip(" \t")
		if s.peek() != '.' {
			return parts
		}
		s.at++
	}
}

// quoted moves over a string of any kind.
func (s *scanner) quoted() {
	quote := s.text[s.at : s.at+1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(s.text[s.at:], long) {
		s.at += 3
		s.to(long, quote == `"`)
		for s.peek() == quote[0] { // up to two that belong to the string
			s.at++
		}
		return
	}
	s.at++
	s.to(quote, quote == `"`)
}

// to moves to behind an end, in front of which a backslash may escape a byte.
func (s *scanner) to(end string, escapes bool) {
	for s.at < len(s.text) {
		switch {
		case escapes && s.text[s.at] == '\\':
			s.at = min(s.at+2, len(s.text))
		case strings.HasPrefix(s.text[s.at:], end):
			s.at += len(end)
			return
		default:
			s.at++
		}
	}
}

// value moves over a value. Lists and inline tables may span lines, and have
// comments.
func (s *scanner) value() {
	depth := 0
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"' || c == '\'':
			s.quoted()
		case c == '[' || c == '{':
			depth++
			s.at++
		case c == ']' || c == '}':
			depth--
			s.at++
		case c == '#' && depth > 0:
			s.comment()
			continue
		case depth > 0 && strings.IndexByte(blanks+",=", c) >= 0:
			s.at++
			continue
		default: // a number, a word, a date with a space in it; in an inline table also a key
			from := s.at
			s.until("[]{},=#\"'\r\n")
			s.at = max(s.at, from+1)
			if depth == 0 {
				s.at = len(strings.TrimRight(s.text[:s.at], " \t"))
			}
		}
		if depth <= 0 {
			return
		}
	}
}
