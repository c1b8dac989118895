//go:build unix

package upstream

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWidenPath(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{".local/bin", ".nvm/versions/node/v9.11.2/bin", ".nvm/versions/node/v20.1.0/bin"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got := filepath.SplitList(widenPath("/first:/usr/bin", environ{"HOME": home}))
	if !slices.Equal(got[:2], []string{"/first", "/usr/bin"}) {
		t.Errorf("PATH is %q", got)
	}
	for _, want := range []string{filepath.Join(home, ".local/bin"), filepath.Join(home, ".nvm/versions/node/v20.1.0/bin"), "/bin"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s isn't in %q", want, got)
		}
	}
	for _, bad := range []string{"v9.", ".cargo"} {
		if strings.Contains(strings.Join(got, ":"), bad) {
			t.Errorf("%s is in %q", bad, got)
		}
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(got)))); n != len(got) {
		t.Errorf("directories twice in %q", got)
	}
}

func TestFindProgram(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{"prog": 0o700, "data": 0o600, "sub/prog": 0o700} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	env := environ{"PATH": "relative:" + other + ":" + dir}
	tests := []struct{ command, cwd, want, err string }{
		{"prog", "", dir + "/prog", ""},
		{"data", "", "", "is not on PATH"},
		{"nope", "", "", `the program "nope" is not on PATH; install it, or configure its whole path as "command"`},
		{dir + "/prog", "", dir + "/prog", ""},
		{"./prog", dir, dir + "/prog", ""},
		{"sub/prog", dir, dir + "/sub/prog", ""},
		{dir + "/data", "", "", "is not an executable program"},
		{dir + "/sub", "", "", "is not an executable program"},
		{"./nope", dir, "", "there is no program " + dir + "/nope"},
	}
	for _, tc := range tests {
		got, err := findProgram(tc.command, tc.cwd, env, environ{})
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("findProgram(%q) = %q, %v", tc.command, got, err)
		}
	}
	if got, err := findProgram("prog", "", environ{"PATH": "/nowhere"}, env); got != dir+"/prog" {
		t.Errorf("without a useful PATH of its own: %q, %v", got, err)
	}
}

func TestTail(t *testing.T) {
	tests := []struct {
		writes []string
		want   string
	}{
		{nil, ""},
		{[]string{"abc"}, "abc"},
		{[]string{"abc", "defgh"}, "abcdefgh"},
		{[]string{"abcdefgh"}, "abcdefgh"},
		{[]string{"abc", "defgh", "ij"}, "cdefghij"},
		{[]string{"abcdefg", "hij"}, "cdefghij"},
		{[]string{"abcdefghijklmno", "p"}, "ijklmnop"},
		{[]string{"abcdefghijklmno", "pqrstuvwxyz"}, "stuvwxyz"},
	}
	for _, tc := range tests {
		tail := newTail(8)
		for _, s := range tc.writes {
			tail.Write([]byte(s))
		}
		if got := tail.String(); got != tc.want {
			t.Errorf("after %q: %q, want %q", tc.writes, got, tc.want)
		}
	}
}

func TestLastLines(t *testing.T) {
	tests := []struct{ output, want string }{
		{"", ""},
		{"one\n", "one"},
		{"a\nb\nc\nd\n\n", "b\nc\nd"},
		{"\x1b[31mred\x1b[0m \x1b(B\x07bell\r\nta\tb\x00", "red Bbell\nta\tb"},
		{"\xff\xfe", "\uFFFD"},
		{strings.Repeat("x", 100), "…" + strings.Repeat("x", 20)},
		{strings.Repeat("é", 100), "…" + strings.Repeat("é", 10)},
		{strings.Repeat("日", 100), "…" + strings.Repeat("日", 6)},
	}
	for _, tc := range tests {
		if got := lastLines(tc.output, 3, 20); got != tc.want {
			t.Errorf("lastLines(%q) = %q, want %q", tc.output, got, tc.want)
		}
	}
}
