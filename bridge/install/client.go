package install

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codeexec/bridge/config"
)

// entryName is what our entry is called.
const entryName = "codeexec"

// A form is how a client spells its servers.
type form struct {
	// path are the keys that lead to the object of servers.
	path []string
	// fields are those of our entry, in order.
	fields []field
	// nested is a key of the object of servers that may have them instead.
	nested string
	// toml files are TOML, all others JSON with comments.
	toml bool
}

// A field of an entry. Its value is a string, a bool, an object (a []field), or a
// list of strings.
type field struct {
	key   string
	value any
}

// formOf returns the form of a client.
func formOf(client config.Source, command string, args []string) form {
	program := []field{{"command", command}, {"args", args}}
	switch client {
	case config.SourceClaudeCode: // as "claude mcp add" writes it
		return form{path: []string{"mcpServers"}, fields: slices.Concat([]field{{"type", "stdio"}}, program, []field{{"env", []field{}}})}
	case config.SourceVSCode:
		return form{path: []string{"servers"}, fields: slices.Concat([]field{{"type", "stdio"}}, program)}
	case config.SourceCodex:
		return form{path: []string{"mcp_servers"}, fields: program, toml: true}
	case config.SourceOpenCode:
		return form{path: []string{"mcp"}, nested: "servers", fields: []field{{"type", "local"}, {"command", append([]string{command}, args...)}, {"enabled", true}}}
	case config.SourceZed: // "source" is what it wanted for some time in 2025
		return form{path: []string{"context_servers"}, fields: slices.Concat([]field{{"source", "custom"}}, program, []field{{"env", []field{}}})}
	}
	return form{path: []string{"mcpServers"}, fields: program}
}

// fileOf chooses which of a client's files is to be edited: the first that has
// our entry, else the first that exists, else the one that the client would make.
func fileOf(opts Options) (string, error) {
	var paths []string
	for _, path := range config.UserFiles(opts.Config, opts.Client) {
		switch filepath.Base(path) {
		case "settings.json":
			if opts.Client == config.SourceVSCode {
				continue // until 2025; VS Code moves what is there
			}
		case "config.json":
			if opts.Client == config.SourceOpenCode {
				continue // an older name
			}
		}
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		return "", errors.New("it isn't known where the client keeps its configuration: there is no home directory")
	}
	entries, _, _ := config.SelfEntries(opts.Config, opts.Client)
	for _, e := range entries {
		if e.Name == entryName && slices.Contains(paths, e.File) {
			return e.File, nil
		}
	}
	for _, path := range paths {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
	}
	// Where there are several editions of a client, the one that is installed has
	// a directory. JSON with comments is for who wants comments.
	return slices.MaxFunc(paths, func(a, b string) int { return cmp.Compare(score(a), score(b)) }), nil // the first of equals
}

func score(path string) int {
	n := 0
	if info, err := os.Stat(filepath.Dir(path)); err == nil && info.IsDir() {
		n += 2
	}
	if !strings.HasSuffix(path, ".jsonc") {
		n++
	}
	return n
}
