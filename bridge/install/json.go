package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"codeexec/bridge/config/syntax"
)

// A jsonFile edits JSON with comments. All offsets are those of text.
type jsonFile struct {
	form form
	mark int          // the length of the byte order mark, after which text begins
	text []byte       // as it is in the file
	root hujson.Value // the zero value if text is blank
}

func parseJSON(data []byte, f form) (file, error) {
	text := bytes.TrimPrefix(data, []byte("\uFEFF"))
	j := &jsonFile{form: f, mark: len(data) - len(text), text: text}
	if isBlank(string(text)) {
		return j, nil
	}
	root, err := syntax.JSONValue(data)
	if err != nil {
		return nil, err
	}
	j.root = root
	if servers := find(root, f.path); f.nested != "" && servers != nil {
		if inner, err := member(*servers, f.nested); err == nil && inner != nil && holdsServers(inner.Value) {
			j.form.path = append(slices.Clone(f.path), f.nested)
		}
	}
	return j, nil
}

// find returns the value that keys lead to, or nil.
func find(v hujson.Value, keys []string) *hujson.Value {
	for _, key := range keys {
		m, err := member(v, key)
		if err != nil || m == nil {
			return nil
		}
		v = m.Value
	}
	return &v
}

// member returns the member of an object, or nil. Of two with the same key nobody
// can say which one counts for the client.
func member(v hujson.Value, key string) (*hujson.ObjectMember, error) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, nil
	}
	var found *hujson.ObjectMember
	for i := range object.Members {
		if keyOf(object.Members[i]) == key {
			if found != nil {
				return nil, fmt.Errorf("it has the key %q twice", key)
			}
			found = &object.Members[i]
		}
	}
	return found, nil
}

func keyOf(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return name.String()
}

// holdsServers tells an object of entries from an entry that has its key for a
// name.
func holdsServers(v hujson.Value) bool {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return false
	}
	for _, m := range object.Members {
		_, isObject := m.Value.Value.(*hujson.Object)
		if !isObject && slices.Contains([]string{"type", "command", "url", "enabled"}, keyOf(m)) {
			return false
		}
	}
	return true
}

func (j *jsonFile) entry() (*entry, error) {
	if j.root.Value == nil {
		return nil, nil
	}
	v := j.root
	for i, key := range append(slices.Clone(j.form.path), entryName) {
		m, err := member(v, key)
		if err != nil {
			return nil, err
		}
		if m == nil || i < len(j.form.path) && isNull(m.Value) {
			return nil, nil
		}
		if _, ok := m.Value.Value.(*hujson.Object); !ok && i < len(j.form.path) {
			return nil, fmt.Errorf("%q must be an object, a server's name each key", key)
		}
		v = m.Value
	}
	e := &entry{}
	if command, err := member(v, "command"); err == nil && command != nil {
		e.words = append(e.words, words(command.Value)...)
	}
	if args, err := member(v, "args"); err == nil && args != nil {
		e.words = append(e.words, words(args.Value)...)
	}
	return e, nil
}

func isNull(v hujson.Value) bool {
	lit, ok := v.Value.(hujson.Literal)
	return ok && lit.Kind() == 'n'
}

// words decodes a string, or a list of strings; anything else is none.
func words(v hujson.Value) []string {
	switch v := v.Value.(type) {
	case hujson.Literal:
		if v.Kind() == '"' {
			return []string{v.String()}
		}
	case *hujson.Array:
		var list []string
		for _, element := range v.Elements {
			lit, ok := element.Value.(hujson.Literal)
			if !ok || lit.Kind() != '"' {
				return nil
			}
			list = append(list, lit.String())
		}
		return list
	}
	return nil
}

func (j *jsonFile) rest() (string, error) {
	var value map[string]any
	if j.root.Value != nil {
		// Standardize changes the values in place, and hujson shares them with its input.
		standard := j.root.Clone()
		standard.Standardize()
		decoder := json.NewDecoder(bytes.NewReader(standard.Pack()))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			return "", errors.New("it isn't JSON")
		}
	}
	return without(value, j.form.path), nil
}

func (j *jsonFile) set() (splice, error) {
	s, err := j.setText()
	s.Offset += j.mark
	return s, err
}

func (j *jsonFile) remove() (splice, error) {
	v := *find(j.root, j.form.path)
	object := v.Value.(*hujson.Object)
	i := slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool { return keyOf(m) == entryName })
	s := j.cut(v, i)
	s.Offset += j.mark
	return s, nil
}

