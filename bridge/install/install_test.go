package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codeexec/bridge/config"
)

const program = "/opt/codeexec/bin/codeexec"

// testOptions are those of a client in a home of its own.
func testOptions(t *testing.T, client config.Source, goos string) Options {
	home := t.TempDir()
	return Options{
		Client:  client,
		Command: program,
		Args:    []string{"serve"},
		Config: config.Options{
			Home:      home,
			GOOS:      goos,
			StateDir:  filepath.Join(home, "MCPs"),
			LookupEnv: func(string) (string, bool) { return "", false },
		},
	}
}

// The files that clients keep on Linux.
var clientFiles = map[config.Source]string{
	config.SourceClaudeDesktop: ".config/Claude/claude_desktop_config.json",
	config.SourceClaudeCode:    ".claude.json",
	config.SourceCursor:        ".cursor/mcp.json",
	config.SourceWindsurf:      ".codeium/windsurf/mcp_config.json",
	config.SourceVSCode:        ".config/Code/User/mcp.json",
	config.SourceGemini:        ".gemini/settings.json",
	config.SourceCodex:         ".codex/config.toml",
	config.SourceOpenCode:      ".config/opencode/opencode.json",
	config.SourceZed:           ".config/zed/settings.json",
}

// jsonShapes are ways to write a file; SERVERS stands for the client's key.
var jsonShapes = map[string]string{
	"empty":                      "",
	"blank":                      " \n\n",
	"blank crlf":                 "\r\n",
	"only a mark":                "\uFEFF",
	"object":                     "{}",
	"object on two lines":        "{\n}\n",
	"object with a comment":      "{\n\t// nothing yet\n}\n",
	"no key":                     "{\n    \"theme\": \"dark\"\n}\n",
	"no key, one line":           `{"theme": "dark"}`,
	"null":                       "{\n  \"SERVERS\": null\n}",
	"no servers":                 "{\n  \"SERVERS\": {}\n}\n",
	"no servers, spread":         "{\n  \"SERVERS\": {\n  }\n}\n",
	"no servers, commented":      "{\n  \"SERVERS\": { /* a */ } // b\n}\n",
	"one":                        "{\n  \"SERVERS\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
	"one, no final newline":      "{\n  \"SERVERS\": {\n    \"a\": {\"command\": \"x\"}\n  }\n}",
	"one line":                   `{"SERVERS":{"a":{"command":"x","args":["serve"]}}}`,
	"one line, trailing commas":  `{"SERVERS": {"a": {"command": "x"},},}`,
	"tabs":                       "{\n\t\"SERVERS\": {\n\t\t\"a\": {\n\t\t\t\"command\": \"x\"\n\t\t}\n\t}\n}\n",
	"crlf":                       "{\r\n  \"SERVERS\": {\r\n    \"a\": {\"command\": \"x\"}\r\n  },\r\n  \"b\": 1\r\n}\r\n",
	"mark":                       "\uFEFF{\n  \"SERVERS\": {\n    \"a\": {\"command\": \"x\"}\n  }\n}\n",
	"trailing commas":            "{\n  \"SERVERS\": {\n    \"a\": {\"command\": \"x\"},\n  },\n}\n",
	"comma on its own line":      "{\n  \"SERVERS\": {\n    \"a\": {\"command\": \"x\"}\n    ,\n  }\n}\n",
	"comments":                   "// top\n{\n  /* of the key */ \"SERVERS\": { // of the object\n    // of a\n    \"a\": {\"command\": \"x\"} // behind a, with a comma\n    // before the end\n  }\n  // end\n}\n// tail",
	"comments, trailing":         "{\n  \"SERVERS\": {\n    \"a\": {\"command\": \"x\"}, // behind\n    /* many\n    lines */ // and one\n  }\n}\n",
	"brace on the last line":     "{\n  \"SERVERS\": {\n    \"a\": {\"command\": \"x\"} }}",
	"a comment before the brace": "{\"SERVERS\": {\"a\": {\"command\": \"x\"} // c\n}}",
	"key in escapes":             "{\n  \"a/b~c\": {\"\\u0061\": 1.50e2},\n  \"SERVERS\": {\n    \"\\u0061\": {\"command\": \"\\u00e9\"}\n  }\n}\n",
	"ours, on another path":      "{\n  \"SERVERS\": {\n    \"codeexec\": { \"command\": COMMAND, \"env\": {\"T\": \"1\"} },\n    \"z\": {\"command\": \"x\"}\n  }\n}\n",
	"ours, as it should be":      "{\"SERVERS\": {\"codeexec\": ENTRY}}",
}

