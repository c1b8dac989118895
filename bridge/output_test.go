package bridge

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"codeexec/wasmhost"
)

func TestPrintable(t *testing.T) {
	tests := []struct {
		name, in, want string
	}{
		{"text", "héllo\t世界 🙂\n", "héllo\t世界 🙂\n"},
		{"invalid UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
		{"NUL and control characters", "a\x00b\x07\x7f", `a\x00b\x07\x7f`},
		{"C1 control characters", "a\u0085b\u009b31m", `a\x85b\x9b31m`},
		{"Windows line ends", "a\r\nb\r\n", "a\nb\n"},
		{"carriage return", "50%\r100%", `50%\r100%`},
		{"lone surrogates", "\xed\xa0\x80 \xed\xbf\xbf \xed\xad\xbf", `\ud800 \udfff \udb7f`},
		{"colours", "\x1b[1;31mred\x1b[0m", "red"},
		{"cursor movement", "a\x1b[2Kb\x1b[?25lc", "abc"},
		{"window title", "\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"},
		{"character set", "\x1b(Bx\x1bMy", "xy"},
		{"unfinished escape", "a\x1b", `a\x1b`},
		{"unfinished CSI", "a\x1b[31", `a\x1b[31`},
		{"no escape swallows a line", "a\x1b]0;never closed\nb", "a" + `\x1b` + "]0;never closed\nb"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, shortened := printable(wholeOutput(tc.in), 1000)
			if got != tc.want || shortened {
				t.Errorf("got %q, shortened %v; want %q", got, shortened, tc.want)
			}
		})
	}
}

func TestPrintableKeepsHeadAndTail(t *testing.T) {
	lines := strings.Repeat("0123456789\n", 1000)
	tests := []struct {
		name       string
		in         wasmhost.Output
		limit      int
		head, tail string
		marker     string
	}{
		{"at lines", wholeOutput("first\n" + lines + "last\n"), 1000, "first\n0123", "0123456789\nlast\n", " bytes left out …]\n0123456789\n"},
		{"no lines", wholeOutput("A" + strings.Repeat("x", 5000) + "Z"), 1000, "Axx", "xxZ", "\n[… "},
		{"what escapes cost counts", wholeOutput(strings.Repeat("\x00", 5000)), 1000, `\x00\x00`, `\x00`, " bytes left out …]\n\\x00"},
		{"characters stay whole", wholeOutput(strings.Repeat("世", 5000)), 1000, "世世", "世世", " bytes left out …]\n世"},
		{"the source lost some", wasmhost.Output{Head: []byte("head"), Tail: []byte("tail"), Dropped: 1234}, 1000, "head", "tail", "head\n[… 1234 bytes left out …]\ntail"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, shortened := printable(tc.in, tc.limit)
			if !shortened {
				t.Error("not said to be shortened")
			}
			if len(got) > tc.limit {
				t.Errorf("%d bytes, above %d", len(got), tc.limit)
			}
			if !utf8.ValidString(got) {
				t.Error("not valid UTF-8")
			}
			if !strings.HasPrefix(got, tc.head) || !strings.HasSuffix(got, tc.tail) || !strings.Contains(got, tc.marker) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The number in the marker is exact: what is shown and what is left out add up.
func TestPrintableCountsWhatIsLeftOut(t *testing.T) {
	got, _ := printable(wholeOutput(strings.Repeat("x", 5000)), 1000)
	head, rest, _ := strings.Cut(got, "\n[… ")
	number, tail, _ := strings.Cut(rest, " bytes left out …]\n")
	if want := 5000 - len(head) - len(tail); number != strconv.Itoa(want) {
		t.Errorf("says %s, want %d", number, want)
	}
}

func TestShares(t *testing.T) {
	tests := []struct {
		name  string
		room  int
		sizes []int
		want  []int
	}{
		{"all fit", 100, []int{10, 20, 0}, []int{10, 20, 0}},
		{"one is long", 100, []int{10, 1000, 20}, []int{10, 70, 20}},
		{"all are long", 90, []int{1000, 1000, 1000}, []int{30, 30, 30}},
		{"no room", 0, []int{1, 2}, []int{0, 0}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := shares(tc.room, tc.sizes); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// Whatever a script prints, the text is bounded, valid, and free of control characters.
func FuzzPrintable(f *testing.F) {
	f.Add([]byte("a\x1b[31mb\xff\x00\r\n"), 100)
	f.Add([]byte("\xed\xa0\x80世\x1b]0;"), 5)
	f.Fuzz(func(t *testing.T, p []byte, limit int) {
		limit = min(max(limit, 0), 10_000)
		got, shortened := printable(wasmhost.Output{Head: p}, limit)
		if len(got) > limit {
			t.Errorf("%d bytes, above %d", len(got), limit)
		}
		if !utf8.ValidString(got) {
			t.Errorf("not valid UTF-8: %q", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) }); i >= 0 {
			t.Errorf("a control character at %d of %q", i, got)
		}
		if !shortened && len(p) < limit/6 && len(got) < len(p) && !strings.ContainsAny(string(p), "\x1b\r") {
			t.Errorf("%q became %q", p, got)
		}
	})
}
