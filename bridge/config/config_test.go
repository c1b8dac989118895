package config

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// load writes files into a fresh state directory and loads it. Paths in the
// outcome are relative to that directory.
func load(t *testing.T, files map[string]string, opts Options) Set {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if opts.StateDir == "" {
		opts.StateDir = dir
	}
	for i, file := range opts.Files {
		opts.Files[i] = filepath.Join(dir, file)
	}
	if opts.LookupEnv == nil {
		opts.LookupEnv = func(string) (string, bool) { return "", false }
	}
	opts.Home = "/home/me"
	if opts.Dir == "" {
		opts.Dir = filepath.Join(dir, "work")
	}
	set, err := Load(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	short := func(path string) string {
		path = strings.ReplaceAll(path, dir+string(filepath.Separator), "")
		return strings.ReplaceAll(path, dir, ".")
	}
	for i := range set.Servers {
		set.Servers[i].Source = short(set.Servers[i].Source)
		set.Servers[i].Cwd = short(set.Servers[i].Cwd)
	}
	for i := range set.Problems {
		set.Problems[i].File = short(set.Problems[i].File)
		set.Problems[i].Message = short(set.Problems[i].Message)
	}
	return set
}

func problems(set Set) []string {
	var list []string
	for _, p := range set.Problems {
		list = append(list, p.String())
	}
	return list
}

func names(set Set) []string {
	var list []string
	for _, s := range set.Servers {
		list = append(list, s.Name)
	}
	return list
}

func TestLoadReadsEveryField(t *testing.T) {
	set := load(t, map[string]string{"a.json": "\uFEFF" + `{
		// what other clients keep here is ignored
		"theme": "dark", "inputs": [],
		"mcpServers": {
			"github": {
				"type": "stdio", "autoApprove": ["x"],
				"command": "npx",
				"args": ["-y", "server-github", 8080, true,],
				"env": {"TOKEN": "t0p", "PORT": 8080, "DEBUG": false, "GONE": null},
				"cwd": "work",
				"description": "Issues & pull requests",
				"disabled": true,
			},
			/* the shortest */ "b": {"command": "b"},
		},
	} // end`}, Options{})
	want := []Server{
		{Name: "b", Transport: "stdio", Command: "b", Source: "a.json"},
		{
			Name: "github", Transport: "stdio", Command: "npx", Args: []string{"-y", "server-github", "8080", "true"},
			Env: map[string]string{"TOKEN": "t0p", "PORT": "8080", "DEBUG": "false"},
			Cwd: "work", Description: "Issues & pull requests", Source: "a.json", Disabled: true,
		},
	}
	if !reflect.DeepEqual(set.Servers, want) {
		t.Errorf("servers:\n got %+v\nwant %+v", set.Servers, want)
	}
	if len(set.Problems) > 0 {
		t.Errorf("problems: %q", problems(set))
	}
}

func TestLoadWithoutAnything(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "absent")} {
		set, err := Load(context.Background(), Options{StateDir: dir})
		if err != nil || len(set.Servers)+len(set.Problems) > 0 {
			t.Errorf("Load of %q = %+v, %v", dir, set, err)
		}
	}
}

func TestLoadHonoursContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Load(ctx, Options{Files: []string{"x.json"}}); err != context.Canceled {
		t.Errorf("err = %v", err)
	}
}

