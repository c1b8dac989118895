package main

import "testing"

func TestIndentAfter(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"a statement", "x = 1", ""},
		{"a block begins", "if x:", "    "},
		{"a block in a block", "def f():\n    if x:", "        "},
		{"a block goes on", "def f():\n    x = 1", "    "},
		{"a block is over", "def f():\n    return 1", ""},
		{"an inner block is over", "def f():\n    for i in x:\n        break", "    "},
		{"not a keyword", "def f():\n    returned = 1", "    "},
		{"an open bracket", "x = [", "    "},
		{"tabs", "\tif x:", "\t    "},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := indentAfter(tc.text); got != tc.want {
				t.Errorf("indentAfter(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

// What is painted comes from the sandbox, where anybody's code may have been at work.
func TestStyleOfCode(t *testing.T) {
	colours := style{colours: true}
	tests := []struct {
		name  string
		style style
		text  string
		spans []span
		want  string
	}{
		{"no spans", colours, "x = 1", nil, "x = 1"},
		{"a number", colours, "x = 1", []span{{4, 5, "number"}}, "x = \x1b[33m1\x1b[0m"},
		{"code points", colours, "é = 'ü'", []span{{4, 7, "string"}}, "é = \x1b[32m'ü'\x1b[0m"},
		{"two lines", colours, "'''a\nb'''", []span{{0, 9, "string"}}, "\x1b[32m'''a\x1b[0m\n\x1b[32mb'''\x1b[0m"},
		{"no colours", style{}, "x = 1", []span{{4, 5, "number"}}, "x = 1"},
		{"an unknown kind", colours, "x", []span{{0, 1, "31mfoo"}}, "x"},
		{"outside", colours, "x", []span{{0, 2, "number"}, {-1, 1, "number"}, {1, 0, "number"}}, "x"},
		{"on each other", colours, "12", []span{{0, 2, "number"}, {1, 2, "string"}}, "\x1b[33m12\x1b[0m"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.style.code([]rune(tc.text), tc.spans); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