var tomlShapes = map[string]string{
	"empty":              "",
	"blank":              "\n\n",
	"only a mark":        "\uFEFF",
	"a comment":          "# nothing yet",
	"no servers":         "model = \"m\"\n",
	"no final newline":   "model = \"m\"",
	"an empty line":      "model = \"m\"\n\n",
	"one":                "model = \"m\"\n\n[mcp_servers.a]\ncommand = \"x\" # why\nargs = [\n  \"1\", # one\n  \"]\",\n]\n\n[tui]\nx = 1\n",
	"crlf":               "model = \"m\"\r\n\r\n[mcp_servers.a]\r\ncommand = 'x'\r\n",
	"crlf, no newline":   "model = \"m\"\r\n[mcp_servers.a]\r\ncommand = 'x'",
	"strings":            "a = \"\"\"\n[mcp_servers.codeexec]\ncommand = \\\"\"\"\"\nb = '''\n[x]''''\n\"c\\\"]\".'d e' = { x = [1, {y = \"}\"}] }\nt = 1979-05-27 07:32:00Z\nn = nan\n",
	"arrays of tables":   "[[p]]\nx = 1\n[[p]]\nx = 2",
	"dotted keys":        "mcp_servers.a.command = \"x\"\n",
	"a table of servers": "[mcp_servers]\na = { command = \"x\" }\n\n# the end\n",
	"ours, another path": "[mcp_servers.codeexec] # ours\n# about it\ncommand = '/old/codeexec'\nargs = [ \"serve\", \"--sources\", \"all\" ]\n\n[mcp_servers.codeexec.env]\nT = \"1\"\n\n[tui]\n",
	"ours, inline":       "[mcp_servers]\ncodeexec = { command = \"/old/codeexec\" }\nb = { command = \"x\" }\n",
	"ours already":       "[mcp_servers.codeexec]\ncommand = \"" + program + "\"\nargs = [\"serve\"]\n",
}

// shapesOf returns the files to try for a client.
func shapesOf(client config.Source) map[string]string {
	f := formOf(client, program, []string{"serve"})
	if f.toml {
		return tomlShapes
	}
	var w jsonWriter
	w.value(f.fields, "")
	command := `"/old/codeexec", "args": ["serve", "--x"]`
	if client == config.SourceOpenCode {
		command = `["/old/codeexec", "serve", "--x"]`
	}
	shapes := make(map[string]string)
	for name, text := range jsonShapes {
		shapes[name] = strings.NewReplacer("SERVERS", f.path[0], "COMMAND", command, "ENTRY", w.String()).Replace(text)
	}
	return shapes
}

// Installing makes the client start us, leaves all else, and can be undone to the
// last byte.
func TestInstallAndUninstall(t *testing.T) {
	for _, client := range config.Clients() {
		for name, text := range shapesOf(client) {
			t.Run(string(client)+"/"+name, func(t *testing.T) {
				t.Parallel()
				opts := testOptions(t, client, "linux")
				path := filepath.Join(opts.Config.Home, clientFiles[client])
				writeTest(t, path, text)

				apply(t, PlanInstall, opts)
				installed := readTest(t, path)
				entries, _, problems := config.SelfEntries(opts.Config, client)
				if len(entries) != 1 || entries[0].Name != "codeexec" || entries[0].Command != program || entries[0].Args[0] != "serve" {
					t.Errorf("the client has %v of\n%s", entries, installed)
				}
				if len(problems) > 0 {
					t.Errorf("problems: %v", problems)
				}
				if strings.Contains(text, "\r\n") && strings.Count(installed, "\n") != strings.Count(installed, "\r\n") {
					t.Errorf("line ends are mixed: %q", installed)
				}
				if strings.Contains(text, `"T"`) && !strings.Contains(installed, `"T"`) {
					t.Errorf("the user's variables are gone:\n%s", installed)
				}
				if p := apply(t, PlanInstall, opts); p.Changed() {
					t.Errorf("installing again changes\n%s", p.Diff("file"))
				}

				apply(t, PlanUninstall, opts)
				if got := readTest(t, path); got != text {
					t.Errorf("after uninstalling: %q, want %q", got, text)
				}
				if left := others(t, filepath.Dir(path)); client != config.SourceClaudeCode && len(left) != 1 {
					t.Errorf("left behind: %v", left)
				}

				// Without a record, what is left is a file without our entry that says the same.
				apply(t, PlanInstall, opts)
				forget(t, opts)
				apply(t, PlanUninstall, opts)
				after := readTest(t, path)
				if entries, _, problems := config.SelfEntries(opts.Config, client); len(entries) > 0 || len(problems) > 0 {
					t.Errorf("without a record: %v, %v in\n%s", entries, problems, after)
				}
				f := formOf(client, program, []string{"serve"})
				was, _ := f.restOf([]byte(text))
				if is, err := f.restOf([]byte(after)); err != nil || is != was {
					t.Errorf("without a record: %v\n%s\nwant the same as\n%s", err, after, text)
				}
				exact := strings.Contains(text, "command") && !strings.HasPrefix(name, "ours")
				if exact && after != text {
					t.Errorf("without a record: %q, want %q", after, text)
				}
			})
		}
	}
}

