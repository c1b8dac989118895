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
//  1. --server NAME=COMMAND LINE flags, in the order given
//  2. --config files, in the order given
//  3. the files *.json of the state directory, in the byte order of their names
//
// A definition that loses is reported, because its owner wonders why it has no
// effect; one that is an exact repetition is not. A disabled entry takes its
// name too: that is how a file given by --config switches off a server of the
// state directory. A broken entry takes no name.
//
// # Why a broken file isn't an error
//
// One typing mistake in one of ten files would take all servers from all
// scripts. So each file and each entry stands for itself, and what is wrong
// with it is a [Problem]. Problems are shown to people and written to logs:
// they name files, entries and fields, never the value of a field, which may
// be a secret.
//
// # Adding a format
//
// A format is a function from a file's bytes to entries (see [entry]), in a
// file of its own; mcpservers.go is the one there is. What follows, checking,
// variables and precedence, is the same for all of them.
package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxFileSize is the size in bytes above which a configuration file is not
// read.
const MaxFileSize = 1 << 20

// A Server is an MCP server that can be started: variables are expanded and
// its command isn't empty.
type Server struct {
	// Name is what scripts call the server. It is printable and not empty.
	Name string
	// Command is the program: a path, or a name to be found on PATH.
	Command string
	// Args are the arguments after the program's own name.
	Args []string
	// Env holds the variables that the server gets besides a few harmless ones
	// of the host. Values may be secret.
	Env map[string]string
	// Cwd is the working directory, absolute unless it was given by a flag;
	// empty means that of codeexec.
	Cwd string
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
	// directory that doesn't exist, means none.
	StateDir string
	// Files are the files given by --config.
	Files []string
	// Flags are the values given by --server, each "NAME=COMMAND LINE".
	Flags []string
	// LookupEnv finds the variables that ${VAR} stands for. Nil means
	// [os.LookupEnv].
	LookupEnv func(string) (string, bool)
	// Home is the directory that a leading "~/" stands for. Empty means the
	// user's home directory.
	Home string
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
	for i, flag := range opts.Flags {
		if e, err := parseFlag(flag); err != nil {
			l.problem(flagSource, "", fmt.Sprintf("flag %d: %v", i+1, err))
		} else {
			l.add(flagSource, e)
		}
	}
	files := slices.Clone(opts.Files)
	for _, file := range append(files, l.stateFiles(opts.StateDir)...) {
		if err := ctx.Err(); err != nil {
			return Set{}, err
		}
		l.file(file)
	}
	return l.set(), nil
}

// flagSource is the [Server.Source] of servers that a flag defines.
const flagSource = "--server"

// An entry is a server as a file or flag spells it, before variables are
// expanded. Every format is decoded to entries.
type entry struct {
	name        string
	command     string
	args        []string
	env         map[string]string
	cwd         string
	description string
	disabled    bool
	err         error // why the entry can't be used; only name counts then
}

// loader collects servers and problems.
type loader struct {
	opts     Options
	self     self
	servers  map[string]Server
	problems []Problem
}

func newLoader(opts Options) *loader {
	if opts.LookupEnv == nil {
		opts.LookupEnv = os.LookupEnv
	}
	if opts.Home == "" {
		opts.Home, _ = os.UserHomeDir() // without one, "~/" stays as it is
	}
	return &loader{opts: opts, self: newSelf(opts.Self), servers: make(map[string]Server)}
}

func (l *loader) problem(file, entry, message string) {
	l.problems = append(l.problems, Problem{File: file, Entry: entry, Message: message})
}

// stateFiles lists the configuration files of the state directory.
func (l *loader) stateFiles(dir string) []string {
	if dir == "" {
		return nil
	}
	list, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.problem(dir, "", "can't be listed, its files are not used: "+reason(err))
		}
		return nil
	}
	var files []string
	for _, e := range list {
		if strings.EqualFold(filepath.Ext(e.Name()), ".json") && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files
}

// file adds the entries of one file.
func (l *loader) file(path string) {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	data, err := readFile(path)
	if err != nil {
		l.problem(path, "", "not used: "+reason(err))
		return
	}
	entries, err := parseMCPServers(data)
	if err != nil {
		l.problem(path, "", "not used: "+err.Error())
		return
	}
	for _, e := range entries {
		l.add(path, e)
	}
}

