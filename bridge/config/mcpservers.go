package config

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"

	"codeexec/bridge/config/syntax"
)

// parseMCPServers decodes the format that most MCP clients share:
//
//	{"mcpServers": {name: {command, args, env, …}}}
//
// Claude Desktop, Cursor and Windsurf use it as it is, and so do the .mcp.json
// of projects and codeexec's own files.
func parseMCPServers(data []byte, at location) ([]entry, error) {
	object, err := syntax.JSON(data)
	if err != nil {
		return nil, err
	}
	return dialect{}.servers(object, "mcpServers", at)
}

// parseAny decodes a file that the user has put in a place of codeexec's, or
// named: of whatever client they copied it.
func parseAny(data []byte, at location) ([]entry, error) {
	if strings.EqualFold(filepath.Ext(at.path), ".toml") {
		return parseCodex(data, at)
	}
	for _, parse := range []parser{parseMCPServers, parseVSCode, parseZed, parseOpenCode} {
		entries, err := parse(data, at)
		if !errors.Is(err, errNoServers) {
			return entries, err
		}
	}
	if bytes.Contains(data, []byte("mcp_servers")) {
		return nil, errors.New("its name must end in .toml")
	}
	return nil, errNoServers
}
