package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// JSON parses a JSON file whose value is an object. It may have a byte order
// mark, comments and trailing commas.
func JSON(data []byte) (*hujson.Object, error) {
	root, err := JSONValue(data)
	if err != nil {
		return nil, err
	}
	return root.Value.(*hujson.Object), nil
}

// JSONValue is [JSON] with the comments around the object. Its offsets count from
// after the byte order mark.
func JSONValue(data []byte) (hujson.Value, error) {
	var none hujson.Value
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return none, errors.New("it is UTF-16; save it as UTF-8")
	}
	if !utf8.Valid(data) {
		return none, errors.New("it isn't UTF-8")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return none, errors.New("it is empty")
	}
	if deep(data) {
		return none, fmt.Errorf("it is nested deeper than %d levels", MaxDepth)
	}
	// The parser wants a newline after a comment, also after the last.
	root, err := hujson.Parse(append(bytes.Clone(data), '\n'))
	if err != nil {
		return none, fmt.Errorf("it isn't JSON: %w", Position(err))
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return none, errors.New(`it must be an object with the key "mcpServers"`)
	}
	return root, nil
}

// deep reports whether brackets outside of strings and comments are nested
// deeper than MaxDepth. What isn't JSON may be judged wrongly, as long as the
// parser can't go deeper than it was judged: the parser gives up where a
// string or comment isn't what it seems.
func deep(data []byte) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			rest := data[i:]
			var end int
			switch {
			case bytes.HasPrefix(rest, []byte("//")):
				end = bytes.IndexByte(rest, '\n')
			case bytes.HasPrefix(rest, []byte("/*")):
				if end = bytes.Index(rest[2:], []byte("*/")); end >= 0 {
					end += 3
				}
			default:
				continue
			}
			if end < 0 {
				return false
			}
			i += end
		}
	}
	return false
}

// Position strips what the parser of JSON quotes of the file from its error: the file
// has secrets in it. Line and column stay.
func Position(err error) error {
	var line, column int
	if n, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); n == 2 && scanErr == nil {
		return fmt.Errorf("syntax error at line %d, column %d", line, column)
	}
	return errors.New("syntax error")
}
