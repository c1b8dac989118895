package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"codeexec/bridge/config"
)

var github = config.Server{Name: "github", Command: "github-mcp", Args: []string{"stdio"}, Env: map[string]string{"TOKEN": "s3cret"}}

// tools parses the list of an answer to tools/list.
func tools(t testing.TB, list string) []Tool {
	t.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(list), &raw); err != nil {
		t.Fatal(err)
	}
	out := []Tool{}
	for _, text := range raw {
		tool, err := ParseTool(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tool)
	}
	return out
}

const listed = `[
	{"name": "create-issue", "title": "Create", "description": "Creates <b>an</b> issue & more.", "inputSchema": {"type": "object", "properties": {"z": {}, "a": {"maximum": 1e400, "default": 12345678901234567890}}}, "annotations": {"readOnlyHint": false}},
	{"name": "日本", "inputSchema": true, "outputSchema": {}}
]`

func TestARecordOutlivesItsProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache", "catalog")
	seen := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := tools(t, listed)

	r := Open(dir, nil).Record(github)
	if _, ok := r.Summary(); ok {
		t.Error("something is known of a server that never ran")
	}
	if _, ok := r.Tools(); ok {
		t.Error("tools are known of a server that never ran")
	}
	r.Save(Listing{Seen: seen, Description: "Issues and more", Tools: want})

	again := Open(dir, nil).Record(github)
	if got, ok := again.Summary(); !ok || got != (Summary{seen, "Issues and more", 2}) {
		t.Errorf("Summary() = %+v, %v", got, ok)
	}
	got, ok := again.Tools()
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("Tools() = %+v, %v\nwant %+v", got, ok, want)
	}
	if schema := string(got[0].InputSchema); schema != `{"type":"object","properties":{"z":{},"a":{"maximum":1e400,"default":12345678901234567890}}}` {
		t.Errorf("schema %s", schema)
	}
	if same, _ := again.Tools(); &same[0] != &got[0] {
		t.Error("the slice changes though the tools don't")
	}
}

func TestAServerWithoutToolsIsKnownToo(t *testing.T) {
	dir := t.TempDir()
	Open(dir, nil).Record(github).Save(Listing{Seen: time.Now()})
	if got, ok := Open(dir, nil).Record(github).Tools(); !ok || len(got) != 0 {
		t.Errorf("Tools() = %v, %v", got, ok)
	}
}

func TestWhatOtherProcessesSaveIsSeen(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := Open(dir, nil).Record(github), Open(dir, nil).Record(github)
	ours.Save(Listing{Seen: time.Now(), Tools: tools(t, `[{"name": "old"}]`)})
	if got, _ := theirs.Tools(); len(got) != 1 || got[0].Name != "old" {
		t.Fatalf("Tools() = %+v", got)
	}
	theirs.Save(Listing{Seen: time.Now(), Tools: tools(t, `[{"name": "new"}, {"name": "newer"}]`)})
	if got, _ := ours.Summary(); got.Tools != 2 {
		t.Errorf("Summary() = %+v", got)
	}
	if got, _ := ours.Tools(); len(got) != 2 || got[0].Name != "new" {
		t.Errorf("Tools() = %+v", got)
	}
}

func TestAnotherConfigurationIsAnotherServer(t *testing.T) {
	edit := func(f func(*config.Server)) config.Server {
		s := github
		f(&s)
		return s
	}
	tests := []struct {
		name   string
		server config.Server
		same   bool
	}{
		{"name", edit(func(s *config.Server) { s.Name = "g" }), false},
		{"command", edit(func(s *config.Server) { s.Command = "other" }), false},
		{"arguments", edit(func(s *config.Server) { s.Args = []string{"stdio", "-v"} }), false},
		{"arguments joined", edit(func(s *config.Server) { s.Command, s.Args = "github-mcp stdio", nil }), false},
		{"a secret", edit(func(s *config.Server) { s.Env = map[string]string{"TOKEN": "other"} }), false},
		{"working directory", edit(func(s *config.Server) { s.Cwd = "/srv" }), false},
		{"URL", edit(func(s *config.Server) { s.URL = "https://example.com" }), false},
		{"a header", edit(func(s *config.Server) { s.Headers = map[string]string{"Authorization": "x"} }), false},
		{"transport", edit(func(s *config.Server) { s.Transport = config.TransportHTTP }), false},
		{"description", edit(func(s *config.Server) { s.Description = "other" }), true},
		{"file", edit(func(s *config.Server) { s.Source = "/elsewhere.json" }), true},
		{"disabled", edit(func(s *config.Server) { s.Disabled = true }), true},
		{"time limit", edit(func(s *config.Server) { s.Timeout = time.Second }), true},
	}
	c := Open(t.TempDir(), nil)
	c.Record(github).Save(Listing{Seen: time.Now(), Tools: tools(t, listed)})
	for _, tc := range tests {
		if _, ok := c.Record(tc.server).Summary(); ok != tc.same {
			t.Errorf("%s: known is %v", tc.name, ok)
		}
	}
}

