package upstream

import (
	"strings"
	"testing"
)

func TestIsBatch(t *testing.T) {
	for path, want := range map[string]bool{
		"C:/nodejs/npx.cmd": true, "C:/nodejs/NPX.CMD": true, "C:/x.Bat": true, "C:/nodejs/node.exe": false, "C:/x.cmd/y": false, "npx": false,
	} {
		if got := isBatch(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestBatchLine(t *testing.T) {
	const cmd = `C:\Windows\System32\cmd.exe`
	const begin = `"` + cmd + `" /e:ON /v:OFF /d /c ""C:\Program Files\nodejs\npx.cmd"`
	tests := []struct {
		name string
		args []string
		want string // after begin
	}{
		{"none", nil, `"`},
		{"plain ones", []string{"-y", "@modelcontextprotocol/server-filesystem", `C:\Users\Ada`}, ` -y @modelcontextprotocol/server-filesystem C:\Users\Ada"`},
		{"empty", []string{""}, ` """`},
		{"spaces", []string{`C:\My Files\x`}, ` "C:\My Files\x""`},
		{"another command", []string{"a&calc.exe", "a|b", "a>b", "a^b", "(a)"}, ` "a&calc.exe" "a|b" "a>b" "a^b" "(a)""`},
		{"a quote that would end the quotes", []string{`"&calc.exe&"`}, ` """&calc.exe&""""`},
		{"variables", []string{"%PATH%", "100%"}, ` "%%cd:~,%PATH%%cd:~,%" "100%%cd:~,%""`},
		{"delayed variables", []string{"!PATH!"}, ` "!PATH!""`},
		{"backslashes before quotes", []string{`a\"b`, `a b\`, `C:\`, `a\\ b`}, ` "a\\""b" "a b\\" "C:\\" "a\\ b""`},
		{"what separates arguments for cmd.exe only", []string{"a,b;c=d"}, ` "a,b;c=d""`},
		{"not ASCII", []string{"grüezi"}, ` "grüezi""`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := batchLine(cmd, `C:\Program Files\nodejs\npx.cmd`, tc.args)
			if err != nil || got != begin+tc.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, begin+tc.want)
			}
		})
	}
	for _, tc := range []struct{ name, script, arg, want string }{
		{"a line break", `C:\npx.cmd`, "a\r\ncalc.exe", "args[0] has a line break"},
		{"NUL", `C:\npx.cmd`, "a\x00b", "args[0] has a line break"},
		{"a path that can't be quoted", `C:\%TEMP%\x.cmd`, "a", "the path of a batch file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := batchLine(cmd, tc.script, []string{tc.arg}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s, err = %v, want … %s", got, err, tc.want)
			}
		})
	}
}

// Whatever an argument is, no character of it is outside of quotes that cmd.exe
// would act on, and what it does to the line leaves the argument.
func FuzzBatchArgument(f *testing.F) {
	for _, seed := range []string{"", "a b", `"&calc`, "%PATH%", `\\"`, `a\`, "^&", "a%b\"%c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return
		}
		line := batchArgument(arg)
		// As cmd.exe sees it: variables first, then quotes.
		expanded := strings.ReplaceAll(line, "%cd:~,%", "")
		if strings.Count(line, "%") != 3*strings.Count(arg, "%") || strings.Count(expanded, "%") != strings.Count(arg, "%") {
			t.Fatalf("%q became %s", arg, line)
		}
		quoted := false
		for _, c := range expanded {
			switch {
			case c == '"':
				quoted = !quoted
			case !quoted && strings.ContainsRune(" &|<>^()@!,;=", c) && c != '@':
				t.Fatalf("%q became %s: %q is not in quotes", arg, line, c)
			}
		}
		if quoted {
			t.Fatalf("%q became %s: a quote is open", arg, line)
		}
		if got := parseArgument(expanded); got != arg {
			t.Fatalf("%q became %s, which is read as %q", arg, line, got)
		}
	})
}

// parseArgument reads one argument as C programs on Windows do.
func parseArgument(line string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(line); {
		n := 0
		for i < len(line) && line[i] == '\\' {
			n++
			i++
		}
		if i == len(line) || line[i] != '"' {
			b.WriteString(strings.Repeat(`\`, n))
			if i < len(line) {
				b.WriteByte(line[i])
				i++
			}
			continue
		}
		b.WriteString(strings.Repeat(`\`, n/2))
		switch {
		case n%2 == 1:
			b.WriteByte('"')
		case quoted && i+1 < len(line) && line[i+1] == '"':
			b.WriteByte('"')
			i++
		default:
			quoted = !quoted
		}
		i++
	}
	return b.String()
}
