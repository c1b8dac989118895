package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeexec/bridge/config"
	"codeexec/testdata/npm"
)

// The reference server over both HTTP transports.
func TestServerFromNPMOverHTTP(t *testing.T) {
	bin := npm.Need(t, npm.Bin)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	tests := []struct{ mode, path, transport string }{
		{"streamableHttp", "/mcp", config.TransportHTTP},
		{"sse", "/sse", config.TransportSSE},
		{"sse", "/sse", config.TransportHTTP}, // which is found out
	}
	for _, tc := range tests {
		t.Run(tc.mode+" as "+tc.transport, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			port := listener.Addr().(*net.TCPAddr).Port
			listener.Close()
			cmd := exec.CommandContext(ctx, filepath.Join(bin, "mcp-server-everything"), tc.mode)
			cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			url := fmt.Sprintf("http://127.0.0.1:%d%s", port, tc.path)
			eventually(t, "the server listens", func() bool {
				conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
				if err != nil {
					time.Sleep(50 * time.Millisecond)
					return false
				}
				conn.Close()
				return true
			})
			m := start(t, Options{StartTimeout: time.Minute}, config.Server{Name: "stub", URL: url, Transport: tc.transport})
			client := accepting()
			call := func(tool string, args string) string {
				t.Helper()
				result, err := m.Call(WithClient(ctx, client), "stub", tool, json.RawMessage(args))
				if err != nil {
					t.Fatalf("%s: %v", tool, err)
				}
				data, err := json.Marshal(result)
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			for _, step := range []struct{ tool, args, want string }{
				{"echo", `{"message":"grüezi"}`, "Echo: grüezi"},
				{"get-sum", `{"a":2,"b":40}`, "42"},
				{"get-structured-content", `{"location":"New York"}`, `"structuredContent"`},
				{"trigger-long-running-operation", `{"duration":1,"steps":3}`, "completed"},
				{"trigger-elicitation-request", `{}`, "accept"},
				{"trigger-sampling-request", `{"prompt":"hi","maxTokens":5}`, "sampled"},
			} {
				if got := call(step.tool, step.args); !strings.Contains(got, step.want) {
					t.Errorf("%s: %s, want … %s", step.tool, got, step.want)
				}
			}
			if got := client.seen(); len(got) == 0 {
				t.Error("there was no progress")
			}
			closeManager(t, m)
			http.DefaultClient.CloseIdleConnections()
		})
	}
}
