package config

import (
	"errors"
	"os"
)

// UserFiles lists the files in which a client keeps what its user has configured
// for all projects, in the order in which they win. They needn't exist.
func UserFiles(opts Options, client Source) []string {
	var paths []string
	l := newLoader(opts)
	for _, at := range l.locations(client) {
		if at.project == "" {
			paths = append(paths, at.path)
		}
	}
	return paths
}

// A SelfEntry is an entry by which a client starts codeexec.
type SelfEntry struct {
	File     string
	Name     string
	Command  string // as the file spells it
	Args     []string
	Disabled bool
}

// SelfEntries finds the entries of the user's files of a client that start
// codeexec, directly or through a launcher such as npx. There is one problem for
// each file that can't be read; present says whether any could be.
func SelfEntries(opts Options, client Source) (entries []SelfEntry, present bool, problems []Problem) {
	l := newLoader(opts)
	for _, at := range l.locations(client) {
		if at.project != "" {
			continue
		}
		data, err := l.read(at)
		if err != nil {
			problems = append(problems, Problem{File: at.path, Message: err.Error()})
			continue
		}
		if data == nil {
			continue
		}
		present = true
		list, err := at.parse(data, at)
		if err != nil && !errors.Is(err, errNoServers) {
			problems = append(problems, Problem{File: at.path, Message: err.Error()})
		}
		for _, e := range list {
			if e.err == nil && e.command != "" && l.self.starts(e.command, e.args) {
				entries = append(entries, SelfEntry{at.path, e.name, e.command, e.args, e.disabled})
			}
		}
	}
	return entries, present, problems
}

// StartsSelf reports whether a command line would start codeexec, directly or
// through a launcher such as npx.
func StartsSelf(command string, args []string) bool {
	path, _ := os.Executable()
	return newSelf(path).starts(command, args)
}
