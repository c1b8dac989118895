package search

import "strings"

// stem cuts the inflection off an English word in lower case, so that "files", "filed" and "filing"
// meet "file". Stems are for comparison only: they needn't be words. What the rules don't bring
// together, such as "reserve" and "reservation", the likeness of words does (see likeness).
func stem(word string) string {
	s := singular(word)
	for _, ending := range []string{"ing", "ed"} {
		if root, ok := strings.CutSuffix(s, ending); ok && len(root) >= 3 && hasVowel(root) {
			s = root
			// "running", "dropped"; but "calling", "passing", "adding".
			if n := len(s); n > 3 && s[n-1] == s[n-2] && strings.IndexByte("lsz", s[n-1]) < 0 {
				s = s[:n-1]
			}
			break
		}
	}
	if root, ok := strings.CutSuffix(s, "ion"); ok && len(root) >= 4 && strings.ContainsAny(root[len(root)-1:], "st") {
		s = root // deletion, execution, connection
	}
	if len(s) > 3 {
		s = strings.TrimSuffix(s, "e")
	}
	if root, ok := strings.CutSuffix(s, "y"); ok && len(root) >= 3 {
		s = root + "i" // modify, modified
	}
	return s
}

// singular returns the singular of an English noun, or the first person of a verb, in lower case.
func singular(word string) string {
	switch word {
	case "news":
		return word
	case "indices":
		return "index"
	case "people":
		return "person"
	case "children":
		return "child"
	}
	if len(word) < 4 || !strings.HasSuffix(word, "s") {
		return word
	}
	switch {
	case strings.HasSuffix(word, "ss"), strings.HasSuffix(word, "us"), strings.HasSuffix(word, "is"):
		return word
	case strings.HasSuffix(word, "ies") && len(word) > 4:
		return word[:len(word)-3] + "y"
	}
	for _, ending := range []string{"sses", "xes", "zes", "ches", "shes"} {
		if strings.HasSuffix(word, ending) {
			return word[:len(word)-2]
		}
	}
	return word[:len(word)-1]
}

func hasVowel(s string) bool { return strings.ContainsAny(s, "aeiouy") }
