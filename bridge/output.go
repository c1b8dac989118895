package bridge

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"codeexec/wasmhost"
)

// A token is a piece of raw output and what the client sees of it.
type token struct {
	size int    // bytes of raw output, at least 1
	text string // printable form; empty for an ANSI escape sequence
}

// nextToken splits the first token off p, which must not be empty.
//
// Everything that could damage a conversation when a client stores it (invalid UTF-8, NUL and other
// control characters, lone surrogates) becomes a visible escape in Python's own notation; terminal
// escape sequences are dropped, because colours mean nothing to a model and cost it tokens.
func nextToken(p []byte) token {
	c := p[0]
	switch {
	case c == '\n' || c == '\t' || c >= ' ' && c < 0x7f:
		return token{1, string(p[:1])}
	case c == '\r':
		if len(p) > 1 && p[1] == '\n' {
			return token{2, "\n"}
		}
		return token{1, `\r`}
	case c == 0x1b:
		if n := escapeSequence(p); n > 0 {
			return token{n, ""}
		}
		return token{1, `\x1b`}
	case c < utf8.RuneSelf:
		return token{1, fmt.Sprintf(`\x%02x`, c)}
	}
	r, n := utf8.DecodeRune(p)
	switch {
	case r == utf8.RuneError && n == 1:
		// CPython's "surrogatepass" writes a lone surrogate as three bytes that aren't UTF-8.
		if c == 0xed && len(p) >= 3 && p[1] >= 0xa0 && p[1] <= 0xbf && p[2] >= 0x80 && p[2] <= 0xbf {
			return token{3, fmt.Sprintf(`\ud%x%02x`, 8+(p[1]-0xa0)>>2, (p[1]&3)<<6|p[2]&0x3f)}
		}
		return token{1, fmt.Sprintf(`\x%02x`, c)}
	case r >= 0x80 && r < 0xa0: // the C1 control characters; terminals obey some of them
		return token{n, fmt.Sprintf(`\x%02x`, r)}
	}
	return token{n, string(p[:n])}
}

// maxSequence bounds how far the end of an escape sequence is searched, so that an unfinished one
// can't swallow the output after it.
const maxSequence = 4096

