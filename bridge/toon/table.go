package toon

// primitives reports whether no value is an array or object.
func primitives(values []node) bool {
	for i := range values {
		if k := values[i].kind; k == array || k == object {
			return false
		}
	}
	return true
}

// columns are those of a table: the keys of its first object, in their order.
type columns struct {
	keys  []string
	index map[string]int
}

// columnsOf returns the columns of the table that the values make, or nil if they make none: then one isn't
// an object, has other keys than the first, none at all, or a value that isn't primitive (§9.3).
func columnsOf(values []node) *columns {
	first := &values[0]
	if first.kind != object || len(first.children) == 0 {
		return nil
	}
	c := &columns{keys: make([]string, len(first.children)), index: make(map[string]int, len(first.children))}
	for i := range first.children {
		c.keys[i] = first.children[i].key
		c.index[c.keys[i]] = i
	}
	for i := range values {
		v := &values[i]
		// No key is there twice, so that as many known ones are all of them.
		if v.kind != object || len(v.children) != len(c.keys) || !primitives(v.children) {
			return nil
		}
		for j := range v.children {
			if c.position(v, j) < 0 {
				return nil
			}
		}
	}
	return c
}

// position returns the column of the i-th member of an object, or -1.
func (c *columns) position(n *node, i int) int {
	key := n.children[i].key
	if c.keys[i] == key { // nearly always
		return i
	}
	if column, ok := c.index[key]; ok {
		return column
	}
	return -1
}

// arrange puts the members of an object into the order of the columns.
func (c *columns) arrange(row []*node, n *node) {
	for i := range n.children {
		row[c.position(n, i)] = &n.children[i]
	}
}
