package bridge

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/catalog"
	"codeexec/bridge/upstream"
	"codeexec/wasmhost"
)

// writeFiles makes files in a new directory.
func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestResourcesAreListedInAStableOrder(t *testing.T) {
	dir := writeFiles(t, map[string]string{"executions/1/a.csv": "a", "executions/2/data/b c.txt": "b", "memory/secret.json": "{}"})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "executions/1/a.csv"), old, old); err != nil {
		t.Fatal(err)
	}
	up := &fakeUpstreams{servers: someServers(), tools: map[string][]catalog.Tool{"git-hub": {{Name: "a"}}, "off": {{Name: "b"}}}}
	b, _ := newFakeBridge(t, Options{Projects: dir, KeepOutput: time.Hour}, nil, up)
	session := connect(t, b, ServerOptions{})
	callRunPython(t, session, map[string]any{"code": "hello"})
	want := []string{
		"codeexec://capabilities", "codeexec://executions", "codeexec://runs", "codeexec://servers", "codeexec://sessions",
		"codeexec://servers/git-hub/stubs.pyi",
		runURI(b.Runs("")[0].ID, "stdout"),
		"codeexec://executions/2/data/b%20c.txt", "codeexec://executions/1/a.csv",
	}
	for range 3 {
		list, err := session.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range list.Resources {
			got = append(got, r.URI)
			if r.Title == "" || r.MIMEType == "" {
				t.Errorf("%s has title %q and type %q", r.URI, r.Title, r.MIMEType)
			}
			if strings.HasSuffix(r.URI, "stubs.pyi") {
				continue // takes Python
			}
			if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: r.URI}); err != nil {
				t.Errorf("%s: %v", r.URI, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestReadResource(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"executions/1/a.csv":   "a,b\n",
		"executions/1/p.png":   "\x89PNG\x00\xff",
		"executions/1/ü&?#.md": "text",
		"executions/1/plain":   "x",
		"memory/secret.json":   "{}",
	})
	os.Symlink("../../memory/secret.json", filepath.Join(dir, "executions/1/link"))
	os.Symlink("/etc/hostname", filepath.Join(dir, "executions/1/away"))
	large := filepath.Join(dir, "executions/1/large")
	if err := os.WriteFile(large, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxResourceFile+1); err != nil {
		t.Fatal(err)
	}
	b, _ := newFakeBridge(t, Options{Projects: dir, KeepOutput: time.Hour}, nil, nil)
	session := connect(t, b, ServerOptions{})
	callRunPython(t, session, map[string]any{"code": "hello", "session": "a/b c"})
	tests := []struct {
		name, uri  string
		want       string // part of the text, or the whole blob
		mimeType   string
		wantsError string
	}{
		{name: "sessions", uri: "codeexec://sessions", want: `"name": "a/b c"`, mimeType: "application/json"},
		{name: "a session", uri: "codeexec://sessions/a%2Fb%20c", want: `"state": "idle"`, mimeType: "application/json"},
		{name: "no session", uri: "codeexec://sessions/other", wantsError: "not found"},
		{name: "runs", uri: "codeexec://runs", want: `"stdout": 5`, mimeType: "application/json"},
		{name: "no run", uri: "codeexec://runs/x/stdout", wantsError: "not found"},
		{name: "no text of a run", uri: runURI(b.Runs("")[0].ID, "stdin"), wantsError: "not found"},
		{name: "servers", uri: "codeexec://servers", want: `"alias": "git_hub"`, mimeType: "application/json"},
		{name: "stubs of no server", uri: "codeexec://servers/flies/stubs.pyi", wantsError: `did you mean "files"?`},
		{name: "stubs of a disabled server", uri: "codeexec://servers/off/stubs.pyi", wantsError: "unknown server"},
		{name: "executions", uri: "codeexec://executions", want: `"path": "1/a.csv"`, mimeType: "application/json"},
		{name: "a text", uri: "codeexec://executions/1/a.csv", want: "a,b\n", mimeType: "text/csv"},
		{name: "a picture", uri: "codeexec://executions/1/p.png", want: "\x89PNG\x00\xff", mimeType: "image/png"},
		{name: "an odd name", uri: executionURI("1/ü&?#.md"), want: "text"},
		{name: "no extension", uri: "codeexec://executions/1/plain", want: "x", mimeType: "text/plain"},
		{name: "no file", uri: "codeexec://executions/1/none", wantsError: "not found"},
		{name: "a folder", uri: "codeexec://executions/1", wantsError: "not found"},
		{name: "too large a file", uri: "codeexec://executions/1/large", wantsError: "larger than 16 MiB"},
		{name: "a way out", uri: "codeexec://executions/../memory/secret.json", wantsError: "not found"},
		{name: "an escaped way out", uri: "codeexec://executions/%2e%2e/memory/secret.json", wantsError: "not found"},
		{name: "an absolute path", uri: "codeexec://executions//etc/hostname", wantsError: "not found"},
		{name: "a link within /projects", uri: "codeexec://executions/1/link", wantsError: "not found"},
		{name: "a link out of it", uri: "codeexec://executions/1/away", wantsError: "not found"},
		{name: "nothing", uri: "codeexec://nothing", wantsError: "not found"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: tc.uri})
			if tc.wantsError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantsError) {
					t.Errorf("got %+v, %v", read, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c := read.Contents[0]
			if got := c.Text + string(c.Blob); !strings.Contains(got, tc.want) || tc.mimeType != "" && c.MIMEType != tc.mimeType || c.URI != tc.uri {
				t.Errorf("%s, %s: %q", c.URI, c.MIMEType, got)
			}
		})
	}
}

