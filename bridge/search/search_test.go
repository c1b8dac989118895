package search_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"codeexec/bridge/search"
)

// names returns the tools of hits as server/tool.
func names(tools []search.Tool, hits []search.Hit) []string {
	out := make([]string, len(hits))
	for i, h := range hits {
		out[i] = tools[h.Index].Server + "/" + tools[h.Index].Name
	}
	return out
}

func TestSearch(t *testing.T) {
	tools := []search.Tool{
		{Server: "gsuite", Name: "list_calendar_events", Description: "Lists what is planned."},
		{Server: "caldav", Name: "create-event", Description: "Adds an entry to a calendar."},
		{Server: "fs", Name: "read_file", Description: "Returns the content of one file.", Parameters: []string{"path", "maxBytes"}},
		{Server: "fs", Name: "read_text_file", Description: "Returns the content of one file as text."},
		{Server: "fs", Name: "delete_file", Description: "Removes a file for good."},
		{Server: "fs", Name: "makeDirectory", Description: "Creates a directory and its parents."},
		{Server: "github", Name: "create_pull_request", Description: "Proposes changes."},
		{Server: "github", Name: "mergePullRequest", Description: "Lands changes."},
		{Server: "mailer", Name: "sendEmail", Title: "Send an e-mail", Description: "Delivers text to recipients through SMTP."},
		{Server: "chat", Name: "chat.postMessage", Description: "Says something in a channel."},
		{Server: "chrome", Name: "browser_take_screenshot", Description: "Captures what is visible."},
		{Server: "chrome", Name: "browser_evaluate", Description: "Runs JavaScript in the page."},
		{Server: "chrome", Name: "browser_type", Description: "Enters text."},
		{Server: "zip", Name: "GZipFile", Description: "Makes files smaller."},
		{Server: "pdf", Name: "mergePDFs", Description: "Joins documents."},
		{Server: "s3", Name: "PutObject", Description: "Stores bytes under a key.", Parameters: []string{"Bucket", "ContentType"}},
		{Server: "codec", Name: "base64_decode", Description: "Decodes text."},
		{Server: "日程", Name: "列出日历事件", Description: "列出日历中的事件"},
		{Server: "stadt", Name: "straße_suchen", Description: "Findet Straßen in Zürich."},
	}
	index := search.NewIndex(tools)
	tests := []struct {
		name, query string
		want        []string // in any order, before all others
	}{
		{"words of two names", "calendar events", []string{"gsuite/list_calendar_events", "caldav/create-event"}},
		{"swapped letters", "raed file", []string{"fs/read_file"}},
		{"missing letter", "delte file", []string{"fs/delete_file"}},
		{"extra letter", "screeenshot", []string{"chrome/browser_take_screenshot"}},
		{"wrong letter", "evaluste", []string{"chrome/browser_evaluate"}},
		{"misspelt both", "raed fiel", []string{"fs/read_file"}},
		{"the shorter name first", "read file", []string{"fs/read_file"}},
		{"any order", "file text read", []string{"fs/read_text_file"}},
		{"plural", "pull requests", []string{"github/create_pull_request", "github/mergePullRequest"}},
		{"other form", "deleting files", []string{"fs/delete_file"}},
		{"synonym", "remove file", []string{"fs/delete_file"}},
		{"synonym of two words", "open a PR", []string{"github/create_pull_request"}},
		{"plural of an acronym", "merge PRs", []string{"github/mergePullRequest"}},
		{"synonyms only", "make folder", []string{"fs/makeDirectory"}},
		{"spelled with a hyphen", "e-mail", []string{"mailer/sendEmail"}},
		{"spelled in two words", "screen shot", []string{"chrome/browser_take_screenshot"}},
		{"spelled in one word", "readfile", []string{"fs/read_file"}},
		{"abbreviation", "msg", []string{"chat/chat.postMessage"}},
		{"beginning of a word", "screen", []string{"chrome/browser_take_screenshot"}},
		{"dotted name", "post message", []string{"chat/chat.postMessage"}},
		{"capitals in a name", "gzip", []string{"zip/GZipFile"}},
		{"plural capitals in a name", "pdf merge", []string{"pdf/mergePDFs"}},
		{"digits in a name", "base64", []string{"codec/base64_decode"}},
		{"only in a description", "recipients", []string{"mailer/sendEmail"}},
		{"camel case in a description", "javascript", []string{"chrome/browser_evaluate"}},
		{"only in a parameter", "bucket", []string{"s3/PutObject"}},
		{"server and tool", "github merge", []string{"github/mergePullRequest"}},
		{"the very name", "create-event", []string{"caldav/create-event"}},
		{"name in another style", "Create Event", []string{"caldav/create-event"}},
		{"a sentence", "How can I send an email to somebody?", []string{"mailer/sendEmail"}},
		{"no spaces between words", "日历", []string{"日程/列出日历事件"}},
		{"letters beyond ASCII", "STRASSE zürich", []string{"stadt/straße_suchen"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			hits := index.Search(tc.query, 5, nil)
			got := names(tools, hits)
			first := slices.Clone(got[:min(len(got), len(tc.want))])
			slices.Sort(first)
			slices.Sort(tc.want)
			if !slices.Equal(first, tc.want) {
				t.Errorf("Search(%q) = %v, want first %v", tc.query, got, tc.want)
			}
		})
	}
}

