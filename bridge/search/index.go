package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A Tool is what is known of one tool of one server. Only Server and Name are needed; nothing is
// required of any of them, as they come from servers that may be broken.
type Tool struct {
	Server      string   // the name under which the server is configured
	Name        string   // as the server lists it
	Title       string   // the name for people, "" where there is none
	Description string   // any length; what comes first counts most
	Parameters  []string // names of the properties of the input schema
}

// place is where a tool has a word.
type place int

const (
	inName place = iota // or in its title, which mostly says the same
	inServer
	inParameter
	inDescription
	places
)

// How much a word says for a tool, by where the tool has it.
const (
	weightName        = 0.85
	weightTitle       = 0.60
	weightServer      = 0.50
	weightParameter   = 0.35
	weightDescription = 0.30
)

// descriptionHalf is the number of words after which a description's words count half. Long
// descriptions hold warnings, examples and formats, whose words would find the tool for anything.
const descriptionHalf = 60

// An Index is a searchable catalogue. It never changes, so any number of goroutines may use it.
type Index struct {
	tools    []entry
	servers  []string         // distinct, as entry.server counts them
	terms    map[string]int32 // stem → its place in postings and rarity
	postings [][]posting
	rarity   []float64
	spelled  []spelling // words as they are written, for likeness
	synonyms synonyms
}

// entry is a tool in the index.
type entry struct {
	server  int32
	exact   [2]string // its name, and its server's and its name, folded
	words   []int32   // the terms of its name, without those that all tools of its server share
	mass    float64   // the sum of their rarities
	ordinal int       // its place in the order of server and name
}

// posting says that a tool has a term.
type posting struct {
	tool   int32
	weight float64
	name   uint32 // which of entry.words it is, as bits
}

// NewIndex makes an index of tools. It keeps their order: [Hit.Index] is a place in tools.
func NewIndex(tools []Tool) *Index {
	b := builder{
		index: &Index{terms: make(map[string]int32), synonyms: newSynonyms()},
		seen:  make(map[string]bool),
	}
	serverIDs := make(map[string]int32)
	byServer := make(map[string][]int)
	for i, tool := range tools {
		byServer[tool.Server] = append(byServer[tool.Server], i)
	}
	prefixes := make(map[string]map[string]bool, len(byServer))
	for server, members := range byServer {
		prefixes[server] = serverWords(tools, server, members)
	}
	for i, tool := range tools {
		id, ok := serverIDs[tool.Server]
		if !ok {
			id = int32(len(b.index.servers))
			serverIDs[tool.Server] = id
			b.index.servers = append(b.index.servers, tool.Server)
		}
		b.add(int32(i), id, tool, prefixes[tool.Server])
	}
	b.finish(tools)
	return b.index
}

// serverWords returns the stems of first words of names that say which server a tool belongs to rather
// than what it does: a word that all tools of a server begin with (browser_click, browser_type, …), and
// a word of the server's name that most of them do. In web_search it does say what the tool does, if the
// server's other tools are called otherwise.
func serverWords(tools []Tool, server string, members []int) map[string]bool {
	firsts := make(map[string]int)
	for _, i := range members {
		if ws := words(tools[i].Name, 1); len(ws) > 0 {
			firsts[stem(ws[0].text)]++
		}
	}
	set := make(map[string]bool)
	for _, w := range words(server, maxNameWords) {
		if s := stem(w.text); 2*firsts[s] > len(members) {
			set[s] = true
		}
	}
	for s, n := range firsts {
		if n == len(members) && n >= 3 {
			set[s] = true
		}
	}
	return set
}

// builder holds what is needed only while an index is made.
type builder struct {
	index *Index
	seen  map[string]bool // the words in index.spelled
	// Of the tool being added: its terms in order of appearance, and what it has of each.
	order []int32
	found map[int32]*evidence
}

// evidence is what a tool has of one term: the greatest weight at each place.
type evidence struct {
	weights [places]float64
	name    uint32
}

