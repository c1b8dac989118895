package upstream

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An environ is a set of environment variables. On Windows, where case doesn't
// count, its keys are in upper case.
type environ map[string]string

// variableKey is the key of a variable. goos is the operating system, here and
// below, as [runtime.GOOS] names it.
func variableKey(goos, name string) string {
	if goos == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// list returns the variables as the operating system takes them, sorted.
func (e environ) list() []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(e)) {
		list = append(list, key+"="+e[key])
	}
	return list
}

// inherited reports whether a server gets the variable of the host: where
// things are and how the user likes them, never anything that may be secret.
// A server that needs more says so in its "env": {"TOKEN": "${TOKEN}"}.
func inherited(goos, key string) bool {
	if strings.HasPrefix(key, "LC_") {
		return true
	}
	switch key {
	case "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
		"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME":
		return true
	case "ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAMFILES", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA",
		"NUMBER_OF_PROCESSORS", "OS", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES",
		"PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR":
		return goos == "windows"
	}
	return false
}

// serverEnviron makes the environment of a server from the host's (in the form
// of [os.Environ]) and what is configured for it.
func serverEnviron(goos string, host []string, configured map[string]string) environ {
	env := make(environ)
	if goos == "windows" {
		env["PYTHONUTF8"] = "1" // Python would write in the console's code page
	}
	for _, variable := range host {
		key, value, ok := strings.Cut(variable, "=")
		// A value that begins with () is a function that an old bash exports.
		if key = variableKey(goos, key); ok && inherited(goos, key) && !strings.HasPrefix(value, "()") {
			env[key] = value
		}
	}
	env["PATH"] = widenPath(goos, env["PATH"], env)
	for key, value := range configured {
		env[variableKey(goos, key)] = value
	}
	return env
}

// widenPath appends the directories that hold npx, uvx, docker and the like on
// many machines. A program that a desktop starts has a PATH without them, and
// what works in the user's terminal would not work here.
func widenPath(goos, path string, env environ) string {
	home := env["HOME"]
	var more []string
	if goos == "windows" {
		home = env["USERPROFILE"]
		more = []string{
			filepath.Join(env["APPDATA"], "npm"),
			filepath.Join(env["PROGRAMFILES"], "nodejs"),
			filepath.Join(env["LOCALAPPDATA"], "Programs", "uv"),
		}
	} else {
		more = []string{
			"/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin",
			"/usr/bin", "/bin", "/usr/sbin", "/sbin", "/snap/bin",
		}
	}
	for _, dir := range []string{".local/bin", ".cargo/bin", ".bun/bin", ".deno/bin", ".volta/bin", ".asdf/shims",
		".local/share/mise/shims", ".nix-profile/bin", "go/bin"} {
		more = append(more, filepath.Join(home, filepath.FromSlash(dir)))
	}
	dirs := filepath.SplitList(path)
	for _, dir := range append(more, nodeVersions(home)...) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && filepath.IsAbs(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// nodeVersions returns where nvm and fnm keep the newest Node.js.
func nodeVersions(home string) []string {
	if !filepath.IsAbs(home) {
		return nil
	}
	var dirs []string
	for _, pattern := range []string{".nvm/versions/node/v*/bin", ".local/share/fnm/node-versions/v*/installation/bin"} {
		found, err := filepath.Glob(filepath.Join(home, filepath.FromSlash(pattern)))
		if err == nil && len(found) > 0 {
			dirs = append(dirs, slices.MaxFunc(found, compareVersions))
		}
	}
	return dirs
}

// compareVersions orders paths as versions: v9 before v20.
func compareVersions(a, b string) int {
	number := func(s string) (n, rest string) {
		i := 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return strings.TrimLeft(s[:i], "0"), s[i:]
	}
	for a != "" && b != "" {
		na, ra := number(a)
		nb, rb := number(b)
		if len(ra) == len(a) || len(rb) == len(b) { // no number in one of them
			if a[0] != b[0] {
				return int(a[0]) - int(b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		if len(na) != len(nb) {
			return len(na) - len(nb)
		}
		if c := strings.Compare(na, nb); c != 0 {
			return c
		}
		a, b = ra, rb
	}
	return len(a) - len(b)
}

// findProgram returns the path of a command in the environment it will run in.
// Unlike [os/exec.LookPath] it searches that environment's PATH, not our own.
func findProgram(goos, command, dir string, env, host environ) (string, error) {
	if strings.ContainsRune(command, '/') || strings.ContainsRune(command, os.PathSeparator) {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		if found, ok := executable(goos, abs, env); ok {
			return found, nil
		}
		if _, err := os.Stat(abs); err != nil {
			return "", fmt.Errorf("there is no program %s", abs)
		}
		return "", fmt.Errorf("%s is not an executable program", abs)
	}
	// A configured PATH may have forgotten where the program itself is.
	for _, path := range []string{env["PATH"], host["PATH"]} {
		for _, entry := range filepath.SplitList(path) {
			if !filepath.IsAbs(entry) {
				continue // a program in the current directory isn't what was meant
			}
			if found, ok := executable(goos, filepath.Join(entry, command), env); ok {
				return found, nil
			}
		}
	}
	return "", fmt.Errorf("the program %q is not on PATH; install it, or configure its whole path as \"command\"", command)
}

// executable returns the file that runs when path is started.
func executable(goos, path string, env environ) (string, bool) {
	isFile := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.IsDir() && (goos == "windows" || info.Mode()&0o111 != 0)
	}
	if goos != "windows" {
		return path, isFile(path)
	}
	extensions := env["PATHEXT"]
	if extensions == "" {
		extensions = ".COM;.EXE;.BAT;.CMD"
	}
	for _, ext := range strings.Split(extensions, ";") {
		if strings.EqualFold(filepath.Ext(path), ext) && isFile(path) {
			return path, true
		}
		if isFile(path + ext) {
			return path + ext, true
		}
	}
	return "", false
}
