package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// MaxTool is the size in bytes, see [Tool.Size], above which a tool is refused.
// It bounds what a model could read of a tool anyway.
const MaxTool = 1 << 20

const (
	maxToolName = 1024 // bytes
	// What a schema may hold so that Python's json reads it: it fails on
	// numbers of more digits and on values that are nested deeper, and one such
	// tool would hide all others of its server.
	maxDigits = 1000
	maxDepth  = 200
)

// A Tool is a tool as its server lists it (MCP 2025-11-25, "Tool"). Its JSON is
// the server's own but for white space: in its order, with its numbers. Tools
// are shared and must not be modified.
type Tool struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// InputSchema and OutputSchema are JSON Schemas: objects, or true or false.
	// They are nil where the server sent none that can be used.
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Annotations is an object, or nil.
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// ParseTool reads one element of the list of a server's answer to tools/list.
// Only the name is required; other fields that aren't what they should be count
// as absent, because the tool can be called without them.
func ParseTool(text []byte) (Tool, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return Tool{}, errors.New("a tool must be a JSON object")
	}
	t := Tool{
		Name:         str(fields["name"]),
		Title:        str(fields["title"]),
		Description:  str(fields["description"]),
		InputSchema:  value(fields["inputSchema"], "{tf"),
		OutputSchema: value(fields["outputSchema"], "{tf"),
		Annotations:  value(fields["annotations"], "{"),
	}
	switch {
	case t.Name == "":
		return Tool{}, errors.New("a tool must have a name")
	case len(t.Name) > maxToolName:
		return Tool{}, fmt.Errorf("tool %.40q…: its name has %d bytes, above the limit of %d", t.Name, len(t.Name), maxToolName)
	case t.Size() > MaxTool:
		return Tool{}, fmt.Errorf("tool %q has %d bytes, above the limit of %d", t.Name, t.Size(), MaxTool)
	}
	return t, nil
}

// Size is how many bytes of text and JSON the tool has.
func (t Tool) Size() int {
	return len(t.Name) + len(t.Title) + len(t.Description) + len(t.InputSchema) + len(t.OutputSchema) + len(t.Annotations)
}

// str returns a JSON string's text, and "" for anything else.
func str(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// value returns a copy of a JSON value without white space, or nil if it
// doesn't begin with one of the characters or can't be read by everybody.
func value(raw json.RawMessage, begins string) json.RawMessage {
	if len(raw) == 0 || !strings.ContainsRune(begins, rune(raw[0])) || !readable(raw) {
		return nil
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil
	}
	return bytes.ToValidUTF8(b.Bytes(), []byte("\uFFFD"))
}

// readable reports whether valid JSON is within maxDigits and maxDepth.
func readable(raw []byte) bool {
	depth, digits := 0, 0
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c >= '0' && c <= '9':
			if digits++; digits > maxDigits {
				return false
			}
			continue
		case c == '[', c == '{':
			if depth++; depth > maxDepth {
				return false
			}
		case c == ']', c == '}':
			depth--
		case c == '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		}
		digits = 0
	}
	return true
}
