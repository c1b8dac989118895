package toon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type kind uint8

const (
	literal kind = iota // null, true, false, or a number in its canonical form
	text
	array
	object
)

// A node is a JSON value, with its key if it is a member of an object.
type node struct {
	kind     kind
	key      string
	text     string // of a literal, which is written as it is, or a string
	children []node // items, or members in their order, each key once
}

// parse reads one JSON value.
func parse(data []byte) (*node, error) {
	var valid json.RawMessage
	if err := json.Unmarshal(data, &valid); err != nil {
		return nil, fmt.Errorf("toon: reading JSON: %w", err)
	}
	s := scanner{text: string(valid)}
	var root node
	if err := s.value(&root, 0); err != nil {
		return nil, fmt.Errorf("toon: reading JSON: %w", err)
	}
	return &root, nil
}

// A scanner reads text that is known to be valid JSON. The tokens of a [json.Decoder] would cost several times
// the rest of the work together.
type scanner struct {
	text string
	pos  int
}

// next skips to the next byte that means something, and returns it.
func (s *scanner) next() byte {
	for {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\r', '\n', ',', ':': // where the text is valid, commas and colons tell nothing
			s.pos++
		default:
			return c
		}
	}
}

// value reads the next value into n; depth is the number of arrays and objects around it.
func (s *scanner) value(n *node, depth int) error {
	switch c := s.next(); c {
	case '"':
		n.kind, n.text = text, s.string()
	case '[', '{':
		if depth == MaxDepth {
			return fmt.Errorf("nested deeper than %d levels, at byte %d", MaxDepth, s.pos)
		}
		s.pos++
		if c == '[' {
			n.kind = array
			return s.items(n, depth+1)
		}
		n.kind = object
		return s.members(n, depth+1)
	default:
		n.text = s.text[s.pos:]
		if end := strings.IndexAny(n.text, ",]} \t\r\n"); end >= 0 {
			n.text = n.text[:end]
		}
		s.pos += len(n.text)
		if c == '-' || c >= '0' && c <= '9' {
			n.text = canonical(n.text)
		}
	}
	return nil
}

// string reads a string whose quote is next.
func (s *scanner) string() string {
	start := s.pos + 1
	plain := true
	for s.pos++; s.text[s.pos] != '"'; s.pos++ {
		if s.text[s.pos] == '\\' {
			plain = false
			s.pos++
		}
	}
	s.pos++
	if raw := s.text[start : s.pos-1]; plain && utf8.ValidString(raw) {
		return raw
	}
	var decoded string
	_ = json.Unmarshal([]byte(s.text[start-1:s.pos]), &decoded) // a valid string
	return decoded
}

func (s *scanner) items(n *node, depth int) error {
	for s.next() != ']' {
		n.children = append(n.children, node{})
		if err := s.value(&n.children[len(n.children)-1], depth); err != nil {
			return err
		}
	}
	s.pos++
	return nil
}

func (s *scanner) members(n *node, depth int) error {
	const few = 16 // keys are faster compared with each other than looked up
	var index map[string]int
	find := func(key string) int {
		if len(n.children) <= few {
			return slices.IndexFunc(n.children, func(m node) bool { return m.key == key })
		}
		if index == nil {
			index = make(map[string]int, 2*len(n.children))
			for i := range n.children {
				index[n.children[i].key] = i
			}
		}
		if i, ok := index[key]; ok {
			return i
		}
		return -1
	}
	for s.next() != '}' {
		member := node{key: s.string()}
		if err := s.value(&member, depth); err != nil {
			return err
		}
		if i := find(member.key); i >= 0 {
			n.children[i] = member
			continue
		}
		if index != nil {
			index[member.key] = len(n.children)
		}
		n.children = append(n.children, member)
	}
	s.pos++
	return nil
}

// canonical returns the canonical form of a JSON number (§2). It is exact.
func canonical(number string) string {
	// Most numbers are short integers.
	if len(number) <= 20 && number != "-0" && !strings.ContainsAny(number, ".eE") {
		return number
	}
	unsigned, negative := strings.CutPrefix(number, "-")
	mantissa, exponent := unsigned, ""
	if i := strings.IndexAny(unsigned, "eE"); i >= 0 {
		mantissa, exponent = unsigned[:i], unsigned[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")

	// The value is 0.figures × 10^point, where figures neither begins nor ends with a zero.
	figures := strings.TrimLeft(whole+fraction, "0")
	point := int64(len(whole) - (len(whole) + len(fraction) - len(figures)))
	figures = strings.TrimRight(figures, "0")
	if figures == "" {
		return "0"
	}
	sign := ""
	if negative {
		sign = "-"
	}
	if exponent != "" {
		shift, err := strconv.ParseInt(exponent, 10, 64)
		const limit = 1 << 60 // far from overflow
		if err != nil || shift > limit || shift < -limit {
			return sign + mantissa + "e" + canonicalExponent(exponent) // beyond arithmetic
		}
		point += shift
	}
	size := int64(len(figures))
	switch {
	case point < -5 || point > 21:
		if size > 1 {
			figures = figures[:1] + "." + figures[1:]
		}
		return sign + figures + "e" + canonicalExponent(strconv.FormatInt(point-1, 10))
	case point <= 0:
		return sign + "0." + strings.Repeat("0", int(-point)) + figures
	case point < size:
		return sign + figures[:point] + "." + figures[point:]
	}
	return sign + figures + strings.Repeat("0", int(point-size))
}

// canonicalExponent writes an exponent with its sign and without leading zeros.
func canonicalExponent(exponent string) string {
	sign := "+"
	if strings.HasPrefix(exponent, "-") {
		sign = "-"
	}
	return sign + strings.TrimLeft(exponent, "+-0")
}