// The signatures are those that a script sees; they are written in a sandbox of their own, which may do nothing.
func TestStubsAreMadeByAScript(t *testing.T) {
	code := "import mcp.runtime\nprint(mcp.runtime.stubs(\"git-hub\"), end='')\n"
	scripts := map[string]script{code: func(ctx context.Context, sb *fakeSandbox, req wasmhost.Request) (*wasmhost.Result, error) {
		var env guestEnv
		if err := json.Unmarshal(req.Env, &env); err != nil || len(env.Servers) != 1 || !env.Restricted {
			t.Errorf("env %s", req.Env)
		}
		if _, err := sb.call(ctx, "tools.list", map[string]any{"server": "files"}); err == nil {
			t.Error("another server is open to it")
		}
		if _, err := sb.call(ctx, "tools.call", map[string]any{"server": "git-hub", "tool": "x"}); err == nil {
			t.Error("it can call tools")
		}
		return succeed("def f() -> None: ...\n"), nil
	}}
	b, engine := newFakeBridge(t, Options{MaxSessions: 1}, scripts, nil)
	session := connect(t, b, ServerOptions{})
	callRunPython(t, session, map[string]any{"code": "x = 1"})
	for _, uri := range []string{"codeexec://servers/git-hub/stubs.pyi", "codeexec://servers/git_hub/stubs.pyi"} {
		read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || read.Contents[0].Text != "def f() -> None: ...\n" || read.Contents[0].MIMEType != "text/x-python" {
			t.Errorf("%s: %+v, %v", uri, read, err)
		}
	}
	if engine.alive != 1 || len(b.Sessions("")) != 1 {
		t.Errorf("%d sandboxes, sessions %v", engine.alive, b.Sessions(""))
	}
}

