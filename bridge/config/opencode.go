package config

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"codeexec/bridge/config/syntax"
)

// parseOpenCode decodes the configuration of OpenCode:
//
//	{"mcp": {name: {"type": "local", "command": [program, argument…], "environment": {…}}}}
//	{"mcp": {name: {"type": "remote", "url": …, "headers": {…}}}}
//	{"mcp": {"servers": {name: {…}}, "timeout": {…}}}          since version 2
//
// Variables are spelled {env:NAME}, and files that have a value in them
// {file:path}.
func parseOpenCode(data []byte, at location) ([]entry, error) {
	object, err := syntax.JSON(data)
	if err != nil {
		return nil, err
	}
	d := dialect{unit: time.Millisecond, references: openCodeReferences}
	if mcp := child(object, "mcp"); mcp != nil {
		if servers := child(mcp, "servers"); servers != nil && !isServer(servers) {
			return d.servers(mcp, "servers", at)
		}
		entries, err := d.servers(object, "mcp", at)
		if len(entries) == 0 && err == nil {
			return nil, errNoServers
		}
		return entries, err
	}
	if len(members(object, "mcp")) > 0 {
		return nil, errors.New(`"mcp" must be an object, a server's name each key`)
	}
	return nil, errNoServers
}

// isServer tells an entry, which may be called "servers", from an object of
// entries.
func isServer(object *hujson.Object) bool {
	for _, key := range []string{"type", "command", "url", "enabled"} {
		for _, v := range members(object, key) {
			if _, ok := v.Value.(*hujson.Object); !ok {
				return true
			}
		}
	}
	return false
}

// isVSCode tells VS Code's "mcp" in its settings from OpenCode's, which has the
// same shape since its version 2 but always a type that VS Code doesn't have.
func isVSCode(mcp *hujson.Object) bool {
	servers := child(mcp, "servers")
	if servers == nil || isServer(servers) {
		return false
	}
	for _, m := range servers.Members {
		object, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			continue
		}
		for _, v := range members(object, "type") {
			if word, err := text(v); err == nil && (word == "local" || word == "remote") {
				return false
			}
		}
	}
	return true
}

var openCodeReference = regexp.MustCompile(`\{(env|file):([^{}]+)\}`)

// openCodeReferences respells {env:NAME}, which is empty if the variable isn't
// set, and {file:path}, whose path starts from the file that it is in.
func openCodeReferences(value string, at location) string {
	return openCodeReference.ReplaceAllStringFunc(value, func(ref string) string {
		kind, what, _ := strings.Cut(strings.Trim(ref, "{}"), ":")
		if kind == "env" {
			return "${env:" + what + ":-}"
		}
		if !filepath.IsAbs(what) && !strings.HasPrefix(what, "~") {
			what = filepath.Join(filepath.Dir(at.path), what)
		}
		return "${file:" + what + "}"
	})
}
