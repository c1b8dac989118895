// Package suggest finds the names that somebody may have meant by one that
// doesn't exist, for errors to show.
//
// It knows nothing of what the names are of. The bridge and bridge/upstream
// use it for servers, tools and arguments.
package suggest

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Max is how many names an error shows at most.
const Max = 5

// Names returns those of names that somebody who wrote name may have meant,
// best first, at most [Max] of them. Case and separators don't count:
// create_issue finds create-issue. A name that is part of another, or has it as
// a part, comes after all near misses.
func Names(name string, names []string) []string {
	type match struct {
		name     string
		distance int
	}
	want := fold(name)
	if len(want) == 0 || len(want) > 100 {
		return nil // nothing is close to it
	}
	var matches []match
	for _, other := range names {
		have := fold(other)
		if len(have) == 0 || len(have) > 200 {
			continue
		}
		d := distance(want, have)
		if limit := max(1, len(want)/3); d > limit {
			if !contains(have, want) && !contains(want, have) {
				continue
			}
			d = limit + 1
		}
		matches = append(matches, match{other, d})
	}
	slices.SortFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var close []string
	for _, m := range matches[:min(len(matches), Max)] {
		close = append(close, m.name)
	}
	return close
}

// contains reports whether part, if it is long enough to say something, is a
// part of name.
func contains(name, part []rune) bool {
	return len(part) > 2 && strings.Contains(string(name), string(part))
}

// fold reduces a name to its letters and digits in lower case.
func fold(name string) []rune {
	var folded []rune
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			folded = append(folded, unicode.ToLower(r))
		}
	}
	return folded
}

// distance counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b.
func distance(a, b []rune) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	var beforeThat []int
	for j := range row {
		row[j] = j
	}
	for i := range a {
		beforeThat, before, row = before, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(before[j+1]+1, row[j]+1, before[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], beforeThat[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
