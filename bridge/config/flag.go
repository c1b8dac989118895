package config

import (
	"errors"
	"strings"
)

// parseFlag decodes the value of a --server flag: NAME=COMMAND LINE or
// NAME=URL. The command line is split as [splitWords] says; as in a shell,
// words of the form VAR=value before the command become variables of its
// environment.
//
// The error has nothing of the value in it: command lines carry tokens.
func parseFlag(value string) (entry, error) {
	name, line, ok := strings.Cut(value, "=")
	if !ok {
		return entry{}, errors.New("it must be NAME=COMMAND LINE or NAME=URL")
	}
	e := entry{name: strings.TrimSpace(name)}
	words, err := splitWords(line)
	if err != nil {
		e.err = err
		return e, nil
	}
	for len(words) > 0 {
		key, value, ok := strings.Cut(words[0], "=")
		if !ok || !isVariable(key) {
			break
		}
		if e.env == nil {
			e.env = make(map[string]string)
		}
		e.env[key] = value
		words = words[1:]
	}
	if len(words) == 0 {
		e.err = errors.New("it has no command")
		return e, nil
	}
	if first := words[0]; strings.HasPrefix(first, "http://") || strings.HasPrefix(first, "https://") {
		if len(words) > 1 || e.env != nil {
			e.err = errors.New("there is more than a URL")
		}
		e.url = first
		return e, nil
	}
	e.command, e.args = words[0], words[1:]
	return e, nil
}

// splitWords splits a command line at spaces. Single quotes keep everything
// between them; double quotes keep spaces and single quotes. A backslash
// outside of single quotes takes away the meaning of a following quote,
// backslash or (outside of double quotes) space; before anything else it is
// just a backslash, so that C:\tools\server.exe needs no care. Nothing else is
// special: no shell is run.
func splitWords(line string) ([]string, error) {
	var (
		words  []string
		word   strings.Builder
		inWord bool
		quote  byte // the quote that is open, or 0
	)
	for i := 0; i < len(line); i++ {
		c := line[i]
		space := c == ' ' || c == '\t' || c == '\n' || c == '\r'
		switch {
		case quote == '\'' && c != '\'', quote == '"' && c != '"' && c != '\\':
			word.WriteByte(c)
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\':
			inWord = true
			if i+1 < len(line) && escapable(line[i+1], quote) {
				i++
				c = line[i]
			}
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case space:
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("its command line has a quote that isn't closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

func escapable(c, quote byte) bool {
	switch c {
	case '"', '\\':
		return true
	case '\'', ' ', '\t':
		return quote == 0
	}
	return false
}
