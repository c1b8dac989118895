package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/txtar"

	"codeexec/bridge"
	"codeexec/testdata/npm"
)

// The files of testdata/guide are what a model would write, and what it would get back. Each is a txtar
// archive: a comment that says what it is about, and runs, each followed by what is expected of it.
//
//	-- run servers=a,b timeout=2 --
//	code
//	-- stdout --
//	…
//
// All runs of a file share a session of their own. What may follow a run is stdout, stderr, result, traceback,
// status, summary and calls; of the first four none is expected unless it is there, and the status is success
// unless there is a traceback. Times are replaced by TIME, addresses of objects and numbers of tasks by SOME.
// Run with -update to rewrite what is expected.
//
// One codeexec and its servers answer all files, so the files must not count on what others leave in a server.
// Those that use servers from npm have names that begin with "npm_".
func TestGuide(t *testing.T) {
	files, err := filepath.Glob("../../testdata/guide/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	bin, npmErr := npm.Bin(t.Context())
	if npmErr != nil && !errors.Is(npmErr, npm.ErrNoNode) {
		t.Fatal(npmErr)
	}
	session := serve(t, guideServers(t, bin, t.TempDir()))
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			if strings.HasPrefix(filepath.Base(file), "npm_") && npmErr != nil {
				t.Skip(npmErr)
			}
			runGuide(t, session, file)
		})
	}
}

// guideServers returns the flags for the servers that the files of testdata/guide use. bin is where the
// programs of those from npm are, empty if there are none; data is a directory for the server "filesystem".
func guideServers(t *testing.T, bin, data string) []string {
	stub := buildStub(t)
	var flags []string
	for name, command := range map[string]string{
		"stub":     stub,
		"many":     stub + " -tools 300 -page 10",
		"changing": stub,
		"slow":     stub,
		"crashing": stub,
		// A server that fails more than twice in a row is given time to recover.
		"broken":       stub + " -stderr 3 -exit 7",
		"broken-too":   stub + " -stderr 3 -exit 7",
		"broken-three": stub + " -stderr 3 -exit 7",
		"odd":          stub + " -odd",
		"deep":         stub + " -odd -deep 200",
		"deeper":       stub + " -odd -deep 2000",
		"my-server.2":  stub,
		"class":        stub,
	} {
		flags = append(flags, "--server", name+"="+command)
	}
	if bin != "" {
		for name, command := range map[string]string{
			"everything":          "mcp-server-everything",
			"filesystem":          "mcp-server-filesystem " + data,
			"memory":              "mcp-server-memory",
			"sequential-thinking": "mcp-server-sequential-thinking",
		} {
			flags = append(flags, "--server", name+"="+filepath.Join(bin, command))
		}
	}
	return flags
}

// buildStub builds the server of testdata/stubserver and returns the path of the program.
func buildStub(t *testing.T) string {
	t.Helper()
	stub := filepath.Join(t.TempDir(), "stubserver")
	if runtime.GOOS == "windows" {
		stub += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", stub, "codeexec/testdata/stubserver").CombinedOutput(); err != nil {
		t.Fatalf("building the stub server: %v\n%s", err, out)
	}
	return stub
}

// serve starts "codeexec serve" with some arguments and connects a client to it.
func serve(t *testing.T, args []string) *mcp.ClientSession {
	t.Helper()
	self, err := exec.LookPath("codeexec")
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(self, append([]string{"serve"}, args...)...)
	cmd.Env = append(os.Environ(), "CODEEXEC_STATE_DIR="+t.TempDir(), "CODEEXEC_CACHE_DIR="+freshCache(t))
	cmd.Stderr = &stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("starting codeexec serve: %v\n%s", err, &stderr)
	}
	t.Cleanup(func() {
		session.Close()
		if t.Failed() {
			t.Logf("standard error of codeexec serve:\n%s", &stderr)
		}
	})
	return session
}

func runGuide(t *testing.T, session *mcp.ClientSession, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []txtar.File
	for i := 0; i < len(archive.Files); {
		run := archive.Files[i]
		args, err := runArguments(run.Name)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		args["code"] = string(run.Data)
		args["session"] = filepath.Base(file)
		want := map[string]string{}
		var order []string
		for i++; i < len(archive.Files) && !isRun(archive.Files[i].Name); i++ {
			name := archive.Files[i].Name
			want[name], order = string(archive.Files[i].Data), append(order, name)
		}
		got := callGuide(t, session, args)
		if _, ok := want["status"]; !ok && got["traceback"] == "" {
			want["status"] = "success\n"
		} else if !ok {
			want["status"] = "error\n"
		}
		out = append(out, run)
		for _, name := range []string{"status", "summary", "stdout", "stderr", "traceback", "result", "calls"} {
			text, listed := got[name], false
			for _, o := range order {
				listed = listed || o == name
			}
			optional := name == "summary" || name == "calls"
			if optional && !listed {
				continue
			}
			if text != want[name] && !*update {
				t.Errorf("%s of this run:\n%s\ngot:\n%s\nwant:\n%s", name, run.Data, text, want[name])
			}
			implied := name == "status" && (text == "success\n" || text == "error\n" && got["traceback"] != "")
			if text != "" && !implied || listed {
				out = append(out, txtar.File{Name: name, Data: []byte(text)})
			}
		}
	}
	if *update {
		archive.Files = out
		if err := os.WriteFile(file, txtar.Format(archive), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

var identity = regexp.MustCompile(`\b0x[0-9a-f]+\b|\bTask-[0-9]+\b`)

func isRun(name string) bool { return name == "run" || strings.HasPrefix(name, "run ") }

// runArguments reads the name of a run, which holds its arguments but the code.
func runArguments(name string) (map[string]any, error) {
	args := map[string]any{}
	if !isRun(name) {
		return nil, fmt.Errorf("%q is no run", name)
	}
	for _, field := range strings.Fields(name)[1:] {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "servers":
			args[key] = strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
		case "timeout":
			seconds, err := strconv.Atoi(value)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", name, err)
			}
			args[key] = seconds
		default:
			return nil, fmt.Errorf("%q has the unknown argument %q", name, key)
		}
	}
	return args, nil
}

// callGuide calls run_python and returns what a file of testdata/guide may expect of it. It checks what must be
// so of any answer.
func callGuide(t *testing.T, session *mcp.ClientSession, args map[string]any) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: args})
	if err != nil {
		t.Fatalf("running:\n%s\n%v", args["code"], err)
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var result bridge.RunResult
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, block := range res.Content {
		if block, ok := block.(*mcp.TextContent); ok {
			text += block.Text
		}
	}
	// A client may show either form to the model.
	for _, part := range []string{result.Summary, result.Stdout, result.Stderr, result.Result} {
		if !strings.Contains(text, part) {
			t.Errorf("the text lacks %q:\n%s", part, text)
		}
	}
	if res.IsError != (result.Status != bridge.StatusSuccess) {
		t.Errorf("isError is %v although the status is %s", res.IsError, result.Status)
	}
	got := map[string]string{
		"status":  string(result.Status),
		"summary": duration.ReplaceAllString(result.Summary, "TIME"),
		"stdout":  result.Stdout,
		"stderr":  result.Stderr,
		"result":  result.Result,
	}
	if result.Error != nil {
		got["traceback"] = result.Error.Traceback
	}
	for _, call := range result.Calls {
		got["calls"] += fmt.Sprintf("%s.%s %s\n", call.Server, call.Tool, call.Outcome)
	}
	for name, text := range got {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		got[name] = identity.ReplaceAllString(text, "SOME")
	}
	return got
}
