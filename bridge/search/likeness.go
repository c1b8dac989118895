package search

import (
	"math/bits"
	"strings"
)

// spelling is a word of the catalogue, in the singular, as it is compared with misspelt ones.
type spelling struct {
	text    string
	runes   []rune
	letters uint64 // a bit for each letter that occurs; tells most pairs apart at once
	term    int32
}

func newSpelling(text string, term int32) spelling {
	s := spelling{text: text, runes: []rune(text), term: term}
	for _, r := range s.runes {
		s.letters |= 1 << (uint32(r) % 64)
	}
	return s
}

// beginning returns how probable it is that somebody who wrote a meant b because b begins with it, from 0
// to below 1: repo|sitory.
func beginning(a, b *spelling) float64 {
	if len(a.runes) < 3 || len(a.text) >= len(b.text) || !strings.HasPrefix(b.text, a.text) {
		return 0
	}
	return 0.55 + 0.35*float64(len(a.runes))/float64(len(b.runes))
}

// likeness returns how probable it is that somebody who wrote a meant b because the two look alike, from 0
// to below 1: b is another form of the word, or has a letter or two missing, added, wrong or swapped.
func likeness(a, b *spelling) float64 {
	n, m := len(a.runes), len(b.runes)
	common := 0
	for common < n && common < m && a.runes[common] == b.runes[common] {
		common++
	}
	best := 0.0
	if common >= 5 && n-common <= 5 && m-common <= 5 { // reserv|e, reserv|ation
		best = 0.4 + 0.8*float64(common)/float64(n+m)
	}
	// The distance is costly, and most words differ in too many letters for it to matter.
	if most := typos(n); most > 0 && bits.OnesCount64(a.letters^b.letters) <= 2*most {
		if d := distance(a.runes, b.runes, most); d > 0 && d <= most {
			mistake := 0.8
			if n == m && a.letters == b.letters {
				mistake = 0.65 // letters swap more often than they turn into others
			}
			s := 1 - mistake*float64(d)/float64(n-1) // one of three letters is much, one of ten little
			if common == 0 {
				s *= 0.8 // people rarely miss the first letter
			}
			best = max(best, s)
		}
	}
	return best
}

// typos returns how many mistakes a word of n letters may have: with more, it could be any word.
func typos(n int) int {
	switch {
	case n < 3:
		return 0
	case n < 8:
		return 1
	}
	return 2
}

// distance returns the number of letters to insert, delete, replace or swap with a neighbour to make b of
// a (the "optimal string alignment" distance), or more than most.
func distance(a, b []rune, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	// Three rows of the table; words are bounded.
	var rows [3][maxGluedRunes + 1]uint8
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range b {
		last[j+1] = uint8(j + 1)
	}
	for i, ra := range a {
		row[0] = uint8(i + 1)
		least := row[0]
		for j, rb := range b {
			cost := uint8(1)
			if ra == rb {
				cost = 0
			}
			d := min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && ra == b[j-1] && a[i-1] == rb {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
			least = min(least, d)
		}
		if int(least) > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return int(last[len(b)])
}