// escapeSequence returns the length of the ECMA-48 escape sequence at the start of p, whose first
// byte is ESC, or 0 if there is no complete one.
func escapeSequence(p []byte) int {
	if len(p) < 2 {
		return 0
	}
	end := min(len(p), maxSequence)
	switch c := p[1]; {
	case c == '[': // CSI: parameters, intermediates, one final byte
		for i := 2; i < end; i++ {
			if p[i] >= 0x40 && p[i] <= 0x7e {
				return i + 1
			}
			if p[i] < 0x20 || p[i] > 0x3f {
				return 0
			}
		}
	case strings.IndexByte("]PX^_", c) >= 0: // OSC, DCS, SOS, PM, APC: text up to BEL or ST
		for i := 2; i < end; i++ {
			switch {
			case p[i] == 0x07:
				return i + 1
			case p[i] == 0x1b && i+1 < end && p[i+1] == '\\':
				return i + 2
			case p[i] < 0x20 || p[i] == 0x7f:
				return 0
			}
		}
	case c >= 0x20 && c <= 0x2f: // intermediates, then a final byte
		for i := 2; i < end; i++ {
			if p[i] >= 0x30 && p[i] <= 0x7e {
				return i + 1
			}
			if p[i] < 0x20 || p[i] > 0x2f {
				return 0
			}
		}
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 0
}

// printableSize returns the length of p's printable form, or more than limit as soon as it is longer
// than that.
func printableSize(p []byte, limit int) int {
	size := 0
	for len(p) > 0 && size <= limit {
		t := nextToken(p)
		size += len(t.text)
		p = p[t.size:]
	}
	return size
}

// wholeOutput is text of which nothing was dropped.
func wholeOutput(text string) wasmhost.Output { return wasmhost.Output{Head: []byte(text)} }

// printable returns the printable form of out in at most limit bytes: all of it if it fits, else its head
// and its tail around a line that says how many bytes of output are missing there. shortened reports
// whether any are.
func printable(out wasmhost.Output, limit int) (text string, shortened bool) {
	first, second := out.Head, out.Tail
	if out.Dropped == 0 {
		if len(second) > 0 {
			first = slices.Concat(first, second) // a character may lie across the border
		}
		if printableSize(first, limit) <= limit {
			text, _ = headOf(first, limit)
			return text, false
		}
	}
	const markerSize = len("\n[… 9223372036854775807 bytes left out …]\n")
	room := max(limit-markerSize, 0)
	// More of the head than of the tail would hide how a long run ended; more of the tail than of the
	// head, what it was about.
	head, used := headOf(first, room/2)
	if out.Dropped == 0 {
		first, second = first[:used], first[used:]
	}
	tail, kept := tailOf(second, room-len(head))
	missing := int64(len(first)-used+len(second)-kept) + out.Dropped
	marker := fmt.Sprintf("[… %d bytes left out …]\n", missing)
	if head != "" && !strings.HasSuffix(head, "\n") {
		marker = "\n" + marker
	}
	if text = head + marker + tail; len(text) > limit {
		return "", true // a limit too small for the marker
	}
	return text, true
}

// headOf returns the printable form of the longest start of p that fits in limit bytes, and how many
// bytes of p that is. It ends at the end of a line if that costs at most a quarter.
func headOf(p []byte, limit int) (text string, used int) {
	var b strings.Builder
	lineText, lineUsed := 0, 0
	for used < len(p) {
		t := nextToken(p[used:])
		if b.Len()+len(t.text) > limit {
			if lineText >= limit-limit/4 {
				return b.String()[:lineText], lineUsed
			}
			break
		}
		b.WriteString(t.text)
		used += t.size
		if t.text == "\n" {
			lineText, lineUsed = b.Len(), used
		}
	}
	return b.String(), used
}

// tailOf returns the printable form of an end of p that fits in limit bytes, and how many bytes of p
// that is. It looks at the last limit bytes only, and starts at the start of a line if that costs at
// most a quarter.
func tailOf(p []byte, limit int) (text string, used int) {
	start := max(len(p)-limit, 0)
	for cut := 0; start > 0 && start < len(p) && cut < utf8.UTFMax-1 && !utf8.RuneStart(p[start]); cut++ {
		start++ // not in the middle of a character
	}
	var tokens []token
	size := 0
	for rest := p[start:]; len(rest) > 0; {
		t := nextToken(rest)
		tokens = append(tokens, t)
		size += len(t.text)
		rest = rest[t.size:]
	}
	for len(tokens) > 0 && size > limit {
		size -= len(tokens[0].text)
		start += tokens[0].size
		tokens = tokens[1:]
	}
	if start > 0 {
		line := slices.IndexFunc(tokens, func(t token) bool { return t.text == "\n" })
		cut := 0
		for _, t := range tokens[:line+1] {
			cut += len(t.text)
		}
		if line >= 0 && cut <= limit/4 {
			for _, t := range tokens[:line+1] {
				start += t.size
			}
			tokens = tokens[line+1:]
		}
	}
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(t.text)
	}
	return b.String(), len(p) - start
}

// shares divides room among texts of the given sizes: what fits in an equal share gets all it needs,
// and what it leaves is divided among the others.
func shares(room int, sizes []int) []int {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	out := make([]int, len(sizes))
	for i, field := range order {
		out[field] = min(sizes[field], room/(len(order)-i))
		room -= out[field]
	}
	return out
}

// firstLine returns the first line of s with printable characters only, cut at limit bytes.
func firstLine(s string, limit int) string {
	line, _, _ := bytes.Cut([]byte(s), []byte("\n"))
	text, used := headOf(bytes.TrimRight(line, "\r"), limit)
	if used < len(bytes.TrimRight(line, "\r")) {
		text += "…"
	}
	return text
}
