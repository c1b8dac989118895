package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// oddSchemas are input schemas as servers have them, by the names of tools: most are strange, some are wrong.
// They come in this order, and as they are written; the SDK would reject or reorder them.
func oddSchemas(o options) []mcp.Tool {
	var enum, wide []string
	for i := range 5000 {
		enum = append(enum, fmt.Sprintf("%q", fmt.Sprintf("value %d", i)))
	}
	for i := range 500 {
		wide = append(wide, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
	}
	const node = `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name"]}`
	const user = `{"type":"object","properties":{"login":{"type":"string"},"id":{"type":"integer"}},"required":["login"]}`
	schema := func(properties string, more ...string) string {
		return strings.Join(append([]string{`{"type":"object","properties":{` + properties + `}`}, more...), ",") + "}"
	}
	var tools []mcp.Tool
	add := func(name, description, input string, output ...string) {
		tool := mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(input)}
		for _, out := range output {
			tool.OutputSchema = json.RawMessage(out)
		}
		tools = append(tools, tool)
	}
	add("order", "Lists its properties in an order of its own.",
		schema(`"zeta":{"type":"string"},"mid":{"type":"integer","default":1},"alpha":{"type":"boolean"},"beta":{"type":"string"}`, `"required":["zeta"]`))
	add("nullable", "Takes null in every way.",
		schema(`"a":{"type":["integer","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}]},"c":{"type":"string","nullable":true},`+
			`"d":{"enum":["x","y",null]},"e":{"oneOf":[{"type":"null"},{"type":"array","items":{"type":"string"}}],"default":null}`, `"required":["a"]`))
	add("optional_first", "Has required parameters after optional ones.",
		schema(`"limit":{"type":"integer","default":10},"query":{"type":"string"},"page":{"type":"integer"},"owner":{"type":"string"}`, `"required":["query","owner"]`))
	add("recursive", "Refers to itself.", schema(`"root":{"$ref":"#/$defs/node"}`, `"$defs":{"node":`+node+`}`))
	add("self", "Is its own property.", schema(`"child":{"$ref":"#"},"n":{"type":"integer"}`))
	add("dangling", "Refers to nothing.", schema(`"a":{"$ref":"#/$defs/none"},"b":{"$ref":"#anchor"}`))
	add("remote", "Refers to another place.", schema(fmt.Sprintf(`"a":{"$ref":%q},"b":{"type":"string"}`, o.remote+"/schema.json")))
	add("huge_enum", "Has thousands of choices.", schema(`"value":{"enum":[`+strings.Join(enum, ",")+`]}`, `"required":["value"]`))
	add("wide", "Has hundreds of parameters.", schema(strings.Join(wide, ",")))
	add("unspellable", "Has names that are no names.",
		schema(`"":{},"1st":{},"a b":{},"a-b":{},"a_b":{},"日本":{},"line\nbreak":{},"\"quoted\"":{},"None":{},"def":{},"self":{},"timeout":{},"__class__":{},"arguments":{}`))
	add("booleans", "Has schemas that are true or false.", schema(`"anything":true,"nothing":false`, `"required":["anything"]`))
	add("patterns", "Takes what matches a pattern.", schema(`"known":{"type":"string"}`, `"patternProperties":{"^x-":{"type":"string"}}`, `"additionalProperties":false`))
	add("map", "Takes a map of numbers.", schema(`"scores":{"type":"object","additionalProperties":{"type":"number"}}`, `"additionalProperties":{"type":"integer"}`))
	add("merged", "Is merged of parts.",
		`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"integer"}}},{"$ref":"#/$defs/c"}],"$defs":{"c":{"properties":{"c":{"type":"boolean"}},"required":["c"]}}}`)
	add("either", "Takes one of two shapes.",
		`{"type":"object","oneOf":[{"properties":{"id":{"type":"integer"}},"required":["id"]},{"properties":{"name":{"type":"string"}},"required":["name"]}]}`)
	add("nested", "Takes and returns objects.",
		schema(`"user":`+user+`,"users":{"type":"array","items":`+user+`}`, `"required":["user"]`), schema(`"users":{"type":"array","items":`+user+`}`, `"required":["users"]`))
	add("list_users", "Returns a list.", schema(``), schema(`"result":{"type":"array","items":`+user+`}`, `"required":["result"]`))
	add("hostile", "Says \"\"\" and \\ and \x1b[31mred\x1b[0m\x00 and\r\nimport os", schema(`"a":{"type":"string","description":"\"\"\" \\ \u001b[31m \u2028 \u0000","default":"\"\"\""}`))
	add("empty", "", `{}`)
	add("array", "Has no object for its arguments.", `{"type":"array","items":{"type":"string"}}`)
	add("wrong", "Has the wrong types everywhere.", `{"type":7,"properties":[],"required":"a","$defs":null,"anyOf":{},"additionalProperties":[]}`)
	if o.deep > 0 {
		add("deep", "Has objects in objects in objects.", strings.Repeat(`{"type":"object","properties":{"a":`, o.deep)+`{}`+strings.Repeat(`}}`, o.deep))
	}
	return tools
}

// addOdd adds the odd tools to a server. Each returns its arguments, as text.
func addOdd(server *mcp.Server, o options) {
	tools := oddSchemas(o)
	known := map[string]bool{}
	for _, tool := range tools {
		known[tool.Name] = true
	}
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok && known[call.Params.Name] {
				return texts("sent " + string(call.Params.Arguments)), nil
			}
			result, err := next(ctx, method, req)
			if list, ok := result.(*mcp.ListToolsResult); ok {
				list.Tools = nil
				for i := range tools {
					list.Tools = append(list.Tools, &tools[i])
				}
			}
			return result, err
		}
	})
}
