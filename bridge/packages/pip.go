package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// requirement is a name, extras, and versions, as pip takes them on its command line. There are no URLs, paths
// and options, which do more than to choose from the index that the owner has set up.
var requirement = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[A-Za-z0-9._,\s-]*\])?\s*((===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+(\s*,\s*(==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+)*)?$`)

// IsRequirement reports whether a text is a requirement such as "attrs>=23", as [Download] takes it.
func IsRequirement(text string) bool { return requirement.MatchString(text) }

// ErrNoPip means that the machine has no pip.
var ErrNoPip = errors.New("there is no pip on this machine; download the wheel of the package elsewhere (its name ends with -py3-none-any.whl), and name that file")

// pipGrace is how long pip has to end when it is stopped.
const pipGrace = 5 * time.Second

// Download lets the machine's pip fetch the wheels of a requirement, and of all that it needs, into a
// directory, and returns their paths, that of the requirement's own first. Only wheels of pure Python are
// fetched. pip runs no code of the packages for that.
func Download(ctx context.Context, wanted, dir string) ([]string, error) {
	if !IsRequirement(wanted) {
		return nil, fmt.Errorf("%q is no requirement such as attrs or attrs>=23", wanted)
	}
	command, err := findPip()
	if err != nil {
		return nil, err
	}
	arguments := append(command[1:],
		"download", "--only-binary=:all:", "--platform", "any", "--python-version", Python, "--implementation", "py", "--abi", "none",
		"--dest", dir, "--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--", wanted)
	cmd := exec.CommandContext(ctx, command[0], arguments...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = pipGrace
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("pip got no pure-Python wheels for %q (%w):\n%s", wanted, err, lastLines(output.String()))
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil {
		return nil, err
	}
	own := slices.IndexFunc(wheels, func(name string) bool {
		stem, _, _ := strings.Cut(filepath.Base(name), "-")
		return normalized(stem) == normalized(requiredName(wanted))
	})
	if own < 0 {
		return nil, fmt.Errorf("pip downloaded no wheel of %s:\n%s", requiredName(wanted), lastLines(output.String()))
	}
	wheels[0], wheels[own] = wheels[own], wheels[0]
	return wheels, nil
}

// findPip returns the beginning of a command line of pip.
func findPip() ([]string, error) {
	for _, name := range []string{"pip3", "pip"} {
		if found, err := exec.LookPath(name); err == nil {
			return []string{found}, nil
		}
	}
	for _, name := range []string{"python3", "python"} {
		if found, err := exec.LookPath(name); err == nil && exec.Command(found, "-c", "import pip").Run() == nil {
			return []string{found, "-m", "pip"}, nil
		}
	}
	return nil, ErrNoPip
}

// MakeTemp makes a directory for [Download]. The function that is returned removes it.
func MakeTemp() (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp("", "codeexec-wheels-"); err != nil {
		return "", nil, err
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// lastLines returns the end of what pip has said, with the last of its attempts to connect only.
func lastLines(text string) string {
	const most = 8
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if last := len(lines) - 1; last >= 0 && isRetry(line) && isRetry(lines[last]) {
			lines[last] = line
		} else {
			lines = append(lines, line)
		}
	}
	lines = lines[max(0, len(lines)-most):]
	for i, line := range lines {
		if len(line) > 500 {
			lines[i] = line[:500] + "…"
		}
	}
	return "  " + strings.Join(lines, "\n  ")
}

func isRetry(line string) bool { return strings.HasPrefix(line, "WARNING: Retrying") }
