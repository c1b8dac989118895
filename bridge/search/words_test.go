package search

import (
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"snake case", "list_calendar_events", "list calendar events"},
		{"kebab case", "create-event", "create event"},
		{"dots and slashes", "chat.postMessage/v2", "chat post message v2"},
		{"camel case", "searchMyContacts", "search my contacts"},
		{"Pascal case", "GetPresignedURL", "get presigned url"},
		{"acronym first", "PDFTables", "pdf tables"},
		{"acronym in the plural", "mergePDFs", "merge pdfs"},
		{"acronym in the plural, then a word", "listPDFsNow", "list pdfs now"},
		{"one capital is no word", "GZipFile", "gzip file"},
		{"number after a word", "base64 file2", "base 64 file 2"},
		{"short names with numbers", "s3 k8s h264 v2beta", "s3 k8s h264 v2beta"},
		{"hyphen after one letter", "an e-mail, X-Ray", "an email xray"},
		{"apostrophe", "team's", "team s"},
		{"accents", "Straße élan e\u0301t", "straße élan e\u0301t"},
		{"no spaces", "日历ab事", "日 历 ab 事"},
		{"invalid UTF-8", "a\xffb", "a b"},
		{"nothing", " _-./ ", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, w := range words(tc.in, 100) {
				got = append(got, w.text)
			}
			if !slices.Equal(got, strings.Fields(tc.want)) {
				t.Errorf("words(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestStem(t *testing.T) {
	same := [][]string{
		{"file", "files", "filed", "filing"},
		{"query", "queries", "queried"},
		{"search", "searches", "searching", "searched"},
		{"run", "runs", "running"},
		{"call", "calls", "calling"},
		{"create", "creates", "creating", "creation"},
		{"delete", "deleting", "deletion", "deleted"},
		{"execute", "executing", "execution"},
		{"index", "indexes", "indices"},
		{"address", "addresses"},
		{"database", "databases"},
		{"person", "people"},
		{"status"}, {"news"}, {"new"}, {"analysis"}, {"red"}, {"thing"}, {"string"}, {"version"},
	}
	seen := make(map[string]string)
	for _, group := range same {
		want := stem(group[0])
		for _, word := range group {
			if got := stem(word); got != want {
				t.Errorf("stem(%q) = %q, but stem(%q) = %q", word, got, group[0], want)
			}
		}
		if other, ok := seen[want]; ok {
			t.Errorf("%q and %q have the same stem %q", group[0], other, want)
		}
		seen[want] = group[0]
	}
}

func TestLikeness(t *testing.T) {
	like := func(a, b string) float64 {
		x, y := newSpelling(a, 0), newSpelling(b, 0)
		return max(beginning(&x, &y), likeness(&x, &y))
	}
	tests := []struct{ name, typed, more, less string }{
		{"one mistake before two", "directry", "directory", "director"},
		{"a swap before a wrong letter", "raed", "read", "reed"},
		{"a longer part of the word", "repo", "report", "repository"},
		{"another form before an unlike word", "reservation", "reserve", "research"},
		{"long words bear two mistakes", "screnshoot", "screenshot", "sent"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if more, less := like(tc.typed, tc.more), like(tc.typed, tc.less); more <= less || more >= 1 || less < 0 {
				t.Errorf("%q is like %q by %.3f, like %q by %.3f", tc.typed, tc.more, more, tc.less, less)
			}
		})
	}
	for _, pair := range [][2]string{{"ab", "ba"}, {"get", "put"}, {"list", "lasts"}, {"", ""}, {"", "read"}, {"mail", "railway"}} {
		if s := like(pair[0], pair[1]); s != 0 {
			t.Errorf("%q is like %q by %.3f, want 0", pair[0], pair[1], s)
		}
	}
}

func TestSynonymTable(t *testing.T) {
	for word, others := range newSynonyms() {
		if len(others) == 0 || slices.Contains(others, word) || word != strings.ToLower(word) {
			t.Errorf("%q has the synonyms %q", word, others)
		}
	}
}