// readFile reads a configuration file. It refuses what isn't a regular file:
// opening a named pipe would wait for a writer that never comes.
func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFileSize {
		return nil, fmt.Errorf("larger than %d bytes", MaxFileSize)
	}
	return data, nil
}

// reason is err without the path that the problem names anyway.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// add checks one entry and takes it over unless its name is taken.
func (l *loader) add(source string, e entry) {
	if err := checkName(e.name); err != nil {
		l.problem(source, e.name, "not used: "+err.Error())
		return
	}
	if e.err != nil {
		l.problem(source, e.name, "not used: "+e.err.Error())
		return
	}
	s := l.resolve(source, e)
	if s.Command == "" {
		l.problem(source, e.name, `not used: it has no "command"`)
		return
	}
	if err := checkNUL(s); err != nil {
		l.problem(source, e.name, "not used: "+err.Error())
		return
	}
	if !l.opts.AllowSelf && l.self.starts(s.Command, s.Args) {
		l.problem(source, e.name, "not used: it would start codeexec itself")
		return
	}
	if first, taken := l.servers[e.name]; taken {
		if !same(first, s) {
			l.problem(source, e.name, "not used: "+first.Source+" defines it already")
		}
		return
	}
	l.servers[e.name] = s
}

// resolve expands variables and makes paths absolute.
func (l *loader) resolve(source string, e entry) Server {
	x := expander{lookup: l.opts.LookupEnv, missing: func(field, message string) {
		if !e.disabled { // nobody waits for it
			l.problem(source, e.name, field+": "+message)
		}
	}}
	s := Server{
		Name:        e.name,
		Command:     l.home(x.expand("command", e.command)),
		Cwd:         l.home(x.expand("cwd", e.cwd)),
		Description: strings.ToValidUTF8(e.description, "\uFFFD"),
		Source:      source,
		Disabled:    e.disabled,
	}
	for i, arg := range e.args {
		s.Args = append(s.Args, x.expand(fmt.Sprintf("args[%d]", i), arg))
	}
	for _, key := range slices.Sorted(maps.Keys(e.env)) {
		if s.Env == nil {
			s.Env = make(map[string]string, len(e.env))
		}
		s.Env[key] = x.expand("env."+key, e.env[key])
	}
	// A file means paths beside itself, wherever codeexec is started from.
	if s.Cwd != "" && !filepath.IsAbs(s.Cwd) && source != flagSource {
		s.Cwd = filepath.Join(filepath.Dir(source), s.Cwd)
	}
	return s
}

// home replaces a leading "~/", which no shell will replace.
func (l *loader) home(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || l.opts.Home == "" || rest != "" && !os.IsPathSeparator(rest[0]) {
		return path
	}
	return l.opts.Home + rest
}

func (l *loader) set() Set {
	set := Set{Problems: l.problems}
	for _, name := range slices.Sorted(maps.Keys(l.servers)) {
		set.Servers = append(set.Servers, l.servers[name])
	}
	return set
}

// same reports whether two definitions of a name do the same.
func same(a, b Server) bool {
	return a.Command == b.Command && slices.Equal(a.Args, b.Args) && maps.Equal(a.Env, b.Env) &&
		a.Cwd == b.Cwd && a.Description == b.Description && a.Disabled == b.Disabled
}

// maxName is the length in bytes of the longest name.
const maxName = 256

func checkName(name string) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return errors.New("a name must not be empty, nor begin or end with a space")
	case len(name) > maxName:
		return fmt.Errorf("its name is longer than %d bytes", maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("its name has characters that can't be printed")
	}
	return nil
}

// checkNUL finds the NUL bytes that no operating system takes in an argument.
func checkNUL(s Server) error {
	const message = " has a NUL character in it"
	for i, arg := range s.Args {
		if strings.Contains(arg, "\x00") {
			return fmt.Errorf("args[%d]"+message, i)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return fmt.Errorf("env.%q can't be the name of a variable", key)
		}
		if strings.Contains(s.Env[key], "\x00") {
			return fmt.Errorf("env.%s"+message, key)
		}
	}
	if strings.Contains(s.Command, "\x00") {
		return errors.New("command" + message)
	}
	if strings.Contains(s.Cwd, "\x00") {
		return errors.New("cwd" + message)
	}
	return nil
}