// A mistake costs what it is in, and its report names file and entry.
func TestLoadProblems(t *testing.T) {
	const good = `"good": {"command": "ok"}`
	tests := []struct {
		name string
		file string
		want string // the only problem
		lost bool   // whether the whole file is lost
	}{
		{"no JSON", `{"mcpServers": {` + good + `}, "t0p-s3cret" "x"}`,
			"b.json: not used: it isn't JSON: syntax error at line 1, column 58", true},
		{"cut off", `{"mcpServers": {`, "b.json: not used: it isn't JSON: syntax error at line 2, column 1", true},
		{"empty", " \n", "b.json: not used: it is empty", true},
		{"a list", `[]`, `b.json: not used: it must be an object with the key "mcpServers"`, true},
		{"no servers", `{"settings": {}}`, `b.json: not used: it has no key "mcpServers"`, true},
		{"servers as a list", `{"mcpServers": []}`, `b.json: not used: "mcpServers" must be an object, a server's name each key`, true},
		{"UTF-16", "\xff\xfe{\x00}\x00", "b.json: not used: it is UTF-16; save it as UTF-8", true},
		{"not UTF-8", "{\"mcpServers\": {\"\xff\": {}}}", "b.json: not used: it isn't UTF-8", true},
		{"deep", `{"mcpServers": ` + strings.Repeat("[", 100_000), "b.json: not used: it is nested deeper than 100 levels", true},
		{"large", strings.Repeat(" ", MaxFileSize+1), "b.json: not used: larger than 1048576 bytes", true},
		{"entry is a string", `{"mcpServers": {"bad": "t0p-s3cret", ` + good + `}}`,
			`b.json: server "bad": not used: it must be an object`, false},
		{"no command", `{"mcpServers": {"bad": {"args": ["x"]}, ` + good + `}}`,
			`b.json: server "bad": not used: it has neither "command" nor "url"`, false},
		{"command is a list with a list", `{"mcpServers": {"bad": {"command": [["t0p-s3cret"]]}, ` + good + `}}`,
			`b.json: server "bad": not used: "command" [0] must be a string`, false},
		{"args is a string", `{"mcpServers": {"bad": {"command": "x", "args": "t0p-s3cret"}, ` + good + `}}`,
			`b.json: server "bad": not used: "args" must be a list of strings`, false},
		{"args has an object", `{"mcpServers": {"bad": {"command": "x", "args": ["a", {}]}, ` + good + `}}`,
			`b.json: server "bad": not used: "args" [1] must be a string`, false},
		{"env is a list", `{"mcpServers": {"bad": {"command": "x", "env": ["TOKEN=t0p-s3cret"]}, ` + good + `}}`,
			`b.json: server "bad": not used: "env" must be an object of strings`, false},
		{"env has a list", `{"mcpServers": {"bad": {"command": "x", "env": {"TOKEN": ["t0p-s3cret"]}}, ` + good + `}}`,
			`b.json: server "bad": not used: "env" ["TOKEN"] must be a string`, false},
		{"env with a bad name", `{"mcpServers": {"bad": {"command": "x", "env": {"A=B": "t0p-s3cret"}}, ` + good + `}}`,
			`b.json: server "bad": not used: env."A=B" can't be the name of a variable`, false},
		{"NUL", `{"mcpServers": {"bad": {"command": "x", "env": {"A": "t0p-s3cret\u0000"}}, ` + good + `}}`,
			`b.json: server "bad": not used: env.A has a NUL character in it`, false},
		{"disabled is a string", `{"mcpServers": {"bad": {"command": "x", "disabled": "no"}, ` + good + `}}`,
			`b.json: server "bad": not used: "disabled" must be true or false`, false},
		{"no name", `{"mcpServers": {"": {"command": "x"}, ` + good + `}}`,
			`b.json: not used: a name must not be empty, nor begin or end with a space`, false},
		{"unprintable name", `{"mcpServers": {"a\u001bb": {"command": "x"}, ` + good + `}}`,
			`b.json: server "a\x1bb": not used: its name has characters that can't be printed`, false},
		{"itself", `{"mcpServers": {"bad": {"command": "/usr/bin/codeexec", "args": ["serve"]}, ` + good + `}}`,
			`b.json: server "bad": not used: it would start codeexec itself`, false},
		{"a name twice in one file", `{"mcpServers": {` + good + `, "good": {"command": "other"}}}`,
			`b.json: server "good": not used: b.json defines it already`, false},
		{"an unset variable", `{"mcpServers": {"good": {"command": "ok", "args": ["x", "${NOPE}"]}}}`,
			`b.json: server "good": args[1]: the environment variable NOPE is not set, ${NOPE} is not replaced`, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			set := load(t, map[string]string{
				"a.json": `{"mcpServers": {"first": {"command": "ok"}}}`,
				"b.json": tc.file,
				"c.json": `{"mcpServers": {"last": {"command": "ok"}}}`,
			}, Options{})
			if got := problems(set); !reflect.DeepEqual(got, []string{tc.want}) {
				t.Errorf("problems:\n got %q\nwant %q", got, tc.want)
			}
			want := []string{"first", "good", "last"}
			if tc.lost {
				want = []string{"first", "last"}
			}
			if got := names(set); !reflect.DeepEqual(got, want) {
				t.Errorf("servers %q, want %q", got, want)
			}
			if strings.Contains(strings.Join(problems(set), "\n"), "t0p-s3cret") {
				t.Errorf("a value of the file is shown: %q", problems(set))
			}
		})
	}
}

