package search

import (
	"strings"

	"github.com/sahilm/fuzzy"
)

// How similar a word of the catalogue is to one of the query by how it was found. 1 is the word itself
// in any inflection.
const (
	similarPair         = 0.95 // "screen shot" for "screenshot", and such like
	similarSynonym      = 0.70
	similarAbbreviation = 0.45 // at best

	// Factors for what is only spelled like the word, where the catalogue knows the word itself.
	doubtBeginning = 0.5
	doubtLikeness  = 0.25
)

// candidates are the terms that a word of a query may mean, with their similarity to it.
type candidates map[int32]float64

func (c candidates) add(term int32, similarity float64) { c[term] = max(c[term], similarity) }

// candidates returns the terms that are meant by each of the words of a query.
func (ix *Index) candidates(query []string) []candidates {
	all := make([]candidates, len(query))
	for i, word := range query {
		all[i] = make(candidates)
		known := ix.addKnown(all[i], stem(word), 1)
		if short, ok := strings.CutSuffix(word, "s"); ok && len(short) == 2 {
			ix.addKnown(all[i], short, similarPair) // "prs"; stem leaves "dns" and "css" alone
		}
		ix.addLike(all[i], word, known)
	}
	// Two words may be one in the catalogue: "screen shot", "sequential thinking", "pull request".
	for i := 1; i < len(query); i++ {
		pair := stem(query[i-1] + query[i])
		ix.addKnown(all[i-1], pair, similarPair)
		ix.addKnown(all[i], pair, similarPair)
	}
	for i, word := range query {
		if len(all[i]) == 0 {
			ix.addAbbreviated(all[i], word)
		}
	}
	return all
}

// addKnown adds the term of a stem and of its synonyms. It reports whether the catalogue has the stem.
func (ix *Index) addKnown(c candidates, stem string, similarity float64) bool {
	term, known := ix.terms[stem]
	if known {
		c.add(term, similarity)
	}
	for _, other := range ix.synonyms[stem] {
		if term, ok := ix.terms[other]; ok {
			c.add(term, similarity*similarSynonym)
		}
	}
	return known
}

// addLike adds the terms that are spelled like word.
func (ix *Index) addLike(c candidates, word string, known bool) {
	spelled := newSpelling(singular(word), -1)
	for i := range ix.spelled {
		begins, like := beginning(&spelled, &ix.spelled[i]), likeness(&spelled, &ix.spelled[i])
		if known {
			begins *= doubtBeginning
			like *= doubtLikeness
		}
		if s := max(begins, like); s > 0 {
			c.add(ix.spelled[i].term, s)
		}
	}
}

// addAbbreviated adds the few terms that word is most likely short for: those that have its letters in
// order and its first letter first ("msg", "cfg"), or that contain it ("thinking" for
// sequentialthinking).
func (ix *Index) addAbbreviated(c candidates, word string) {
	const few = 5
	if len(word) < 3 {
		return
	}
	for _, m := range fuzzy.FindFrom(word, spellings(ix.spelled)) {
		if m.MatchedIndexes[0] != 0 && (len(word) < 4 || !strings.Contains(m.Str, word)) {
			continue
		}
		covered := float64(len(m.MatchedIndexes)) / float64(len(m.Str))
		c.add(ix.spelled[m.Index].term, similarAbbreviation*(0.5+covered/2))
		if len(c) == few {
			break
		}
	}
}

// spellings is a [fuzzy.Source].
type spellings []spelling

func (s spellings) String(i int) string { return s[i].text }
func (s spellings) Len() int            { return len(s) }
