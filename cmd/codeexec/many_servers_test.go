package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/testdata/npm"
)

// A user's machine: the reference servers from npm, a remote one, one that prints banners, one with hundreds of
// tools over many pages, and two that are no good. The good ones work as if they were alone, and the others say
// what is wrong with them: to the script, and later to their owner.
func TestGoodServersBesideBadOnes(t *testing.T) {
	bin := npm.Need(t, npm.Bin)
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "note.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	stub := buildStub(t)
	args := []string{}
	for name, command := range map[string]string{
		"everything":          filepath.Join(bin, "mcp-server-everything"),
		"filesystem":          filepath.Join(bin, "mcp-server-filesystem") + " " + data,
		"memory":              filepath.Join(bin, "mcp-server-memory"),
		"sequential-thinking": filepath.Join(bin, "mcp-server-sequential-thinking"),
		"web":                 webServer(t),
		"mute":                stub + " -silent -stderr 1",
		"crashing":            stub + " -exit-on tools/call",
		"banners":             stub + " -banner 1000",
		"many":                stub + " -tools 300 -page 10",
	} {
		args = append(args, "--server", name+"="+command)
	}
	t.Setenv("CODEEXEC_STATE_DIR", t.TempDir())
	t.Setenv("CODEEXEC_CACHE_DIR", freshCache(t))
	session := serveHere(t, args)
	run := func(name, code string) runOutcome {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{
			"code": code, "session": name, "timeout": 120,
		}})
		if err != nil {
			t.Error(err)
			return runOutcome{}
		}
		var out runOutcome
		raw, err := json.Marshal(result.StructuredContent)
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		if err != nil {
			t.Error(err)
		}
		return out
	}

	// Somebody waits for the one that never answers, all the time.
	waiting := make(chan runOutcome, 1)
	go func() { waiting <- run("waiting", "await mcp_mute.say(text='x')") }()

	const good = `
import asyncio, json
async def attempt(call):
    try:
        return await call
    except Exception as error:
        return f"{type(error).__name__}: {error}"
results = await asyncio.gather(*map(attempt, [
    mcp_everything.echo(message="hi"),
    mcp_filesystem.read_text_file(path=` + "PATH" + `),
    mcp_memory.read_graph(),
    mcp_sequential_thinking.sequentialthinking(thought="t", thoughtNumber=1, totalThoughts=1, nextThoughtNeeded=False),
    mcp_web.echo(x=1),
    mcp_banners.say(text="after banners"),
    mcp_many.tool_0299(),
    mcp_crashing.say(text="x"),
    mcp_crashing.say(text="x"),
]))
for result in results:
    print(str(result)[:300].replace("\n", " "))
print(len(mcp_many.list_tools()))
`
	path, err := json.Marshal(filepath.Join(data, "note.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		got := run("good", strings.ReplaceAll(good, "PATH", string(path)))
		lines := strings.Split(got.Stdout, "\n")
		for i, want := range []string{"hi", "hello", "entities", "thoughtNumber", `"x":1`, "after banners", "", "ServerUnavailable: ", "ServerUnavailable: ", "341"} {
			if i >= len(lines) || !strings.Contains(lines[i], want) {
				t.Fatalf("round %d, line %d: want … %q\n%s%s", round, i, want, got.Stdout, got.Summary)
			}
		}
		if !strings.Contains(lines[7], "unexpected tools/call") {
			t.Errorf("the crash doesn't say why: %s", lines[7])
		}
		select {
		case out := <-waiting:
			if round == 0 {
				t.Errorf("the server that never answers did, or the good ones have waited for it: %+v", out)
			}
			waiting <- out
		default:
		}
	}
	if out := <-waiting; !strings.Contains(out.Traceback+out.Summary, "it didn't answer the greeting within 30s") {
		t.Errorf("the server that never answers: %+v", out)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}

	self, err := exec.LookPath("codeexec")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, append([]string{"servers"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mute, ", ": it didn't answer the greeting within 30s of its start", "stderr line 1", "crashing, ", "unexpected tools/call"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("codeexec servers: want … %q\n%s", want, out)
		}
	}
}

// runOutcome is what a test looks at of the structured result of run_python.
type runOutcome struct{ Status, Stdout, Traceback, Summary string }

// serveHere starts "codeexec serve" with some arguments in the environment of the test, and connects a client to
// it.
func serveHere(t testing.TB, args []string) *mcp.ClientSession {
	t.Helper()
	self, err := exec.LookPath("codeexec")
	if err != nil {
		t.Fatal(err)
	}
	var stderr lockedBuffer
	cmd := exec.Command(self, append([]string{"serve"}, args...)...)
	cmd.Stderr = &stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("starting codeexec serve: %v\n%s", err, stderr.String())
	}
	t.Cleanup(func() {
		session.Close()
		if t.Failed() {
			t.Logf("standard error of codeexec serve:\n%s", stderr.String())
		}
	})
	return session
}

// webServer serves a tool "echo" over HTTP until the test ends, and returns the URL.
func webServer(t testing.TB) string {
	server := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}}}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "got " + string(req.Params.Arguments)}}}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}