func TestARelativeCommandIsAnotherOneElsewhere(t *testing.T) {
	server := config.Server{Name: "s", Command: "./server"}
	c := Open(t.TempDir(), nil)
	t.Chdir(t.TempDir())
	c.Record(server).Save(Listing{Seen: time.Now()})
	c.Record(github).Save(Listing{Seen: time.Now()})
	t.Chdir(t.TempDir())
	if _, ok := c.Record(server).Summary(); ok {
		t.Error("./server is known elsewhere")
	}
	if _, ok := c.Record(github).Summary(); !ok {
		t.Error("a command on PATH is not known elsewhere")
	}
}

func TestFilesAreTheOwnersAndHoldNoSecret(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	Open(dir, nil).Record(github).Save(Listing{Seen: time.Now(), Tools: tools(t, listed)})
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, entries[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("s3cret")) || bytes.Contains(data, []byte("TOKEN")) {
		t.Errorf("the configuration is in the file:\n%s", data)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, entries[0].Name()): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestDamagedFilesAreIgnoredAndReplaced(t *testing.T) {
	tests := []struct {
		name   string
		damage func([]byte) []byte
		counts bool // the header still tells how many tools there are
	}{
		{"empty", func([]byte) []byte { return nil }, false},
		{"not JSON", func([]byte) []byte { return []byte("hello\nworld\n") }, false},
		{"cut short", func(b []byte) []byte { return b[:len(b)-10] }, false},
		{"longer", func(b []byte) []byte { return append(b, b...) }, false},
		{"only the header", func(b []byte) []byte { return b[:bytes.IndexByte(b, '\n')+1] }, false},
		{"another format", func(b []byte) []byte { return bytes.Replace(b, []byte(`"catalog":1`), []byte(`"catalog":2`), 1) }, false},
		{"no newline", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte(" ")) }, false},
		{"an endless line", func([]byte) []byte { return bytes.Repeat([]byte(" "), 1<<20) }, false},
		{"null", func([]byte) []byte { return []byte("null\nnull\n") }, false},
		{"a changed tool", func(b []byte) []byte { return bytes.Replace(b, []byte("create-issue"), []byte("delete-issue"), 1) }, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			r := Open(dir, nil).Record(github)
			r.Save(Listing{Seen: time.Now(), Tools: tools(t, listed)})
			data, err := os.ReadFile(r.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(r.path, tc.damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			again := Open(dir, slog.New(slog.NewTextHandler(&log, nil))).Record(github)
			if _, ok := again.Summary(); ok != tc.counts {
				t.Errorf("a summary is known: %v", ok)
			}
			for range 2 {
				if _, ok := again.Tools(); ok {
					t.Error("its tools are known")
				}
			}
			if got := log.String(); strings.Count(got, "server=github") != 1 || !strings.Contains(got, "will be replaced") {
				t.Errorf("log:\n%s", got)
			}
			again.Save(Listing{Seen: time.Now(), Tools: tools(t, listed)})
			if got, ok := Open(dir, nil).Record(github).Tools(); !ok || len(got) != 2 {
				t.Errorf("after it ran again: %v, %v", got, ok)
			}
		})
	}
}

func TestAnUnchangedListingIsNotWrittenAgain(t *testing.T) {
	c := Open(t.TempDir(), nil)
	now := time.Now()
	list := Listing{Seen: now, Tools: tools(t, listed)}
	r := c.Record(github)
	r.Save(list)
	before := r.file
	long := before.modified.Add(-time.Hour)
	if err := os.Chtimes(r.path, long, long); err != nil {
		t.Fatal(err)
	}
	modified := func() time.Time {
		info, err := os.Stat(r.path)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	list.Seen, list.Tools = now.Add(time.Minute), tools(t, listed)
	was, _ := r.Tools()
	r.Save(list)
	if is, _ := r.Tools(); &is[0] != &was[0] {
		t.Error("the slice has changed though the tools haven't")
	}
	if !modified().Equal(long) {
		t.Error("the same was written again")
	}
	list.Seen = now.Add(25 * time.Hour)
	r.Save(list)
	if modified().Equal(long) {
		t.Error("a day later it was not written")
	}
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if got, ok := r.Tools(); !ok || len(got) != 2 {
		t.Errorf("what this process knows went with the file: %v, %v", got, ok)
	}
	r.Save(list)
	modified() // it is there again
}

func TestWithoutAFolderRecordsLiveInMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", filepath.Join(file, "catalog")} {
		r := Open(dir, nil).Record(github)
		r.Save(Listing{Seen: time.Now(), Description: "d", Tools: tools(t, listed)})
		if got, ok := r.Tools(); !ok || len(got) != 2 {
			t.Errorf("in %q: %v, %v", dir, got, ok)
		}
		if got, ok := r.Summary(); !ok || got.Tools != 2 || got.Description != "d" {
			t.Errorf("in %q: %v, %v", dir, got, ok)
		}
	}
}

