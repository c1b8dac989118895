package upstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

type schemaKey struct{}

// withSchema returns a context for a call of a tool with that input schema.
func withSchema(ctx context.Context, schema json.RawMessage) context.Context {
	return context.WithValue(ctx, schemaKey{}, schema)
}

// maxHeaderDepth bounds how deep in a schema properties are looked for that
// become headers.
const maxHeaderDepth = 16

// paramHeaders adds a header for each argument whose property has the
// annotation x-mcp-header
// (https://modelcontextprotocol.io/seps/2243-http-standardization).
func paramHeaders(set map[string]string, schema, args json.RawMessage) {
	if strings.Contains(string(schema), "x-mcp-header") {
		addParamHeaders(set, schema, args, maxHeaderDepth)
	}
}

func addParamHeaders(set map[string]string, schema, args json.RawMessage, depth int) {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var values map[string]json.RawMessage
	if depth == 0 || json.Unmarshal(schema, &object) != nil || json.Unmarshal(args, &values) != nil {
		return
	}
	for name, property := range object.Properties {
		value, ok := values[name]
		if !ok {
			continue
		}
		var annotation struct {
			Header string `json:"x-mcp-header"`
		}
		if json.Unmarshal(property, &annotation) == nil && annotation.Header != "" && validHeader(annotation.Header, "") {
			if text, ok := headerValue(value); ok {
				set["Mcp-Param-"+annotation.Header] = headerText(text)
			}
		}
		addParamHeaders(set, property, value, depth-1)
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
