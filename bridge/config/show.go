package config

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// maxSegment is the length of the longest part of a URL's path that is shown.
// Some services have a key in the path instead of a header.
const maxSegment = 16

// PublicURL returns a URL without what may be secret in it: user, password,
// query, fragment, and a path with a long name in it. What isn't a URL is "…".
func PublicURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "…"
	}
	secret := u.User != nil || u.RawQuery != "" || u.Fragment != ""
	for segment := range strings.SplitSeq(u.Path, "/") {
		if len(segment) > maxSegment {
			u.Path, secret = "", true
		}
	}
	shown := u.Scheme + "://" + u.Host + u.Path
	if strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "…"
	}
	if secret {
		shown += " …"
	}
	return shown
}

// shellLine joins words to a line on which each can be told from the next.
func shellLine(words []string) string {
	shown := make([]string, len(words))
	for i, word := range words {
		shown[i] = ShellWord(word)
	}
	return strings.Join(shown, " ")
}

// ShellWord quotes a word, for people, if it has anything unusual in it. What
// can't be printed is escaped: it could change what a terminal shows.
func ShellWord(word string) string {
	unusual := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:=@%+,~${}[]…\\", r)
	}
	if word != "" && !strings.ContainsFunc(word, unusual) {
		return word
	}
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(word)
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