func (b *builder) add(i, server int32, tool Tool, ofServer map[string]bool) {
	b.order, b.found = b.order[:0], make(map[int32]*evidence)
	e := entry{server: server}
	if len(tool.Server)+len(tool.Name) <= maxQueryBytes { // else no query can be it
		e.exact = [2]string{fold(tool.Name), fold(tool.Server + tool.Name)}
	}

	names := words(tool.Name, maxNameWords)
	var own []word
	for i, w := range names {
		if i == 0 && ofServer[stem(w.text)] {
			b.see(w.text, inServer, weightServer)
			continue
		}
		own = append(own, w)
	}
	if len(own) == 0 {
		own = names // the tool "weather" of a server "weather"
	}
	for i, w := range own {
		term := b.see(w.text, inName, weightName)
		b.found[term].name |= 1 << i
		e.words = append(e.words, term)
		if i > 0 {
			pair := b.note(stem(own[i-1].text+w.text), inName, weightName)
			b.found[pair].name |= 3 << (i - 1)
		}
	}
	b.addText(tool.Title, inName, weightTitle, maxNameWords)
	b.addText(tool.Server, inServer, weightServer, maxNameWords)
	for _, parameter := range tool.Parameters[:min(len(tool.Parameters), maxParameters)] {
		b.addText(parameter, inParameter, weightParameter, maxNameWords)
	}
	b.addText(tool.Description, inDescription, weightDescription, maxTextWords)

	for _, term := range b.order {
		ev := b.found[term]
		against := 1.0
		for _, w := range ev.weights {
			against *= 1 - w
		}
		b.index.postings[term] = append(b.index.postings[term], posting{tool: i, weight: 1 - against, name: ev.name})
	}
	b.index.tools = append(b.index.tools, e)
}

// addText notes up to most words of a text; what comes first weighs most.
func (b *builder) addText(text string, at place, weight float64, most int) {
	before := ""
	for i, w := range words(text, most) {
		weight := weight
		if at == inDescription {
			weight /= 1 + float64(i)/descriptionHalf
		}
		pair := before + w.text
		switch {
		case before == "":
		case w.glued:
			b.see(pair, at, weight)
		case b.index.synonyms[stem(pair)] != nil: // "pull request"
			b.note(stem(pair), at, weight)
		}
		before = w.text
		b.see(w.text, at, weight)
	}
}

// see notes a word of the tool being added, and how it is written.
func (b *builder) see(word string, at place, weight float64) int32 {
	term := b.note(stem(word), at, weight)
	if s := singular(word); !b.seen[s] {
		b.seen[s] = true
		b.index.spelled = append(b.index.spelled, newSpelling(s, term))
	}
	return term
}

// note records that the tool being added has the term of that stem. Repeating it at one place says
// nothing more.
func (b *builder) note(stem string, at place, weight float64) int32 {
	term, ok := b.index.terms[stem]
	if !ok {
		term = int32(len(b.index.postings))
		b.index.terms[stem] = term
		b.index.postings = append(b.index.postings, nil)
	}
	ev := b.found[term]
	if ev == nil {
		ev = new(evidence)
		b.found[term] = ev
		b.order = append(b.order, term)
	}
	ev.weights[at] = max(ev.weights[at], weight)
	return term
}

// finish computes what depends on all tools.
func (b *builder) finish(tools []Tool) {
	ix := b.index
	for _, ps := range ix.postings {
		ix.rarity = append(ix.rarity, ix.rarityOf(float64(len(ps))))
	}
	order := make([]int, len(tools))
	for i := range ix.tools {
		order[i] = i
		for _, term := range ix.tools[i].words {
			ix.tools[i].mass += ix.rarity[term]
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := tools[i], tools[j]
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Name, b.Name), i-j)
	})
	for n, i := range order {
		ix.tools[i].ordinal = n
	}
}

// rarityOf is how much a word counts that so many of the tools have: the inverse document frequency of
// BM25, always above 0.
func (ix *Index) rarityOf(tools float64) float64 {
	n := float64(len(ix.tools))
	return math.Log(1 + (n-min(tools, n)+0.5)/(tools+0.5))
}
