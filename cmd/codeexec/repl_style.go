package main

import "strings"

// Styles are parameters of the escape sequence SGR of ECMA-48.
const (
	stylePrompt = "1;32"
	styleError  = "31"
)

// codeStyles are the colours of the parts of code, of the basic palette, which a terminal's own theme makes
// readable on its background.
func codeStyle(kind string) string {
	switch kind {
	case "keyword":
		return "35"
	case "builtin":
		return "36"
	case "definition":
		return "1;34"
	case "string":
		return "32"
	case "number":
		return "33"
	case "comment":
		return "90"
	}
	return ""
}

// A style paints text, or leaves it as it is.
type style struct{ colours bool }

// terminalStyle paints unless NO_COLOR (https://no-color.org) or a dumb terminal asks for plain text.
func terminalStyle(lookup func(string) (string, bool)) style {
	none, _ := lookup("NO_COLOR")
	terminal, _ := lookup("TERM")
	return style{colours: none == "" && terminal != "dumb"}
}

func (s style) paint(parameters, text string) string {
	if !s.colours || parameters == "" || text == "" {
		return text
	}
	return "\x1b[" + parameters + "m" + text + "\x1b[0m"
}

// traceback paints what a traceback ends with: the exception.
func (s style) traceback(text string) string {
	cut := strings.LastIndexByte(text, '\n') + 1
	return text[:cut] + s.paint(styleError, text[cut:])
}

// code paints the spans of a text. Spans that don't follow each other inside of it are passed over.
func (s style) code(text []rune, spans []span) string {
	var b strings.Builder
	done := 0
	for _, sp := range spans {
		if sp.start < done || sp.end < sp.start || sp.end > len(text) {
			continue
		}
		b.WriteString(string(text[done:sp.start]))
		// Line by line, since the editor puts a prompt in front of each.
		for i, line := range strings.Split(string(text[sp.start:sp.end]), "\n") {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(s.paint(codeStyle(sp.kind), line))
		}
		done = sp.end
	}
	b.WriteString(string(text[done:]))
	return b.String()
}
