//lint:file-ignore SA1019 Log messages of servers are deprecated, but in use for years to come.

package upstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Servers' log messages are asked for, as far as our log takes them, and get
// there with a level of ours.
func TestLogMessagesOfServers(t *testing.T) {
	say := func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "info", "notice", "warning", "emergency"} {
			err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "db", Data: map[string]any{"at": level}})
			if err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	}
	tests := []struct {
		name   string
		level  slog.Level
		want   []string // what is logged, in this order
		absent string
	}{
		{"all", slog.LevelDebug - 1, []string{"DEBUG-1", `at\":\"debug`, "DEBUG", `at\":\"info`, "INFO", `at\":\"notice`, "WARN", `at\":\"warning`, "WARN", `at\":\"emergency`}, "ERROR"},
		{"important ones", slog.LevelInfo, []string{"INFO", `at\":\"notice`, "WARN", `at\":\"warning`}, `at\":\"info`},
	}
	for _, tc := range tests {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(tc.name+" "+version, func(t *testing.T) {
				server := remoteServer(t, &mcp.ServerOptions{
					SupportedProtocolVersions: []string{version},
					Capabilities:              &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}},
				})
				server.AddTool(&mcp.Tool{Name: "log", InputSchema: json.RawMessage(`{"type":"object"}`)}, say)
				h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: version == "2026-07-28"})
				var log buffer
				m := start(t, Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: tc.level}))}, remoteConfig(serve(t, h).URL))
				eventually(t, "the log has what was said", func() bool {
					call(t, m, "log", "") // the first may come before its level has been set
					return strings.Contains(log.String(), "emergency")
				})
				rest := log.String()
				for _, want := range tc.want {
					_, after, ok := strings.Cut(rest, want)
					if !ok {
						t.Fatalf("%s isn't there, or out of order:\n%s", want, log.String())
					}
					rest = after
				}
				if strings.Contains(log.String(), tc.absent) {
					t.Errorf("%s is there:\n%s", tc.absent, log.String())
				}
			})
		}
	}
}

// What a server sends can't fill the disk by way of the log, whatever it is.
func TestLogOfAServerIsBounded(t *testing.T) {
	var log buffer
	c := newConn("stub", 0, logTo(&log))
	const sent = 20_000
	for range sent / 2 {
		c.logged(json.RawMessage(`{"level":"error","data":"again"}`))
		c.accept([]byte("{not JSON"), 0)
	}
	lines := strings.Count(log.String(), "\n")
	if lines < logBurst || lines > sent/10 {
		t.Errorf("%d messages made %d lines", sent, lines)
	}

	c.log.Handler().(quota).limiter.SetLimit(1e6)
	eventually(t, "it is said how many were left out", func() bool {
		c.logged(json.RawMessage(`{"level":"error","data":"again"}`))
		return strings.Contains(log.String(), "left_out_before=")
	})
}
