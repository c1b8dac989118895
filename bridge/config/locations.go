package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A location is a file in which servers may be defined.
type location struct {
	path  string
	parse parser
	// client files belong to another program. They needn't exist, nor define
	// any server.
	client bool
	// project is the directory to whose files this one belongs, and which
	// counts only if it is trusted; or empty.
	project string
}

// base is the directory that relative paths in the file start from.
func (at location) base() string {
	if at.project != "" {
		return at.project
	}
	return filepath.Dir(at.path)
}

// A parser decodes a file of one format. An entry that can't be decoded has
// its err set; the error is for a file that can't be. A file that defines no
// servers is [errNoServers]. No error has anything of the file in it besides
// names of entries and fields.
type parser func(data []byte, at location) ([]entry, error)

// errNoServers is the error of files that have no place for servers.
var errNoServers = errors.New(`it has no key "mcpServers"`)

// locations lists the files of a source, in the order in which they win.
func (l *loader) locations(source Source) []location {
	var found []location
	add := func(project bool, parse parser, paths ...string) {
		for _, path := range paths {
			at := location{path: path, parse: parse, client: true}
			if project {
				if l.opts.Dir == "" {
					continue
				}
				at.path, at.project = filepath.Join(l.opts.Dir, path), l.opts.Dir
			}
			found = append(found, at)
		}
	}
	// Where a client keeps files for a project and for the user, those for the
	// project win, as they do in the client.
	const user, project = false, true
	home := func(path string) string { return l.under(l.opts.Home, path) }
	switch source {
	case SourceState:
		return l.directory(location{path: l.opts.StateDir, parse: parseAny})
	case SourceUser:
		return l.directory(location{path: l.under(l.configHome(), "mcp/servers"), parse: parseAny})
	case SourceProject:
		if l.opts.Dir == "" {
			return nil
		}
		found = append(found, location{path: filepath.Join(l.opts.Dir, ".mcp.json"), parse: parseAny, client: true, project: l.opts.Dir})
		return append(found, l.directory(location{path: filepath.Join(l.opts.Dir, "mcp-servers"), parse: parseAny, project: l.opts.Dir})...)
	case SourceClaudeDesktop:
		add(user, parseMCPServers, l.claudeDesktop()...)
	case SourceClaudeCode:
		dir := l.opts.Home
		if d := l.variable("CLAUDE_CONFIG_DIR"); d != "" {
			dir = d
		}
		add(user, l.parseClaudeCode, l.under(dir, ".claude.json"))
		add(project, parseMCPServers, ".mcp.json")
	case SourceCursor:
		add(project, parseMCPServers, ".cursor/mcp.json")
		add(user, parseMCPServers, home(".cursor/mcp.json"))
	case SourceWindsurf:
		add(user, parseMCPServers, home(".codeium/windsurf/mcp_config.json"))
	case SourceVSCode:
		add(project, parseVSCode, ".vscode/mcp.json")
		for _, edition := range []string{"Code", "Code - Insiders"} {
			dir := l.under(l.appData(), edition+"/User")
			add(user, parseVSCode, l.under(dir, "mcp.json"), l.under(dir, "settings.json"))
		}
	case SourceGemini:
		add(project, parseGemini, ".gemini/settings.json")
		add(user, parseGemini, home(".gemini/settings.json"))
	case SourceCodex:
		dir := home(".codex")
		if d := l.variable("CODEX_HOME"); d != "" {
			dir = d
		}
		add(project, parseCodex, ".codex/config.toml")
		add(user, parseCodex, l.under(dir, "config.toml"))
	case SourceOpenCode:
		// On all systems alike. Of two files beside each other the one with
		// comments wins.
		add(project, parseOpenCode, ".opencode/opencode.jsonc", ".opencode/opencode.json", "opencode.jsonc", "opencode.json")
		if file := l.variable("OPENCODE_CONFIG"); file != "" {
			add(user, parseOpenCode, file)
		}
		dir := l.under(l.configHome(), "opencode")
		add(user, parseOpenCode, l.under(dir, "opencode.jsonc"), l.under(dir, "opencode.json"), l.under(dir, "config.json"))
	case SourceZed:
		add(project, parseZed, ".zed/settings.json")
		dir := l.under(l.configHome(), "zed")
		switch l.opts.GOOS {
		case "windows":
			dir = l.under(l.appData(), "Zed")
		case "darwin":
			dir = home(".config/zed") // whatever XDG_CONFIG_HOME says
		}
		add(user, parseZed, l.under(dir, "settings.json"))
	}
	return slices.DeleteFunc(found, func(at location) bool { return at.path == "" })
}

// claudeDesktop lists the places of Claude Desktop's file. Windows gives
// packaged programs, which it is since 2026, a private copy of %APPDATA%.
func (l *loader) claudeDesktop() []string {
	const name = "Claude/claude_desktop_config.json"
	var paths []string
	if l.opts.GOOS == "windows" {
		local := l.variable("LOCALAPPDATA")
		if local == "" {
			local = l.under(l.opts.Home, "AppData/Local")
		}
		packages, _ := os.ReadDir(l.under(local, "Packages")) // an older installation has none
		for _, p := range packages {
			if strings.HasPrefix(p.Name(), "Claude_") {
				paths = append(paths, l.under(local, "Packages/"+p.Name()+"/LocalCache/Roaming/"+name))
			}
		}
	}
	return append(paths, l.under(l.appData(), name))
}

// appData is the directory where desktop programs keep their files.
func (l *loader) appData() string {
	switch l.opts.GOOS {
	case "windows":
		if dir := l.variable("APPDATA"); dir != "" {
			return dir
		}
		return l.under(l.opts.Home, "AppData/Roaming")
	case "darwin":
		return l.under(l.opts.Home, "Library/Application Support")
	}
	return l.configHome()
}

// configHome is the directory of the XDG base directory specification, which
// some programs use on all systems.
func (l *loader) configHome() string {
	if dir := l.variable("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return l.under(l.opts.Home, ".config")
}

func (l *loader) variable(name string) string {
	value, _ := l.opts.LookupEnv(name)
	return value
}

// under returns a path below a directory, or "" if the directory isn't known.
func (l *loader) under(dir, path string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// directory lists the files *.json of the directory at.path.
func (l *loader) directory(at location) []location {
	if at.path == "" {
		return nil
	}
	list, err := os.ReadDir(at.path) // sorted by name
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.problem(at.path, "", "can't be listed, its files are not used: "+reason(err))
		}
		return nil
	}
	var files []location
	for _, e := range list {
		if strings.EqualFold(filepath.Ext(e.Name()), ".json") && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			file := at
			file.path = filepath.Join(absolute(at.path), e.Name())
			files = append(files, file)
		}
	}
	return files
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
