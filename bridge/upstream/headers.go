package upstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

type schemaKey struct{}

// withSchema returns a context for a call of a tool with that input schema.
func withSchema(ctx context.Context, schema json.RawMessage) context.Context {
	return context.WithValue(ctx, schemaKey{}, schema)
}

// headerAnnotation is the keyword of a schema that wants an argument repeated in
// a header.
const headerAnnotation = "x-mcp-header"

// A headerParam is an argument that is repeated in a header.
type headerParam struct {
	path []string // of properties
	name string   // of the header, without its prefix
}

// headerParams finds in the input schema of a tool which arguments are repeated
// in headers
// (https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters).
// The error says what is wrong with an annotation; a client must not use a tool
// with such a one.
func headerParams(schema json.RawMessage) ([]headerParam, error) {
	if !strings.Contains(string(schema), headerAnnotation) {
		return nil, nil
	}
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return nil, nil // arguments can be anything
	}
	s := headerScan{taken: make(map[string]bool)}
	if err := s.schema(root, nil, true); err != nil {
		return nil, err
	}
	return s.found, nil
}

// A headerScan goes through a schema, whose depth [catalog.ParseTool] bounds.
type headerScan struct {
	found []headerParam
	taken map[string]bool // names of headers, in lower case
}

// schema looks at one schema. reachable says that it describes the argument at
// path and no other, which a schema does that is reached by "properties" alone.
func (s *headerScan) schema(schema any, path []string, reachable bool) error {
	keywords, ok := schema.(map[string]any)
	if !ok {
		return nil // true, false, or no schema
	}
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		value := keywords[keyword]
		switch keyword {
		case headerAnnotation:
			if !reachable || len(path) == 0 {
				return fmt.Errorf("%s stands where it can't be told which argument is meant", headerAnnotation)
			}
			if err := s.annotated(value, keywords["type"], path); err != nil {
				return fmt.Errorf("%s of property %q %w", headerAnnotation, strings.Join(path, "."), err)
			}
		case "const", "enum", "default", "examples": // hold no schemas
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			named, _ := value.(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(named)) {
				err := s.schema(named[name], append(slices.Clip(path), name), reachable && keyword == "properties")
				if err != nil {
					return err
				}
			}
		default:
			list, ok := value.([]any)
			if !ok {
				list = []any{value}
			}
			for _, item := range list {
				if err := s.schema(item, nil, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// annotated takes note of an annotated property. The error goes on from its
// name.
func (s *headerScan) annotated(annotation, types any, path []string) error {
	name, _ := annotation.(string)
	if !validHeader(name, "") {
		return errors.New("isn't a name that a header can have")
	}
	list, ok := types.([]any)
	if !ok {
		list = []any{types}
	}
	list = slices.DeleteFunc(slices.Clone(list), func(t any) bool { return t == "null" })
	if len(list) == 0 || slices.ContainsFunc(list, func(t any) bool { return t != "string" && t != "integer" && t != "boolean" }) {
		return errors.New("isn't allowed: only a string, an integer or a boolean fits in a header")
	}
	lower := strings.ToLower(name)
	if s.taken[lower] {
		return fmt.Errorf("names the header %q a second time", name)
	}
	s.taken[lower] = true
	s.found = append(s.found, headerParam{path, name})
	return nil
}

// paramHeaders adds a header for each argument whose property wants one.
func paramHeaders(set map[string]string, schema, args json.RawMessage) {
	params, err := headerParams(schema)
	if err != nil {
		return // of a tool that isn't listed
	}
	for _, param := range params {
		value := args
		for _, name := range param.path {
			var object map[string]json.RawMessage
			if json.Unmarshal(value, &object) != nil {
				object = nil
			}
			value = object[name]
		}
		if text, ok := headerValue(value); ok {
			set["Mcp-Param-"+param.name] = headerText(text)
		}
	}
}

// headerValue returns the text of a string, a boolean or an integer that every
// JSON reader takes for the same.
func headerValue(value json.RawMessage) (string, bool) {
	if len(value) > 0 && value[0] == '"' {
		var text string
		err := json.Unmarshal(value, &text)
		return text, err == nil
	}
	if s := string(value); s == "true" || s == "false" {
		return s, true
	}
	const safe = 1<<53 - 1
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > safe {
		return "", false
	}
	return strconv.FormatInt(int64(n), 10), true
}

// headerText encodes a text so that a header can hold it.
func headerText(s string) string {
	const prefix, suffix = "=?base64?", "?="
	plain := strings.TrimSpace(s) == s && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) &&
		!(strings.HasPrefix(s, prefix) && strings.HasSuffix(s, suffix))
	if plain {
		return s
	}
	return prefix + base64.StdEncoding.EncodeToString([]byte(s)) + suffix
}