// Cutting out a TOML entry leaves the tables around it as they are.
func TestUninstallTOMLWithoutRecord(t *testing.T) {
	tests := []struct{ name, before, want string }{
		{"at the end", "a = 1\n\n[mcp_servers.codeexec]\ncommand = 'codeexec'\n\n# of env\n[mcp_servers.codeexec.env]\nA = 'b'\n", "a = 1\n"},
		{"between", "[a]\n\n[mcp_servers.codeexec]\ncommand = 'codeexec'\n\n[b]\n", "[a]\n\n[b]\n"},
		{"in two places", "[mcp_servers.codeexec]\ncommand = 'codeexec'\n[b]\nx = 1\n[mcp_servers.codeexec.env]\nA = 'b'\n[c]\n", "[b]\nx = 1\n[c]\n"},
		{"dotted", "[mcp_servers]\ncodeexec.command = 'codeexec'\nb.command = 'x'\n", "[mcp_servers]\nb.command = 'x'\n"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := formOf(config.SourceCodex, program, []string{"serve"})
			if got, err := f.uninstall([]byte(tc.before), false); err != nil || string(got) != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// What is written looks as if the user had written it.
func TestInstallLooks(t *testing.T) {
	tests := []struct {
		name         string
		client       config.Source
		before, want string
	}{
		{"new", config.SourceCursor, "", `{
  "mcpServers": {
    "codeexec": {
      "command": "/opt/codeexec/bin/codeexec",
      "args": ["serve"]
    }
  }
}
`},
		{"comments, tabs and a trailing comma", config.SourceZed, `// Zed
{
	"context_servers": {
		"a": {}, // of a
		// the end
	},
}`, `// Zed
{
	"context_servers": {
		"a": {}, // of a
		"codeexec": {
			"source": "custom",
			"command": "/opt/codeexec/bin/codeexec",
			"args": ["serve"],
			"env": {}
		},
		// the end
	},
}`},
		{"one line", config.SourceOpenCode, `{"theme":"x"}`,
			`{"theme":"x", "mcp": {"codeexec": {"type": "local", "command": ["/opt/codeexec/bin/codeexec", "serve"], "enabled": true}}}`},
		{"nested since version 2", config.SourceOpenCode, `{"mcp": {"servers": {}, "timeout": {}}}`, `{"mcp": {"servers": {
  "codeexec": {
    "type": "local",
    "command": ["/opt/codeexec/bin/codeexec", "serve"],
    "enabled": true
  }
}, "timeout": {}}}`},
		{"a comment behind the last", config.SourceVSCode, `{
    "servers": {
        "a": {} // of a
    }
}`, `{
    "servers": {
        "a": {}, // of a
        "codeexec": {
            "type": "stdio",
            "command": "/opt/codeexec/bin/codeexec",
            "args": ["serve"]
        }
    }
}`},
		{"another path", config.SourceCursor, `{"mcpServers": {"codeexec": {"env": {"A": "b"}, "args": ["serve", "-x"], "command": "codeexec"}}}`,
			`{"mcpServers": {"codeexec": {"env": {"A": "b"}, "args": ["serve", "-x"], "command": "/opt/codeexec/bin/codeexec"}}}`},
		{"toml", config.SourceCodex, "model = 'm'\n", `model = 'm'

[mcp_servers.codeexec]
command = "/opt/codeexec/bin/codeexec"
args = ["serve"]
`},
		{"toml, another path", config.SourceCodex, "[mcp_servers.codeexec] # a\ncommand = 'codeexec' # b\nargs = ['serve', '-x']\nenabled = true\n",
			"[mcp_servers.codeexec] # a\ncommand = \"/opt/codeexec/bin/codeexec\" # b\nargs = ['serve', '-x']\nenabled = true\n"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			opts := testOptions(t, tc.client, "linux")
			path := filepath.Join(opts.Config.Home, clientFiles[tc.client])
			writeTest(t, path, tc.before)
			p, err := PlanInstall(opts)
			if err != nil {
				t.Fatal(err)
			}
			if string(p.After) != tc.want {
				t.Errorf("got\n%s\nwant\n%s", p.After, tc.want)
			}
		})
	}
}

// Where there is no file, one is made, and goes again; on every system.
func TestInstallMakesTheFile(t *testing.T) {
	for _, client := range config.Clients() {
		for _, goos := range []string{"linux", "darwin", "windows"} {
			t.Run(string(client)+"/"+goos, func(t *testing.T) {
				opts := testOptions(t, client, goos)
				p := apply(t, PlanInstall, opts)
				if p.Before != nil || !strings.HasPrefix(p.Diff("f"), "--- (no file)\n+++ f\n@@ -1,0 +1,") {
					t.Errorf("diff:\n%s", p.Diff("f"))
				}
				if entries, _, _ := config.SelfEntries(opts.Config, client); len(entries) != 1 || entries[0].File != p.File {
					t.Errorf("the client has %v", entries)
				}
				apply(t, PlanUninstall, opts)
				if _, err := os.Stat(p.File); !os.IsNotExist(err) {
					t.Errorf("the file is still there: %v", err)
				}
				if p := apply(t, PlanUninstall, opts); p.Changed() || p.Note != "not installed" {
					t.Errorf("uninstalling again: %q", p.Note)
				}
			})
		}
	}
}

func TestInstallRefuses(t *testing.T) {
	tests := []struct {
		name   string
		client config.Source
		text   string
		want   string
	}{
		{"no JSON", config.SourceCursor, `{"mcpServers": {"a": s3cret}}`, "it isn't JSON: syntax error at line 1, column"},
		{"no object", config.SourceCursor, `[1]`, "must be an object"},
		{"no object of servers", config.SourceCursor, `{"mcpServers": []}`, `"mcpServers" must be an object`},
		{"twice", config.SourceCursor, `{"mcpServers": {}, "mcpServers": {}}`, `has the key "mcpServers" twice`},
		{"ours twice", config.SourceCursor, `{"mcpServers": {"codeexec": {}, "codeexec": {}}}`, `has the key "codeexec" twice`},
		{"another program", config.SourceCursor, `{"mcpServers": {"codeexec": {"command": "docker"}}}`, "starts something else; --force"},
		{"another server", config.SourceCursor, `{"mcpServers": {"codeexec": {"url": "https://x.test"}}}`, "starts something else; --force"},
		{"UTF-16", config.SourceCursor, "\xff\xfe{\x00}\x00", "UTF-16"},
		{"deep", config.SourceCursor, strings.Repeat(`{"a":`, 200), "deeper"},
		{"no TOML", config.SourceCodex, "a = s3cret", "it isn't TOML: syntax error at line 1"},
		{"no table", config.SourceCodex, "mcp_servers = 1", `"mcp_servers" must be a table`},
		{"a table on one line", config.SourceCodex, "mcp_servers = { a = { command = 'x' } }", "is written on one line"},
		{"another program in TOML", config.SourceCodex, "[mcp_servers.codeexec]\ncommand = 'docker'", "starts something else; --force"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			opts := testOptions(t, tc.client, "linux")
			path := filepath.Join(opts.Config.Home, clientFiles[tc.client])
			writeTest(t, path, tc.text)
			_, err := PlanInstall(opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if opts.Force = true; strings.Contains(tc.want, "--force") {
				apply(t, PlanInstall, opts)
				apply(t, PlanUninstall, opts)
				if got := readTest(t, path); got != tc.text {
					t.Errorf("after installing by force and uninstalling: %q", got)
				}
			}
		})
	}
}

// What users do between installing and uninstalling stays.
func TestUninstallAfterEdits(t *testing.T) {
	const ours = `    "codeexec": {
      "command": "/opt/codeexec/bin/codeexec",
      "args": ["serve"]
    }`
	tests := []struct {
		name, before, edited, want string
	}{
		{"elsewhere", "{\n  \"a\": 1\n}\n",
			"// new\n{\n  \"a\": 2,\n  \"mcpServers\": {\n" + ours + "\n  }\n}\n",
			"// new\n{\n  \"a\": 2\n}\n"},
		{"another server behind", "{}",
			"{\n  \"mcpServers\": {\n" + ours + ",\n    \"b\": {}\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}\n"},
		{"our entry", "{}",
			"{\n  \"mcpServers\": {\n    \"codeexec\": {\"command\": \"codeexec\", \"env\": {}}\n  }\n}",
			"{\n  \"mcpServers\": {}\n}"},
		{"removed by hand", "{}", "{\n}", "{\n}"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			opts := testOptions(t, config.SourceCursor, "linux")
			path := filepath.Join(opts.Config.Home, ".cursor/mcp.json")
			writeTest(t, path, tc.before)
			apply(t, PlanInstall, opts)
			writeTest(t, path, tc.edited)
			apply(t, PlanUninstall, opts)
			if got := readTest(t, path); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// An entry of one's own comes back, and goes when it is asked for once more.
func TestUninstallBringsBackAnEntryThenRemovesIt(t *testing.T) {
	opts := testOptions(t, config.SourceCursor, "linux")
	path := filepath.Join(opts.Config.Home, ".cursor/mcp.json")
	const own = `{"mcpServers": {"codeexec": {"command": "/old/codeexec", "args": ["serve"]}}}`
	writeTest(t, path, own)
	apply(t, PlanInstall, opts)
	opts.Command = "/newer/codeexec"
	apply(t, PlanInstall, opts)
	if got := readTest(t, path); !strings.Contains(got, "/newer/codeexec") {
		t.Errorf("after updating: %s", got)
	}
	if p := apply(t, PlanUninstall, opts); !strings.Contains(p.Note, "once more") {
		t.Errorf("note %q", p.Note)
	}
	if got := readTest(t, path); got != own {
		t.Errorf("after uninstalling: %s", got)
	}
	apply(t, PlanUninstall, opts)
	if got := readTest(t, path); got != `{"mcpServers": {}}` {
		t.Errorf("after uninstalling once more: %s", got)
	}
}

// After our entry was edited and installed again, it is still ours to remove.
func TestUninstallAfterEditingAndInstallingAgain(t *testing.T) {
	opts := testOptions(t, config.SourceCursor, "linux")
	path := filepath.Join(opts.Config.Home, ".cursor/mcp.json")
	writeTest(t, path, `{}`)
	apply(t, PlanInstall, opts)
	writeTest(t, path, strings.Replace(readTest(t, path), `["serve"]`, `["serve", "--x"]`, 1))
	apply(t, PlanInstall, opts)
	apply(t, PlanUninstall, opts)
	if got := readTest(t, path); strings.Contains(got, "codeexec") {
		t.Errorf("got %s", got)
	}
}

func TestApplyKeepsPermissionsLinksAndABackup(t *testing.T) {
	opts := testOptions(t, config.SourceCursor, "linux")
	real := filepath.Join(opts.Config.Home, "dotfiles", "mcp.json")
	path := filepath.Join(opts.Config.Home, ".cursor", "mcp.json")
	writeTest(t, real, "{}")
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, path); err != nil {
		t.Skip(err)
	}
	p := apply(t, PlanInstall, opts)
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("permissions: %v, %v", info.Mode(), err)
	}
	if got := readTest(t, BackupPath(p.File)); got != "{}" {
		t.Errorf("backup: %s", got)
	}
	if got := readTest(t, real); !strings.Contains(got, "codeexec") {
		t.Errorf("the file: %s", got)
	}
}

func TestApplyRefusesAFileThatHasChanged(t *testing.T) {
	opts := testOptions(t, config.SourceCursor, "linux")
	p, err := PlanInstall(opts)
	if err != nil {
		t.Fatal(err)
	}
	writeTest(t, p.File, `{"new": 1}`)
	if err := p.Apply(); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("error %v", err)
	}
	if got := readTest(t, p.File); got != `{"new": 1}` {
		t.Errorf("the file: %s", got)
	}
}

// A diff doesn't show what is around the change.
func TestDiffShowsOnlyTheChange(t *testing.T) {
	opts := testOptions(t, config.SourceCursor, "linux")
	writeTest(t, filepath.Join(opts.Config.Home, ".cursor/mcp.json"),
		`{"mcpServers": {"a": {"command": "x", "env": {"TOKEN": "t0p-s3cret"}, "description": "this makes the line longer"}}}`)
	p, err := PlanInstall(opts)
	if err != nil {
		t.Fatal(err)
	}
	want := `--- f
+++ f
@@ -1,1 +1,1 @@
-… ine longer"}}} …
+… ine longer"}, "codeexec": {"command": "/opt/codeexec/bin/codeexec", "args": ["serve"]}}} …
`
	if got := p.Diff("f"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFileOf(t *testing.T) {
	tests := []struct {
		name   string
		client config.Source
		goos   string
		there  []string
		want   string
	}{
		{"the only edition", config.SourceVSCode, "linux", []string{".config/Code - Insiders/User/settings.json"}, ".config/Code - Insiders/User/mcp.json"},
		{"none", config.SourceVSCode, "darwin", nil, "Library/Application Support/Code/User/mcp.json"},
		{"with comments", config.SourceOpenCode, "linux", []string{".config/opencode/opencode.jsonc"}, ".config/opencode/opencode.jsonc"},
		{"new", config.SourceOpenCode, "linux", []string{".config/opencode/other"}, ".config/opencode/opencode.json"},
		{"packaged", config.SourceClaudeDesktop, "windows", []string{"AppData/Local/Packages/Claude_x/LocalCache/Roaming/Claude/config.json"},
			"AppData/Local/Packages/Claude_x/LocalCache/Roaming/Claude/claude_desktop_config.json"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			opts := testOptions(t, tc.client, tc.goos)
			for _, path := range tc.there {
				writeTest(t, filepath.Join(opts.Config.Home, path), "{}")
			}
			got, err := fileOf(opts)
			if want := filepath.Join(opts.Config.Home, tc.want); err != nil || got != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
}

// Whatever parses gets our entry and loses it again, to the last byte by the
// splice, and in meaning without it. Nothing panics.
func FuzzJSON(f *testing.F) {
	for _, client := range []config.Source{config.SourceCursor, config.SourceOpenCode} {
		for _, text := range shapesOf(client) {
			f.Add(text)
		}
	}
	f.Add(`{"mcp": {"servers": {"type": {}}, "codeexec": {"command": ["codeexec"]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		checkForm(t, formOf(config.SourceCursor, program, []string{"serve"}), text)
		checkForm(t, formOf(config.SourceOpenCode, program, []string{"serve"}), text)
	})
}

func FuzzTOML(f *testing.F) {
	for _, text := range tomlShapes {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		statements(text) // which needn't be valid
		checkForm(t, formOf(config.SourceCodex, program, []string{"serve"}), text)
	})
}

func checkForm(t *testing.T, f form, text string) {
	after, s, err := f.install([]byte(text), true)
	if err != nil {
		return
	}
	before, ok := s.undo(after, func(data []byte) bool { return string(data) == text })
	if !ok {
		t.Fatalf("the splice %+v can't be undone in %q: %q", s, after, before)
	}
	again, _, err := f.install(after, false)
	if err != nil || string(again) != string(after) {
		t.Fatalf("installing again: %v\n%q\nafter\n%q", err, again, after)
	}
	cut, err := f.uninstall(after, false)
	if err != nil {
		t.Fatalf("without a record: %v\n%q", err, after)
	}
	was, _ := f.restOf([]byte(text))
	if is, err := f.restOf(cut); err != nil || is != was {
		t.Fatalf("without a record: %v\n%q\nwant the same as\n%q", err, cut, text)
	}
}

func apply(t *testing.T, plan func(Options) (*Plan, error), opts Options) *Plan {
	t.Helper()
	p, err := plan(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(); err != nil {
		t.Fatal(err)
	}
	return p
}

func forget(t *testing.T, opts Options) {
	t.Helper()
	if err := os.Remove(recordsPath(opts.Config.StateDir)); err != nil {
		t.Fatal(err)
	}
}

func writeTest(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readTest(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func others(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return slices.Sorted(slices.Values(names))
}
