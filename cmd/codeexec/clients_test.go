package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/testdata/npm"
)

const testToken = "a-token-that-nobody-guesses"

// The inspector's command line, over both transports.
func TestInspector(t *testing.T) {
	bin := npm.Need(t, npm.Conformance)
	self, err := exec.LookPath("codeexec")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODEEXEC_HTTP_TOKEN", testToken)
	server := startHTTP(t)
	for transport, target := range map[string][]string{
		"stdio": {self, "serve", "--sources", "none"},
		"http":  {server.url, "--transport", "http", "--header", "Authorization: Bearer " + testToken},
	} {
		t.Run(transport, func(t *testing.T) {
			tests := []struct {
				method string
				args   []string
				want   []string
			}{
				{method: "tools/list", want: []string{`"run_python"`, `"outputSchema"`}},
				{method: "tools/call", args: []string{"--tool-name", "run_python", "--tool-arg", "code=print(6 * 7)"}, want: []string{`"status": "success"`, `42\n`}},
				{method: "resources/list", want: []string{`"codeexec://capabilities"`, `"codeexec://sessions"`}},
				{method: "prompts/list", want: []string{`"write_script"`, `"explore_server"`}},
			}
			for _, tc := range tests {
				t.Run(tc.method, func(t *testing.T) {
					args := []string{"--cli"}
					if transport == "stdio" { // what follows the command is the command's
						args = append(args, "--method", tc.method)
						args = append(append(args, tc.args...), append([]string{"--"}, target...)...)
					} else {
						args = append(append(args, target...), "--method", tc.method)
						args = append(args, tc.args...)
					}
					cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "mcp-inspector"), args...)
					cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
						"MCP_CATALOG_PATH="+filepath.Join(t.TempDir(), "catalog.json"))
					var stderr bytes.Buffer
					cmd.Stderr = &stderr
					out, err := cmd.Output()
					if err != nil {
						t.Fatalf("%v\n%s%s", err, out, &stderr)
					}
					for _, want := range tc.want {
						if !strings.Contains(string(out), want) {
							t.Errorf("%q is missing in\n%s", want, out)
						}
					}
				})
			}
		})
	}
}

// The TypeScript SDK's client over HTTP.
func TestTypeScriptClientOverHTTP(t *testing.T) {
	bin := npm.Need(t, npm.Bin)
	t.Setenv("CODEEXEC_HTTP_TOKEN", testToken)
	server := startHTTP(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "script.py")
	if err := os.WriteFile(script, []byte("import time\nprint('first', flush=True)\ntime.sleep(0.3)\nprint('second')\n40 + 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client := filepath.Join(filepath.Dir(filepath.Dir(bin)), "client.mjs") // an import is looked up beside it
	if err := copyFile(client, "../../testdata/npm/client.mjs"); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "node", client, script, server.url, testToken)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var answer struct {
		Tools    []string
		Progress []string
		Result   struct{ StructuredContent map[string]any }
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !slices.Equal(answer.Tools, []string{"run_python"}) || answer.Result.StructuredContent["result"] != "42" {
		t.Errorf("got %s", out)
	}
	if !strings.Contains(strings.Join(answer.Progress, "\n"), "first\nsecond") {
		t.Errorf("progress %q", answer.Progress)
	}
}

// withToken adds a token to requests.
type withToken string

func (t withToken) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+string(t))
	return http.DefaultTransport.RoundTrip(req)
}

// The go-sdk's client over both transports and in each version of the protocol. Over HTTP, two clients by name
// have sessions of their own, and each of them the same one in all versions.
func TestGoClient(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("ann:ann-"+testToken+"\nben:ben-"+testToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := startHTTP(t, "--token-file", tokens)
	transports := map[string]func() mcp.Transport{
		"stdio": func() mcp.Transport {
			return &mcp.CommandTransport{Command: exec.Command("codeexec", "serve", "--sources", "none")}
		},
	}
	for _, name := range []string{"ann", "ben"} {
		transports[name] = func() mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: server.url, HTTPClient: &http.Client{Transport: withToken(name + "-" + testToken)}}
		}
	}
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			lines := 0
			for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
				lines++
				if name == "stdio" {
					lines = 1 // a process for each
				}
				var mu sync.Mutex
				var progress []string
				client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
						mu.Lock()
						defer mu.Unlock()
						progress = append(progress, req.Params.Message)
					},
				})
				session, err := client.Connect(t.Context(), transport(), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatalf("%s: %v", version, err)
				}
				if got := session.InitializeResult().ProtocolVersion; got != version {
					t.Errorf("asked for %s, got %s", version, got)
				}
				params := &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{
					"code": fmt.Sprintf("seen = globals().get('seen', []) + [%q]\nprint(*seen, sep='\\n')\nlen(seen)", name),
				}}
				params.SetProgressToken("p")
				result, err := session.CallTool(t.Context(), params)
				if err != nil {
					t.Fatalf("%s: %v", version, err)
				}
				got, _ := result.StructuredContent.(map[string]any)
				if want := strings.Repeat(name+"\n", lines); got["stdout"] != want || got["result"] != fmt.Sprint(lines) {
					t.Errorf("%s: %v, want the output %q", version, got, want)
				}
				if err := session.Close(); err != nil {
					t.Errorf("%s: %v", version, err)
				}
				mu.Lock()
				if !strings.Contains(strings.Join(progress, "\n"), name) {
					t.Errorf("%s: progress %q", version, progress)
				}
				mu.Unlock()
			}
		})
	}
	if _, text := server.body(t, "/metrics"); !strings.Contains(text, `codeexec_runs_total{status="success"} 8`) || !strings.Contains(text, "codeexec_sessions 2") {
		t.Errorf("metrics:\n%s", text)
	}
}

// A script that is running when the server is told to stop has its time, and then an answer.
func TestServeHTTPStops(t *testing.T) {
	tests := []struct {
		name, grace, code, wantStatus string
	}{
		{"one that ends in time", "30s", "import time\nprint('on', flush=True)\ntime.sleep(0.5)", "success"},
		{"one that doesn't", "0s", "import time\nprint('on', flush=True)\ntime.sleep(60)", "cancelled"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			server := startHTTP(t, "--grace", tc.grace)
			running := make(chan struct{}, 100)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { running <- struct{}{} },
			})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.url, DisableStandaloneSSE: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				<-running
				server.stop(t)
			}()
			params := &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": tc.code}}
			params.SetProgressToken("p")
			result, err := session.CallTool(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			if got := result.StructuredContent.(map[string]any); got["status"] != tc.wantStatus || got["stdout"] != "on\n" {
				t.Errorf("got %v, want %s", got, tc.wantStatus)
			}
			<-stopped
		})
	}
}
