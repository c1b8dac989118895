package search_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codeexec/bridge/search"
)

// catalog reads the tools of testdata/catalog, and the queries about them.
func catalog(tb testing.TB) ([]search.Tool, []labelled) {
	tb.Helper()
	dir := filepath.Join("..", "..", "testdata", "catalog")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var tools []search.Tool
	var queries []labelled
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		if filepath.Base(file) == "queries.json" {
			if err := json.Unmarshal(data, &queries); err != nil {
				tb.Fatalf("%s: %v", file, err)
			}
			continue
		}
		var listed struct {
			Server string
			Tools  []struct {
				Name, Title, Description string
				InputSchema              struct{ Properties map[string]json.RawMessage }
			}
		}
		if err := json.Unmarshal(data, &listed); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		for _, t := range listed.Tools {
			tools = append(tools, search.Tool{
				Server: listed.Server, Name: t.Name, Title: t.Title, Description: t.Description,
				Parameters: slices.Sorted(maps.Keys(t.InputSchema.Properties)),
			})
		}
	}
	if len(tools) < 250 || len(queries) < 140 {
		tb.Fatalf("%s holds %d tools and %d queries; it is incomplete", dir, len(tools), len(queries))
	}
	return tools, queries
}

// labelled is a query and the tools that answer it, any of them, as server/tool. The half "tune" was used
// to choose weights; the half "test" says how well they do on queries that they weren't chosen for.
type labelled struct {
	Query      string
	Want       []string
	Kind, Half string
}

// rank returns the place of the first wanted tool among hits from 1, or 0.
func (q labelled) rank(tools []search.Tool, hits []search.Hit) int {
	for i, h := range hits {
		if slices.Contains(q.Want, tools[h.Index].Server+"/"+tools[h.Index].Name) {
			return i + 1
		}
	}
	return 0
}

// recall says which part of some queries had a wanted tool first, and among the first five.
type recall struct{ queries, first, five int }

func (r recall) at1() float64 { return float64(r.first) / float64(r.queries) }
func (r recall) at5() float64 { return float64(r.five) / float64(r.queries) }

func (r *recall) add(rank int) {
	r.queries++
	if rank == 1 {
		r.first++
	}
	if rank > 0 {
		r.five++
	}
}

// measure returns the recall of each half ("tune", "test") and of each kind in it ("test typo").
func measure(tb testing.TB) map[string]recall {
	tools, queries := catalog(tb)
	index := search.NewIndex(tools)
	of := make(map[string]recall)
	for _, q := range queries {
		hits := index.Search(q.Query, 5, nil)
		for _, name := range []string{q.Half, q.Half + " " + q.Kind} {
			r := of[name]
			r.add(q.rank(tools, hits))
			of[name] = r
		}
	}
	return of
}

func TestRecall(t *testing.T) {
	of := measure(t)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		t.Logf("%-18s %3d queries: recall@1 %.3f, recall@5 %.3f", name, of[name].queries, of[name].at1(), of[name].at5())
	}
	if r := of["test"]; r.at1() < 0.75 || r.at5() < 0.95 {
		t.Errorf("on the test half recall@1 is %.3f (want 0.75 or more), recall@5 %.3f (want 0.95 or more)", r.at1(), r.at5())
	}
}

// BenchmarkRecall reports the recall on the labelled queries of testdata/catalog, besides the time of one
// query over its tools.
func BenchmarkRecall(b *testing.B) {
	tools, queries := catalog(b)
	index := search.NewIndex(tools)
	n := 0
	for b.Loop() {
		index.Search(queries[n%len(queries)].Query, 5, nil)
		n++
	}
	of := measure(b)
	for _, half := range []string{"tune", "test"} {
		b.ReportMetric(of[half].at1(), half+"-recall@1")
		b.ReportMetric(of[half].at5(), half+"-recall@5")
	}
}

// thousand returns 1,000 tools with the vocabulary of as many: the catalogue, and copies in which every
// letter is another, so that words differ from those of other copies but not from each other.
func thousand(tb testing.TB) []search.Tool {
	tools, _ := catalog(tb)
	var out []search.Tool
	for shift := rune(0); ; shift += 7 {
		change := func(s string) string {
			return strings.Map(func(r rune) rune {
				for _, first := range "aA" {
					if r >= first && r < first+26 {
						return first + (r-first+shift)%26
					}
				}
				return r
			}, s)
		}
		for _, t := range tools {
			if len(out) == 1000 {
				return out
			}
			c := search.Tool{Server: change(t.Server), Name: change(t.Name), Title: change(t.Title), Description: change(t.Description)}
			for _, p := range t.Parameters {
				c.Parameters = append(c.Parameters, change(p))
			}
			out = append(out, c)
		}
	}
}

func BenchmarkSearch1000(b *testing.B) {
	index := search.NewIndex(thousand(b))
	queries := map[string]string{
		"words":      "create issue in repository",
		"misspelt":   "raed multipel fiels",
		"longest":    "anotherqueryword yetmisspeltword one two three four five six seven eight nine ten eleven twelve thirteen fourteen",
		"everything": "list get create update",
	}
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				index.Search(queries[name], 10, nil)
			}
		})
	}
}

func BenchmarkNewIndex1000(b *testing.B) {
	tools := thousand(b)
	b.ReportAllocs()
	for b.Loop() {
		search.NewIndex(tools)
	}
}
