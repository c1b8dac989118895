package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"codeexec/bridge/config/syntax"
)

// fuzzParser feeds a parser, and checks what every server must be.
func fuzzParser(f *testing.F, parse func(*loader) parser, fixtures ...string) {
	for _, name := range fixtures {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`[[[[{"a":/**/"\ud800"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLoader(Options{
			Home: "/home/me", Dir: "/project", Self: "/nonexistent", GOOS: "linux",
			LookupEnv: func(name string) (string, bool) { return "value", len(name)%2 == 0 },
		})
		at := location{path: "/x/file.json", client: true}
		entries, err := parse(l)(data, at)
		if err != nil && !errors.Is(err, errNoServers) && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
			t.Errorf("error %q", err)
		}
		for _, e := range entries {
			e.preview()
			e.envFile = "" // the file system isn't the parser's
			if strings.Contains(strings.Join(e.args, ""), "${file:") {
				continue
			}
			l.add(at, e)
			if e.err != nil {
				continue
			}
			if _, err := e.kind(); err != nil || checkName(e.name) != nil {
				continue
			}
			// What an import writes says the same.
			object, err := syntax.JSON([]byte(`{"mcpServers": {"x": ` + string(e.canonical()) + `}}`))
			if err != nil {
				t.Fatalf("%s: %v", e.canonical(), err)
			}
			again, err := dialect{}.servers(object, "mcpServers", at)
			if err != nil || again[0].err != nil || string(again[0].canonical()) != string(e.canonical()) {
				t.Errorf("%s became %+v, %v", e.canonical(), again, err)
			}
		}
		set := l.set()
		for i, s := range set.Servers {
			if s.Name == "" || i > 0 && s.Name <= set.Servers[i-1].Name {
				t.Errorf("servers %+v", set.Servers)
			}
			if (s.Command != "") != (s.Transport == TransportStdio) || (s.URL != "") == (s.Transport == TransportStdio) {
				t.Errorf("server %+v", s)
			}
			if s.Cwd != "" && !filepath.IsAbs(s.Cwd) || s.Timeout < 0 {
				t.Errorf("server %+v", s)
			}
		}
	})
}

func with(p parser) func(*loader) parser { return func(*loader) parser { return p } }

func FuzzMCPServers(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": 1, "args": null}, "a": []}, "mcpServers": {}}`))
	fuzzParser(f, with(parseMCPServers), "claude-desktop.json", "cursor.json", "windsurf.json")
}

func FuzzClaudeCode(f *testing.F) {
	fuzzParser(f, func(l *loader) parser { return l.parseClaudeCode }, "claude-code.json")
}

func FuzzVSCode(f *testing.F) {
	fuzzParser(f, with(parseVSCode), "vscode.jsonc", "vscode-settings.jsonc")
}

func FuzzGemini(f *testing.F) { fuzzParser(f, with(parseGemini), "gemini.json") }

func FuzzCodex(f *testing.F) { fuzzParser(f, with(parseCodex), "codex.toml") }

func FuzzOpenCode(f *testing.F) {
	fuzzParser(f, with(parseOpenCode), "opencode.jsonc", "opencode2.json")
}

func FuzzZed(f *testing.F) { fuzzParser(f, with(parseZed), "zed.jsonc") }

func FuzzAny(f *testing.F) {
	fuzzParser(f, with(parseAny), "cursor.json", "vscode.jsonc", "zed.jsonc", "opencode2.json")
}

func FuzzEnvFile(f *testing.F) {
	f.Add([]byte("export A=\"b\nc\" # d\nE='f'\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		vars, err := parseEnvFile(data)
		if vars == nil || err != nil && strings.ContainsAny(err.Error(), "\"\n") {
			t.Errorf("%q, %v", vars, err)
		}
		for name := range vars {
			if !isVariable(name) {
				t.Errorf("name %q", name)
			}
		}
	})
}

func FuzzSplitWords(f *testing.F) {
	f.Add(`a 'b c' "d \" e" f\ g ''`)
	f.Fuzz(func(t *testing.T, line string) {
		words, err := splitWords(line)
		if err != nil {
			return
		}
		// Quoting the words gives them back.
		var quoted []string
		for _, word := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
		}
		again, err := splitWords(strings.Join(quoted, " "))
		if err != nil || !reflect.DeepEqual(words, again) {
			t.Errorf("%q: %q, then %q, %v", line, words, again, err)
		}
	})
}
