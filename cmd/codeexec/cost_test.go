package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
)

// What a conversation pays for codeexec before it is used: the answer to tools/list. It doesn't depend on
// how many servers are configured.
func TestListOfToolsCostsTheSameForAnyNumberOfServers(t *testing.T) {
	var first []byte
	for _, servers := range []int{0, 10, 100} {
		var args []string
		for i := range servers {
			// None of them is started for it; it couldn't be.
			args = append(args, "--server", fmt.Sprintf("server-%d=no-such-program %d", i, i))
		}
		answer := listTools(t, args)
		if first == nil {
			first = answer
		}
		if !bytes.Equal(answer, first) {
			t.Errorf("with %d servers:\n%s\nwith none:\n%s", servers, answer, first)
		}
	}

	var message struct {
		Result struct {
			Tools []struct {
				Description string
				InputSchema json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(first, &message); err != nil {
		t.Fatal(err)
	}
	if n := len(message.Result.Tools); n != 1 {
		t.Fatalf("%d tools, want run_python alone", n)
	}
	tool := message.Result.Tools[0]
	size := len(tool.Description) + len(tool.InputSchema)
	t.Logf("description: %d bytes, input schema: %d bytes, the whole answer: %d bytes", len(tool.Description), len(tool.InputSchema), len(first))
	if size >= 1500 {
		t.Errorf("description and input schema have %d bytes together, want less than 1,500", size)
	}
}

// listTools returns the line with which "codeexec serve" answers tools/list.
func listTools(t *testing.T, args []string) []byte {
	t.Helper()
	self, err := exec.LookPath("codeexec")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{"serve"}, args...)...)
	cmd.Env = append(os.Environ(), "CODEEXEC_STATE_DIR="+t.TempDir(), "CODEEXEC_CACHE_DIR="+freshCache(t))
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("codeexec serve: %v", err)
	}
	for line := range bytes.Lines(out) {
		var message struct{ ID int }
		if json.Unmarshal(line, &message) == nil && message.ID == 2 {
			return line
		}
	}
	t.Fatalf("no answer to tools/list:\n%s", out)
	return nil
}

// A schema may refer to any address. Following it would tell a server, or anyone, what it has no business to know.
func TestRemoteSchemaIsNotFetched(t *testing.T) {
	var requests atomic.Int64
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		fmt.Fprint(w, `{"type":"integer"}`)
	}))
	defer remote.Close()
	session := serve(t, []string{"--server", "odd=" + buildStub(t) + " -odd -remote " + remote.URL})
	got := callGuide(t, session, map[string]any{"code": `
schema = runtime.query_tool_docs("odd", "remote", detail="full")[0].inputSchema
assert schema.properties.a["$ref"].startswith("http://127.0.0.1"), schema
print(runtime.query_tool_docs("odd", "remote", detail="stub")[0].stub.splitlines()[0])
print(await mcp_odd.remote(a=1))
`})
	const want = "async def remote(a: Any = ..., b: str = ...) -> Any:\nsent {\"a\":1}\n"
	if got["stdout"] != want {
		t.Errorf("got %v, want the output %q", got, want)
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("%d requests", n)
	}
}
