package toon

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// decode reads a document that was written with the given options, without folding: the inverse of the
// encoder, written from the rules for decoders (§4 to §12) and strict where they are.
func decode(doc string, opts Options) (root *node, err error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("decoding: %v", r)
		}
	}()
	d := decoder{delimiter: string(opts.Delimiter), indent: opts.Indent}
	if doc == "" {
		return &node{kind: object}, nil
	}
	d.lines = strings.Split(doc, "\n")
	root = new(node)
	first := d.lines[0]
	_, header, _ := d.header(first)
	switch colon := d.find(first, ":"); {
	case first == "[]":
		root.kind = array
		d.next++
	case header && strings.HasPrefix(first, "["):
		d.next++
		d.array(root, first, 0)
	case colon < 0 && !header:
		*root = d.primitive(first)
		d.next++
	default:
		d.object(root, 0)
	}
	if d.next < len(d.lines) {
		return nil, fmt.Errorf("line %d doesn't belong to anything", d.next+1)
	}
	return root, nil
}

type decoder struct {
	lines     []string
	next      int
	delimiter string
	indent    int
}

// find returns the index of the first sep in s that isn't in quotes, or -1.
func (d *decoder) find(s, sep string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case !quoted && s[i] == sep[0]:
			return i
		}
	}
	return -1
}

func (d *decoder) split(s string) (cells []string) {
	for {
		i := d.find(s, d.delimiter)
		if i < 0 {
			return append(cells, s)
		}
		cells, s = append(cells, s[:i]), s[i+1:]
	}
}

// at returns the content of the next line if it is indented for depth.
func (d *decoder) at(depth int) (string, bool) {
	if d.next == len(d.lines) {
		return "", false
	}
	line := strings.TrimLeft(d.lines[d.next], " ")
	return line, len(d.lines[d.next])-len(line) == depth*d.indent
}

var headerPattern = regexp.MustCompile(`^\[(0|[1-9]\d*)([|\t]?)\]`)

// header splits a line before the bracket of an array's header, if it has one.
func (d *decoder) header(line string) (key string, ok bool, rest string) {
	bracket, colon := d.find(line, "["), d.find(line, ":")
	if bracket < 0 || bracket > colon || !headerPattern.MatchString(line[bracket:]) {
		return "", false, ""
	}
	return line[:bracket], true, line[bracket:]
}

func (d *decoder) object(n *node, depth int) {
	n.kind = object
	for {
		line, ok := d.at(depth)
		if !ok || line == "-" || strings.HasPrefix(line, "- ") {
			return
		}
		d.next++
		d.member(n, line, depth)
	}
}

func (d *decoder) member(n *node, line string, depth int) {
	var member node
	if key, ok, rest := d.header(line); ok {
		member.key = d.key(key)
		d.array(&member, rest, depth)
		n.children = append(n.children, member)
		return
	}
	colon := d.find(line, ":")
	value, spaced := strings.CutPrefix(line[colon+1:], " ")
	switch {
	case value == "":
		d.object(&member, depth+1)
	case !spaced:
		panic("no space after a colon")
	case value == "[]":
		member.kind = array
	default:
		member = d.primitive(value)
	}
	member.key = d.key(line[:colon])
	n.children = append(n.children, member)
}

// array reads an array whose header, from its bracket on, is on a line of the given depth.
func (d *decoder) array(n *node, header string, depth int) {
	n.kind = array
	match := headerPattern.FindStringSubmatch(header)
	length, err := strconv.Atoi(match[1])
	if delimiter := match[2]; err != nil || delimiter != strings.TrimPrefix(d.delimiter, ",") {
		panic("header " + header)
	}
	rest := header[len(match[0]):]
	switch {
	case rest == ":" && length > 0:
		for {
			line, ok := d.at(depth + 1)
			if !ok || line != "-" && !strings.HasPrefix(line, "- ") {
				break
			}
			d.next++
			n.children = append(n.children, d.item(line, depth+1))
		}
	case rest == ":":
	case strings.HasPrefix(rest, ": "):
		for _, cell := range d.split(rest[2:]) {
			n.children = append(n.children, d.primitive(cell))
		}
	case strings.HasPrefix(rest, "{") && strings.HasSuffix(rest, "}:"):
		keys := d.split(rest[1 : len(rest)-2])
		for range length {
			line, ok := d.at(depth + 1)
			cells := d.split(line)
			if !ok || len(cells) != len(keys) {
				panic("row " + line)
			}
			d.next++
			row := node{kind: object}
			for i, cell := range cells {
				member := d.primitive(cell)
				member.key = d.key(keys[i])
				row.children = append(row.children, member)
			}
			n.children = append(n.children, row)
		}
	default:
		panic("header " + header)
	}
	if len(n.children) != length {
		panic(fmt.Sprintf("%d items under %s", len(n.children), header))
	}
}

func (d *decoder) item(line string, depth int) (n node) {
	if line == "-" {
		n.kind = object
		return n
	}
	line = line[2:]
	key, header, rest := d.header(line)
	switch {
	case header && key == "":
		d.array(&n, rest, depth)
	case header || d.find(line, ":") >= 0:
		n.kind = object
		d.member(&n, line, depth+1)
		d.object(&n, depth+1)
	default:
		n = d.primitive(line)
	}
	return n
}

var (
	numberPattern = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$`)
	keyPattern    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
)

func (d *decoder) primitive(token string) node {
	switch {
	case token == "null" || token == "true" || token == "false" || numberPattern.MatchString(token):
		return node{text: token}
	case strings.HasPrefix(token, `"`):
		return node{kind: text, text: d.unquote(token)}
	case token != strings.TrimSpace(token) || token == "":
		panic(fmt.Sprintf("token %q", token))
	}
	return node{kind: text, text: token}
}

func (d *decoder) key(token string) string {
	if strings.HasPrefix(token, `"`) {
		return d.unquote(token)
	}
	if !keyPattern.MatchString(token) {
		panic(fmt.Sprintf("key %q", token))
	}
	return token
}

var escapePattern = regexp.MustCompile(`\\(u[0-9a-f]{4}|.)`)

func (d *decoder) unquote(token string) string {
	if len(token) < 2 || d.find(token+":", ":") != len(token) || !strings.HasSuffix(token, `"`) {
		panic("string " + token)
	}
	return escapePattern.ReplaceAllStringFunc(token[1:len(token)-1], func(escape string) string {
		switch escape[1] {
		case '\\', '"':
			return escape[1:]
		case 'n':
			return "\n"
		case 'r':
			return "\r"
		case 't':
			return "\t"
		}
		code, err := strconv.ParseUint(escape[2:], 16, 16)
		if err != nil {
			panic(errors.Join(errors.New("escape "+escape), err))
		}
		return string(rune(code))
	})
}
