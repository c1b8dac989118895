package upstream

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codeexec/bridge/catalog"
)

func TestToolsAreAsTheServerSpellsThem(t *testing.T) {
	m := start(t, Options{}, stubServer())
	tools, err := m.Tools(limit(t), "stub")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tools, func(tool catalog.Tool) bool { return tool.Name == "keywords" })
	const want = `{"type":"object","properties":{"opt":{"type":["integer","null"],"default":1},"from":{"type":"string"},` +
		`"class":{"anyOf":[{"type":"integer"},{"type":"null"}]},"cik-A":{"type":"number"},"timeout":{"type":"integer"}},"required":["from","cik-A"]}`
	if i < 0 || string(tools[i].InputSchema) != want {
		t.Errorf("got  %s\nwant %s", tools[i].InputSchema, want)
	}
}

func TestWhatIsKnownOfServersThatAreNotRunning(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(t.TempDir(), "pids")
	cfg := stubServer("-pid-file", pids, "-instructions", "Stubs \x1b[31mthings\x1b[0m.\nAll of them.\n\nMore of that.")
	started := func() bool {
		_, err := os.Stat(pids)
		return err == nil
	}
	open := func() *Manager { return start(t, Options{Catalog: catalog.Open(dir, nil)}, cfg) }

	m := open()
	if tools, ok := m.Known("stub"); ok {
		t.Errorf("known before it ever ran: %v", tools)
	}
	listed, err := m.Tools(limit(t), "stub")
	if err != nil || !started() {
		t.Fatalf("%v, started: %v", err, started())
	}
	closeManager(t, m)
	if err := os.Remove(pids); err != nil {
		t.Fatal(err)
	}

	m = open()
	info := m.Servers()[0]
	if info.Tools != len(listed) || info.Status != StatusIdle || info.Description != "Stubs things. All of them." {
		t.Errorf("info %+v", info)
	}
	tools, err := m.Tools(limit(t), "stub")
	if err != nil || len(tools) != len(listed) || started() {
		t.Errorf("Tools: %d, %v, started: %v", len(tools), err, started())
	}
	if known, ok := m.Known("stub"); !ok || len(known) != len(listed) || started() {
		t.Errorf("Known: %d, %v, started: %v", len(known), ok, started())
	}
	tools, err = m.Refresh(limit(t), "stub")
	if err != nil || len(tools) != len(listed) || !started() {
		t.Errorf("Refresh: %d, %v, started: %v", len(tools), err, started())
	}
	if cfg.Description = "The owner's"; start(t, Options{Catalog: catalog.Open(dir, nil)}, cfg).Servers()[0].Description != "The owner's" {
		t.Error("the owner's description gives way to the server's")
	}
}

func TestTheCatalogueFollowsARunningServer(t *testing.T) {
	dir := t.TempDir()
	m := start(t, Options{Catalog: catalog.Open(dir, nil)}, stubServer())
	elsewhere := start(t, Options{Catalog: catalog.Open(dir, nil)}, stubServer())
	call(t, m, "say", `{"text": "x"}`) // a call is enough
	has := func(name string) func() bool {
		return func() bool {
			tools, _ := elsewhere.Known("stub")
			return slices.Contains(toolNames(tools), name)
		}
	}
	eventually(t, "the other process knows the tools", has("say"))
	call(t, m, "add-tool", `{"name": "brand-new"}`)
	eventually(t, "the other process knows the new tool", has("brand-new"))
	if status := elsewhere.Servers()[0].Status; status != StatusIdle {
		t.Errorf("the other process has a server that is %s", status)
	}
}

func TestToolsOfAServerThatCannotStartAnyMore(t *testing.T) {
	dir := t.TempDir()
	cfg := stubServer()
	cfg.Cwd = filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(cfg.Cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	m := start(t, Options{Catalog: catalog.Open(dir, nil)}, cfg)
	if _, err := m.Tools(limit(t), "stub"); err != nil {
		t.Fatal(err)
	}
	closeManager(t, m)
	if err := os.Remove(cfg.Cwd); err != nil {
		t.Fatal(err)
	}
	m = start(t, Options{Catalog: catalog.Open(dir, nil)}, cfg)
	if tools, err := m.Tools(limit(t), "stub"); err != nil || len(tools) == 0 {
		t.Errorf("Tools: %d, %v", len(tools), err)
	}
	_, err := m.Call(limit(t), "stub", "say", nil)
	unavailable(t, err)
	if info := m.Servers()[0]; info.Status != StatusFailed || info.Failed.IsZero() || info.Tools <= 0 {
		t.Errorf("info %+v", info)
	}
	// It has failed, but what is known of it is as good as before.
	if tools, err := m.Tools(limit(t), "stub"); err != nil || len(tools) == 0 {
		t.Errorf("Tools after a failure: %d, %v", len(tools), err)
	}
}

func TestOneLine(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", ""},
		{" a\n b\t\tc ", "a b c"},
		{"\x1b[31mred\x1b[0m\x07", "red"},
		{strings.Repeat("é", 500), strings.Repeat("é", 150) + "…"},
		{"x" + strings.Repeat("é", 500), "x" + strings.Repeat("é", 149) + "…"},
	}
	for _, tc := range tests {
		if got := oneLine(tc.text); got != tc.want {
			t.Errorf("oneLine(%.20q) = %q", tc.text, got)
		}
	}
}

// A server that greets but never lists its tools must not take a whole run with it.
func TestServerThatNeverListsItsTools(t *testing.T) {
	m := start(t, Options{ListTimeout: 50 * time.Millisecond}, stubServer("-mute", "tools/list"))
	_, err := m.Tools(limit(t), "stub")
	if got := unavailable(t, err).Error(); !strings.Contains(got, `"stub"`) || !strings.Contains(got, "didn't answer tools/list within 50ms") {
		t.Error(got)
	}
}