func TestSearchFindsNothing(t *testing.T) {
	index := search.NewIndex([]search.Tool{{Server: "fs", Name: "read_file", Description: "Reads."}})
	tests := []struct {
		name, query string
		limit       int
		allow       func(string) bool
	}{
		{"empty", "", 5, nil},
		{"punctuation", " -_./!? ", 5, nil},
		{"unlike anything", "quux zzyzx", 5, nil},
		{"limit 0", "read", 0, nil},
		{"negative limit", "read", -1, nil},
		{"server not allowed", "read", 5, func(string) bool { return false }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if hits := index.Search(tc.query, tc.limit, tc.allow); len(hits) > 0 {
				t.Errorf("Search(%q) = %v, want nothing", tc.query, hits)
			}
		})
	}
	if hits := search.NewIndex(nil).Search("read", 5, nil); len(hits) > 0 {
		t.Errorf("an empty index finds %v", hits)
	}
}

func TestSearchAllowedServersOnly(t *testing.T) {
	tools, _ := catalog(t)
	index := search.NewIndex(tools)
	asked := make(map[string]int)
	hits := index.Search("create issue", 50, func(server string) bool {
		asked[server]++
		return server == "tracker" || server == "mail"
	})
	if len(hits) == 0 {
		t.Fatal("nothing found")
	}
	for _, h := range hits {
		if s := tools[h.Index].Server; s != "tracker" && s != "mail" {
			t.Errorf("found a tool of %s", s)
		}
	}
	for server, times := range asked {
		if times > 1 {
			t.Errorf("allow was called %d times for %s", times, server)
		}
	}
}

func TestSearchOrder(t *testing.T) {
	tools := []search.Tool{
		{Server: "b", Name: "ping"}, {Server: "a", Name: "ping_z"}, {Server: "a", Name: "ping_c"}, {Server: "c", Name: "ping"}, {Server: "a", Name: "ping"},
	}
	want := []string{"a/ping", "b/ping", "c/ping", "a/ping_c", "a/ping_z"}
	for range 20 {
		rand.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
		hits := search.NewIndex(tools).Search("ping", 50, nil)
		if got := names(tools, hits); !slices.Equal(got, want) {
			t.Fatalf("Search = %v, want %v", got, want)
		}
		if hits[0].Score != 1 || hits[4].Score >= 1 || hits[4].Score <= 0 {
			t.Fatalf("scores %v: want 1 for the very name, less for the others", hits)
		}
	}
}

// TestCatalog holds for every tool of the catalogue what the examples above hold for a few.
func TestCatalog(t *testing.T) {
	tools, _ := catalog(t)
	index := search.NewIndex(tools)
	spelling := strings.NewReplacer("_", "", "-", "", ".", "", "/", "")
	same := make(map[string]int) // how many tools have that name, in any style
	for _, tool := range tools {
		same[strings.ToLower(spelling.Replace(tool.Name))]++
	}
	rank := func(i int, query string) int {
		return 1 + slices.IndexFunc(index.Search(query, len(tools), nil), func(h search.Hit) bool { return h.Index == i })
	}
	for i, tool := range tools {
		id := tool.Server + "/" + tool.Name
		if r := rank(i, tool.Name); r == 0 || r > same[strings.ToLower(spelling.Replace(tool.Name))] {
			t.Errorf("%s is at %d when its name is asked for", id, r)
		}
		if r := rank(i, id); r != 1 {
			t.Errorf("%s is at %d when its server and name are asked for", id, r)
		}
		described := strings.Fields(tool.Description)
		for _, word := range described[:min(len(described), 12)] {
			if strings.ContainsFunc(word, unicode.IsLetter) && rank(i, word) == 0 {
				t.Errorf("%s isn't found by %q of its description", id, word)
			}
		}
	}
}

