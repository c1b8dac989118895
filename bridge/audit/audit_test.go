package audit

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.FixedZone("", 3600))

func open(t *testing.T, opts Options) (*Log, string) {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = filepath.Join(t.TempDir(), "state", "log")
	}
	l, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, filepath.Join(opts.Dir, FileName)
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestLines(t *testing.T) {
	call := Call{
		Run: "r1", Client: "ann", Session: "default", Server: "github", Tool: "get_repo", Start: start, Duration: 1500 * time.Microsecond,
		Outcome: "ok", Arguments: json.RawMessage(`{"name":"s3cret"}`), Result: 12,
	}
	run := Run{ID: "r1", Session: "default", Start: start, Duration: 2 * time.Second, Outcome: "success", Code: 7, Calls: 1}
	const (
		runLine  = `{"time":"2026-11-29T11:00:00.123Z","kind":"run","run":"r1","session":"default","outcome":"success","duration_ms":2000,"code_bytes":7,"output_bytes":0,"calls":1}` + "\n"
		callLine = `{"time":"2026-11-29T11:00:00.123Z","kind":"call","run":"r1","client":"ann","session":"default","server":"github","tool":"get_repo","outcome":"ok","duration_ms":1.5,"argument_bytes":17,"result_bytes":12`
	)
	tests := []struct {
		name      string
		arguments bool
		args      string
		want      string
	}{
		{"without arguments", false, `{"name":"s3cret"}`, callLine + "}\n" + runLine},
		{"with arguments", true, `{"name":"s3cret"}`, callLine + `,"arguments":{"name":"s3cret"}` + "}\n" + runLine},
		{"arguments that are no JSON", true, `{"name":"s3cret",`, callLine + "}\n" + runLine},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			l, file := open(t, Options{Arguments: tc.arguments})
			call.Arguments = json.RawMessage(tc.args)
			l.Call(call)
			l.Run(run)
			if got := read(t, file); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	t.Run("arguments that are too long", func(t *testing.T) {
		l, file := open(t, Options{Arguments: true})
		call.Arguments = json.RawMessage(`{"x":"` + strings.Repeat("x", maxArguments) + `"}`)
		call.Tool = strings.Repeat("t\n", maxText)
		l.Call(call)
		got := read(t, file)
		if !strings.HasSuffix(got, `"arguments_cut":true}`+"\n") || len(got) > 4*maxText || strings.Count(got, "\n") != 1 {
			t.Errorf("got %s", got)
		}
	})
}

func TestNilWritesNothing(t *testing.T) {
	var l *Log
	l.Run(Run{})
	l.Call(Call{})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// Only the owner may read the files, also one that was there before, and old
// ones.
func TestFilesArePrivateAndRotated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l, _ := open(t, Options{Dir: dir, Arguments: true, maxSize: 1})
	args := json.RawMessage(`{"x":"` + strings.Repeat("x", maxArguments-100) + `"}`)
	for range 150 {
		l.Call(Call{Server: "s", Tool: "t", Start: start, Arguments: args})
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 2 {
		t.Errorf("%d files", len(entries))
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 1<<20 {
			t.Errorf("%s has %d bytes", e.Name(), info.Size())
		}
		if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode != 0o600 {
			t.Errorf("%s has mode %o", e.Name(), mode)
		}
	}
}

func TestLinesStayWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	a, file := open(t, Options{Dir: dir})
	b, _ := open(t, Options{Dir: dir}) // as another process would
	var wg sync.WaitGroup
	for _, l := range []*Log{a, b} {
		for range 10 {
			wg.Go(func() {
				for range 20 {
					l.Call(Call{Server: "s", Tool: "t", Start: start})
				}
			})
		}
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSuffix(read(t, file), "\n"), "\n")
	if len(lines) != 400 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if !json.Valid([]byte(l)) {
			t.Errorf("not JSON: %s", l)
		}
	}
}

func TestADirectoryThatCantBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: filepath.Join(file, "log")}); err == nil || !strings.Contains(err.Error(), "the audit log can't be written") {
		t.Errorf("err = %v", err)
	}
}

// A full disk is reported once, not with each call.
func TestFailuresAreReportedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	var b strings.Builder
	l, _ := open(t, Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&b, nil))})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // where the directory should be
		t.Fatal(err)
	}
	for range 3 {
		l.Call(Call{})
	}
	if n := strings.Count(b.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, b.String())
	}
}

func TestLoadSettings(t *testing.T) {
	tests := []struct {
		text string
		want Settings
		err  string
	}{
		{"", Settings{Enabled: true}, ""},
		{"[policy]\ndefault = \"ask\"", Settings{Enabled: true}, ""},
		{"[audit]\narguments = true", Settings{Enabled: true, Arguments: true}, ""},
		{"[audit]\nenabled = false", Settings{}, ""},
		{"[audit]\nargument = true", Settings{Enabled: true}, "audit.argument is not a setting"},
		{"[audit", Settings{Enabled: true}, "codeexec.toml"},
	}
	for _, tc := range tests {
		path := filepath.Join(t.TempDir(), "codeexec.toml")
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := LoadSettings(path)
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: %+v, %v", tc.text, got, err)
		}
	}
	if got, err := LoadSettings(filepath.Join(t.TempDir(), "none")); err != nil || !got.Enabled {
		t.Errorf("%+v, %v", got, err)
	}
}
