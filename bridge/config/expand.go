package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// An expander replaces references:
//
//	${NAME}  ${env:NAME}                       an environment variable's value, also if it is empty
//	${NAME:-default}  ${env:NAME:-default}     default if it is unset or empty
//	${userHome}                                the user's home directory
//	${workspaceFolder}  ${workspaceFolderBasename}   the working directory, its name
//	${pathSeparator}  ${/}                     the operating system's
//	${file:PATH}                               what the file has in it, without white space around it
//
// Values are not expanded again. A reference that can't be resolved stays as
// it is, so that the user finds it in what the server complains about, and is
// reported.
type expander struct {
	lookup    func(string) (string, bool)
	home      string // empty if unknown
	workspace string // empty if there is none
	read      func(path string, limit int) ([]byte, error)
	missing   func(field, message string)
}

// expandMap expands the values of a map; field names it in reports.
func (x expander) expandMap(field string, m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out[key] = x.expand(field+"."+key, m[key])
	}
	return out
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
		if value, err := x.value(ref); err == nil {
			b.WriteString(value)
		} else {
			b.WriteString("${" + ref + "}")
			x.missing(field, err.Error())
		}
		text = rest
	}
}

// maxValueFile is the size in bytes of the largest file that ${file:…} reads.
const maxValueFile = 64 << 10

// value resolves what stands between the braces. The error says what is left
// in place. It shows the reference only if it is of a kind that has no secret
// in it.
func (x expander) value(ref string) (string, error) {
	unknown := func(what string) (string, error) {
		return "", fmt.Errorf("%s is not known here, ${%s} is not replaced", what, ref)
	}
	switch ref {
	case "userHome":
		if x.home == "" {
			return unknown("the home directory")
		}
		return x.home, nil
	case "workspaceFolder", "workspaceFolderBasename":
		switch {
		case x.workspace == "":
			return unknown("the workspace")
		case ref == "workspaceFolder":
			return x.workspace, nil
		}
		return filepath.Base(x.workspace), nil
	case "pathSeparator", "/":
		return string(filepath.Separator), nil
	}
	if id, ok := strings.CutPrefix(ref, "input:"); ok && isToken(id) && len(id) < maxName {
		return "", fmt.Errorf("nobody is asked for ${input:%s} here, it is not replaced; write ${VARIABLE} and set that", id)
	}
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		if rest, ok := strings.CutPrefix(path, "~/"); ok && x.home != "" {
			path = filepath.Join(x.home, rest)
		}
		data, err := x.read(path, maxValueFile)
		if errors.Is(err, errNotTrusted) {
			return ref, nil // the entry isn't used
		}
		if err != nil {
			return "", fmt.Errorf("${file:…} is not replaced: %s", reason(err))
		}
		return strings.TrimSpace(string(data)), nil
	}
	name, fallback, hasFallback := strings.Cut(ref, ":-")
	name = strings.TrimPrefix(name, "env:")
	if !isVariable(name) {
		// ${command:x}, ${1+1}: the syntax of some other program. Its text
		// isn't shown, it may be anything.
		return "", errors.New("${…} other than ${VAR}, ${env:VAR} and ${VAR:-default} is not replaced")
	}
	value, set := x.lookup(name)
	switch {
	case hasFallback && (!set || value == ""):
		return fallback, nil
	case set:
		return value, nil
	}
	return "", fmt.Errorf("the environment variable %s is not set, ${%[1]s} is not replaced", name)
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