func TestTheFolderIsBounded(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, age time.Duration) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxFiles + 5 {
		put(fmt.Sprintf("%04d.jsonl", i), time.Duration(i)*time.Minute)
	}
	put("old.jsonl", unused+time.Hour)
	put(config.TempPrefix+"dead", 2*time.Hour)
	put(config.TempPrefix+"alive", 0)
	put("notes.txt", 2*unused)
	Open(dir, nil).Record(github).Save(Listing{Seen: time.Now()})
	for name, want := range map[string]bool{
		"0000.jsonl": true, "0998.jsonl": true, "0999.jsonl": false, "1004.jsonl": false, "old.jsonl": false,
		config.TempPrefix + "dead": false, config.TempPrefix + "alive": true, "notes.txt": true,
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s is there: %v", name, err == nil)
		}
	}
}

func TestReadingMarksARecordAsUsed(t *testing.T) {
	dir := t.TempDir()
	r := Open(dir, nil).Record(github)
	r.Save(Listing{Seen: time.Now(), Tools: tools(t, listed)})
	old := time.Now().Add(-unused)
	if err := os.Chtimes(r.path, old, old); err != nil {
		t.Fatal(err)
	}
	if _, ok := Open(dir, nil).Record(github).Tools(); !ok {
		t.Fatal("not known")
	}
	if info, err := os.Stat(r.path); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("%v, %v", info.ModTime(), err)
	}
}

func TestManyWritersAndReaders(t *testing.T) {
	dir := t.TempDir()
	lists := [][]Tool{tools(t, `[{"name": "a"}]`), tools(t, `[{"name": "a"}, {"name": "b"}]`)}
	var group sync.WaitGroup
	for i := range 8 {
		r := Open(dir, nil).Record(github) // as if in a process of its own
		group.Go(func() {
			for j := range 20 {
				r.Save(Listing{Seen: time.Now(), Description: fmt.Sprint(i, j), Tools: lists[(i+j)%2]})
				got, ok := r.Tools()
				if !ok || len(got) != 1 && len(got) != 2 {
					t.Errorf("Tools() = %v, %v", got, ok)
				}
				r.Summary()
			}
		})
	}
	group.Wait()
	if _, ok := Open(dir, nil).Record(github).Tools(); !ok {
		t.Error("in the end nothing is known")
	}
}

func FuzzDecode(f *testing.F) {
	for _, list := range []string{`[]`, listed} {
		_, data := encode("github", Listing{Seen: time.Unix(0, 0), Description: "d", Tools: tools(f, list)})
		f.Add(data)
	}
	body := `[{"name":"x","inputSchema":{"a":"\ud800"}}, {"name":"x"}]` + "\n"
	head, _ := json.Marshal(header{Format: format, Tools: 2, Size: int64(len(body)), Sum: sum([]byte(body))})
	f.Add([]byte(string(head) + "\n" + body))
	f.Add([]byte("null\n[]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, data)
		// A fuzzer finds no hashes: give it the right one for its second line.
		if i := bytes.IndexByte(data, '\n') + 1; i > 0 {
			h := new(header)
			if json.Unmarshal(data[:i], h) == nil && h.Seen.Year() >= 0 && h.Seen.Year() < 10000 {
				h.Sum, h.Size = sum(data[i:]), int64(len(data)-i)
				check(t, append(line(h), data[i:]...))
			}
		}
	})
}

// check decodes a file. If that works, what it says can be written and read again.
func check(t *testing.T, data []byte) {
	h, list, err := decode(data)
	if err != nil {
		return
	}
	_, again := encode(h.Server, Listing{h.Seen, h.Description, list})
	h2, list2, err := decode(again)
	if err != nil {
		t.Fatalf("%v\n%q\n%q", err, data, again)
	}
	if h2.Tools != h.Tools || !reflect.DeepEqual(list, list2) {
		t.Fatalf("%+v became %+v", list, list2)
	}
}
