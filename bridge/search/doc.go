// Package search finds tools of MCP servers by what somebody says of them: "calendar events" finds
// list_calendar_events and create-event, "raed file" finds read_file, "open a PR" finds
// create_pull_request.
//
// An [Index] is made once of a catalogue ([NewIndex]) and answers any number of queries at the same time
// ([Index.Search]). It knows names and texts only: no servers, no transport, no MCP types. The bridge
// keeps one for the servers that scripts may use.
//
// # How a tool is scored
//
// Names and texts become words (words.go): readTextFile, read_text_file and read-text.file are all read,
// text, file; inflections are cut off (stem.go). For each word of the query the index collects the
// words of the catalogue that may be meant by it, with a similarity from 0 to 1 (candidates.go): the
// word itself, a synonym (synonyms.go), a longer word that it begins, another form of it, a misspelling
// of it, and at last an abbreviation.
//
//   - How much a word of the query says for a tool is that similarity, times the weight of the place
//     where the tool has the word: its name, then its title, the name of its server, its parameters, its
//     description. Several places add up, but never to more than 1. Of the product the root is taken: a
//     tool that has all words of the query somewhere is better than one that has half of them in its
//     name.
//   - How much the word counts is its rarity: of "list" and "bucket", the one which fewer tools have.
//   - The score is the mean of the one weighted by the other, and less where the name has words that
//     nobody asked for: read_file before read_text_file. 1 is kept for a query that is the tool's name.
//
// The order of words plays no part. Equal scores are in the order of server and tool name, so that the
// same query always gives the same answer.
//
// # Why not the score of a fuzzy matcher
//
// Matchers of the kind that editors use, such as [github.com/sahilm/fuzzy], want the letters of the query
// in order: "file read", "raed file" and every synonym find nothing, and three letters are found in half
// of all descriptions. They are good at what people type instead of a long word, such as "msg" or "cfg",
// so that is what this package uses one for: words for which nothing better is known.
//
// # Why words and not embeddings
//
// A model of the language would know more synonyms. It would also weigh more than the rest of the
// program, give scores that nobody can explain, and know nothing of names that a company made up. What
// is lost was measured: see BenchmarkRecall and the labelled queries in testdata/catalog.
//
// # Why a misspelling is also looked for when the word exists
//
// In a large catalogue "crate" is some tool's word, and "crate issue" still means create_issue. So the
// similar word counts too, but much less than the word itself.
package search
