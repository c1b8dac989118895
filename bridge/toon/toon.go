// Package toon writes JSON as TOON, Token-Oriented Object Notation: the same data in fewer tokens, for a
// model to read. It follows version 3.3 of the specification (https://github.com/toon-format/spec), to
// whose sections the comments refer, and passes all tests for encoders that come with it.
//
// It imports nothing of codeexec. Package bridge calls it for the text of answers.
//
// # Why it reads JSON text and not Go values
//
// The order of an object's keys is part of what TOON keeps (§2), and a Go map has none. Whoever has a Go
// value marshals it first, which also settles what becomes of it by rules that everybody knows.
//
// # Why numbers are never rounded
//
// They are rewritten digit by digit, so that the text denotes the number of the input whatever its size.
// In a float64 an identifier of 19 digits would silently become a different one.
//
// # Why there is no decoder
//
// Nothing here reads TOON. The tests have one, to prove that nothing is lost.
package toon

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
)

// MaxDepth is how deep arrays and objects may be nested. A line is indented by its depth, so that without
// a limit a short text could become a long one.
const MaxDepth = 256

// A Delimiter separates the values in a row or in an array that is written on one line.
type Delimiter byte

// The delimiters of §11. Strings that contain the one in use are quoted.
const (
	Comma Delimiter = ','
	Tab   Delimiter = '\t'
	Pipe  Delimiter = '|'
)

// FoldAll is an [Options.Fold] that folds chains of any length.
const FoldAll = math.MaxInt

// Options are the encoder options of §13. The zero value has the defaults.
type Options struct {
	// Indent is the number of spaces for each level, from 1 to 16; 0: 2. (indentSize)
	Indent int

	// Delimiter is used everywhere in the document; 0: Comma. (delimiter)
	Delimiter Delimiter

	// Fold is how many keys are joined at most where objects of a single key are nested in one another, so
	// that {"a":{"b":{"c":1}}} becomes "a.b.c: 1" (§13.4). 0 and 1: none. A reader can't tell the result
	// from the key "a.b.c" unless it knows that keys are folded. (FoldAll is keyFolding "safe"; a smaller
	// number, its flattenDepth)
	Fold int
}

func (o Options) withDefaults() (Options, error) {
	if o.Indent == 0 {
		o.Indent = 2
	}
	if o.Delimiter == 0 {
		o.Delimiter = Comma
	}
	switch {
	case o.Indent < 1 || o.Indent > 16:
		return o, fmt.Errorf("toon: Indent is %d, want 1 to 16", o.Indent)
	case o.Delimiter != Comma && o.Delimiter != Tab && o.Delimiter != Pipe:
		return o, fmt.Errorf("toon: Delimiter is %q, want a comma, a tab or a pipe", byte(o.Delimiter))
	case o.Fold < 0:
		return o, fmt.Errorf("toon: Fold is %d, want 0 or more", o.Fold)
	}
	return o, nil
}

// Encode writes data, one JSON value (RFC 8259), to w as a TOON document. As the format wants it, there is
// no newline at the end, and the empty object is the empty document.
//
// Of keys that an object has twice, the last value counts, at the place of the first. What can't be text
// (invalid UTF-8, lone surrogates) becomes U+FFFD. Numbers from 1e-6 to below 1e21 are written without an
// exponent, all others with one.
//
// It fails, before anything is written, if data isn't valid JSON, is nested deeper than [MaxDepth], or
// opts are out of range; and if w fails.
func Encode(w io.Writer, data []byte, opts Options) error {
	opts, err := opts.withDefaults()
	if err != nil {
		return err
	}
	root, err := parse(data)
	if err != nil {
		return err
	}
	e := encoder{out: bufio.NewWriter(w), opts: opts}
	e.document(root)
	return e.out.Flush()
}

// An encoder writes one document. The errors of its writer are reported by Flush in the end.
type encoder struct {
	out   *bufio.Writer
	opts  Options
	begun bool // there is a line already
	item  bool // the next line is the first of an object that is an item of a list
}

// line begins a line.
func (e *encoder) line(depth int) {
	if e.begun {
		e.out.WriteByte('\n')
	}
	e.begun = true
	hyphen := e.item
	e.item = false
	if hyphen {
		depth-- // the hyphen takes the place of a level
	}
	for range depth * e.opts.Indent {
		e.out.WriteByte(' ')
	}
	if hyphen {
		e.out.WriteString("- ")
	}
}

