package config

import (
	"fmt"
	"strings"
)

// An expander replaces references to environment variables:
//
//	${NAME}  ${env:NAME}                       the value, also if it is empty
//	${NAME:-default}  ${env:NAME:-default}     default if unset or empty
//
// Values are not expanded again. A reference that can't be resolved stays as
// it is, so that the user finds it in what the server complains about, and is
// reported.
type expander struct {
	lookup  func(string) (string, bool)
	missing func(field, message string)
}

// expand returns text with its references replaced; field names it in reports.
func (x expander) expand(field, text string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, "${")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		ref, rest, ok := strings.Cut(after, "}")
		if !ok {
			b.WriteString("${" + after)
			return b.String()
		}
		if value, ok := x.value(field, ref); ok {
			b.WriteString(value)
		} else {
			b.WriteString("${" + ref + "}")
		}
		text = rest
	}
}

// value resolves what stands between the braces.
func (x expander) value(field, ref string) (string, bool) {
	name, fallback, hasFallback := strings.Cut(ref, ":-")
	name = strings.TrimPrefix(name, "env:")
	if !isVariable(name) {
		// ${input:token}, ${1+1}: the syntax of some other program. Its text
		// isn't shown, it may be anything.
		x.missing(field, "${…} other than ${VAR}, ${env:VAR} and ${VAR:-default} is not replaced")
		return "", false
	}
	value, set := x.lookup(name)
	switch {
	case hasFallback && (!set || value == ""):
		return fallback, true
	case set:
		return value, true
	}
	x.missing(field, fmt.Sprintf("the environment variable %s is not set, ${%[1]s} is not replaced", name))
	return "", false
}

// isVariable reports whether name can be the name of an environment variable.
func isVariable(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
