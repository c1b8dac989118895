package config

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A machine is the files and the environment of one, for tests. In what it
// gives back, $HOME and $DIR stand for its home and working directory.
type machine struct {
	home, dir string
	goos      string
	env       map[string]string
}

func newMachine(t *testing.T, goos string) *machine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{home: filepath.Join(root, "home"), dir: filepath.Join(root, "project"), goos: goos, env: map[string]string{}}
	if goos == "windows" {
		m.env["APPDATA"] = filepath.Join(m.home, "AppData", "Roaming")
		m.env["LOCALAPPDATA"] = filepath.Join(m.home, "AppData", "Local")
	}
	for _, dir := range []string{m.home, m.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// write puts a text into a file; "$DIR" and "DIR" work in path and text.
func (m *machine) write(t *testing.T, path, text string) {
	t.Helper()
	path = m.path(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, `"DIR"`, `"`+filepath.ToSlash(m.dir)+`"`)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) path(path string) string {
	return filepath.FromSlash(strings.NewReplacer("$HOME", m.home, "$DIR", m.dir).Replace(path))
}

func (m *machine) options(sources ...Source) Options {
	return Options{
		StateDir: filepath.Join(m.home, "MCPs"),
		Sources:  append([]Source{}, sources...),
		Dir:      m.dir,
		Home:     m.home,
		GOOS:     m.goos,
		Self:     "/nonexistent",
		LookupEnv: func(name string) (string, bool) {
			v, ok := m.env[name]
			return v, ok
		},
	}
}

func (m *machine) short(s string) string {
	return filepath.ToSlash(strings.NewReplacer(m.home, "$HOME", m.dir, "$DIR").Replace(s))
}

func (m *machine) load(t *testing.T, opts Options) (servers []Server, problems []string) {
	t.Helper()
	set, err := Load(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range set.Servers {
		s.Source, s.Cwd, s.Command = m.short(s.Source), m.short(s.Cwd), m.short(s.Command)
		for i := range s.Args {
			s.Args[i] = m.short(s.Args[i])
		}
		servers = append(servers, s)
	}
	for _, p := range set.Problems {
		text := m.short(p.String())
		if p.Hint {
			text = "hint: " + text
		}
		problems = append(problems, text)
	}
	return servers, problems
}

// TestClients puts the file of each client in the place where the client keeps
// it on each operating system, and reads it from there.
func TestClients(t *testing.T) {
	everywhere := func(path string) map[string]string {
		return map[string]string{"linux": path, "darwin": path, "windows": path}
	}
	bearer := func(token string) map[string]string { return map[string]string{"Authorization": "Bearer " + token} }
	tests := []struct {
		name     string
		source   Source
		fixture  string
		paths    map[string]string // by operating system
		env      map[string]string
		files    map[string]string // further ones
		want     []Server          // without Source
		problems []string          // FILE stands for the file
	}{
		{
			name: "Claude Desktop", source: SourceClaudeDesktop, fixture: "claude-desktop.json",
			paths: map[string]string{
				"linux":   "$HOME/.config/Claude/claude_desktop_config.json",
				"darwin":  "$HOME/Library/Application Support/Claude/claude_desktop_config.json",
				"windows": "$HOME/AppData/Roaming/Claude/claude_desktop_config.json",
			},
			want: []Server{
				{Name: "filesystem", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/home/me/Documents"}},
				{
					Name: "github", Command: "docker",
					Args: []string{"run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"},
					Env:  map[string]string{"GITHUB_PERSONAL_ACCESS_TOKEN": "t0p-s3cret"},
				},
			},
			problems: []string{`FILE: server "codeexec": not used: it would start codeexec itself`},
		},
		{
			name: "Claude Code", source: SourceClaudeCode, fixture: "claude-code.json", paths: everywhere("$HOME/.claude.json"),
			env: map[string]string{"NOTION_TOKEN": "n0"},
			want: []Server{
				{Name: "airtable", Command: "npx", Args: []string{"-y", "airtable-mcp-server"}, Env: map[string]string{"AIRTABLE_API_KEY": "none"}},
				{Name: "asana", Transport: "sse", URL: "https://mcp.asana.test/events", Timeout: 2 * time.Minute},
				{Name: "notion", Transport: "http", URL: "https://mcp.notion.test/mcp", Headers: bearer("n0")},
				{Name: "shared", Command: "of-the-project"},
			},
			problems: []string{`FILE: server "shared": not used: FILE defines it already`},
		},
		{
			name: "Claude Code elsewhere", source: SourceClaudeCode, fixture: "claude-desktop.json", paths: everywhere("$HOME/cc/.claude.json"),
			env: map[string]string{"CLAUDE_CONFIG_DIR": "$HOME/cc"},
			want: []Server{
				{Name: "filesystem", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/home/me/Documents"}},
				{
					Name: "github", Command: "docker",
					Args: []string{"run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"},
					Env:  map[string]string{"GITHUB_PERSONAL_ACCESS_TOKEN": "t0p-s3cret"},
				},
			},
			problems: []string{`FILE: server "codeexec": not used: it would start codeexec itself`},
		},
		{
			name: "Cursor", source: SourceCursor, fixture: "cursor.json", paths: everywhere("$HOME/.cursor/mcp.json"),
			env:   map[string]string{"MY_KEY": "k3y"},
			files: map[string]string{"$HOME/cursor.env": "# secrets\nexport DB=\"a b\"\nAPI_KEY=loses\n"},
			want: []Server{
				{
					Name: "local", Command: "python3", Args: []string{"$DIR/tools/server.py", "--home=$HOME"},
					Env: map[string]string{"API_KEY": "k3y", "DB": "a b"},
				},
				{Name: "remote", Transport: "sse", URL: "https://mcp.linear.test/sse", Headers: map[string]string{"X-Api-Key": "k3y"}},
				{Name: "stream", Transport: "http", URL: "http://localhost:3000/mcp"},
			},
		},
		{
			name: "Windsurf", source: SourceWindsurf, fixture: "windsurf.json", paths: everywhere("$HOME/.codeium/windsurf/mcp_config.json"),
			want: []Server{
				{Name: "figma", Transport: "http", URL: "https://mcp.figma.test/mcp", Headers: bearer("t0p-s3cret")},
				{Name: "git", Command: "uvx", Args: []string{"mcp-server-git"}, Disabled: true},
				{Name: "zapier", Transport: "sse", URL: "https://actions.zapier.test/mcp/t0p-s3cret/sse"},
			},
			problems: []string{`FILE: server "figma": disabledTools: all tools can be called; deny them in codeexec.toml`},
		},
		{
			name: "VS Code", source: SourceVSCode, fixture: "vscode.jsonc",
			paths: map[string]string{
				"linux":   "$HOME/.config/Code/User/mcp.json",
				"darwin":  "$HOME/Library/Application Support/Code/User/mcp.json",
				"windows": "$HOME/AppData/Roaming/Code/User/mcp.json",
			},
			want: []Server{
				{Name: "Perplexity", Command: "npx", Args: []string{"-y", "server-perplexity-ask"}, Env: map[string]string{"PERPLEXITY_API_KEY": "${input:perplexity-key}"}},
				{Name: "fetch", Command: "uvx", Args: []string{"mcp-server-fetch", "--root/project"}},
				{Name: "github", Transport: "http", URL: "https://api.githubcopilot.test/mcp"},
				{Name: "old", Transport: "sse", URL: "https://x.test/events", Headers: map[string]string{"VERSION": "1.2"}},
			},
			problems: []string{
				`FILE: server "Perplexity": env.PERPLEXITY_API_KEY: nobody is asked for ${input:perplexity-key} here, it is not replaced; write ${VARIABLE} and set that`,
				`FILE: server "fetch": envFile: its variables are missing: no such file or directory`,
			},
		},
		{
			name: "VS Code's settings", source: SourceVSCode, fixture: "vscode-settings.jsonc",
			paths: map[string]string{
				"linux":   "$HOME/.config/Code/User/settings.json",
				"darwin":  "$HOME/Library/Application Support/Code/User/settings.json",
				"windows": "$HOME/AppData/Roaming/Code/User/settings.json",
			},
			want: []Server{
				{Name: "fetch", Command: "loses"},
				{Name: "from-settings", Command: "docker", Args: []string{"run", "-i", "--rm", "mcp/time"}},
			},
		},
		{
			name: "Gemini CLI", source: SourceGemini, fixture: "gemini.json", paths: everywhere("$HOME/.gemini/settings.json"),
			env: map[string]string{"MY_KEY": "k3y"},
			want: []Server{
				{Name: "experimental", Command: "x", Disabled: true},
				{
					Name: "python", Command: "python", Args: []string{"-m", "server", "--port", "8080"}, Cwd: "$HOME/.gemini/mcp_tools",
					Env: map[string]string{"DATABASE_URL": "${DB}", "API_KEY": "k3y"}, Timeout: 15 * time.Second,
				},
				{Name: "sse", Transport: "sse", URL: "http://localhost:8080/sse"},
				{Name: "stream", Transport: "http", URL: "https://x.test/events", Headers: bearer("k3y"), Timeout: 10 * time.Minute},
			},
			problems: []string{
				`FILE: server "python": includeTools: all tools can be called; deny them in codeexec.toml`,
				`FILE: server "python": env.DATABASE_URL: the environment variable DB is not set, ${DB} is not replaced`,
			},
		},
		{
			name: "Codex", source: SourceCodex, fixture: "codex.toml", paths: everywhere("$HOME/.codex/config.toml"),
			env: map[string]string{"MY_KEY": "k3y"},
			want: []Server{
				{
					Name: "context7", Command: "npx", Args: []string{"-y", "@upstash/context7-mcp"}, Cwd: "/tmp",
					Env: map[string]string{"MODE": "fast", "MY_KEY": "k3y"}, Timeout: 45500 * time.Millisecond,
				},
				{
					Name: "figma", Transport: "http", URL: "https://mcp.figma.test/mcp",
					Headers: map[string]string{"Authorization": "Bearer k3y", "X-Key": "k3y", "X-Region": "eu"},
				},
				{Name: "off-line", Command: "x", Disabled: true},
			},
			problems: []string{`FILE: server "broken": not used: "command" must be a string`},
		},
		{
			name: "Codex elsewhere", source: SourceCodex, fixture: "codex.toml", paths: everywhere("$HOME/cx/config.toml"),
			env: map[string]string{"CODEX_HOME": "$HOME/cx", "MY_KEY": ""},
			want: []Server{
				{
					Name: "context7", Command: "npx", Args: []string{"-y", "@upstash/context7-mcp"}, Cwd: "/tmp",
					Env: map[string]string{"MODE": "fast", "MY_KEY": ""}, Timeout: 45500 * time.Millisecond,
				},
				{
					Name: "figma", Transport: "http", URL: "https://mcp.figma.test/mcp",
					Headers: map[string]string{"Authorization": "Bearer ", "X-Key": "", "X-Region": "eu"},
				},
				{Name: "off-line", Command: "x", Disabled: true},
			},
			problems: []string{`FILE: server "broken": not used: "command" must be a string`},
		},
		{
			name: "OpenCode", source: SourceOpenCode, fixture: "opencode.jsonc", paths: everywhere("$HOME/.config/opencode/opencode.jsonc"),
			env:   map[string]string{"MY_KEY": "k3y"},
			files: map[string]string{"$HOME/.config/opencode/key.txt": "from-file\n"},
			want: []Server{
				{Name: "context7", Transport: "http", URL: "https://mcp.context7.test/mcp", Headers: map[string]string{"CONTEXT7_API_KEY": "from-file"}},
				{
					Name: "everything", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-everything"},
					Env: map[string]string{"MODE": "k3y", "UNSET": ""}, Timeout: 5 * time.Second,
				},
				{Name: "sentry", Transport: "sse", URL: "https://mcp.sentry.test/sse", Disabled: true},
			},
		},
		{
			name: "OpenCode 2", source: SourceOpenCode, fixture: "opencode2.json", paths: everywhere("$HOME/xdg/opencode/opencode.json"),
			env: map[string]string{"XDG_CONFIG_HOME": "$HOME/xdg"},
			want: []Server{
				{Name: "everything", Command: "npx", Args: []string{"server"}, Cwd: "$HOME/xdg/opencode/tools", Timeout: 90 * time.Second},
				{Name: "off", Transport: "http", URL: "https://x.test/mcp", Disabled: true},
			},
		},
		{
			name: "Zed", source: SourceZed, fixture: "zed.jsonc",
			paths: map[string]string{
				"linux":   "$HOME/.config/zed/settings.json",
				"darwin":  "$HOME/.config/zed/settings.json",
				"windows": "$HOME/AppData/Roaming/Zed/settings.json",
			},
			want: []Server{
				{Name: "local", Command: "node", Args: []string{"server.js"}, Env: map[string]string{"A": "1"}, Timeout: 30 * time.Second},
				{Name: "old", Command: "/opt/server", Args: []string{"run"}, Env: map[string]string{"B": "2"}},
				{Name: "remote", Transport: "http", URL: "https://x.test/mcp", Headers: bearer("t0p-s3cret"), Disabled: true},
			},
		},
		{
			name: "the user's directory", source: SourceUser, fixture: "windsurf.json", paths: everywhere("$HOME/.config/mcp/servers/some.json"),
			want: []Server{
				{Name: "figma", Transport: "http", URL: "https://mcp.figma.test/mcp", Headers: bearer("t0p-s3cret")},
				{Name: "git", Command: "uvx", Args: []string{"mcp-server-git"}, Disabled: true},
				{Name: "zapier", Transport: "sse", URL: "https://actions.zapier.test/mcp/t0p-s3cret/sse"},
			},
			problems: []string{`FILE: server "figma": disabledTools: all tools can be called; deny them in codeexec.toml`},
		},
	}
	for _, tc := range tests {
		for _, goos := range slices.Sorted(maps.Keys(tc.paths)) {
			t.Run(tc.name+"/"+goos, func(t *testing.T) {
				m := newMachine(t, goos)
				fixture, err := os.ReadFile(filepath.Join("testdata", tc.fixture))
				if err != nil {
					t.Fatal(err)
				}
				m.write(t, tc.paths[goos], string(fixture))
				for path, text := range tc.files {
					m.write(t, path, text)
				}
				for name, value := range tc.env {
					m.env[name] = m.path(value)
				}
				var want []Server
				for _, s := range tc.want {
					s.Source = tc.paths[goos]
					if s.Transport == "" {
						s.Transport = TransportStdio
					}
					want = append(want, s)
				}
				var wantProblems []string
				for _, p := range tc.problems {
					wantProblems = append(wantProblems, strings.ReplaceAll(p, "FILE", tc.paths[goos]))
				}

				servers, problems := m.load(t, m.options(tc.source))
				if !reflect.DeepEqual(servers, want) {
					t.Errorf("servers:\n got %+v\nwant %+v", servers, want)
				}
				if !reflect.DeepEqual(problems, wantProblems) {
					t.Errorf("problems:\n got %q\nwant %q", problems, wantProblems)
				}
				if strings.Contains(strings.Join(problems, ""), "t0p-s3cret") {
					t.Errorf("a value of the file is shown: %q", problems)
				}
				// Nothing of it is read unless it is asked for.
				if servers, problems := m.load(t, func() Options { o := m.options(); o.Sources = nil; return o }()); len(servers)+len(problems) > 0 {
					t.Errorf("by default: %+v, %q", servers, problems)
				}
				// A file that is named is understood whatever client it is of.
				if tc.source != SourceGemini && tc.source != SourceClaudeCode {
					named := m.options()
					named.Files = []string{m.path(tc.paths[goos])}
					if servers, _ := m.load(t, named); !reflect.DeepEqual(noTimeouts(servers), noTimeouts(want)) {
						t.Errorf("named:\n got %+v\nwant %+v", servers, want)
					}
				}
			})
		}
	}
}

// noTimeouts removes time limits, whose unit a file's place tells.
func noTimeouts(servers []Server) []Server {
	servers = slices.Clone(servers)
	for i := range servers {
		servers[i].Timeout = 0
	}
	return servers
}

// On Windows, Claude Desktop reads the copy that belongs to its package.
func TestClaudeDesktopPackage(t *testing.T) {
	m := newMachine(t, "windows")
	m.write(t, "$HOME/AppData/Roaming/Claude/claude_desktop_config.json", `{"mcpServers": {"a": {"command": "stale"}, "b": {"command": "b"}}}`)
	m.write(t, "$HOME/AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json", `{"mcpServers": {"a": {"command": "fresh"}}}`)
	for _, env := range []map[string]string{m.env, {}} { // without the variables the usual places count
		m.env = env
		servers, _ := m.load(t, m.options(SourceClaudeDesktop))
		if len(servers) != 2 || servers[0].Command != "fresh" || servers[1].Command != "b" {
			t.Errorf("servers %+v", servers)
		}
	}
}

// Files of clients needn't exist, nor define servers; what is wrong with one
// costs nothing else.
func TestClientsWithoutServers(t *testing.T) {
	m := newMachine(t, runtime.GOOS)
	if servers, problems := m.load(t, m.options(Sources()...)); len(servers)+len(problems) > 0 {
		t.Errorf("nothing there: %+v, %q", servers, problems)
	}
	m.write(t, "$HOME/.cursor/mcp.json", `{}`)
	m.write(t, "$HOME/.gemini/settings.json", `{"theme": "x"}`)
	m.write(t, "$HOME/.codex/config.toml", `model = "x"`)
	m.write(t, "$HOME/.config/opencode/opencode.json", `{"theme": "x", "mcp": {}}`)
	m.write(t, "$HOME/.config/zed/settings.json", `{"theme": "x"}`)
	m.write(t, "$HOME/.claude.json", `{"projects": {"DIR": {}}}`)
	if servers, problems := m.load(t, m.options(Sources()...)); len(servers)+len(problems) > 0 {
		t.Errorf("no servers: %+v, %q", servers, problems)
	}
	m.write(t, "$HOME/.codex/config.toml", "a = \"t0p-s3cret\"\nb = t0p-s3cret\n")
	m.write(t, "$HOME/.cursor/mcp.json", `{"mcpServers": {"a": {"command": "a"}, "b": {"url": "ftp://t0p-s3cret"}, "c": {"type": "pigeon", "url": "x"}, "d": {"command": "x", "url": "http://x"}, "e": {"type": "http", "command": "x"}}}`)
	m.write(t, "$HOME/.config/zed/settings.json", `{"context_servers": {"z": {"command": "z"}}}`)
	servers, problems := m.load(t, m.options(Sources()...))
	want := []string{
		`$HOME/.cursor/mcp.json: server "b": not used: url must be absolute and begin with http:// or https://`,
		`$HOME/.cursor/mcp.json: server "c": not used: "type" must be stdio, http or sse`,
		`$HOME/.cursor/mcp.json: server "d": not used: it has both "command" and "url", and no "type" that says which counts`,
		`$HOME/.cursor/mcp.json: server "e": not used: it has no "url"`,
		`$HOME/.codex/config.toml: not used: it isn't TOML: syntax error at line 2, column 5`,
	}
	if !reflect.DeepEqual(problems, want) {
		t.Errorf("problems:\n got %q\nwant %q", problems, want)
	}
	if len(servers) != 2 || servers[0].Name != "a" || servers[1].Name != "z" {
		t.Errorf("servers %+v", servers)
	}
}

// Every spelling of a field.
func TestFields(t *testing.T) {
	tests := []struct {
		entry   string
		want    Server
		problem string
	}{
		{`{"type": "stdio", "command": "x"}`, Server{Command: "x"}, ""},
		{`{"type": "local", "command": ["x", "a"], "args": ["b"]}`, Server{Command: "x", Args: []string{"a", "b"}}, ""},
		{`{"args": ["b"], "command": ["x", "a"]}`, Server{Command: "x", Args: []string{"a", "b"}}, ""},
		{`{"type": "http", "url": "http://x/sse"}`, Server{Transport: "http", URL: "http://x/sse"}, ""},
		{`{"type": "streamable-http", "url": "http://x"}`, Server{Transport: "http", URL: "http://x"}, ""},
		{`{"type": "streamableHttp", "url": "http://x"}`, Server{Transport: "http", URL: "http://x"}, ""},
		{`{"transport": "sse", "url": "http://x"}`, Server{Transport: "sse", URL: "http://x"}, ""},
		{`{"type": "remote", "url": "http://x/sse/"}`, Server{Transport: "sse", URL: "http://x/sse/"}, ""},
		{`{"url": "https://x/sse?key=1"}`, Server{Transport: "sse", URL: "https://x/sse?key=1"}, ""},
		{`{"httpUrl": "https://x/sse"}`, Server{Transport: "http", URL: "https://x/sse"}, ""},
		{`{"type": "stdio", "command": "x", "url": "http://x"}`, Server{Command: "x"}, ""},
		{`{"command": "x", "enabled": false}`, Server{Command: "x", Disabled: true}, ""},
		{`{"command": "x", "enabled": true, "disabled": true}`, Server{Command: "x", Disabled: true}, ""},
		{`{"command": "x", "enabled": null, "disabled": null, "timeout": null, "env": null}`, Server{Command: "x"}, ""},
		{`{"command": "x", "timeout": 60}`, Server{Command: "x", Timeout: time.Minute}, ""},
		{`{"command": "x", "timeout": 60000}`, Server{Command: "x", Timeout: time.Minute}, ""},
		{`{"command": "x", "timeout": "1m30s"}`, Server{Command: "x", Timeout: 90 * time.Second}, ""},
		{`{"command": "x", "timeout": 1e300}`, Server{Command: "x", Timeout: longest}, ""},
		{`{"command": "x", "timeout": -1}`, Server{}, `"timeout" must be a number, or a string such as "30s"`},
		{`{"command": "x", "timeout": "soon"}`, Server{}, `"timeout" must be a number, or a string such as "30s"`},
		{`{"url": "http://x", "headers": {"A B": "v"}}`, Server{}, `headers."A B" can't be the name of a header`},
		{`{"url": "http://x", "headers": {"A": "v\nB: w"}}`, Server{}, `headers.A has a line break or another control character in it`},
		{`{"url": "http://x", "headers": {"A": 1}}`, Server{Transport: "http", URL: "http://x", Headers: map[string]string{"A": "1"}}, ""},
		{`{"url": "/mcp"}`, Server{}, `url must be absolute and begin with http:// or https://`},
		{`{"url": "http://"}`, Server{}, `url must be absolute and begin with http:// or https://`},
		{`{"type": "stdio", "url": "http://x"}`, Server{}, `it has no "command"`},
		{`{"command": []}`, Server{}, `it has neither "command" nor "url"`},
	}
	for _, tc := range tests {
		t.Run(tc.entry, func(t *testing.T) {
			set := load(t, map[string]string{"a.json": `{"mcpServers": {"a": ` + tc.entry + `}}`}, Options{})
			var want []Server
			if tc.problem == "" {
				tc.want.Name, tc.want.Source = "a", "a.json"
				if tc.want.Transport == "" {
					tc.want.Transport = TransportStdio
				}
				want = []Server{tc.want}
			} else {
				tc.problem = `a.json: server "a": not used: ` + tc.problem
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

func TestEnvFile(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]string
		err        string
	}{
		{"plain", "A=1\nB = two words \n\n# C=3\nexport D=4\n", map[string]string{"A": "1", "B": "two words", "D": "4"}, ""},
		{"byte order mark and CRLF", "\uFEFFA=1\r\nB=2\r\n", map[string]string{"A": "1", "B": "2"}, ""},
		{"comments", "A=1 # one\nB=a#b\nC=\"x # y\" # z\n", map[string]string{"A": "1", "B": "a#b", "C": "x # y"}, ""},
		{"quotes", `A="a\n\t\"b\" \\ \x \$"` + "\nB='a\\n$C'\nC=\"\"\nD=", map[string]string{"A": "a\n\t\"b\" \\ \\x $", "B": `a\n$C`, "C": "", "D": ""}, ""},
		{"several lines", "KEY=\"-----BEGIN\nabc\n-----END\"\nA=1\n", map[string]string{"KEY": "-----BEGIN\nabc\n-----END", "A": "1"}, ""},
		{"equals signs", "A=b=c\n", map[string]string{"A": "b=c"}, ""},
		{"nothing is expanded", "A=${HOME}\n", map[string]string{"A": "${HOME}"}, ""},
		{"the last wins", "A=1\nA=2\n", map[string]string{"A": "2"}, ""},
		{"no assignment", "A=1\nt0p-s3cret\nB=2\n", map[string]string{"A": "1", "B": "2"}, "line 2 isn't NAME=VALUE"},
		{"open quote", "A=1\nB=\"t0p-s3cret\n", map[string]string{"A": "1"}, "line 2 has a quote that isn't closed"},
		{"lines are counted", "A=\"x\ny\"\nt0p-s3cret", map[string]string{"A": "x\ny"}, "line 3 isn't NAME=VALUE"},
		{"not UTF-8", "A=\xff", map[string]string{}, "the file isn't UTF-8"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseEnvFile([]byte(tc.text))
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if text := ""; err != nil && err.Error() != tc.err || err == nil && tc.err != text {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestParseSources(t *testing.T) {
	tests := []struct {
		list string
		want []Source
		ok   bool
	}{
		{"", []Source{}, true},
		{"none", []Source{}, true},
		{"default", []Source{"state", "project"}, true},
		{" state, Cursor ", []Source{"state", "cursor"}, true},
		{"default,codex", []Source{"state", "project", "codex"}, true},
		{"all", Sources(), true},
		{"netscape", nil, false},
	}
	for _, tc := range tests {
		got, err := ParseSources(tc.list)
		if !reflect.DeepEqual(got, tc.want) || (err == nil) != tc.ok {
			t.Errorf("ParseSources(%q) = %q, %v", tc.list, got, err)
		}
	}
}

// The order of sources is fixed, whatever order they are named in.
func TestSourcesPrecedence(t *testing.T) {
	m := newMachine(t, "linux")
	define := func(names ...string) string {
		var b strings.Builder
		for _, name := range names {
			b.WriteString(`"` + name + `": {"command": "x"},`)
		}
		return `{"mcpServers": {` + b.String() + `}}`
	}
	m.write(t, "$HOME/MCPs/a.json", define("s"))
	m.write(t, "$DIR/.mcp.json", define("s", "p"))
	m.write(t, "$DIR/mcp-servers/x.json", define("s", "p", "d"))
	m.write(t, "$HOME/.config/mcp/servers/a.json", define("s", "p", "d", "u"))
	m.write(t, "$HOME/.config/Claude/claude_desktop_config.json", define("s", "p", "d", "u", "cd"))
	m.write(t, "$DIR/.cursor/mcp.json", define("s", "p", "d", "u", "cd", "pc"))
	m.write(t, "$HOME/.cursor/mcp.json", define("s", "p", "d", "u", "cd", "pc", "c"))
	m.write(t, "$HOME/.config/zed/settings.json", `{"context_servers": {"c": {"command": "x"}, "z": {"command": "x"}}}`)
	opts := m.options(SourceZed, SourceCursor, SourceClaudeDesktop, SourceUser, SourceProject, SourceState)
	project, err := InspectProject(context.Background(), opts, m.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := project.Trust(opts.StateDir); err != nil {
		t.Fatal(err)
	}
	servers, _ := m.load(t, opts)
	var got []string
	for _, s := range servers {
		got = append(got, s.Name+" "+s.Source)
	}
	want := []string{
		"c $HOME/.cursor/mcp.json", "cd $HOME/.config/Claude/claude_desktop_config.json", "d $DIR/mcp-servers/x.json",
		"p $DIR/.mcp.json", "pc $DIR/.cursor/mcp.json", "s $HOME/MCPs/a.json", "u $HOME/.config/mcp/servers/a.json",
		"z $HOME/.config/zed/settings.json",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("servers:\n got %q\nwant %q", got, want)
	}
}

// A desktop program's working directory is the root, which nobody means.
func TestNoWorkspaceInTheRoot(t *testing.T) {
	set := load(t, map[string]string{"a.json": `{"mcpServers": {"a": {"command": "x", "args": ["${workspaceFolder}"]}}}`}, Options{Dir: "/"})
	if got := set.Servers[0].Args[0]; got != "${workspaceFolder}" || len(set.Problems) != 1 {
		t.Errorf("%q, %q", got, problems(set))
	}
}