func TestCacheHints(t *testing.T) {
	tests := []struct {
		name string
		req  mcp.Request
		want mcp.Cacheable
	}{
		{"tools", &mcp.ListToolsRequest{}, mcp.Cacheable{TTLMs: 300_000, CacheScope: "public"}},
		{"what comes and goes", &mcp.ListResourcesRequest{}, mcp.Cacheable{CacheScope: "private"}},
		{"the manual", &mcp.ReadResourceRequest{Params: &mcp.ReadResourceParams{URI: CapabilitiesURI}}, mcp.Cacheable{TTLMs: 300_000, CacheScope: "public"}},
		{"output", &mcp.ReadResourceRequest{Params: &mcp.ReadResourceParams{URI: runURI("x", "stdout")}}, mcp.Cacheable{TTLMs: 3_600_000, CacheScope: "private"}},
		{"sessions", &mcp.ReadResourceRequest{Params: &mcp.ReadResourceParams{URI: sessionsURI}}, mcp.Cacheable{CacheScope: "private"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var got mcp.Cacheable
			if cacheHints(t.Context(), tc.req, &got); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestPrompts(t *testing.T) {
	up := &fakeUpstreams{servers: someServers(), tools: map[string][]catalog.Tool{"git-hub": {{Name: "list-issues"}}}}
	b, _ := newFakeBridge(t, Options{}, nil, up)
	session := connect(t, b, ServerOptions{})
	list, err := session.ListPrompts(t.Context(), nil)
	if err != nil || len(list.Prompts) != 2 || list.Prompts[0].Name != "explore_server" || list.Prompts[1].Name != "write_script" {
		t.Fatalf("got %+v, %v", list, err)
	}
	tests := []struct {
		name, prompt string
		arguments    map[string]string
		want         []string // in the text, or in the error
		fails        bool
	}{
		{name: "the pattern", prompt: "write_script", want: []string{"`run_python` for what I ask for next.", "runtime.search_tool_docs", "asyncio.gather", "runtime.MCPError"}},
		{name: "a task", prompt: "write_script", arguments: map[string]string{"task": " Count {{.}} ", "session": "work"}, want: []string{"this task: Count {{.}}\n", `session="work"`}},
		{name: "an impossible session", prompt: "write_script", arguments: map[string]string{"session": "a\nb"}, want: []string{"can't be printed"}, fails: true},
		{name: "a server", prompt: "explore_server", arguments: map[string]string{"server": "files"}, want: []string{`"files" (Files)`, "mcp_files.", `query_tool_docs("files")`}},
		{name: "a known server by its alias", prompt: "explore_server", arguments: map[string]string{"server": "git_hub"}, want: []string{`"git-hub" with`, "It has 1 tools: `list_issues`."}},
		{name: "no server", prompt: "explore_server", want: []string{"server is missing"}, fails: true},
		{name: "an unknown server", prompt: "explore_server", arguments: map[string]string{"server": "githug"}, want: []string{`did you mean "git-hub"?`}, fails: true},
		{name: "a disabled server", prompt: "explore_server", arguments: map[string]string{"server": "off"}, want: []string{"unknown server"}, fails: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			res, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: tc.prompt, Arguments: tc.arguments})
			var text string
			switch {
			case tc.fails != (err != nil):
				t.Fatalf("got %+v, %v", res, err)
			case err != nil:
				text = err.Error()
			default:
				text = res.Messages[0].Content.(*mcp.TextContent).Text
			}
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q lacks %q", text, want)
				}
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	up := &fakeUpstreams{servers: someServers()}
	for i := range 150 {
		up.servers = append(up.servers, upstream.Info{Name: "many" + strings.Repeat("x", i), Alias: "many" + strings.Repeat("x", i), Tools: -1})
	}
	b, _ := newFakeBridge(t, Options{}, nil, up)
	session := connect(t, b, ServerOptions{})
	for _, name := range []string{"work", "default"} {
		callRunPython(t, session, map[string]any{"code": "x", "session": name})
	}
	prompt := func(name string) *mcp.CompleteReference {
		return &mcp.CompleteReference{Type: "ref/prompt", Name: name}
	}
	resource := func(uri string) *mcp.CompleteReference { return &mcp.CompleteReference{Type: "ref/resource", URI: uri} }
	tests := []struct {
		name, argument, value string
		ref                   *mcp.CompleteReference
		want                  []string // nil: 100 of more
	}{
		{"a beginning", "server", "FI", prompt("explore_server"), []string{"files"}},
		{"a part", "server", "hub", resource(stubsTemplate), []string{"git-hub"}},
		{"a typo", "server", "flies", prompt("explore_server"), []string{"files"}},
		{"a disabled one", "server", "of", prompt("explore_server"), []string{}},
		{"very many", "server", "many", prompt("explore_server"), nil},
		{"sessions", "session", "", resource(sessionTemplate), []string{"default", "work"}},
		{"a session", "session", "w", prompt("write_script"), []string{"work"}},
		{"texts of a run", "text", "std", resource(runTemplate), []string{"stdout", "stderr"}},
		{"free text", "task", "x", prompt("write_script"), []string{}},
		{"no such prompt", "server", "", prompt("nothing"), []string{}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			res, err := session.Complete(t.Context(), &mcp.CompleteParams{Ref: tc.ref, Argument: mcp.CompleteParamsArgument{Name: tc.argument, Value: tc.value}})
			if err != nil {
				t.Fatal(err)
			}
			got := res.Completion
			if tc.want == nil && (len(got.Values) != 100 || !got.HasMore || got.Total != 150) || tc.want != nil && !slices.Equal(got.Values, tc.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// What a client gets before it has asked for anything.
func TestHello(t *testing.T) {
	b, _ := newFakeBridge(t, Options{}, nil, nil)
	hello := connect(t, b, ServerOptions{}).InitializeResult()
	if n := len(hello.Instructions); n == 0 || n > 400 {
		t.Errorf("the instructions have %d bytes", n)
	}
	if icons := hello.ServerInfo.Icons; len(icons) != 1 || len(icons[0].Source) > 400 || hello.ServerInfo.Title == "" {
		t.Errorf("got %+v", hello.ServerInfo)
	}
	c := hello.Capabilities
	if c.Completions == nil || c.Prompts == nil || c.Prompts.ListChanged || c.Resources == nil || c.Resources.ListChanged || c.Tools == nil || c.Tools.ListChanged {
		t.Errorf("got %+v", c)
	}
}