func TestLoadPrecedence(t *testing.T) {
	files := map[string]string{
		"b.json":      `{"mcpServers": {"x": {"command": "state-b"}, "only-b": {"command": "b"}, "off": {"command": "b"}}}`,
		"a.json":      `{"mcpServers": {"x": {"command": "state-a"}, "y": {"command": "state-a"}}}`,
		"A.JSON":      `{"mcpServers": {"upper": {"command": "state"}}}`,
		".hide.json":  `{"mcpServers": {"hidden": {"command": "x"}}}`,
		"note.txt":    `{"mcpServers": {"note": {"command": "x"}}}`,
		"d.json/file": ``,
		"sub/1.json":  `{"mcpServers": {"x": {"command": "file-1"}, "z": {"command": "file-1"}, "off": {"command": "b", "disabled": true}}}`,
		"sub/2.json":  `{"mcpServers": {"z": {"command": "file-2"}, "y": {"args": []}, "only-b": {"command": "b"}}}`,
	}
	set := load(t, files, Options{
		Files: []string{"sub/1.json", "sub/2.json"},
		Flags: []string{"x=flag 1", "x=flag 2"},
	})
	var got []string
	for _, s := range set.Servers {
		got = append(got, strings.Join(append([]string{s.Name, s.Source, s.Command}, s.Args...), " "))
	}
	want := []string{
		"off sub/1.json b", "only-b sub/2.json b", "upper A.JSON state", "x --server flag 1",
		"y a.json state-a", // a broken entry takes no name
		"z sub/1.json file-1",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("servers:\n got %q\nwant %q", got, want)
	}
	wantProblems := []string{
		`--server: server "x": not used: --server defines it already`,
		`sub/1.json: server "x": not used: --server defines it already`,
		`sub/2.json: server "z": not used: sub/1.json defines it already`,
		`sub/2.json: server "y": not used: it has neither "command" nor "url"`,
		`a.json: server "x": not used: --server defines it already`,
		`b.json: server "x": not used: --server defines it already`,
		`b.json: server "off": not used: sub/1.json defines it already`,
	}
	if got := problems(set); !reflect.DeepEqual(got, wantProblems) {
		t.Errorf("problems:\n got %q\nwant %q", got, wantProblems)
	}
}

func TestLoadFilesThatCantBeRead(t *testing.T) {
	dir := t.TempDir()
	set, err := Load(context.Background(), Options{Files: []string{filepath.Join(dir, "absent.json"), dir}})
	if err != nil || len(set.Problems) != 2 ||
		!strings.HasSuffix(set.Problems[0].String(), "absent.json: not used: no such file or directory") ||
		!strings.HasSuffix(set.Problems[1].String(), "not used: not a regular file") {
		t.Errorf("problems %q, %v", problems(set), err)
	}
}

