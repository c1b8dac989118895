package toon

import "strings"

// fold returns the folded key of the chain of objects of a single key that begins with member, and the last
// member whose key is in it; an empty key if there is no chain or it can't be folded (§13.4).
//
// A chain is looked at once, from its first key. Where it can't be folded, no part of it is: it is written as it
// is down to its end, whichever rule is in the way.
func (e *encoder) fold(member *node, siblings map[string]bool) (path string, last *node) {
	last = member
	length := 1
	for last.kind == object && len(last.children) == 1 && length < e.opts.Fold {
		if !segment(last.key) {
			return "", nil
		}
		last = &last.children[0]
		length++
	}
	if length == 1 || !segment(last.key) {
		return "", nil
	}
	var b strings.Builder
	for n := member; ; n = &n.children[0] {
		b.WriteString(n.key)
		if n == last {
			break
		}
		b.WriteByte('.')
	}
	if path = b.String(); siblings[path] {
		return "", nil
	}
	return path, last
}

// segment reports whether a key can be told from its neighbours in a folded one (§1.9).
func segment(key string) bool {
	return bareKey(key) && !strings.Contains(key, ".")
}

// dotted returns those keys of an object that a folded one could be equal to.
func dotted(members []node) map[string]bool {
	var keys map[string]bool
	for i := range members {
		if key := members[i].key; strings.Contains(key, ".") {
			if keys == nil {
				keys = make(map[string]bool)
			}
			keys[key] = true
		}
	}
	return keys
}
