package bridge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sahilm/fuzzy"
)

// closeMatches returns up to three of names that name may have been meant to be, best first.
func closeMatches(name string, names []string) []string {
	const most = 3
	if len(name) > 200 {
		return nil // no name of a server is; and what follows is quadratic
	}
	folded := foldName(name)
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, other := range names {
		o := foldName(other)
		d := editDistance(folded, o)
		// A typo in every third letter is still the same word; a part of the name is a way to say it.
		if d <= max(1, len(folded)/3) || len(folded) > 2 && strings.Contains(o, folded) {
			near = append(near, candidate{other, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	var out []string
	for _, c := range near {
		out = append(out, c.name)
	}
	if len(out) == 0 && len(folded) > 2 {
		for _, m := range fuzzy.Find(folded, names) {
			out = append(out, m.Str)
		}
	}
	return out[:min(len(out), most)]
}

// foldName removes what people get wrong first: case and separators.
func foldName(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_./ ", r) {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// editDistance is the number of bytes to insert, delete, replace, or swap with a neighbour, to make a
// of b.
func editDistance(a, b string) int {
	before, last, row := []int(nil), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, make([]int, len(b)+1)
	}
	return last[len(b)]
}

// unknownServer says that there is no server of that name, and which ones may have been meant.
func unknownServer(name string, known []string) string {
	name = firstLine(name, 100)
	switch matches := closeMatches(name, known); {
	case len(known) == 0:
		return fmt.Sprintf("unknown server %q: no MCP servers are configured", name)
	case len(matches) > 0:
		return fmt.Sprintf("unknown server %q: did you mean %s?", name, quoteList(matches))
	case len(known) <= 20:
		return fmt.Sprintf("unknown server %q: the configured servers are %s", name, quoteList(known))
	default:
		return fmt.Sprintf("unknown server %q: none of the %d configured servers is called so (see runtime.discovered_servers())", name, len(known))
	}
}

func quoteList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}
