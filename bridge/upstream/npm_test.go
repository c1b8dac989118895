package upstream

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codeexec/bridge/catalog"
	"codeexec/bridge/config"
	"codeexec/testdata/npm"
)

// The servers that everybody starts with, as npm has them.
func TestServersFromNPM(t *testing.T) {
	bin := npm.Need(t, npm.Bin)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := func(name string, args ...string) config.Server {
		return config.Server{Name: name, Command: filepath.Join(bin, "mcp-server-"+name), Args: args,
			Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")}}
	}
	tests := []struct {
		server config.Server
		tools  []string // some of them
		tool   string
		args   any
		want   string // in the result
	}{
		{server("everything"), []string{"echo", "get-sum", "get-tiny-image"}, "echo",
			map[string]any{"message": "grüezi"}, "Echo: grüezi"},
		{server("everything"), nil, "get-sum", map[string]any{"a": 2, "b": 40}, "42"},
		{server("everything"), nil, "get-structured-content", map[string]any{"location": "New York"}, `"structuredContent"`},
		{server("filesystem", dir), []string{"read_text_file", "list_directory"}, "read_text_file",
			map[string]any{"path": filepath.Join(dir, "note.txt")}, "hello"},
		{server("memory"), []string{"create_entities", "read_graph"}, "create_entities",
			map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []string{"counts"}}}}, "Ada"},
		{server("sequential-thinking"), []string{"sequentialthinking"}, "sequentialthinking",
			map[string]any{"thought": "think", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false}, `"thoughtNumber":1`},
	}
	var servers []config.Server
	for _, tc := range tests {
		if !slices.ContainsFunc(servers, func(s config.Server) bool { return s.Name == tc.server.Name }) {
			servers = append(servers, tc.server)
		}
	}
	m := start(t, Options{StartTimeout: time.Minute}, servers...)
	for _, tc := range tests {
		t.Run(tc.server.Name+" "+tc.tool, func(t *testing.T) {
			tools, err := m.Tools(ctx, tc.server.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.tools {
				if !slices.ContainsFunc(tools, func(tool catalog.Tool) bool { return tool.Name == want }) {
					t.Errorf("there is no tool %s", want)
				}
			}
			args, err := json.Marshal(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			result, err := m.Call(ctx, tc.server.Name, tc.tool, args)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			if result.IsError || !strings.Contains(strings.ReplaceAll(string(got), `\`, ""), tc.want) {
				t.Errorf("result %s, want … %s", got, tc.want)
			}
		})
	}
}
