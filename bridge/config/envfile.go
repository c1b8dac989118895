package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// readEnvFile reads the variables of a file that an entry names by "envFile".
// The map isn't nil. Errors name lines, never what is on them.
func readEnvFile(path string, read func(path string, limit int) ([]byte, error)) (map[string]string, error) {
	data, err := read(path, MaxFileSize)
	if err != nil {
		return map[string]string{}, errors.New(reason(err))
	}
	return parseEnvFile(data)
}

// parseEnvFile decodes lines NAME=VALUE, the way that the dotenv packages of
// several languages agree on: empty lines and those that begin with # are
// skipped, "export " may stand before a name, spaces around names and values
// don't count. A value in single quotes is taken as it is; one in double quotes
// may have \n, \r, \t, \", \\ and \$ in it, and both may span lines. A value without quotes
// ends at " #". Nothing is expanded.
//
// On an error the variables of the other lines are returned too.
func parseEnvFile(data []byte) (map[string]string, error) {
	vars := make(map[string]string)
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !utf8.Valid(data) {
		return vars, errors.New("the file isn't UTF-8")
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	var bad error
	for number := 1; text != ""; number++ {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(strings.TrimPrefix(name, "export "))
		if !ok || !isVariable(name) {
			bad = fmt.Errorf("line %d isn't NAME=VALUE", number)
			continue
		}
		value = strings.TrimSpace(value)
		if value == "" || value[0] != '"' && value[0] != '\'' {
			if i := strings.Index(value, " #"); i >= 0 {
				value = value[:i]
			}
			vars[name] = strings.TrimSpace(value)
			continue
		}
		body, lines, ok := quoted(value, text)
		if !ok {
			bad = fmt.Errorf("line %d has a quote that isn't closed", number)
			continue
		}
		for range lines {
			_, text, _ = strings.Cut(text, "\n")
			number++
		}
		vars[name] = body
	}
	return vars, bad
}

// quoted decodes the value that first, the rest of a line, begins with, and
// which may go on in rest, the lines below. It returns how many of these it
// took.
func quoted(first, rest string) (value string, lines int, ok bool) {
	quote := first[0]
	var b strings.Builder
	for {
		first = first[1:]
		for i := 0; i < len(first); i++ {
			c := first[i]
			if c == quote {
				return b.String(), lines, true
			}
			if c == '\\' && quote == '"' && i+1 < len(first) {
				i++
				switch c = first[i]; c {
				case 'n':
					c = '\n'
				case 'r':
					c = '\r'
				case 't':
					c = '\t'
				case '"', '\\', '$':
				default:
					b.WriteByte('\\')
				}
			}
			b.WriteByte(c)
		}
		if rest == "" {
			return "", 0, false
		}
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		first = "\n" + line
		b.WriteByte('\n')
		lines++
	}
}