// TestMisspeltNames asks for every tool by its name, with one mistake in its longest word.
func TestMisspeltNames(t *testing.T) {
	tools, _ := catalog(t)
	index := search.NewIndex(tools)
	mistakes := map[string]func(word string, at int) string{
		"swapped": func(w string, at int) string { return w[:at] + w[at+1:at+2] + w[at:at+1] + w[at+2:] },
		"missing": func(w string, at int) string { return w[:at] + w[at+1:] },
		"extra":   func(w string, at int) string { return w[:at] + "e" + w[at:] },
		"wrong":   func(w string, at int) string { return w[:at] + "o" + w[at+1:] },
	}
	split := strings.NewReplacer("_", " ", "-", " ", ".", " ", "/", " ")
	for _, mistake := range slices.Sorted(maps.Keys(mistakes)) {
		random := rand.New(rand.NewPCG(1, 2))
		var r recall
		for i, tool := range tools {
			ws := strings.Fields(split.Replace(tool.Name))
			longest := slices.MaxFunc(ws, func(a, b string) int { return len(a) - len(b) })
			if len(longest) < 5 {
				continue
			}
			at := 1 + random.IntN(len(longest)-2)
			query := tool.Server + " " + strings.Replace(strings.Join(ws, " "), longest, mistakes[mistake](longest, at), 1)
			rank := 1 + slices.IndexFunc(index.Search(query, 5, nil), func(h search.Hit) bool { return h.Index == i })
			r.add(rank)
		}
		t.Logf("%s letter: recall@1 %.3f, recall@5 %.3f of %d", mistake, r.at1(), r.at5(), r.queries)
		if r.at1() < 0.9 || r.at5() < 0.98 {
			t.Errorf("%s letter: recall@1 is %.3f (want 0.9 or more), recall@5 %.3f (want 0.98 or more)", mistake, r.at1(), r.at5())
		}
	}
}

func TestSearchConcurrently(t *testing.T) {
	tools, queries := catalog(t)
	index := search.NewIndex(tools)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, q := range queries[:40] {
				a, b := index.Search(q.Query, 10, nil), index.Search(q.Query, 10, nil)
				if !reflect.DeepEqual(a, b) {
					t.Errorf("Search(%q) = %v, then %v", q.Query, a, b)
				}
			}
		})
	}
	group.Wait()
}

// TestHugeInput gives what no honest server or caller sends. It must be over soon.
func TestHugeInput(t *testing.T) {
	long := strings.Repeat("getFileInfo read_the-next 日历 ", 100_000)
	tools := []search.Tool{
		{Server: long, Name: long, Title: long, Description: long, Parameters: slices.Repeat([]string{long}, 300)},
		{Server: "fs", Name: "read_file", Description: strings.Repeat("x", 10<<20)},
	}
	index := search.NewIndex(tools)
	for _, query := range []string{long, strings.Repeat("x", 1<<20), strings.Repeat("\xff", 1<<20), "read file"} {
		index.Search(query, 1<<30, nil)
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("read_file", "Reads a file.", "raed file", 5)
	f.Add("GZipPDFs2x", "e-mail; \xff\x00 日历", "e-", -1)
	f.Add("", "", "İ ǅ ß", 1<<31-1)
	tools, _ := catalog(f)
	f.Fuzz(func(t *testing.T, name, description, query string, limit int) {
		tools := append(tools[:50:50], search.Tool{Server: description, Name: name, Title: query, Description: description, Parameters: []string{query, name}})
		hits := search.NewIndex(tools).Search(query, limit, nil)
		if len(hits) > max(limit, 0) {
			t.Errorf("%d hits where at most %d were wanted", len(hits), limit)
		}
		for i, h := range hits {
			if h.Index < 0 || h.Index >= len(tools) || !(h.Score > 0 && h.Score <= 1) || i > 0 && h.Score > hits[i-1].Score {
				t.Errorf("hit %d of %v", i, hits)
			}
		}
	})
}

func ExampleIndex_Search() {
	tools := []search.Tool{
		{Server: "github", Name: "create_issue", Description: "Opens an issue in a repository."},
		{Server: "github", Name: "create_pull_request", Description: "Proposes to merge a branch."},
		{Server: "filesystem", Name: "read_file", Description: "Returns the content of a file."},
	}
	index := search.NewIndex(tools)
	for _, query := range []string{"raed file", "open a PR"} {
		best := index.Search(query, 1, nil)[0]
		fmt.Println(tools[best.Index].Name)
	}
	// Output:
	// read_file
	// create_pull_request
}