func (j *jsonFile) setText() (splice, error) {
	newline := newlineOf(j.text)
	if j.root.Value == nil {
		w := jsonWriter{newline: newline, unit: "  ", lines: true}
		w.value(j.nested(0), "")
		w.WriteString(newline)
		return splice{0, string(j.text), w.String()}, nil
	}
	v := j.root
	for depth, key := range j.form.path {
		m, err := member(v, key)
		switch {
		case err != nil:
			return splice{}, err
		case m == nil:
			return j.insert(v, field{key, j.nested(depth + 1)}), nil
		case isNull(m.Value):
			return j.replace(m.Value, j.nested(depth+1)), nil
		}
		v = m.Value
	}
	m, err := member(v, entryName)
	switch {
	case err != nil:
		return splice{}, err
	case m == nil:
		return j.insert(v, field{entryName, j.form.fields}), nil
	}
	return j.update(m.Value)
}

// nested returns our entry inside the objects that the keys of the path from
// depth on lead to.
func (j *jsonFile) nested(depth int) []field {
	value := []field{{entryName, j.form.fields}}
	for _, key := range slices.Backward(j.form.path[depth:]) {
		value = []field{{key, value}}
	}
	return value
}

// update corrects what starts the program, and keeps what else the user has put
// into the entry. It replaces an entry of another kind.
func (j *jsonFile) update(v hujson.Value) (splice, error) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return j.replace(v, j.form.fields), nil
	}
	for _, key := range []string{"url", "httpUrl", "serverUrl"} {
		if m, _ := member(v, key); m != nil {
			return j.replace(v, j.form.fields), nil
		}
	}
	// From the last to the first, so that offsets stay.
	text := j.text[v.StartOffset:v.EndOffset]
	for _, m := range slices.Backward(object.Members) {
		i := slices.IndexFunc(j.form.fields, func(f field) bool { return f.key == keyOf(m) })
		if i < 0 {
			continue
		}
		var edit splice
		switch want := j.form.fields[i].value.(type) {
		case string:
			if got := words(m.Value); m.Value.Value.Kind() == '"' && len(got) == 1 && got[0] == want {
				continue
			}
			edit = j.replace(m.Value, want)
		case []string:
			got := words(m.Value)
			if sameStart(got, want) {
				continue
			}
			if f := j.form.fields[i]; f.key == "command" && len(got) > 1 && got[1] == want[1] {
				// A whole command line, of which only the program is another.
				edit = j.replace(m.Value.Value.(*hujson.Array).Elements[0], want[0])
				break
			}
			edit = j.replace(m.Value, want)
		default:
			continue // the user's choice
		}
		edit.Offset -= v.StartOffset
		text = edit.apply(text)
	}
	for _, f := range j.form.fields {
		if m, err := member(v, f.key); err != nil {
			return splice{}, err
		} else if m == nil && (f.key == "command" || f.key == "args") {
			return j.replace(v, j.form.fields), nil
		}
	}
	return splice{v.StartOffset, string(j.text[v.StartOffset:v.EndOffset]), string(text)}, nil
}

// sameStart reports whether a list begins with the words of another.
func sameStart(list, start []string) bool {
	return len(list) >= len(start) && slices.Equal(list[:len(start)], start)
}

func (j *jsonFile) replace(v hujson.Value, value any) splice {
	w := jsonWriter{newline: newlineOf(j.text), unit: j.unit(), lines: bytes.Contains(j.text, []byte("\n"))}
	w.value(value, indentAt(j.text, v.StartOffset))
	return splice{v.StartOffset, string(j.text[v.StartOffset:v.EndOffset]), w.String()}
}

// unit is what a level is indented by: what the first member of the file is.
func (j *jsonFile) unit() string {
	if object, ok := j.root.Value.(*hujson.Object); ok && len(object.Members) > 0 {
		name := object.Members[0].Name
		indent, base := indentAt(j.text, name.StartOffset), indentAt(j.text, j.root.StartOffset)
		if rest, ok := strings.CutPrefix(indent, base); ok && rest != "" && bytes.ContainsRune(name.BeforeExtra, '\n') {
			return rest
		}
	}
	return "  "
}

// insert adds a member at the end of an object, in the way that its others are
// written.
func (j *jsonFile) insert(v hujson.Value, f field) splice {
	object := v.Value.(*hujson.Object)
	w := jsonWriter{newline: newlineOf(j.text), unit: j.unit(), lines: true}
	if len(object.Members) == 0 {
		start, end := v.StartOffset+1, v.EndOffset-1
		old := string(j.text[start:end])
		outer := indentAt(j.text, v.StartOffset)
		w.WriteString(strings.TrimRight(old, blanks)) // comments
		w.line(outer + w.unit)
		w.member(f, outer+w.unit)
		w.line(outer)
		return splice{start, old, w.String()}
	}
	last := object.Members[len(object.Members)-1]
	start, end := last.Value.EndOffset, v.EndOffset-1
	comma := j.commaAfter(last.Value) // or -1
	w.lines = bytes.ContainsRune(last.Name.BeforeExtra, '\n')
	stop := start
	if comma >= 0 {
		stop = comma + 1
	}
	if w.lines { // a comment behind the last value stays with it
		stop = max(stop, endOfLine(j.text, stop, end))
	}
	old := string(j.text[start:stop])
	if comma < 0 {
		w.WriteString(",")
	}
	w.WriteString(old)
	if w.lines {
		indent := indentAt(j.text, last.Name.StartOffset)
		w.line(indent)
		w.member(f, indent)
	} else {
		w.WriteString(" ")
		w.member(f, "")
	}
	if comma >= 0 {
		w.WriteString(",")
	}
	return splice{start, old, w.String()}
}