func (e *encoder) document(root *node) {
	switch {
	case root.kind == object:
		e.fields(root, 0, true)
	case root.kind == array && len(root.children) == 0:
		e.out.WriteString("[]")
	case root.kind == array:
		e.line(0)
		e.array(root, 0, true)
	default:
		e.primitive(root)
	}
}

// fields writes the members of an object, one below the other (§8). chains says whether one that is an only
// member may begin a chain to fold, see [encoder.fold].
func (e *encoder) fields(n *node, depth int, chains bool) {
	chains = e.opts.Fold > 1 && (chains || len(n.children) > 1)
	var siblings map[string]bool
	if chains {
		siblings = dotted(n.children)
	}
	for i := range n.children {
		member := &n.children[i]
		e.line(depth)
		if path, end := "", member; chains {
			if path, end = e.fold(member, siblings); path != "" {
				e.out.WriteString(path) // needs no quotes
				e.field(end, depth)
				continue
			}
		}
		e.key(member.key)
		e.field(member, depth)
	}
}

// field writes what follows the key of a member at the given depth.
func (e *encoder) field(n *node, depth int) {
	switch {
	case n.kind == object:
		e.out.WriteByte(':')
		e.fields(n, depth+1, false)
	case n.kind == array && len(n.children) == 0:
		e.out.WriteString(": []")
	case n.kind == array:
		e.array(n, depth, true)
	default:
		e.out.WriteString(": ")
		e.primitive(n)
	}
}

// array writes an array after its key or hyphen, which is at the given depth: on the same line if all values
// are primitive (§9.1), as a table if they are objects that make one (§9.3) and that may be, else as a list
// (§9.2, §9.4). A table may not be an item of a list, where its header would read as a key.
func (e *encoder) array(n *node, depth int, table bool) {
	e.out.WriteByte('[')
	e.out.WriteString(strconv.Itoa(len(n.children)))
	if e.opts.Delimiter != Comma {
		e.out.WriteByte(byte(e.opts.Delimiter))
	}
	e.out.WriteByte(']')
	if primitives(n.children) {
		e.out.WriteByte(':')
		for i := range n.children {
			if i == 0 {
				e.out.WriteByte(' ')
			} else {
				e.out.WriteByte(byte(e.opts.Delimiter))
			}
			e.primitive(&n.children[i])
		}
		return
	}
	if table {
		if columns := columnsOf(n.children); columns != nil {
			e.table(n, columns, depth)
			return
		}
	}
	e.out.WriteByte(':')
	for i := range n.children {
		e.listItem(&n.children[i], depth+1)
	}
}

func (e *encoder) table(n *node, columns *columns, depth int) {
	e.out.WriteByte('{')
	for i, key := range columns.keys {
		if i > 0 {
			e.out.WriteByte(byte(e.opts.Delimiter))
		}
		e.key(key)
	}
	e.out.WriteString("}:")
	row := make([]*node, len(columns.keys))
	for i := range n.children {
		columns.arrange(row, &n.children[i])
		e.line(depth + 1)
		for j, cell := range row {
			if j > 0 {
				e.out.WriteByte(byte(e.opts.Delimiter))
			}
			e.primitive(cell)
		}
	}
}

// listItem writes an item of a list, whose hyphen is at the given depth (§9.4, §10).
func (e *encoder) listItem(n *node, depth int) {
	switch {
	case n.kind == object && len(n.children) == 0:
		e.line(depth)
		e.out.WriteByte('-')
	case n.kind == object:
		e.item = true
		e.fields(n, depth+1, true)
	case n.kind == array:
		e.line(depth)
		e.out.WriteString("- ")
		e.array(n, depth, false)
	default:
		e.line(depth)
		e.out.WriteString("- ")
		e.primitive(n)
	}
}

func (e *encoder) primitive(n *node) {
	if n.kind == text && needsQuotes(n.text, byte(e.opts.Delimiter)) {
		e.quoted(n.text)
		return
	}
	e.out.WriteString(n.text)
}

func (e *encoder) key(key string) {
	if bareKey(key) {
		e.out.WriteString(key)
		return
	}
	e.quoted(key)
}
