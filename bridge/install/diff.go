package install

import (
	"fmt"
	"slices"
	"strings"
)

// Diff shows the change, in the form of a unified diff without context: the lines
// around it are none of our business, and may have secrets in them. name is what
// the file is called. Of a long line that changes, only what changes is shown. It
// is empty if nothing changes.
func (p *Plan) Diff(name string) string {
	if !p.Changed() {
		return ""
	}
	var b strings.Builder
	before, after := name, name
	if p.Before == nil {
		before = "(no file)"
	}
	if p.After == nil {
		after = "(no file)"
	}
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", before, after)
	old, new := lines(p.Before), lines(p.After)
	start := 0
	for start < min(len(old), len(new)) && old[start] == new[start] {
		start++
	}
	for len(old) > start && len(new) > start && old[len(old)-1] == new[len(new)-1] {
		old, new = old[:len(old)-1], new[:len(new)-1]
	}
	old, new = old[start:], new[start:]
	fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", start+1, len(old), start+1, len(new))
	if len(old) == 1 && len(new) == 1 {
		old, new = shorten(old[0], new[0])
	}
	for _, line := range old {
		b.WriteString("-" + show(line))
	}
	for _, line := range new {
		b.WriteString("+" + show(line))
	}
	return b.String()
}

func lines(data []byte) []string { return slices.Collect(strings.Lines(string(data))) }

// show spells a line with a newline, also if it has none, and without other
// control characters.
func show(line string) string {
	line = strings.TrimRight(line, "\r\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return '�'
		}
		return r
	}, line) + "\n"
}

// context is how much of a long line is shown on each side of a change.
const context = 12

func shorten(old, new string) ([]string, []string) {
	const long = 80
	if len(old) < long {
		return []string{old}, []string{new}
	}
	s := difference([]byte(old), []byte(new))
	from := max(0, s.Offset-context)
	cut := func(line string, to int) []string {
		to = min(len(line), to+context)
		return []string{strings.ToValidUTF8("… "+line[from:to]+" …", "")}
	}
	return cut(old, s.Offset+len(s.Old)), cut(new, s.Offset+len(s.New))
}
