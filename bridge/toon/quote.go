package toon

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// needsQuotes reports whether a string must be quoted as a value where delimiter is in use (§7.2).
func needsQuotes(s string, delimiter byte) bool {
	switch s {
	case "", "true", "false", "null":
		return true
	}
	if s[0] == '-' || edgeSpace(s) || numeric(s) {
		return true
	}
	for i := range len(s) {
		switch c := s[i]; c {
		case ':', '"', '\\', '[', ']', '{', '}', delimiter:
			return true
		default:
			if c < ' ' {
				return true
			}
		}
	}
	return false
}

// edgeSpace reports whether a reader that trims s, by whichever notion of white space, would change it.
func edgeSpace(s string) bool {
	const byteOrderMark = '\ufeff' // white space in JavaScript
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsSpace(first) || unicode.IsSpace(last) || first == byteOrderMark || last == byteOrderMark
}

// numeric reports whether s looks like a number, with more leading zeros than JSON allows.
func numeric(s string) bool {
	s = strings.TrimPrefix(s, "-")
	rest := strings.TrimLeft(s, digits)
	if rest == s {
		return false
	}
	if after, ok := strings.CutPrefix(rest, "."); ok {
		if rest = strings.TrimLeft(after, digits); rest == after {
			return false
		}
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	rest = rest[1:]
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	return rest != "" && strings.TrimLeft(rest, digits) == ""
}

const digits = "0123456789"

// bareKey reports whether a key can do without quotes (§7.3).
func bareKey(key string) bool {
	for i := range len(key) {
		c := key[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '.') {
			return false
		}
	}
	return key != ""
}

// quoted writes s in quotes, with the escapes of §7.1.
func (e *encoder) quoted(s string) {
	const hex = "0123456789abcdef"
	e.out.WriteByte('"')
	start := 0 // of what needs no escape
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		e.out.WriteString(s[start:i])
		start = i + 1
		e.out.WriteByte('\\')
		switch c {
		case '"', '\\':
			e.out.WriteByte(c)
		case '\n':
			e.out.WriteByte('n')
		case '\r':
			e.out.WriteByte('r')
		case '\t':
			e.out.WriteByte('t')
		default:
			e.out.WriteString("u00")
			e.out.WriteByte(hex[c>>4])
			e.out.WriteByte(hex[c&15])
		}
	}
	e.out.WriteString(s[start:])
	e.out.WriteByte('"')
}
