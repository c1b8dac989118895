package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// TOML parses a TOML file. It may have a byte order mark.
func TOML(data []byte) (map[string]any, error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !utf8.Valid(data) {
		return nil, errors.New("it isn't UTF-8")
	}
	if deepTOML(data) {
		return nil, fmt.Errorf("it is nested deeper than %d levels", MaxDepth)
	}
	file := make(map[string]any)
	if err := toml.Unmarshal(data, &file); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			// The error itself quotes the file, which has secrets in it.
			return nil, fmt.Errorf("it isn't TOML: syntax error at line %d, column %d", syntax.Position.Line, syntax.Position.Col)
		}
		return nil, errors.New("it isn't TOML")
	}
	return file, nil
}

// deepTOML reports whether the file could nest values deeper than MaxDepth. It
// counts brackets also where they are text: no configuration has that many in
// a row that aren't closed.
func deepTOML(data []byte) bool {
	depth := 0
	for _, c := range data {
		switch c {
		case '[', '{':
			if depth++; depth > MaxDepth {
				return true
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return false
}
