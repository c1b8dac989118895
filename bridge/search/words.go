package search

import (
	"strings"
	"unicode"
)

// What upstream servers and callers send is bounded here, so that no catalogue and no query can make
// an index large or a search slow.
const (
	maxQueryBytes = 1000     // of a query that are looked at
	maxQueryWords = 16       // different words of it
	maxNameWords  = 24       // of a name; bits of a uint32
	maxTextWords  = 1500     // of a description
	maxTextBytes  = 32 << 10 // of anything
	maxParameters = 200
	maxWordRunes  = 40 // what is longer is a hash or an encoding
	maxGluedRunes = 2 * maxWordRunes
)

// A word of a name or a text, in lower case.
type word struct {
	text string
	// glued says that nothing or a hyphen is between it and the word before: it may be the second half
	// of one word, as in JavaScript and real-time.
	glued bool
}

// words returns the words of s, at most most of them. It splits at everything that is neither letter nor
// digit, between camelCase parts, and between a word and a number after it ("file2", but "s3" and "k8s"
// stay). Scripts that are written without spaces give a word for each character.
func words(s string, most int) []word {
	var out []word
	rs := []rune(s[:min(len(s), maxTextBytes)])
	last := -1 // the end of the last word
	for i := 0; i < len(rs) && len(out) < most; {
		if !isWordRune(rs[i]) {
			i++
			continue
		}
		end := wordEnd(rs, i)
		text := string(rs[i:min(end, i+maxWordRunes)])
		// "e-mail" and "x-ray" are one word each.
		if end-i == 1 && isCased(rs[i]) && end+1 < len(rs) && rs[end] == '-' && isCased(rs[end+1]) {
			rest := end + 1
			end = wordEnd(rs, rest)
			text += string(rs[rest:min(end, rest+maxWordRunes-1)])
		}
		glued := last == i && !unspaced(rs[i]) || last == i-1 && last > 0 && rs[last] == '-'
		out = append(out, word{strings.ToLower(text), glued})
		last, i = end, end
	}
	return out
}

// wordEnd returns the end of the word that begins at rs[start].
func wordEnd(rs []rune, start int) int {
	end := start + 1
	for end < len(rs) && isWordRune(rs[end]) && !startsWord(rs, start, end) {
		end++
	}
	return end
}

// startsWord reports whether a new word starts at rs[i], in a run of letters and digits whose current
// word began at start.
func startsWord(rs []rune, start, i int) bool {
	before, r := rs[i-1], rs[i]
	switch {
	case unspaced(r) || unspaced(before):
		return true
	case unicode.IsDigit(r) != unicode.IsDigit(before):
		// A word of three letters or more is told from its number; shorter ones are names of their own.
		return unicode.IsDigit(r) && i-start >= 3 && !hasDigit(rs[start:i])
	case unicode.IsUpper(r) && unicode.IsLower(before):
		return true
	case unicode.IsUpper(before) && unicode.IsUpper(r) && i+1 < len(rs) && unicode.IsLower(rs[i+1]):
		// The last capital of a run begins the next word: PDF|Tables. Not so in plurals (PDFs), and
		// one letter is no word (GZip).
		plural := rs[i+1] == 's' && (i+2 == len(rs) || !unicode.IsLower(rs[i+2]))
		return !plural && i-start >= 2
	}
	return false
}

func hasDigit(rs []rune) bool {
	for _, r := range rs {
		if unicode.IsDigit(r) {
			return true
		}
	}
	return false
}

// isWordRune includes marks: they belong to the letter before them.
func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

func isCased(r rune) bool { return unicode.IsLower(r) || unicode.IsUpper(r) }

// unspaced reports whether r belongs to a script that doesn't separate words.
func unspaced(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer)
}

// fold returns the letters and digits of s in lower case: what two spellings of one name share.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if isWordRune(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// isFiller reports whether a word of a query says next to nothing about what a tool does. It still
// counts a little: "on" tells turn_on from turn_off.
func isFiller(word string) bool {
	switch word {
	case "a", "an", "the", "this", "that", "these", "those", "it", "its", "there", "here",
		"i", "me", "my", "mine", "we", "us", "our", "you", "your", "they", "their", "someone", "somebody", "something",
		"is", "are", "was", "were", "be", "been", "being", "has", "have", "had", "do", "does", "did",
		"can", "could", "will", "would", "should", "may", "might", "must", "want", "need", "like", "please", "let",
		"and", "or", "but", "if", "then", "so", "not", "than", "when", "while", "where", "which", "who", "whom", "whose", "what", "how", "why",
		"of", "to", "in", "on", "at", "by", "for", "from", "with", "without", "into", "onto", "as", "about", "over", "under",
		"up", "out", "via", "per", "within", "between", "through", "during",
		"all", "any", "each", "every", "some", "other", "such", "only", "also", "just", "more", "most", "very", "own", "one", "two",
		"tool", "tools", "function", "using", "use", "used", "given", "e", "g", "s", "t":
		return true
	}
	return false
}
