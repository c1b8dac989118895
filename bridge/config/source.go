package config

import (
	"fmt"
	"slices"
	"strings"
)

// A Source is a place where servers may be defined, see the package's
// documentation.
type Source string

// The sources, in the order in which they win.
const (
	SourceState         Source = "state"
	SourceProject       Source = "project"
	SourceUser          Source = "user"
	SourceClaudeDesktop Source = "claude-desktop"
	SourceClaudeCode    Source = "claude-code"
	SourceCursor        Source = "cursor"
	SourceWindsurf      Source = "windsurf"
	SourceVSCode        Source = "vscode"
	SourceGemini        Source = "gemini"
	SourceCodex         Source = "codex"
	SourceOpenCode      Source = "opencode"
	SourceZed           Source = "zed"
)

// Sources returns all sources, in the order in which they win.
func Sources() []Source {
	return append([]Source{SourceState, SourceProject, SourceUser}, Clients()...)
}

// Clients returns the sources that are other MCP clients.
func Clients() []Source {
	return []Source{
		SourceClaudeDesktop, SourceClaudeCode, SourceCursor, SourceWindsurf, SourceVSCode,
		SourceGemini, SourceCodex, SourceOpenCode, SourceZed,
	}
}

// DefaultSources returns what is read if nothing else is asked for: the state
// directory, and the working directory's files if the user trusts them.
func DefaultSources() []Source {
	return []Source{SourceState, SourceProject}
}

// ParseSources reads a list of sources with commas between them. "default"
// stands for [DefaultSources], "all" for [Sources], and "none" for nothing. The
// result is never nil.
func ParseSources(list string) ([]Source, error) {
	sources := []Source{}
	for word := range strings.SplitSeq(list, ",") {
		switch word = strings.ToLower(strings.TrimSpace(word)); {
		case word == "" || word == "none":
		case word == "all":
			sources = append(sources, Sources()...)
		case word == "default":
			sources = append(sources, DefaultSources()...)
		case slices.Contains(Sources(), Source(word)):
			sources = append(sources, Source(word))
		default:
			return nil, fmt.Errorf("unknown source %q: want some of %s, or default, all, none", word, joinSources(Sources()))
		}
	}
	return sources, nil
}

// ParseClient reads the name of another MCP client.
func ParseClient(name string) (Source, error) {
	if client := Source(strings.ToLower(name)); slices.Contains(Clients(), client) {
		return client, nil
	}
	return "", fmt.Errorf("unknown client %q: want one of %s", name, joinSources(Clients()))
}

func joinSources(sources []Source) string {
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// inOrder returns the sources, each once, in the order in which they win.
func inOrder(sources []Source) []Source {
	if sources == nil {
		sources = DefaultSources()
	}
	return slices.DeleteFunc(Sources(), func(s Source) bool { return !slices.Contains(sources, s) })
}
