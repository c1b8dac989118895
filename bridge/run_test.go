package bridge

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"codeexec/wasmhost"
)

func TestRunReportsOutcomes(t *testing.T) {
	tests := []struct {
		name    string
		out     wasmhost.Result
		want    string // the structured form without duration_ms
		summary string
	}{
		{
			"success",
			wasmhost.Result{Outcome: "success", Stdout: wasmhost.Output{Head: []byte("hi\n")}, Value: "42", Duration: 12 * time.Millisecond},
			`{"exit_code":0,"result":"42","session":"default","session_state":"kept","status":"success","stdout":"hi\n"}`,
			"finished in 12 ms",
		},
		{
			"exception",
			wasmhost.Result{Outcome: "error", ExitCode: 1, Duration: 1500 * time.Millisecond, Exception: &wasmhost.Exception{
				Type: "ZeroDivisionError", Message: "division by zero", Line: 3, Cell: 1, Traceback: "Traceback …\nZeroDivisionError: division by zero\n"}},
			`{"error":{"cell":1,"line":3,"message":"division by zero","traceback":"Traceback …\nZeroDivisionError: division by zero\n","type":"ZeroDivisionError"},"exit_code":1,"session":"default","session_state":"kept","status":"error"}`,
			"ZeroDivisionError: division by zero (line 3 of cell 1) after 1.5 s",
		},
		{
			"exit code",
			wasmhost.Result{Outcome: "error", ExitCode: 3, Stderr: wasmhost.Output{Head: []byte("bye")}, Duration: time.Millisecond},
			`{"error":{"message":"3","type":"SystemExit"},"exit_code":3,"session":"default","session_state":"kept","status":"error","stderr":"bye"}`,
			"SystemExit: 3 after 1 ms",
		},
		{
			"timeout",
			wasmhost.Result{Outcome: "timeout", Stdout: wasmhost.Output{Head: []byte("before")}, Duration: 30 * time.Second},
			`{"error":{"message":"stopped at its time limit of 30 s","type":"Timeout"},"exit_code":124,"session":"default","session_state":"kept","status":"timeout","stdout":"before"}`,
			"stopped at its time limit of 30 s; the session and its variables are kept",
		},
		{
			"an outcome from another version",
			wasmhost.Result{Outcome: "mystery", Duration: time.Millisecond},
			`{"error":{"message":"1","type":"SystemExit"},"exit_code":1,"session":"default","session_state":"kept","status":"error"}`,
			"SystemExit: 1 after 1 ms",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			scripts := map[string]script{"code": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) { return &tc.out, nil }}
			b, _ := newFakeBridge(t, Options{}, scripts, nil)
			res := mustRun(t, b, RunRequest{Code: "code"})
			if res.Summary != tc.summary {
				t.Errorf("summary %q", res.Summary)
			}
			if res.DurationMS < 1 {
				t.Errorf("duration %d", res.DurationMS)
			}
			if got := canonical(t, res, "summary", "duration_ms"); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// canonical is the structured form, sorted, without some keys.
func canonical(t *testing.T, res *RunResult, without ...string) string {
	t.Helper()
	data, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range without {
		delete(m, k)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func TestRunRefusesRequests(t *testing.T) {
	tests := []struct {
		name string
		req  RunRequest
		want string
	}{
		{"unknown server, close match", RunRequest{Servers: []string{"github"}}, `unknown server "github": did you mean "git-hub"?`},
		{"unknown server, typo", RunRequest{Servers: []string{"flies"}}, `unknown server "flies": did you mean "files"?`},
		{"unknown server, nothing like it", RunRequest{Servers: []string{"weather"}}, `unknown server "weather": the configured servers are "files", "git-hub", "off"`},
		{"disabled server", RunRequest{Servers: []string{"off"}}, `server "off" is disabled in its configuration`},
		{"short timeout", RunRequest{Timeout: time.Millisecond}, "timeout must be at least 1 second"},
		{"negative timeout", RunRequest{Timeout: -time.Second}, "timeout must be at least 1 second"},
		{"long session name", RunRequest{Session: strings.Repeat("x", 200)}, "session has 200 bytes, above the limit of 128"},
		{"session name with control characters", RunRequest{Session: "a\nb"}, `session "a\nb" has characters that can't be printed`},
		{"code that isn't UTF-8", RunRequest{Code: "\xff"}, "code is not valid UTF-8"},
		{"code too long", RunRequest{Code: strings.Repeat("#", maxCode+1)}, "code has 15728641 bytes, above the limit of 15728640: put data in a file under /projects"},
	}
	b, engine := newFakeBridge(t, Options{}, nil, nil)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			res := mustRun(t, b, tc.req)
			if res.Status != StatusInvalid || res.ExitCode != 2 || res.Summary != tc.want || res.SessionState != "" {
				t.Errorf("got %+v", res)
			}
		})
	}
	if engine.made != 0 {
		t.Error("something was run")
	}
}

func TestLongTimeoutIsClamped(t *testing.T) {
	scripts := map[string]script{"code": func(ctx context.Context, _ *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 2*time.Minute {
			t.Errorf("deadline %v", deadline)
		}
		return succeed(""), nil
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	res := mustRun(t, b, RunRequest{Code: "code", Timeout: 500 * time.Second})
	if !strings.HasSuffix(res.Summary, "; timeout 500 s is above the maximum, so 120 s was used") {
		t.Errorf("summary %q", res.Summary)
	}
}

func TestScriptIsToldItsEnvironment(t *testing.T) {
	tests := []struct {
		name    string
		servers []string
		want    string
	}{
		{"all", nil, `{"servers":[{"name":"files","alias":"files","description":"Files"},{"name":"git-hub","alias":"git_hub","description":""}],"restricted":false,"limits":{"timeout":30,"memory":1024,"calls":1000,"in_flight":16}}`},
		{"some, by alias, twice", []string{"git_hub", "files", "git-hub"}, `{"servers":[{"name":"files","alias":"files","description":"Files"},{"name":"git-hub","alias":"git_hub","description":""}],"restricted":true,"limits":{"timeout":30,"memory":1024,"calls":1000,"in_flight":16}}`},
		{"none", []string{}, `{"servers":[],"restricted":true,"limits":{"timeout":30,"memory":1024,"calls":1000,"in_flight":16}}`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var env string
			scripts := map[string]script{"code": func(_ context.Context, _ *fakeSandbox, req wasmhost.Request) (*wasmhost.Result, error) {
				env = string(req.Env)
				return succeed(""), nil
			}}
			b, _ := newFakeBridge(t, Options{Memory: 1024}, scripts, nil)
			mustRun(t, b, RunRequest{Code: "code", Servers: tc.servers})
			if env != tc.want {
				t.Errorf("got  %s\nwant %s", env, tc.want)
			}
		})
	}
}

// Output above the cap keeps head and tail, in the text and in the structured form, and is still a success.
func TestOutputIsBounded(t *testing.T) {
	long := []byte("HEAD" + strings.Repeat("o", 1<<20) + "TAIL")
	scripts := map[string]script{"code": func(context.Context, *fakeSandbox, wasmhost.Request) (*wasmhost.Result, error) {
		return &wasmhost.Result{
			Outcome:   "error",
			Stdout:    wasmhost.Output{Head: long[:1<<19], Tail: long[1<<19:], Dropped: 5},
			Stderr:    wasmhost.Output{Head: long},
			Value:     string(long),
			Exception: &wasmhost.Exception{Type: "E", Message: string(long), Traceback: string(long)},
		}, nil
	}}
	b, _ := newFakeBridge(t, Options{}, scripts, nil)
	res := mustRun(t, b, RunRequest{Code: "code"})
	if !res.Truncated || !strings.Contains(res.Summary, "shortened") {
		t.Errorf("truncated %v, summary %q", res.Truncated, res.Summary)
	}
	for name, text := range map[string]string{
		"stdout": res.Stdout, "stderr": res.Stderr, "result": res.Result, "message": res.Error.Message, "traceback": res.Error.Traceback,
	} {
		if !strings.HasPrefix(text, "HEAD") || !strings.HasSuffix(text, "TAIL") || !strings.Contains(text, "bytes left out") {
			t.Errorf("%s: %.20q…%q", name, text, text[max(len(text)-20, 0):])
		}
	}
	if n := len(res.Compact()); n > 64<<10 {
		t.Errorf("the text has %d bytes", n)
	}
	if data, _ := json.Marshal(res); len(data) > 66<<10 {
		t.Errorf("the structured form has %d bytes", len(data))
	}
	if n := len(res.Stdout); n < 10<<10 {
		t.Errorf("only %d bytes of stdout", n)
	}
}

func TestCompact(t *testing.T) {
	tests := []struct {
		name string
		res  RunResult
		want string
	}{
		{"nothing to see", RunResult{Status: StatusSuccess, Summary: "finished in 1 ms"}, "success: finished in 1 ms\n"},
		{
			"output and result",
			RunResult{Status: StatusSuccess, Summary: "finished in 1 ms", Stdout: "a\nb\n", Stderr: "w\n", Result: "42"},
			"success: finished in 1 ms\nstdout:\na\nb\nstderr: w\nresult: 42\n",
		},
		{
			"exception",
			RunResult{Status: StatusError, Summary: "ValueError: x (line 1) after 1 ms", Error: &RunError{
				Type: "ValueError", Message: "x", Traceback: "Traceback (most recent call last):\n  File \"<cell 1>\", line 1\nValueError: x\n"},
				Calls: []CallRecord{{"files", "read", CallToolError, 12}}},
			"error: ValueError: x (line 1) after 1 ms\ntraceback:\nTraceback (most recent call last):\n  File \"<cell 1>\", line 1\nValueError: x\ncalls made:\n  files.read tool_error 12 ms\n",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.res.Compact(); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