func TestLoadFlags(t *testing.T) {
	tests := []struct {
		flag    string
		want    Server
		problem string
	}{
		{`a=node server.js --root /x`, Server{Name: "a", Command: "node", Args: []string{"server.js", "--root", "/x"}}, ""},
		{`a=  'my program' "two words" it\'s x""y ''`, Server{Name: "a", Command: "my program", Args: []string{"two words", "it's", "xy", ""}}, ""},
		{`a=C:\tools\server.exe C:\\x "C:\a b" '\\'`, Server{Name: "a", Command: `C:\tools\server.exe`, Args: []string{`C:\x`, `C:\a b`, `\\`}}, ""},
		{`a=x "say \"hi\"" "it's" a\ b \`, Server{Name: "a", Command: "x", Args: []string{`say "hi"`, "it's", "a b", `\`}}, ""},
		{`a=TOKEN=t0p-s3cret DEBUG=1 npx x A=b`, Server{Name: "a", Command: "npx", Args: []string{"x", "A=b"}, Env: map[string]string{"TOKEN": "t0p-s3cret", "DEBUG": "1"}}, ""},
		{`a=npx ${SET} ${env:SET} ${UNSET:-d} ~`, Server{Name: "a", Command: "npx", Args: []string{"value", "value", "d", "~"}}, ""},
		{`a=~/bin/x`, Server{Name: "a", Command: "/home/me/bin/x"}, ""},
		{`t0p-s3cret`, Server{}, "--server: flag 1: it must be NAME=COMMAND LINE or NAME=URL"},
		{`=t0p-s3cret`, Server{}, "--server: not used: a name must not be empty, nor begin or end with a space"},
		{`a=`, Server{}, `--server: server "a": not used: it has no command`},
		{`a=T=t0p-s3cret`, Server{}, `--server: server "a": not used: it has no command`},
		{`a=""`, Server{}, `--server: server "a": not used: it has neither "command" nor "url"`},
		{`a=https://x.test/mcp`, Server{Name: "a", Transport: "http", URL: "https://x.test/mcp"}, ""},
		{`a=https://x.test/v1/sse?key=t0p-s3cret`, Server{Name: "a", Transport: "sse", URL: "https://x.test/v1/sse?key=t0p-s3cret"}, ""},
		{`a=https://x.test t0p-s3cret`, Server{}, `--server: server "a": not used: there is more than a URL`},
		{`a=x 't0p-s3cret`, Server{}, `--server: server "a": not used: its command line has a quote that isn't closed`},
		{`a=codeexec serve`, Server{}, `--server: server "a": not used: it would start codeexec itself`},
	}
	for _, tc := range tests {
		t.Run(tc.flag, func(t *testing.T) {
			set := load(t, nil, Options{Flags: []string{tc.flag}, LookupEnv: func(name string) (string, bool) {
				return "value", name == "SET"
			}})
			var want []Server
			if tc.want.Name != "" {
				tc.want.Source, tc.want.Transport = "--server", cmp.Or(tc.want.Transport, "stdio")
				want = []Server{tc.want}
			}
			if !reflect.DeepEqual(set.Servers, want) {
				t.Errorf("servers:\n got %+v\nwant %+v", set.Servers, want)
			}
			if got := strings.Join(problems(set), "\n"); got != tc.problem {
				t.Errorf("problems:\n got %q\nwant %q", got, tc.problem)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	env := map[string]string{"A": "1", "B_2": "two words", "EMPTY": "", "NEST": "${A}"}
	tests := []struct {
		text, want string
		missing    bool
	}{
		{"plain $A $ {A} $$", "plain $A $ {A} $$", false},
		{"${A}${B_2}", "1two words", false},
		{"x${env:A}y", "x1y", false},
		{"${EMPTY}|${EMPTY:-d}|${NO:-d}|${A:-d}|${NO:-}", "|d|d|1|", false},
		{"${NO:-a:-b}", "a:-b", false},
		{"${env:NO:-d}", "d", false},
		{"${NEST}", "${A}", false},
		{"${NO}", "${NO}", true},
		{"${env:NO}/${A}", "${env:NO}/1", true},
		{"${input:token}", "${input:token}", true},
		{"${}", "${}", true},
		{"${1A}", "${1A}", true},
		{"${A", "${A", false},
		{"${a}", "${a}", true},
	}
	for _, tc := range tests {
		t.Run(tc.text, func(t *testing.T) {
			var missing []string
			x := expander{
				lookup:  func(name string) (string, bool) { v, ok := env[name]; return v, ok },
				missing: func(field, message string) { missing = append(missing, field+": "+message) },
			}
			if got := x.expand("cwd", tc.text); got != tc.want {
				t.Errorf("expand(%q) = %q, want %q", tc.text, got, tc.want)
			}
			if got := len(missing) > 0; got != tc.missing || got && !strings.HasPrefix(missing[0], "cwd: ") {
				t.Errorf("missing: %q", missing)
			}
		})
	}
}

func TestVariablesInEveryField(t *testing.T) {
	set := load(t, map[string]string{"a.json": `{"mcpServers": {
		"a": {"command": "${X}/c", "args": ["${X}"], "env": {"K": "${X}"}, "cwd": "${X}", "description": "${X}"},
		"b": {"command": "${N}", "env": {"TOKEN": "${N}"}, "cwd": "${N}"},
		"off": {"command": "x", "args": ["${N}"], "disabled": true}
	}}`}, Options{LookupEnv: func(name string) (string, bool) { return "/v", name == "X" }})
	want := Server{Name: "a", Transport: "stdio", Command: "/v/c", Args: []string{"/v"}, Env: map[string]string{"K": "/v"}, Cwd: "/v", Description: "${X}", Source: "a.json"}
	if !reflect.DeepEqual(set.Servers[0], want) {
		t.Errorf("got  %+v\nwant %+v", set.Servers[0], want)
	}
	var fields []string
	for _, p := range set.Problems {
		field, _, _ := strings.Cut(p.Message, ":")
		fields = append(fields, p.File+" "+p.Entry+" "+field)
	}
	if want := []string{"a.json b command", "a.json b cwd", "a.json b env.TOKEN"}; !reflect.DeepEqual(fields, want) {
		t.Errorf("problems in %q, want %q", fields, want)
	}
}

func TestSelf(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "renamed")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		line string
		want bool
	}{
		{"codeexec", true},
		{"/opt/codeexec/bin/codeexec serve", true},
		{`'C:\Program Files\codeexec.EXE' serve`, true},
		{program + " serve", true},
		{link, true},
		{"npx -y codeexec@latest", true},
		{"npm exec -- codeexec", true},
		{"uvx codeexec", true},
		{"uv tool run codeexec", true},
		{"go run example.org/codeexec@v1.2.3", true},
		{"env A=b /usr/bin/codeexec", true},
		{"sh -c 'exec codeexec serve'", true},
		{"cmd /c codeexec serve", true},
		{"sudo nice -n5 codeexec", true},
		{"npx -y server-filesystem /home/me/codeexec", false},
		{"server /home/me/codeexec", false},
		{"codeexec-tools", false},
		{"node codeexec", false},
		{"env", false},
		{"sh", false},
		{"absent-program", false},
	}
	s := newSelf(program)
	for _, tc := range tests {
		t.Run(tc.line, func(t *testing.T) {
			words, err := splitWords(tc.line)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.starts(words[0], words[1:]); got != tc.want {
				t.Errorf("starts = %v", got)
			}
		})
	}
	set := load(t, nil, Options{Flags: []string{"a=codeexec serve"}, AllowSelf: true})
	if len(set.Servers) != 1 || len(set.Problems) > 0 {
		t.Errorf("allowed, but %+v", set)
	}
}
