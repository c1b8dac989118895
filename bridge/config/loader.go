package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// A loader collects servers and problems.
type loader struct {
	opts     Options
	self     self
	trust    trustStore
	servers  map[string]Server
	problems []Problem
	seen     map[string]bool // paths of the files that were read

	// If it isn't nil, it gets the checksums of the files that entries of a
	// project name, which are not checked then.
	named map[string]string
}

func newLoader(opts Options) *loader {
	if opts.LookupEnv == nil {
		opts.LookupEnv = os.LookupEnv
	}
	if opts.Home == "" {
		opts.Home, _ = os.UserHomeDir() // without one, "~/" stays as it is
	}
	if opts.Dir == "" {
		opts.Dir, _ = os.Getwd() // without one, there is no project
	} else {
		opts.Dir = absolute(opts.Dir)
	}
	if opts.GOOS == "" {
		opts.GOOS = runtime.GOOS
	}
	l := &loader{opts: opts, self: newSelf(opts.Self), servers: make(map[string]Server), seen: make(map[string]bool)}
	var err error
	if l.trust, err = readTrust(opts.StateDir); err != nil {
		l.problem(trustPath(opts.StateDir), "", "no project is trusted: "+err.Error())
	}
	return l
}

func (l *loader) problem(file, entry, message string) {
	l.problems = append(l.problems, Problem{File: file, Entry: entry, Message: message})
}

func (l *loader) hint(file, message string) {
	l.problems = append(l.problems, Problem{File: file, Message: message, Hint: true})
}

// file adds the entries of one file.
func (l *loader) file(at location) {
	if l.seen[at.path] {
		return
	}
	l.seen[at.path] = true
	data, err := l.read(at)
	if err != nil {
		l.problem(at.path, "", "not used: "+err.Error())
		return
	}
	if data == nil {
		return
	}
	if at.project != "" {
		switch l.trust.check(at.project, at.path, data) {
		case trustUnknown:
			l.hint(at.path, fmt.Sprintf("not used: nobody has trusted it; see codeexec servers trust %s", ShellWord(at.project)))
			return
		case trustChanged:
			l.problem(at.path, "", fmt.Sprintf("not used: it is not what was trusted; look at it again with codeexec servers trust %s", ShellWord(at.project)))
			return
		}
	}
	entries, err := at.parse(data, at)
	switch {
	case at.client && errors.Is(err, errNoServers):
	case err != nil:
		l.problem(at.path, "", "not used: "+err.Error())
	}
	for _, e := range entries {
		l.add(at, e)
	}
}

// read returns a file's bytes, and nil if there is no file and there needn't
// be one.
func (l *loader) read(at location) ([]byte, error) {
	limit := MaxFileSize
	if at.client {
		limit = MaxClientFileSize
	}
	data, err := readFile(at.path, limit)
	switch {
	case at.client && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, errors.New(reason(err))
	}
	return data, nil
}

// readFile reads a file of at most limit bytes. It refuses what isn't a regular
// file: opening a named pipe would wait for a writer that never comes. The
// result isn't nil if the error is.
func readFile(path string, limit int) ([]byte, error) {
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
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
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
func (l *loader) add(at location, e entry) {
	s, err := l.resolve(at, e)
	if err != nil {
		l.problem(at.path, e.name, "not used: "+err.Error())
		return
	}
	if first, taken := l.servers[e.name]; taken {
		if !same(first, s) {
			l.problem(at.path, e.name, "not used: "+first.Source+" defines it already")
		}
		return
	}
	l.servers[e.name] = s
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
	return a.Transport == b.Transport &&
		a.Command == b.Command && slices.Equal(a.Args, b.Args) && maps.Equal(a.Env, b.Env) && a.Cwd == b.Cwd &&
		a.URL == b.URL && maps.Equal(a.Headers, b.Headers) &&
		a.Timeout == b.Timeout && a.Description == b.Description && a.Disabled == b.Disabled
}

// workspace is the directory that ${workspaceFolder} stands for. The root of a
// file system, where desktop programs are started, is nobody's workspace, and
// giving it to a server would give it everything.
func (l *loader) workspace() string {
	if dir := l.opts.Dir; dir != "" && filepath.Dir(dir) != dir {
		return dir
	}
	return ""
}
