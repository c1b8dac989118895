package install

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"codeexec/bridge/config/syntax"
)

// A tomlFile edits TOML. All offsets are those of text.
type tomlFile struct {
	form       form
	mark       int // the length of the byte order mark, after which text begins
	text       string
	value      map[string]any
	statements []statement
}

func parseTOML(data []byte, f form) (file, error) {
	value, err := syntax.TOML(data)
	if err != nil {
		return nil, err
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	return &tomlFile{form: f, mark: len(data) - len(text), text: text, value: value, statements: statements(text)}, nil
}

// entryPath leads from the root to our entry.
func (t *tomlFile) entryPath() []string { return append(slices.Clone(t.form.path), entryName) }

func (t *tomlFile) entry() (*entry, error) {
	table := t.value
	for _, key := range t.form.path {
		switch v := table[key].(type) {
		case nil:
			return nil, nil
		case map[string]any:
			table = v
		default:
			return nil, fmt.Errorf("%q must be a table, a server's name each key", key)
		}
	}
	value, ok := table[entryName]
	if !ok {
		return nil, nil
	}
	e := &entry{}
	if own, ok := value.(map[string]any); ok {
		if command, ok := own["command"].(string); ok {
			e.words = append(e.words, command)
		}
		e.words = append(e.words, texts(own["args"])...)
	}
	return e, nil
}

// texts returns a list of strings; anything else is none.
func texts(value any) []string {
	list, _ := value.([]any)
	var words []string
	for _, element := range list {
		word, ok := element.(string)
		if !ok {
			return nil
		}
		words = append(words, word)
	}
	return words
}

func (t *tomlFile) rest() (string, error) { return without(t.value, t.form.path), nil }

// set adds a table at the end, or corrects what starts the program in the one
// that is there, and keeps what else the user has put into it.
func (t *tomlFile) set() (splice, error) {
	var own []statement
	for _, s := range t.statements {
		if s.within(t.entryPath()) {
			own = append(own, s)
		}
	}
	complete := true
	for _, f := range t.form.fields {
		complete = complete && t.has(f)
	}
	switch {
	case complete:
		return splice{}, nil
	case len(own) == 0:
		for _, s := range t.statements {
			if !s.header && slices.Equal(s.path, t.form.path) {
				return splice{}, fmt.Errorf("%q is written on one line, to which nothing can be added safely; give each server a table [%[1]s.NAME]", strings.Join(s.path, "."))
			}
		}
		return t.append(), nil
	}
	from, to := own[0].start, own[len(own)-1].end
	text := t.text
	for _, f := range t.form.fields {
		if !slices.ContainsFunc(own, func(s statement) bool { return t.holds(s, f) }) {
			return splice{}, errReplace
		}
	}
	for _, s := range slices.Backward(own) { // so that offsets stay
		for _, f := range t.form.fields {
			if t.holds(s, f) && !t.has(f) {
				text = text[:s.valueFrom] + tomlValue(f.value) + text[s.valueTo:]
			}
		}
	}
	old := t.text[from:to]
	return splice{t.mark + from, old, text[from : to+len(text)-len(t.text)]}, nil
}

// holds reports whether a statement has the value of a field of our entry.
func (t *tomlFile) holds(s statement, f field) bool {
	return !s.header && slices.Equal(s.path, append(t.entryPath(), f.key))
}

// has reports whether our entry has a field as it should be; arguments may follow
// ours.
func (t *tomlFile) has(f field) bool {
	servers := t.value
	for _, key := range t.entryPath() {
		servers, _ = servers[key].(map[string]any)
	}
	if want, ok := f.value.([]string); ok {
		return sameStart(texts(servers[f.key]), want)
	}
	return servers[f.key] == f.value
}

func (t *tomlFile) append() splice {
	newline := newlineOf([]byte(t.text))
	var b strings.Builder
	final := true
	if t.text != "" {
		if final = strings.HasSuffix(t.text, "\n"); !final {
			b.WriteString(newline)
		}
		if !strings.HasSuffix(t.text, "\n\n") && !strings.HasSuffix(t.text, "\n\r\n") {
			b.WriteString(newline)
		}
	}
	b.WriteString("[" + strings.Join(t.entryPath(), ".") + "]")
	for _, f := range t.form.fields {
		b.WriteString(newline + f.key + " = " + tomlValue(f.value))
	}
	if final {
		b.WriteString(newline)
	}
	return splice{t.mark + len(t.text), "", b.String()}
}

func tomlValue(value any) string {
	var w jsonWriter // TOML spells strings and lists of them alike
	w.value(value, "")
	return w.String()
}

// remove cuts out the lines of our entry, and an empty line before them. Lines of
// other tables between them, and comments there, stay.
func (t *tomlFile) remove() (splice, error) {
	first, last := -1, 0
	var kept strings.Builder
	for _, s := range t.statements {
		if !s.within(t.entryPath()) {
			continue
		}
		if first < 0 {
			first = s.start
			head := t.text[:first]
			for _, empty := range []string{"\r\n", "\n"} {
				// The empty line before, or the end of the last line if ours was the end of the file.
				if rest, ok := strings.CutSuffix(head, empty); ok && (rest == "" || strings.HasSuffix(rest, "\n")) {
					first = len(rest)
					break
				}
			}
		} else if !t.follows(last, s.start) { // else there are only comments between, which are about our entry
			kept.WriteString(t.text[last:s.start])
		}
		last = s.end
	}
	if first < 0 {
		return splice{}, errors.New("the entry is part of a table on one line; remove it by hand")
	}
	if last == len(t.text) && !strings.HasSuffix(t.text, "\n") {
		first = len(strings.TrimSuffix(strings.TrimSuffix(t.text[:first], "\n"), "\r"))
	}
	return splice{t.mark + first, t.text[first:last], kept.String()}, nil
}

// follows reports whether nothing but comments is between two offsets.
func (t *tomlFile) follows(from, to int) bool {
	return !slices.ContainsFunc(t.statements, func(s statement) bool { return s.start >= from && s.start < to })
}
