// Package config finds the MCP servers that scripts may call.
//
// Its one job is to turn configuration files and command line flags into a
// list of [Server]s that are ready to be started, and a list of [Problem]s for
// the user. It starts nothing and knows no protocol. cmd/codeexec calls [Load];
// bridge/upstream takes the servers.
//
// # Where servers come from
//
// In this order, and the first source that defines a name wins:
//
//  1. --server flags, in the order given
//  2. --config files, in the order given
//  3. state: the files *.json of the state directory, in the byte order of
//     their names, among them what [PlanImport] copied there
//  4. project: .mcp.json and mcp-servers/*.json of the working directory, if
//     the user trusts them, see [InspectProject]
//  5. user: ~/.config/mcp/servers/*.json
//  6. the files of other MCP clients: claude-desktop, claude-code, cursor,
//     windsurf, vscode, gemini, codex, opencode, zed
//
// [Options.Sources] says which of the last four are read. Within a client, what
// it keeps for the working directory comes before what it keeps for the user.
//
// A definition that loses is reported, because its owner wonders why it has no
// effect; one that is an exact repetition is not. A disabled entry takes its
// name too: that is how a file given by --config switches off a server of the
// state directory. A broken entry takes no name.
//
// # Why other clients' servers aren't used by default
//
// They would be started by a program that nobody told to: codeexec. So either
// the user names the client among the sources, or copies its entries once. The
// files of a project come from whoever wrote the project, and are worse: they
// name a program that starts as soon as somebody works in a fresh clone. They
// count only as long as they are, byte for byte, what the user has seen and
// trusted.
//
// # Why a broken file isn't an error
//
// One typing mistake in one of ten files would take all servers from all
// scripts. So each file and each entry stands for itself, and what is wrong
// with it is a [Problem]. Problems are shown to people and written to logs:
// they name files, entries and fields, never the value of a field, which may
// be a secret.
//
// # Why a number is a time limit in two units
//
// Claude Code, Gemini CLI and OpenCode mean milliseconds by "timeout": 60000,
// Cline and Roo Code mean seconds by "timeout": 60, in files of the same shape
// that people copy from each other. Nobody limits calls to 60 ms, so a number
// below 1000 is seconds. A string with a unit ("90s") leaves no doubt.
//
// # Why a URL that ends in /sse means the older transport
//
// Most clients don't ask which of the two HTTP transports a URL speaks, and
// find out by trying. An endpoint of the older one is called sse by
// convention; a "type" decides where it is given.
//
// # Why the endpoints of OAuth aren't configured
//
// Some clients let an entry name them. A server that speaks MCP says itself where
// its users log in, and what it says is checked; a file that was right once isn't.
// Such a field is reported. What nobody can find out, the client's id and secret,
// is configured ([OAuth]).
//
// # Adding a format
//
// A format is a [parser] in a file of its own, from a file's bytes to entries
// (see [entry]); and its files are listed in locations.go. What follows,
// checking, variables and precedence, is the same for all of them.
package config

import (
	"context"
	"fmt"
	"time"
)

// MaxFileSize is the size in bytes above which a configuration file is not
// read. Files that other clients keep their whole state in may be larger, see
// [MaxClientFileSize].
const MaxFileSize = 1 << 20

// MaxClientFileSize is the size in bytes above which another client's file is
// not read.
const MaxClientFileSize = 16 << 20

// The values of [Server.Transport].
const (
	// TransportStdio is a child process that speaks on its stdin and stdout.
	TransportStdio = "stdio"
	// TransportHTTP is the streamable HTTP transport of MCP 2025-03-26 and later.
	TransportHTTP = "http"
	// TransportSSE is the HTTP+SSE transport of MCP 2024-11-05.
	TransportSSE = "sse"
)

