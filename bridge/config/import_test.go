package config

import (
	"context"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"codeexec/bridge/config/syntax"
)

func (m *machine) plan(t *testing.T, client Source, force bool) (*Import, []string) {
	t.Helper()
	im, err := PlanImport(context.Background(), m.options(), client, force)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range im.Changes {
		got = append(got, strings.TrimRight(strings.Join([]string{string(c.Action), c.Name, c.Note}, " "), " "))
	}
	return im, got
}

func (m *machine) apply(t *testing.T, client Source, force bool) []string {
	t.Helper()
	im, got := m.plan(t, client, force)
	if err := im.Apply(); err != nil {
		t.Fatal(err)
	}
	return got
}

func wantChanges(t *testing.T, step string, got []string, want ...string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", step, got, want)
	}
}

// TestImport follows a file through the edits of its two owners.
func TestImport(t *testing.T) {
	m := newMachine(t, "linux")
	const cursor, file = "$HOME/.cursor/mcp.json", "$HOME/MCPs/imported-cursor.json"
	m.write(t, cursor, `{"mcpServers": {
		"a": {"command": "a", "args": ["<x>", "${TOKEN}"], "cwd": "here"},
		"b": {"url": "https://x.test/mcp?a=1&b=2", "headers": {"Authorization": "Bearer t0p-s3cret"}, "timeout": 90000},
		"c/~": {"command": "c"},
		"self": {"command": "codeexec"},
		"bad": {"args": []}
	}}`)
	m.write(t, "$DIR/.cursor/mcp.json", `{"mcpServers": {"from-a-project": {"command": "evil"}}}`)
	im, got := m.plan(t, SourceCursor, false)
	wantChanges(t, "planned", got,
		"add a", "add b", `skip bad it has neither "command" nor "url"`, "add c/~", "skip self it would start codeexec itself")
	if _, err := os.Stat(m.path(file)); err == nil {
		t.Error("a plan has written")
	}
	if err := im.Apply(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(m.path(file))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	imported, problems := m.load(t, m.options(SourceState))
	original, _ := m.load(t, m.options(SourceCursor))
	original = slices.DeleteFunc(original, func(s Server) bool { return s.Name == "from-a-project" })
	for i := range original {
		original[i].Source = file
	}
	if !reflect.DeepEqual(imported, original) {
		t.Errorf("imported:\n got %+v\nwant %+v", imported, original)
	}
	if len(problems) != 1 { // ${TOKEN}
		t.Errorf("problems %q", problems)
	}
	text, err := os.ReadFile(m.path(file))
	if err != nil || !strings.Contains(string(text), "${TOKEN}") || !strings.Contains(string(text), "<x>") {
		t.Errorf("%s, %v", text, err)
	}

	wantChanges(t, "again", m.apply(t, SourceCursor, false),
		"same a", "same b", `skip bad it has neither "command" nor "url"`, "same c/~", "skip self it would start codeexec itself")

	// The client's changes are copied, those of the user stay.
	m.write(t, cursor, `{"mcpServers": {"a": {"command": "a2"}, "b": {"url": "https://new.test/mcp"}, "c/~": {"command": "c2"}, "d": {"command": "d"}}}`)
	edited := strings.Replace(string(text), "https://x.test/mcp?a=1&b=2", "https://edited.test/mcp", 1)
	edited = strings.Replace(edited, `"mcpServers"`, "// by hand\n\"mcpServers\"", 1)
	if edited == string(text) {
		t.Fatal("nothing was edited")
	}
	m.write(t, file, edited)
	wantChanges(t, "edited", m.apply(t, SourceCursor, false),
		"update a", "keep b edited since it was copied", "update c/~", "add d")
	servers, _ := m.load(t, m.options(SourceState))
	if servers[0].Command != "a2" || servers[1].URL != "https://edited.test/mcp" || servers[2].Command != "c2" || servers[3].Command != "d" {
		t.Errorf("servers %+v", servers)
	}
	text, err = os.ReadFile(m.path(file))
	if err != nil || !strings.Contains(string(text), "// by hand") {
		t.Errorf("%s, %v", text, err)
	}

	wantChanges(t, "planned with force", second(m.plan(t, SourceCursor, true)),
		"same a", "update b edits since it was copied are lost", "same c/~", "same d")

	// What the user removes stays removed; what the client removes stays.
	object, err := syntax.JSON(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(members(child(object, "mcpServers"), "d")) != 1 {
		t.Fatalf("no d in %s", text)
	}
	m.write(t, file, strings.Replace(string(text), `"d":`, `"e":`, 1)) // the first is the entry
	m.write(t, cursor, `{"mcpServers": {"a": {"command": "a2"}, "d": {"command": "d"}}}`)
	wantChanges(t, "removed", m.apply(t, SourceCursor, false),
		"same a", "keep d removed since it was copied",
		"keep b the client doesn't have it any more", "keep c/~ the client doesn't have it any more")
	wantChanges(t, "removed, with force", m.apply(t, SourceCursor, true), "same a", "add d",
		"keep b the client doesn't have it any more", "keep c/~ the client doesn't have it any more")
}

func second(_ *Import, changes []string) []string { return changes }

// Two definitions of a name in the state directory would hide each other.
func TestImportBesideOtherFiles(t *testing.T) {
	m := newMachine(t, "linux")
	m.write(t, "$HOME/MCPs/mine.json", `{"mcpServers": {"a": {"command": "a", "args": []}, "b": {"command": "mine"}}}`)
	m.write(t, "$HOME/.gemini/settings.json", `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}, "c": {"command": "c", "env": {"T": "$TOKEN"}}}}`)
	wantChanges(t, "gemini", m.apply(t, SourceGemini, false),
		"skip a mine.json has it already", "skip b mine.json defines another one of this name", "add c")
	m.write(t, "$HOME/.codex/config.toml", "[mcp_servers.c]\ncommand = \"c\"\nenv_vars = [\"TOKEN\"]\n[mcp_servers.d]\nurl = \"http://x.test\"\nbearer_token_env_var = \"TOKEN\"\n")
	wantChanges(t, "codex", m.apply(t, SourceCodex, false),
		"skip c imported-gemini.json defines another one of this name", "add d")
	m.env["TOKEN"] = "v"
	servers, problems := m.load(t, m.options(SourceState))
	if len(servers) != 4 || servers[2].Env["T"] != "v" || servers[3].Headers["Authorization"] != "Bearer v" || len(problems) > 0 {
		t.Errorf("servers %+v, problems %q", servers, problems)
	}
}

func TestImportProblems(t *testing.T) {
	m := newMachine(t, "linux")
	im, got := m.plan(t, SourceZed, false)
	if len(im.From)+len(got)+len(im.Problems) > 0 || im.Changed() || im.Apply() != nil {
		t.Errorf("nothing there: %+v", im)
	}
	m.write(t, "$HOME/.config/zed/settings.json", `{"context_servers": {"a": {"command": t0p-s3cret}}}`)
	im, _ = m.plan(t, SourceZed, false)
	if len(im.Problems) != 1 || m.short(im.Problems[0].String()) != "$HOME/.config/zed/settings.json: not copied: it isn't JSON: syntax error at line 1, column 39" {
		t.Errorf("problems %q", im.Problems)
	}

	m.write(t, "$HOME/.config/zed/settings.json", `{"context_servers": {"a": {"command": "x"}}}`)
	m.write(t, "$HOME/MCPs/imported-zed.json", `{"mcpServers": t0p-s3cret}`)
	_, err := PlanImport(context.Background(), m.options(), SourceZed, false)
	if err == nil || m.short(err.Error()) != "$HOME/MCPs/imported-zed.json: it isn't JSON: syntax error at line 1, column 16; correct the file, or remove it" {
		t.Errorf("a broken file: %v", err)
	}

	// Somebody writes between plan and execution.
	m.write(t, "$HOME/MCPs/imported-zed.json", `{"mcpServers": {}}`)
	im, _ = m.plan(t, SourceZed, false)
	m.write(t, "$HOME/MCPs/imported-zed.json", `{"mcpServers": {"b": {"command": "b"}}}`)
	if err := im.Apply(); err == nil || !strings.Contains(err.Error(), "has changed in the meantime") {
		t.Errorf("err %v", err)
	}
	wantChanges(t, "at the second try", m.apply(t, SourceZed, false), "add a")
	if servers, _ := m.load(t, m.options(SourceState)); len(servers) != 2 {
		t.Errorf("servers %+v", servers)
	}

	opts := m.options()
	opts.StateDir = ""
	if _, err := PlanImport(context.Background(), opts, SourceZed, false); err == nil {
		t.Error("copied to nowhere")
	}
}
