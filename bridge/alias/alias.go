// Package alias turns the names of MCP servers and tools into Python
// identifiers.
//
// Its one job is the pure function from a set of names to their aliases. It
// imports nothing of this project. The bridge calls it with the names of all
// configured servers, and with the names of all tools of one server.
//
// # Why aliases are made from the whole set
//
// Two names may want the same identifier ("a-b" and "a.b" both want a_b). If
// the loser were decided by the order of listing, a script would call another
// tool after a restart. So [Servers] and [Tools] look at the whole set: a name
// that is an identifier already always keeps it, and the others are served in
// the byte order of their names.
package alias

import (
	"slices"
	"strconv"
	"strings"
)

// Servers returns the alias of every name in names, keyed by name. The aliases
// are distinct Python identifiers of ASCII letters, digits and underscores;
// none is a keyword or "servers", which is the module of all servers. A name
// without a letter or digit becomes "server".
func Servers(names []string) map[string]string {
	return assign(names, style{fallback: "server", reserved: "servers"})
}

// Tools returns the alias of every name in names, keyed by name. The aliases
// are distinct Python identifiers of ASCII letters, digits and underscores;
// none is a keyword. A name without a letter or digit becomes "tool".
func Tools(names []string) map[string]string {
	return assign(names, style{fallback: "tool"})
}

// style is what differs between the aliases of servers and those of tools.
type style struct {
	fallback string // the identifier of a name of which nothing is left
	reserved string // an identifier that is spoken for, besides the keywords
}

func assign(names []string, st style) map[string]string {
	aliases := make(map[string]string, len(names))
	taken := make(map[string]bool, len(names))
	var rest []string
	for _, name := range names {
		if st.identifier(name) == name {
			aliases[name] = name
			taken[name] = true
		} else {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	// The next number to try for an identifier, so that a thousand names that
	// want the same one cost a thousand steps and not half a million.
	next := make(map[string]int)
	for _, name := range slices.Compact(rest) {
		want := st.identifier(name)
		got := want
		for n := max(next[want], 2); taken[got]; n++ {
			got = want + "_" + strconv.Itoa(n)
			next[want] = n + 1
		}
		aliases[name] = got
		taken[got] = true
	}
	return aliases
}

// identifier returns the identifier that name wants for itself.
func (st style) identifier(name string) string {
	var b strings.Builder
	plain := true // nothing but underscores so far
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			plain = false
		case r >= '0' && r <= '9':
			if b.Len() == 0 {
				b.WriteByte('_')
			}
			plain = false
		default:
			r = '_'
		}
		b.WriteRune(r)
	}
	if plain {
		return st.fallback
	}
	id := b.String()
	if isKeyword(id) || id == st.reserved {
		return id + "_"
	}
	return id
}

// isKeyword reports whether id can't be used as a name in Python 3.13, after
// keyword.kwlist. The soft keywords (match, case, type, _) can.
func isKeyword(id string) bool {
	switch id {
	case "False", "None", "True", "and", "as", "assert", "async", "await",
		"break", "class", "continue", "def", "del", "elif", "else", "except",
		"finally", "for", "from", "global", "if", "import", "in", "is",
		"lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try",
		"while", "with", "yield":
		return true
	}
	return false
}