// A Server is an MCP server that can be started: variables are expanded and
// it has a command or a URL, whichever its transport needs.
type Server struct {
	// Name is what scripts call the server. It is printable and not empty.
	Name string
	// Transport is [TransportStdio], [TransportHTTP] or [TransportSSE].
	Transport string
	// Command is the program: a path, or a name to be found on PATH. Empty
	// unless the transport is stdio.
	Command string
	// Args are the arguments after the program's own name.
	Args []string
	// Env holds the variables that the server gets besides a few harmless ones
	// of the host, among them those of its file of variables ("envFile").
	// Values may be secret.
	Env map[string]string
	// Cwd is the working directory, absolute unless it was given by a flag;
	// empty means that of codeexec.
	Cwd string
	// URL is the endpoint, absolute, http or https. Empty if the transport is
	// stdio. It may have a secret in it.
	URL string
	// Headers go with each HTTP request. Values may be secret. Nil if the
	// transport is stdio.
	Headers map[string]string
	// OAuth says how we introduce ourselves where a user has to log in. The
	// zero value if the transport is stdio.
	OAuth OAuth
	// Timeout limits each call of a tool; 0 means that the owner set no limit.
	Timeout time.Duration
	// Description is the owner's text about the server, or empty.
	Description string
	// Source says where the server was defined: a file's path, or "--server".
	Source string
	// Disabled servers are listed but never started.
	Disabled bool
}

// A Problem is something in the configuration that has no effect, or not the
// one that was meant.
type Problem struct {
	// File is the path of the file, or "--server" for a flag.
	File string
	// Entry is the server's name; empty if the whole file is meant.
	Entry string
	// Message says what is wrong and what becomes of it. It has no values of
	// the configuration in it.
	Message string
	// Hint marks what isn't a mistake, but good to know when a server is
	// missing.
	Hint bool
}

// String returns the problem on one line.
func (p Problem) String() string {
	if p.Entry == "" {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s: server %q: %s", p.File, p.Entry, p.Message)
}

// A Set is the outcome of [Load].
type Set struct {
	// Servers are sorted by name, and the names are distinct.
	Servers []Server
	// Problems are in the order in which they were found.
	Problems []Problem
}

// Options says where [Load] looks.
type Options struct {
	// StateDir is the directory whose *.json files are read. Empty, or a
	// directory that doesn't exist, means none. It also holds what is
	// remembered about trusted projects.
	StateDir string
	// Files are the files given by --config, of any format.
	Files []string
	// Flags are the values given by --server, each "NAME=COMMAND LINE" or
	// "NAME=URL".
	Flags []string
	// Sources are what is read besides Files and Flags, in any order. Nil
	// means [DefaultSources].
	Sources []Source
	// Dir is the working directory: where project files are looked for, and
	// what ${workspaceFolder} stands for. Empty means the process's own.
	Dir string
	// LookupEnv finds the variables that ${VAR} stands for, and those that say
	// where clients keep their files. Nil means [os.LookupEnv].
	LookupEnv func(string) (string, bool)
	// Home is the directory that a leading "~/" stands for, and in which
	// clients keep their files. Empty means the user's home directory.
	Home string
	// GOOS is the operating system by whose conventions the files of clients
	// are found. Empty means [runtime.GOOS].
	GOOS string
	// AllowSelf keeps the entries that would start codeexec itself. They are
	// left out otherwise: a bridge that is its own upstream starts itself for
	// ever.
	AllowSelf bool
	// Self is the path of the running program. Empty means [os.Executable].
	Self string
}

// Load reads the configuration. The error is ctx's, if it ended; whatever is
// wrong with the configuration is among the problems.
func Load(ctx context.Context, opts Options) (Set, error) {
	l := newLoader(opts)
	for i, flag := range l.opts.Flags {
		if e, err := parseFlag(flag); err != nil {
			l.problem(flagSource, "", fmt.Sprintf("flag %d: %v", i+1, err))
		} else {
			l.add(location{path: flagSource}, e)
		}
	}
	for _, file := range l.opts.Files {
		if err := ctx.Err(); err != nil {
			return Set{}, err
		}
		l.file(location{path: absolute(file), parse: parseAny})
	}
	for _, source := range inOrder(l.opts.Sources) {
		for _, at := range l.locations(source) {
			if err := ctx.Err(); err != nil {
				return Set{}, err
			}
			l.file(at)
		}
	}
	return l.set(), nil
}

// flagSource is the [Server.Source] of servers that a flag defines.
const flagSource = "--server"
