package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A Hit is a tool that was found.
type Hit struct {
	Index int     // its place in the tools given to NewIndex
	Score float64 // above 0, at most 1, in steps of 0.0001; compares the hits of one query only
}

const (
	// fillerCounts is how much a filler word counts, as a part of its rarity.
	fillerCounts = 0.15
	// precision is the part of the score that is lost if nothing of a tool's name was asked for.
	precision = 0.25
	// covers is the least similarity by which a word of a name counts as asked for.
	covers = 0.5
)

// Search returns the tools that fit the query, best first, at most limit of them (none below 1). Where
// allow is not nil, only tools of servers for which it says true are looked at; it is called at most once
// for each server. A query is a few words in any order; what is beyond its first thousand bytes or its
// first sixteen words is ignored. A query without any letter or digit finds nothing.
func (ix *Index) Search(query string, limit int, allow func(server string) bool) []Hit {
	if len(query) > maxQueryBytes {
		query = query[:maxQueryBytes]
	}
	query = strings.ToValidUTF8(query, " ")
	asked := distinct(words(query, maxQueryBytes), maxQueryWords)
	if limit < 1 || len(asked) == 0 {
		return nil
	}
	allowed := make([]bool, len(ix.servers))
	for i, server := range ix.servers {
		allowed[i] = allow == nil || allow(server)
	}

	var (
		scores  = make([]float64, len(ix.tools)) // Σ weight of the word × what it says for the tool
		covered = make([]uint32, len(ix.tools))  // words of the tool's name that were asked for
		total   float64                          // Σ weight of the words
		tally   = newTally(len(ix.tools))
	)
	meant := ix.candidates(asked)
	count := func(i int, filler bool) {
		tally.count(ix.postings, meant[i])
		weight := ix.rarityOf(tally.tools())
		if filler {
			weight *= fillerCounts
		}
		total += weight
		for _, t := range tally.touched {
			if filler && scores[t] == 0 {
				continue // no tool is found because its description has an "of"
			}
			scores[t] += weight * math.Sqrt(tally.best[t])
			covered[t] |= tally.name[t]
		}
		tally.reset()
	}
	var fillers []int
	for i, word := range asked {
		if isFiller(word) {
			fillers = append(fillers, i)
		} else {
			count(i, false)
		}
	}
	for _, i := range fillers {
		count(i, len(fillers) < len(asked)) // unless nothing else was asked for
	}

	exact := fold(query)
	var hits []Hit
	for i, score := range scores {
		e := &ix.tools[i]
		if score == 0 || !allowed[e.server] {
			continue
		}
		if exact == e.exact[0] || exact == e.exact[1] {
			hits = append(hits, Hit{i, 1})
			continue
		}
		score = score / total * (1 - precision*(1-ix.askedFor(e, covered[i])))
		hits = append(hits, Hit{i, max(math.Round(score*1e4), 1) / 1e4})
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(ix.tools[a.Index].ordinal, ix.tools[b.Index].ordinal))
	})
	return hits[:min(limit, len(hits))]
}

// askedFor returns which part of a tool's name was asked for, by the rarity of its words.
func (ix *Index) askedFor(e *entry, covered uint32) float64 {
	if e.mass == 0 {
		return 0
	}
	sum := 0.0
	for bit, term := range e.words {
		if covered&(1<<bit) != 0 {
			sum += ix.rarity[term]
		}
	}
	return sum / e.mass
}

// tally collects what one word of a query says for each tool.
type tally struct {
	touched []int32   // the tools that have a term for it
	best    []float64 // the greatest similarity × weight
	similar []float64 // the greatest similarity
	name    []uint32  // the words of the tool's name that it means
}

func newTally(tools int) *tally {
	return &tally{best: make([]float64, tools), similar: make([]float64, tools), name: make([]uint32, tools)}
}

func (t *tally) count(postings [][]posting, meant candidates) {
	for term, similarity := range meant {
		for _, p := range postings[term] {
			if t.similar[p.tool] == 0 {
				t.touched = append(t.touched, p.tool)
			}
			t.similar[p.tool] = max(t.similar[p.tool], similarity)
			t.best[p.tool] = max(t.best[p.tool], similarity*p.weight)
			if similarity >= covers {
				t.name[p.tool] |= p.name
			}
		}
	}
}

// tools returns how many tools have the word, counting those that have only a similar one in part.
func (t *tally) tools() float64 {
	slices.Sort(t.touched) // sums of floats depend on their order
	sum := 0.0
	for _, tool := range t.touched {
		sum += t.similar[tool]
	}
	return sum
}

func (t *tally) reset() {
	for _, tool := range t.touched {
		t.best[tool], t.similar[tool], t.name[tool] = 0, 0, 0
	}
	t.touched = t.touched[:0]
}

// distinct returns the first most different ones of words; stems count.
func distinct(words []word, most int) []string {
	seen := make(map[string]bool)
	var out []string
	for _, w := range words {
		if s := stem(w.text); !seen[s] && len(out) < most {
			seen[s] = true
			out = append(out, w.text)
		}
	}
	return out
}
