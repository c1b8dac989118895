package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"codeexec/bridge"
	"codeexec/bridge/artifact"
	"codeexec/bridge/config"
)

// An environment looks up environment variables.
type environment func(name string) (string, bool)

// variable returns the value of CODEEXEC_<name>, or of MCP_BRIDGE_<name>, by which the original system
// called it, and the full name of what it found. A variable that is empty counts as absent.
func (env environment) variable(name string) (value, found string) {
	for _, prefix := range []string{"CODEEXEC_", "MCP_BRIDGE_"} {
		if v, _ := env(prefix + name); strings.TrimSpace(v) != "" {
			return strings.TrimSpace(v), prefix + name
		}
	}
	return "", ""
}

// settings are what the environment decides.
type settings struct {
	timeout    time.Duration // of a run; 0: the default
	maxTimeout time.Duration // 0: the default
	idle       time.Duration // after which a session is dropped; 0: the default
	sessions   int           // that are kept; 0: the default
	calls      int           // tool calls of a run; 0: the default
	inFlight   int           // tool calls in flight to one server; 0: the default
	runs       int           // scripts that run and wait at once, of all clients over HTTP; 0: the default
	token      string        // of clients over HTTP, see httpserve.ParseTokens
	memory     int64         // bytes of linear memory of a sandbox
	stateDir   string        // configuration of servers, and what scripts keep
	cacheDir   string        // compiled code and what is known of servers; empty: the user's cache directory
	text       bridge.TextForm
	keepRuns   artifact.Mode // which runs have a folder for what they save
	logLevel   slog.Level
	sources    []config.Source // where servers are looked for; nil: the default
	allowSelf  bool            // servers that would start codeexec itself are kept
}

// read reads the settings. What can't be used is left at its default, and in the list of warnings: a client
// that starts the server shows nobody why it failed.
func (env environment) read(defaultLevel slog.Level) (settings, []error) {
	s := settings{memory: defaultMemory, text: bridge.TextCompact, logLevel: defaultLevel}
	var warnings []error
	warn := func(err error) {
		if err != nil {
			warnings = append(warnings, err)
		}
	}
	warn(set(env, "TIMEOUT", &s.timeout, parseSeconds))
	warn(set(env, "MAX_TIMEOUT", &s.maxTimeout, parseSeconds))
	warn(set(env, "SESSION_IDLE", &s.idle, parseSeconds))
	warn(set(env, "MAX_SESSIONS", &s.sessions, parseCount))
	warn(set(env, "MAX_CALLS", &s.calls, parseCount))
	warn(set(env, "MAX_IN_FLIGHT", &s.inFlight, parseCount))
	warn(set(env, "MAX_RUNS", &s.runs, parseCount))
	s.token, _ = env.variable("HTTP_TOKEN")
	warn(set(env, "MEMORY", &s.memory, parseSize))
	warn(set(env, "STATE_DIR", &s.stateDir, filepath.Abs))
	warn(set(env, "CACHE_DIR", &s.cacheDir, filepath.Abs))
	warn(set(env, "OUTPUT_MODE", &s.text, parseTextForm))
	warn(set(env, "KEEP_RUNS", &s.keepRuns, parseKeepRuns))
	warn(set(env, "LOG_LEVEL", &s.logLevel, parseLevel))
	warn(set(env, "SOURCES", &s.sources, config.ParseSources))
	warn(set(env, "ALLOW_SELF_SERVER", &s.allowSelf, parseBool))
	if s.stateDir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			warn(fmt.Errorf("no state directory: %w; set CODEEXEC_STATE_DIR", err))
		} else {
			s.stateDir = filepath.Join(home, "MCPs")
		}
	}
	return s, warnings
}

// set sets dst to what the variable says, if it exists and can be parsed.
func set[T any](env environment, name string, dst *T, parse func(string) (T, error)) error {
	value, found := env.variable(name)
	if found == "" {
		return nil
	}
	parsed, err := parse(value)
	if err != nil {
		return fmt.Errorf("%s=%q is ignored: %w", found, value, err)
	}
	*dst = parsed
	return nil
}

// parseSeconds reads a time limit: "30", "1.5" seconds, or with a unit ("90s", "2m").
func parseSeconds(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if f, ferr := strconv.ParseFloat(v, 64); ferr == nil && f < math.MaxInt64/float64(time.Second) {
		d, err = time.Duration(f*float64(time.Second)), nil
	}
	switch {
	case err != nil:
		return 0, errors.New("want a number of seconds, such as 30")
	case d < time.Second:
		return 0, errors.New("want at least 1 second")
	}
	return d, nil
}

// parseCount reads how many of something there may be.
func parseCount(v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return 0, errors.New("want a number of at least 1")
	}
	return n, nil
}

const (
	defaultMemory = 256 << 20
	minMemory     = 64 << 20 // what the interpreter needs for itself and a small script
	maxMemory     = 4 << 30  // what 32-bit code can use
)

// parseSize reads a number of bytes: "268435456", or with a binary unit ("256MiB", "512m", "1g").
func parseSize(v string) (int64, error) {
	digits := strings.TrimRight(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	n, err := strconv.ParseInt(digits, 10, 64)
	shift, ok := map[string]int{
		"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20, "g": 30, "gb": 30, "gib": 30,
	}[strings.ToLower(strings.TrimSpace(v[len(digits):]))]
	if err != nil || !ok || n < 0 || n > math.MaxInt64>>shift {
		return 0, errors.New("want a size, such as 256MiB")
	}
	switch n <<= shift; {
	case n < minMemory:
		return 0, errors.New("want at least 64MiB")
	case n > maxMemory:
		return 0, errors.New("want at most 4GiB")
	}
	return n, nil
}

func parseLevel(v string) (level slog.Level, err error) {
	if strings.EqualFold(v, "warning") {
		v = "warn"
	}
	if level.UnmarshalText([]byte(v)) != nil {
		return 0, errors.New("want debug, info, warn or error")
	}
	return level, nil
}

func parseTextForm(v string) (bridge.TextForm, error) {
	switch form := bridge.TextForm(strings.ToLower(v)); form {
	case bridge.TextCompact, bridge.TextJSON, bridge.TextTOON:
		return form, nil
	}
	return "", fmt.Errorf("want %s, %s or %s", bridge.TextCompact, bridge.TextJSON, bridge.TextTOON)
}

func parseKeepRuns(v string) (artifact.Mode, error) {
	switch mode := artifact.Mode(strings.ToLower(v)); mode {
	case artifact.Written, artifact.All, artifact.None:
		return mode, nil
	}
	return "", fmt.Errorf("want %s, %s or %s", artifact.Written, artifact.All, artifact.None)
}

func parseBool(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, errors.New("want 1 or 0")
}