// commaAfter returns where the comma after a value is, or -1.
func (j *jsonFile) commaAfter(v hujson.Value) int {
	if at := v.EndOffset + len(v.AfterExtra); j.text[at] == ',' {
		return at
	}
	return -1
}

// endOfLine returns where comments that begin on the line of start end: before a
// newline that isn't part of one, or start if there is nothing but white space.
func endOfLine(text []byte, start, end int) int {
	stop := start
	for at := start; at < end; {
		rest := text[at:end]
		switch {
		case bytes.HasPrefix(rest, []byte("//")):
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			return at + len(bytes.TrimRight(line, "\r"))
		case bytes.HasPrefix(rest, []byte("/*")):
			at += bytes.Index(rest[2:], []byte("*/")) + 4
			stop = at
		case rest[0] == '\n':
			return stop
		default:
			at++
		}
	}
	return stop
}

// cut removes the i-th member of an object, and the line or the space that it
// leaves.
func (j *jsonFile) cut(v hujson.Value, i int) splice {
	object := v.Value.(*hujson.Object)
	m := object.Members[i]
	start, end := m.Name.StartOffset, m.Value.EndOffset
	comma := j.commaAfter(m.Value)
	if comma >= 0 {
		end = comma + 1
	}
	before := func(from int) string { return string(j.text[from:start]) }
	switch {
	case len(object.Members) == 1:
		from, to := v.StartOffset+1, v.EndOffset-1
		rest := strings.TrimRight(before(from), " \t") + string(j.text[end:to])
		if isBlank(rest) {
			rest = ""
		}
		return splice{from, string(j.text[from:to]), rest}
	case comma < 0: // the comma before it goes
		previous := object.Members[i-1].Value
		from, at := previous.EndOffset, j.commaAfter(previous)
		gap := string(j.text[from:at]) + string(j.text[at+1:start])
		kept := strings.TrimRight(gap, blanks)
		if kept != "" && !bytes.ContainsRune(j.text[end:v.EndOffset], '\n') {
			kept = gap // a line comment must not swallow the brace
		}
		return splice{from, string(j.text[from:end]), kept}
	}
	tail := string(j.text[end:v.EndOffset])
	line, _, _ := strings.Cut(tail, "\n")
	space := before(0)[len(strings.TrimRight(before(0), blanks)):]
	from := start
	switch newline := strings.LastIndex(space, "\n"); {
	case newline >= 0 && isBlank(line):
		from = start - len(space) + newline
		if newline > 0 && space[newline-1] == '\r' {
			from--
		}
	case newline < 0 && space != "" && i > 0:
		from -= len(space)
	default:
		end += len(tail) - len(strings.TrimLeft(tail, " \t"))
	}
	return splice{from, string(j.text[from:end]), ""}
}

// A jsonWriter spells values as JSON.
type jsonWriter struct {
	strings.Builder
	newline, unit string
	lines         bool // each member of an object has a line of its own
}

func (w *jsonWriter) line(indent string) {
	w.WriteString(w.newline)
	w.WriteString(indent)
}

func (w *jsonWriter) member(f field, indent string) {
	w.WriteString(quoted(f.key))
	w.WriteString(": ")
	w.value(f.value, indent)
}

// value writes a value whose line is indented by indent.
func (w *jsonWriter) value(value any, indent string) {
	switch v := value.(type) {
	case bool:
		fmt.Fprint(w, v)
	case string:
		w.WriteString(quoted(v))
	case []string:
		list := make([]string, len(v))
		for i, s := range v {
			list[i] = quoted(s)
		}
		w.WriteString("[" + strings.Join(list, ", ") + "]")
	case []field:
		w.WriteString("{")
		for i, f := range v {
			if i > 0 {
				w.WriteString(",")
			}
			switch {
			case w.lines:
				w.line(indent + w.unit)
			case i > 0:
				w.WriteString(" ")
			}
			w.member(f, indent+w.unit)
		}
		if w.lines && len(v) > 0 {
			w.line(indent)
		}
		w.WriteString("}")
	}
}

// quoted spells a string in JSON, which is TOML too.
func quoted(s string) string { return string(hujson.String(s)) }
