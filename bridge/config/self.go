package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A self recognises command lines that start the running program.
type self struct {
	info os.FileInfo // nil if it isn't known
}

func newSelf(path string) self {
	if path == "" {
		path, _ = os.Executable()
	}
	info, _ := os.Stat(path)
	return self{info: info}
}

// programName is what the program is called wherever it is installed.
const programName = "codeexec"

// launchers are the programs that start the program that is named by their
// first argument (not counting options, and VAR=value), with the words that
// may stand between. They are matched by name: a path that merely ends in
// codeexec, such as a directory given to a file server, is not a start.
func launcherWords(name string) ([]string, bool) {
	switch name {
	case "npx", "bunx", "pnpx", "uvx", "env", "nice", "nohup", "setsid", "stdbuf", "sudo", "doas", "exec", "time":
		return nil, true
	case "npm", "pnpm", "yarn":
		return []string{"exec", "dlx", "x"}, true
	case "bun", "uv", "pipx", "go":
		return []string{"x", "run", "tool"}, true
	}
	return nil, false
}

// starts reports whether the command line would start the running program,
// directly, through a launcher such as npx or env, or through sh -c. It is a
// guard against mistakes, not against intent.
func (s self) starts(command string, args []string) bool {
	for range 8 { // launchers of launchers
		if s.is(command) {
			return true
		}
		name := baseName(command)
		if slices.Contains([]string{"sh", "bash", "zsh", "dash", "cmd"}, name) {
			args = shellCommand(args)
		} else if between, ok := launcherWords(name); ok {
			args = launched(args, between)
		} else {
			return false
		}
		if len(args) == 0 {
			return false
		}
		command, args = args[0], args[1:]
	}
	return false
}

// is reports whether command names the running program.
func (s self) is(command string) bool {
	name, _, _ := strings.Cut(baseName(command), "@") // codeexec@latest
	if name == programName {
		return true
	}
	if s.info == nil {
		return false
	}
	path, err := exec.LookPath(command)
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, s.info)
}

// baseName is the last part of a path of either kind, without the suffix of a
// Windows program.
func baseName(command string) string {
	name := command[strings.LastIndexAny(command, `/\`)+1:]
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".exe", ".cmd", ".bat":
		name = name[:len(name)-len(ext)]
	}
	return name
}

// launched returns the command line in the arguments of a launcher.
func launched(args, between []string) []string {
	for i, arg := range args {
		key, _, assignment := strings.Cut(arg, "=")
		if strings.HasPrefix(arg, "-") || assignment && isVariable(key) || slices.Contains(between, arg) {
			continue
		}
		return args[i:]
	}
	return nil
}

// shellCommand returns the command line in the arguments of a shell: the words
// after -c or /c.
func shellCommand(args []string) []string {
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") && !strings.EqualFold(arg, "/c") {
			words, _ := splitWords(arg)
			return launched(append(words, args[i+1:]...), []string{"exec"})
		}
	}
	return nil
}
