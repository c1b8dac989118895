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
	got := filepath.SplitList(widenPath("linux", "/first:/usr/bin", environ{"HOME": home}))
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
		got, err := findProgram("linux", tc.command, tc.cwd, env, environ{})
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("findProgram(%q) = %q, %v", tc.command, got, err)
		}
	}
	if got, err := findProgram("linux", "prog", "", environ{"PATH": "/nowhere"}, env); got != dir+"/prog" {
		t.Errorf("without a useful PATH of its own: %q, %v", got, err)
	}
}

// npx and its like are batch files on Windows, beside scripts of the same name that only other systems run.
func TestFindProgramOnWindows(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"npx", "npx.cmd", "node.EXE", "tool.BAT"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := serverEnviron("windows", []string{"Path=" + dir, "PathExt=.EXE;.cmd;.BAT"}, nil)
	for command, want := range map[string]string{
		"npx": "npx.cmd", "npx.cmd": "npx.cmd", "node": "node.EXE", "tool": "tool.BAT", filepath.Join(dir, "npx"): "npx.cmd",
	} {
		got, err := findProgram("windows", command, "", env, environ{})
		if err != nil || got != filepath.Join(dir, want) {
			t.Errorf("findProgram(%q) = %q, %v, want %s", command, got, err, want)
		}
	}
}

// Names of variables have no case on Windows, and Python is told to write UTF-8, whatever the console's code page.
func TestEnvironmentOnWindows(t *testing.T) {
	host := []string{`SystemRoot=C:\Windows`, `AppData=C:\Users\Ada\AppData`, "Path=/first", "Aws_Secret_Access_Key=s3cret", "HOME=/home/ada"}
	env := serverEnviron("windows", host, map[string]string{"Token": "t0p"})
	path := env["PATH"]
	delete(env, "PATH")
	want := []string{`APPDATA=C:\Users\Ada\AppData`, "HOME=/home/ada", "PYTHONUTF8=1", `SYSTEMROOT=C:\Windows`, "TOKEN=t0p"}
	if got := env.list(); !slices.Equal(got, want) || !strings.HasPrefix(path, "/first") {
		t.Errorf("%q, PATH %s, want %q", got, path, want)
	}
	if env := serverEnviron("windows", nil, map[string]string{"PythonUTF8": "0"}); env["PYTHONUTF8"] != "0" {
		t.Errorf("the owner's setting doesn't count: %q", env)
	}
	if env := serverEnviron("linux", host, nil); env["PYTHONUTF8"] != "" {
		t.Errorf("elsewhere: %q", env)
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
