package config

import (
	"errors"
	"path/filepath"

	"github.com/tailscale/hujson"

	"codeexec/bridge/config/syntax"
)

// parseClaudeCode decodes the file in which Claude Code keeps its state:
//
//	{"mcpServers": {…}, "projects": {directory: {"mcpServers": {…}}}}
//
// Of the projects, the one of the working directory counts. Its entries are
// the user's own, and come first. Those of other projects are left out.
func (l *loader) parseClaudeCode(data []byte, at location) ([]entry, error) {
	object, err := syntax.JSON(data)
	if err != nil {
		return nil, err
	}
	var entries []entry
	add := func(object *hujson.Object) error {
		more, err := dialect{}.servers(object, "mcpServers", at)
		if errors.Is(err, errNoServers) {
			return nil
		}
		entries = append(entries, more...)
		return err
	}
	if projects := child(object, "projects"); projects != nil && l.opts.Dir != "" {
		for _, project := range projects.Members {
			settings, ok := project.Value.Value.(*hujson.Object)
			if !ok || filepath.Clean(filepath.FromSlash(literal(project.Name))) != l.opts.Dir {
				continue
			}
			if err := add(settings); err != nil {
				return entries, err
			}
		}
	}
	return entries, add(object)
}
