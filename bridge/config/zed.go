package config

import (
	"slices"
	"time"

	"codeexec/bridge/config/syntax"
)

// parseZed decodes the settings of Zed:
//
//	{"context_servers": {name: {"command": …, "args": […], "env": {…}, "enabled": …}}, …}
//	{"context_servers": {name: {"command": {"path": …, "args": […], "env": {…}}}}}      until 2025
//
// Entries that have only "settings" belong to an extension of Zed, which knows
// how to start the server; only Zed can use them.
func parseZed(data []byte, at location) ([]entry, error) {
	object, err := syntax.JSON(data)
	if err != nil {
		return nil, err
	}
	entries, err := dialect{unit: time.Second}.servers(object, "context_servers", at)
	return slices.DeleteFunc(entries, func(e entry) bool {
		return e.err == nil && e.command == "" && e.url == ""
	}), err
}
