package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// parseMCPServers decodes the format that most MCP clients share:
//
//	{"mcpServers": {name: {command, args, env, cwd, description, disabled}}}
//
// It is JSON that may have a byte order mark, comments and trailing commas.
// Other keys are ignored: they are other clients' business. Numbers and
// booleans are taken for strings where a string is wanted ("PORT": 8080).
//
// An entry that can't be decoded has its err set. The error is for a file that
// can't be.
func parseMCPServers(data []byte) ([]entry, error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, errors.New("it is UTF-16; save it as UTF-8")
	}
	if !utf8.Valid(data) {
		return nil, errors.New("it isn't UTF-8")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("it is empty")
	}
	if deep(data) {
		return nil, fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	// The parser wants a newline after a comment, also after the last.
	root, err := hujson.Parse(append(bytes.Clone(data), '\n'))
	if err != nil {
		return nil, fmt.Errorf("it isn't JSON: %w", position(err))
	}
	top, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New(`it must be an object with the key "mcpServers"`)
	}
	var entries []entry
	found := false
	for _, member := range top.Members {
		if literal(member.Name) != "mcpServers" {
			continue
		}
		found = true
		servers, ok := member.Value.Value.(*hujson.Object)
		if !ok {
			return nil, errors.New(`"mcpServers" must be an object, a server's name each key`)
		}
		for _, server := range servers.Members {
			entries = append(entries, decodeMCPServer(literal(server.Name), server.Value))
		}
	}
	if !found {
		return nil, errors.New(`it has no key "mcpServers"`)
	}
	return entries, nil
}

func decodeMCPServer(name string, value hujson.Value) entry {
	e := entry{name: name}
	fields, ok := value.Value.(*hujson.Object)
	if !ok {
		e.err = errors.New("it must be an object")
		return e
	}
	for _, field := range fields.Members {
		key := literal(field.Name)
		var err error
		switch key {
		case "command":
			e.command, err = text(field.Value)
		case "args":
			e.args, err = texts(field.Value)
		case "env":
			e.env, err = variables(field.Value)
		case "cwd":
			e.cwd, err = text(field.Value)
		case "description":
			e.description, err = text(field.Value)
		case "disabled":
			e.disabled, err = boolean(field.Value)
		}
		if err != nil {
			// The rest of the entry isn't worth reporting: one thing at a time.
			e.err = fmt.Errorf("%q %w", key, err)
			return e
		}
	}
	return e
}

// literal returns the text of an object's key.
func literal(name hujson.Value) string {
	lit, _ := name.Value.(hujson.Literal)
	return lit.String()
}

// text decodes a string, or a number or boolean as its own spelling; null is
// the empty string.
func text(v hujson.Value) (string, error) {
	lit, ok := v.Value.(hujson.Literal)
	if !ok {
		return "", errors.New("must be a string")
	}
	switch lit.Kind() {
	case '"':
		var s string
		if err := json.Unmarshal(lit, &s); err != nil {
			return "", errors.New("is not a valid string")
		}
		return s, nil
	case 'n':
		return "", nil
	}
	return string(lit), nil
}

func texts(v hujson.Value) ([]string, error) {
	if isNull(v) {
		return nil, nil
	}
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, errors.New("must be a list of strings")
	}
	var list []string
	for i, element := range array.Elements {
		s, err := text(element)
		if err != nil {
			return nil, fmt.Errorf("[%d] %w", i, err)
		}
		list = append(list, s)
	}
	return list, nil
}

func variables(v hujson.Value) (map[string]string, error) {
	if isNull(v) {
		return nil, nil
	}
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("must be an object of strings")
	}
	env := make(map[string]string, len(object.Members))
	for _, member := range object.Members {
		key := literal(member.Name)
		if isNull(member.Value) {
			continue
		}
		s, err := text(member.Value)
		if err != nil {
			return nil, fmt.Errorf("[%q] %w", key, err)
		}
		env[key] = s
	}
	return env, nil
}

func boolean(v hujson.Value) (bool, error) {
	lit, ok := v.Value.(hujson.Literal)
	if ok {
		switch lit.Kind() {
		case 't':
			return true, nil
		case 'f', 'n':
			return false, nil
		}
	}
	return false, errors.New("must be true or false")
}

func isNull(v hujson.Value) bool {
	lit, ok := v.Value.(hujson.Literal)
	return ok && lit.Kind() == 'n'
}

// maxDepth is far more than a configuration needs, and far less than what the
// parser, which calls itself for each level, has stack for.
const maxDepth = 100

// deep reports whether brackets outside of strings and comments are nested
// deeper than maxDepth. What isn't JSON may be judged wrongly, as long as the
// parser can't go deeper than it was judged: the parser gives up where a
// string or comment isn't what it seems.
func deep(data []byte) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
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

// position strips what the parser quotes of the file from its error: the file
// has secrets in it. Line and column stay.
func position(err error) error {
	var line, column int
	if n, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); n == 2 && scanErr == nil {
		return fmt.Errorf("syntax error at line %d, column %d", line, column)
	}
	return errors.New("syntax error")
}
