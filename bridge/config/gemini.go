package config

import (
	"errors"
	"regexp"
	"slices"

	"github.com/tailscale/hujson"

	"codeexec/bridge/config/syntax"
)

// parseGemini decodes the settings of Gemini CLI:
//
//	{"mcpServers": {…}, "mcp": {"allowed": [name…], "excluded": [name…]}, …}
//
// It knows variables also as $NAME.
func parseGemini(data []byte, at location) ([]entry, error) {
	object, err := syntax.JSON(data)
	if err != nil {
		return nil, err
	}
	entries, err := dialect{references: shellReferences}.servers(object, "mcpServers", at)
	if err != nil {
		return nil, err
	}
	mcp := child(object, "mcp")
	if mcp == nil {
		return entries, nil
	}
	allowed, err1 := stringList(mcp, "allowed")
	excluded, err2 := stringList(mcp, "excluded")
	if err := errors.Join(err1, err2); err != nil {
		return nil, errors.New(`"allowed" and "excluded" of "mcp" must be lists of names`)
	}
	for i := range entries {
		name := entries[i].name
		if slices.Contains(excluded, name) || len(allowed) > 0 && !slices.Contains(allowed, name) {
			entries[i].disabled = true
		}
	}
	return entries, nil
}

func stringList(object *hujson.Object, key string) ([]string, error) {
	var all []string
	for _, v := range members(object, key) {
		list, err := texts(v)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

var shellReference = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// shellReferences turns $NAME into ${NAME}.
func shellReferences(value string, _ location) string {
	return shellReference.ReplaceAllString(value, "$${$1}")
}
