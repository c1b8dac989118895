package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// An entry is a server as a file or flag spells it, before variables are
// expanded. Every format is decoded to entries. References to variables are
// spelled as [expander] reads them.
type entry struct {
	name        string
	transport   string // one of the Transport constants; empty if the entry doesn't say
	command     string
	args        []string
	env         map[string]string
	envFile     string
	cwd         string
	url         string
	headers     map[string]string
	oauth       OAuth
	timeout     time.Duration
	description string
	disabled    bool
	ignored     []string // fields that ask for what codeexec doesn't do, and why that matters
	err         error    // why the entry can't be used; only name counts then
}

// kind returns the transport, which is derived if the entry doesn't say.
func (e entry) kind() (string, error) {
	switch {
	case e.transport == TransportStdio && e.command == "":
		return "", errors.New(`it has no "command"`)
	case e.transport != "" && e.transport != TransportStdio && e.url == "":
		return "", errors.New(`it has no "url"`)
	case e.transport != "":
		return e.transport, nil
	case e.command != "" && e.url != "":
		return "", errors.New(`it has both "command" and "url", and no "type" that says which counts`)
	case e.command != "":
		return TransportStdio, nil
	case e.url == "":
		return "", errors.New(`it has neither "command" nor "url"`)
	}
	path, _, _ := strings.Cut(e.url, "?")
	if strings.HasSuffix(strings.TrimRight(path, "/"), "/sse") {
		return TransportSSE, nil
	}
	return TransportHTTP, nil
}

// resolve checks an entry, expands its variables and makes paths absolute.
func (l *loader) resolve(at location, e entry) (Server, error) {
	if err := checkName(e.name); err != nil {
		return Server{}, err
	}
	if e.err != nil {
		return Server{}, e.err
	}
	warn := func(field, message string) {
		if !e.disabled { // nobody waits for it
			l.problem(at.path, e.name, field+": "+message)
		}
	}
	var changed string // a file that isn't what was trusted
	read := func(path string, limit int) ([]byte, error) {
		data, err := l.readNamed(at, path, limit)
		if errors.Is(err, errNotTrusted) {
			changed = path
		}
		return data, err
	}
	x := expander{lookup: l.opts.LookupEnv, home: l.opts.Home, workspace: l.workspace(), read: read, missing: warn}
	kind, err := e.kind()
	if err != nil {
		return Server{}, err
	}
	s := Server{
		Name:        e.name,
		Transport:   kind,
		Timeout:     e.timeout,
		Description: strings.ToValidUTF8(e.description, "\uFFFD"),
		Source:      at.path,
		Disabled:    e.disabled,
	}
	for _, field := range e.ignored {
		name, why, _ := strings.Cut(field, ": ")
		warn(name, why)
	}
	if kind != TransportStdio {
		s.URL = x.expand("url", e.url)
		s.Headers = x.expandMap("headers", e.headers)
		s.OAuth, err = x.oauth(e.oauth)
		if changed != "" {
			return Server{}, changedError(at, changed)
		}
		if err != nil {
			return Server{}, err
		}
		return s, checkHTTP(s)
	}
	s.Command = l.home(x.expand("command", e.command))
	s.Cwd = l.path(at, x.expand("cwd", e.cwd))
	for i, arg := range e.args {
		s.Args = append(s.Args, x.expand(fmt.Sprintf("args[%d]", i), arg))
	}
	s.Env = x.expandMap("env", e.env)
	if file := l.path(at, x.expand("envFile", e.envFile)); file != "" {
		more, err := readEnvFile(file, read)
		if err != nil && changed == "" {
			warn("envFile", "its variables are missing: "+err.Error())
		}
		maps.Copy(more, s.Env)
		if len(more) > 0 {
			s.Env = more
		}
	}
	if changed != "" {
		return Server{}, changedError(at, changed)
	}
	if err := checkCommand(s); err != nil {
		return Server{}, err
	}
	if !l.opts.AllowSelf && l.self.starts(s.Command, s.Args) {
		return Server{}, errSelf
	}
	return s, nil
}

// changedError is the error of a project's entry whose values come from a file
// that isn't what was trusted.
func changedError(at location, file string) error {
	return fmt.Errorf("%s is not what was trusted; look at it again with codeexec servers trust %s",
		relative(at.project, file), ShellWord(at.project))
}

// errSelf is the error of entries that would start codeexec.
var errSelf = errors.New("it would start codeexec itself")

// path makes a path absolute. A file means paths beside itself, wherever
// codeexec is started from.
func (l *loader) path(at location, path string) string {
	if path = l.home(path); path == "" || filepath.IsAbs(path) || at.path == flagSource {
		return path
	}
	return filepath.Join(at.base(), path)
}

// home replaces a leading "~/", which no shell will replace.
func (l *loader) home(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || l.opts.Home == "" || rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
		return path
	}
	return l.opts.Home + rest
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

// checkCommand finds an empty command, and the NUL bytes that no operating
// system takes in an argument.
func checkCommand(s Server) error {
	const message = " has a NUL character in it"
	if s.Command == "" {
		return errors.New(`it has no "command"`)
	}
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

// checkHTTP finds what can't be sent as an HTTP request.
func checkHTTP(s Server) error {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("url must be absolute and begin with http:// or https://")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if !isToken(name) {
			return fmt.Errorf("headers.%q can't be the name of a header", name)
		}
		if strings.ContainsFunc(s.Headers[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return fmt.Errorf("headers.%s has a line break or another control character in it", name)
		}
	}
	return nil
}

// isToken reports whether s is a token as RFC 9110 defines it, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// ignoredFields are fields of other clients that change what a server can do
// or may do. What they ask for doesn't happen here, which their owner must
// know.
func ignoredField(name string) (why string, ok bool) {
	switch name {
	case "headersHelper":
		return "no program is run for headers, the server may refuse us", true
	case "includeTools", "excludeTools", "disabledTools", "enabled_tools", "disabled_tools":
		return "all tools can be called; deny them in codeexec.toml", true
	}
	return "", false
}
