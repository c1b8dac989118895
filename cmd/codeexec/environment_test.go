package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"codeexec/bridge"
)

func TestEnvironment(t *testing.T) {
	tests := []struct {
		name    string
		vars    map[string]string
		check   func(settings) bool
		warning string
	}{
		{"defaults", nil, func(s settings) bool {
			return s.timeout == 0 && s.maxTimeout == 0 && s.memory == 256<<20 && s.text == bridge.TextCompact && s.logLevel == slog.LevelInfo && !s.allowSelf
		}, ""},
		{"the older names", map[string]string{"MCP_BRIDGE_TIMEOUT": "45", "MCP_BRIDGE_MEMORY": "512m", "MCP_BRIDGE_LOG_LEVEL": "warning", "MCP_BRIDGE_ALLOW_SELF_SERVER": "1"}, func(s settings) bool {
			return s.timeout == 45*time.Second && s.memory == 512<<20 && s.logLevel == slog.LevelWarn && s.allowSelf
		}, ""},
		{"ours win", map[string]string{"MCP_BRIDGE_MAX_TIMEOUT": "45", "CODEEXEC_MAX_TIMEOUT": "2m"}, func(s settings) bool { return s.maxTimeout == 2*time.Minute }, ""},
		{"empty is absent", map[string]string{"MCP_BRIDGE_TIMEOUT": "45", "CODEEXEC_TIMEOUT": " "}, func(s settings) bool { return s.timeout == 45*time.Second }, ""},
		{"fractions", map[string]string{"CODEEXEC_TIMEOUT": "1.5"}, func(s settings) bool { return s.timeout == 1500*time.Millisecond }, ""},
		{"json", map[string]string{"CODEEXEC_OUTPUT_MODE": "JSON"}, func(s settings) bool { return s.text == bridge.TextJSON }, ""},
		{"counts", map[string]string{"CODEEXEC_MAX_CALLS": "5", "CODEEXEC_MAX_IN_FLIGHT": "2", "CODEEXEC_MAX_SESSIONS": "3", "CODEEXEC_MAX_RUNS": "7"}, func(s settings) bool { return s.calls == 5 && s.inFlight == 2 && s.sessions == 3 && s.runs == 7 }, ""},
		{"a token", map[string]string{"CODEEXEC_HTTP_TOKEN": "ann:0123456789abcdef"}, func(s settings) bool { return s.token == "ann:0123456789abcdef" }, ""},
		{"no count", map[string]string{"CODEEXEC_MAX_CALLS": "none"}, func(s settings) bool { return s.calls == 0 }, `CODEEXEC_MAX_CALLS="none" is ignored`},
		{"toon", map[string]string{"CODEEXEC_OUTPUT_MODE": "toon"}, func(s settings) bool { return s.text == bridge.TextTOON }, ""},
		{"sources", map[string]string{"CODEEXEC_SOURCES": "default,cursor"}, func(s settings) bool { return len(s.sources) == 3 }, ""},
		{"no sources", map[string]string{"CODEEXEC_SOURCES": "none"}, func(s settings) bool { return s.sources != nil && len(s.sources) == 0 }, ""},
		{"an unknown source", map[string]string{"CODEEXEC_SOURCES": "netscape"}, func(s settings) bool { return s.sources == nil }, `CODEEXEC_SOURCES="netscape" is ignored: unknown source`},
		{"no number", map[string]string{"CODEEXEC_TIMEOUT": "NaN"}, func(s settings) bool { return s.timeout == 0 }, `CODEEXEC_TIMEOUT="NaN" is ignored`},
		{"too long for a duration", map[string]string{"CODEEXEC_TIMEOUT": "1e300"}, func(s settings) bool { return s.timeout == 0 }, `CODEEXEC_TIMEOUT="1e300" is ignored`},
		{"too short", map[string]string{"MCP_BRIDGE_TIMEOUT": "0"}, func(s settings) bool { return s.timeout == 0 }, `MCP_BRIDGE_TIMEOUT="0" is ignored: want at least 1 second`},
		{"too little memory", map[string]string{"CODEEXEC_MEMORY": "1k"}, func(s settings) bool { return s.memory == 256<<20 }, "want at least 64MiB"},
		{"too much memory", map[string]string{"CODEEXEC_MEMORY": "9223372036854775807g"}, func(s settings) bool { return s.memory == 256<<20 }, "want a size"},
		{"unknown level", map[string]string{"CODEEXEC_LOG_LEVEL": "chatty"}, func(s settings) bool { return s.logLevel == slog.LevelInfo }, "CODEEXEC_LOG_LEVEL"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			env := environment(func(name string) (string, bool) {
				v, ok := tc.vars[name]
				return v, ok
			})
			s, warnings := env.read(slog.LevelInfo)
			if !tc.check(s) {
				t.Errorf("got %+v", s)
			}
			var text []string
			for _, w := range warnings {
				text = append(text, w.Error())
			}
			if tc.warning == "" && len(text) > 0 || !strings.Contains(strings.Join(text, "\n"), tc.warning) {
				t.Errorf("warnings %q, want %q", text, tc.warning)
			}
		})
	}
}

func TestParseSize(t *testing.T) {
	tests := []struct {
		in   string
		want int64 // 0: an error
	}{
		{"268435456", 256 << 20}, {"256MiB", 256 << 20}, {"256 mb", 256 << 20}, {"1g", 1 << 30}, {"65536k", 64 << 20}, {"4GiB", 4 << 30},
		{"5GiB", 0}, {"-1g", 0}, {"1.5g", 0}, {"MiB", 0}, {"1T", 0}, {"", 0}, {"99999999999999999999", 0},
	}
	for _, tc := range tests {
		t.Run(tc.in, func(t *testing.T) {
			got, err := parseSize(tc.in)
			if got != tc.want || (err == nil) != (tc.want != 0) {
				t.Errorf("got %d, %v; want %d", got, err, tc.want)
			}
		})
	}
}
