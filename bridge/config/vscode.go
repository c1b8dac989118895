package config

import "codeexec/bridge/config/syntax"

// parseVSCode decodes VS Code's files:
//
//	{"servers": {name: {…}}, "inputs": […]}            mcp.json
//	{"mcp": {"servers": {…}, "inputs": […]}, …}        settings.json, until 2025
//
// What "inputs" describes is asked for by VS Code when a server starts. Here
// nobody is there to ask, so references to it stay unresolved, and are
// reported.
func parseVSCode(data []byte, at location) ([]entry, error) {
	object, err := syntax.JSON(data)
	if err != nil {
		return nil, err
	}
	if mcp := child(object, "mcp"); mcp != nil && len(members(mcp, "servers")) > 0 && isVSCode(mcp) {
		object = mcp
	}
	return dialect{}.servers(object, "servers", at)
}
