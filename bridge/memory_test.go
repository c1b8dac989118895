package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeexec/hostfuncs"
	"codeexec/memory"
	"codeexec/wasmhost"
)

// memoryRun calls fn in a run of a bridge with a store in a new state directory, and returns the directory of its
// files. do makes a request of the host and returns the answer.
func memoryRun(t *testing.T, fn func(do func(op string, params any) (string, error), files string)) {
	t.Helper()
	state := t.TempDir()
	files := filepath.Join(state, "user_tools", "memory")
	store, err := memory.OpenDir(files, filepath.Join(state, "memory.lock"), memory.Limits{Value: 100})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(files, 0o700); err != nil {
		t.Fatal(err)
	}
	scripts := map[string]script{"code": func(ctx context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		fn(func(op string, params any) (string, error) {
			raw, err := sb.call(ctx, op, params)
			return string(raw), err
		}, files)
		return succeed(""), nil
	}}
	b, _ := newFakeBridge(t, Options{Store: store}, scripts, nil)
	mustRun(t, b, RunRequest{Code: "code"})
}

type fields = map[string]any

func TestMemory(t *testing.T) {
	memoryRun(t, func(do func(string, any) (string, error), files string) {
		steps := []struct {
			op     string
			params fields
			want   string
		}{
			{"memory.get", fields{"key": "k"}, `null`},
			{"memory.exists", fields{"key": "k"}, `false`},
			{"memory.delete", fields{"key": "k"}, `false`},
			{"memory.list", fields{"prefix": ""}, `[]`},
			{"memory.attempt", fields{"key": "k", "conflicts": 0}, `{"revision":""}`},
			{"memory.save", fields{"key": "k", "value": json.RawMessage(`{"b":1.50,"a":12345678901234567890}`), "metadata": fields{"m": "é"}}, `null`},
			{"memory.save", fields{"key": "n", "value": nil}, `null`},
			{"memory.exists", fields{"key": "k"}, `true`},
			{"memory.commit", fields{"key": "k", "revision": "", "conflicts": 0, "value": 1}, `false`},
			{"memory.delete", fields{"key": "n"}, `true`},
		}
		for _, step := range steps {
			if got, err := do(step.op, step.params); err != nil || got != step.want {
				t.Errorf("%s %v: got %s, %v, want %s", step.op, step.params, got, err, step.want)
			}
		}
		got, err := do("memory.get", fields{"key": "k"})
		if want := `{"key":"k","value":{"b":1.50,"a":12345678901234567890},"metadata":{"m":"é"},"created_at":1`; err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("got %s, %v, want %s…", got, err, want)
		}
		got, err = do("memory.list", fields{"prefix": ""})
		if err != nil || !strings.HasPrefix(got, `[{"key":"k","metadata":{"m":"é"},"created_at":1`) || !strings.HasSuffix(got, `,"size":35}]`) {
			t.Errorf("the list is %s, %v", got, err)
		}

		// An update; the second commit is based on what the first replaced.
		var base struct {
			Revision string `json:"revision"`
		}
		got, err = do("memory.attempt", fields{"key": "k", "conflicts": 0})
		if err != nil || json.Unmarshal([]byte(got), &base) != nil || base.Revision == "" {
			t.Fatalf("the attempt is %s, %v", got, err)
		}
		for _, want := range []string{"true", "false"} {
			got, err = do("memory.commit", fields{"key": "k", "revision": base.Revision, "conflicts": 0, "value": 2})
			if err != nil || got != want {
				t.Errorf("the commit is %s, %v, want %s", got, err, want)
			}
		}
		if got, err = do("memory.get", fields{"key": "k"}); err != nil || !strings.Contains(got, `"value":2,"metadata":{"m":"é"}`) {
			t.Errorf("after the update: %s, %v", got, err)
		}
	})
}

func TestMemoryErrors(t *testing.T) {
	memoryRun(t, func(do func(string, any) (string, error), files string) {
		if err := os.WriteFile(filepath.Join(files, "torn.json"), []byte(`{"key": "torn", "val`), 0o600); err != nil {
			t.Fatal(err)
		}
		tests := []struct {
			op     string
			params fields
			kind   string
			want   string
		}{
			{"memory.get", fields{"key": "torn"}, "MemoryCorrupted", `the record of memory "torn" is damaged: torn.json`},
			{"memory.attempt", fields{"key": "torn"}, "MemoryCorrupted", `the record of memory "torn" is damaged: torn.json`},
			{"memory.get", fields{"key": ""}, "ValueError", `memory key "" is empty`},
			{"memory.save", fields{"key": strings.Repeat("k", 1025), "value": 1}, "ValueError", "is too long"},
			{"memory.save", fields{"key": "k"}, "ValueError", `the value of memory "k" is not JSON`},
			{"memory.save", fields{"key": "k", "value": strings.Repeat("v", 100)}, "LimitExceeded", `memory "k": 102 bytes of the value, the limit is 100`},
			{"memory.attempt", fields{"key": "k", "conflicts": memory.MaxConflicts}, "MCPError", "try again later"},
			{"memory.forget", fields{"key": "k"}, "Unsupported", `no operation "memory.forget"`},
		}
		for _, tc := range tests {
			_, err := do(tc.op, tc.params)
			e, ok := errors.AsType[*hostfuncs.Error](err)
			if !ok || e.Kind != tc.kind || !strings.Contains(e.Message, tc.want) {
				t.Errorf("%s %.50v: got %v, want %s: …%s…", tc.op, tc.params, err, tc.kind, tc.want)
			}
		}
		if _, err := do("memory.get", "no object"); err == nil || !strings.Contains(err.Error(), "memory.get: ") {
			t.Errorf("with odd parameters: %v", err)
		}
		if got, err := do("memory.exists", fields{"key": "torn"}); err != nil || got != "true" {
			t.Errorf("a damaged record exists: %s, %v", got, err)
		}
		if got, err := do("memory.list", fields{}); err != nil || !strings.HasPrefix(got, `[{"key":"torn","error":"`) {
			t.Errorf("a damaged record in the list: %s, %v", got, err)
		}
		if got, err := do("memory.delete", fields{"key": "torn"}); err != nil || got != "true" {
			t.Errorf("deleting a damaged record: %s, %v", got, err)
		}
	})
}

func TestNoMemory(t *testing.T) {
	_, _, err := ask(t, &fakeUpstreams{}, RunRequest{}, "memory.get", fields{"key": "k"})
	e, ok := errors.AsType[*hostfuncs.Error](err)
	if !ok || e.Kind != "MCPError" || !strings.Contains(e.Message, "set CODEEXEC_STATE_DIR") {
		t.Errorf("got %v", err)
	}
}

func TestUnescaped(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing to do", `{"a":["\n\\"]}`, `{"a":["\n\\"]}`},
		{"characters", `{"\u00fc":"\u4e2d\u2028\ufffd"}`, "{\"ü\":\"中\u2028\ufffd\"}"},
		{"a pair", `"a\ud83d\uDE00b"`, `"a😀b"`},
		{"halves of pairs", `"\ude00\ud83d\ud83dx\ud83d\u00fc"`, `"\ude00\ud83d\ud83dx\ud83dü"`},
		{"control characters", `"\u0000\u001f\u007f\u0085"`, `"\u0000\u001f\u007f\u0085"`},
		{"what must stay escaped", `"\u0022\u005c"`, `"\u0022\u005c"`},
		{"no escape", `"\\u00fc\\\u00fc"`, `"\\u00fc\\ü"`},
		{"no JSON", `\u00`, `\u00`},
		{"no JSON either", `\ud83d`, `\ud83d`},
		{"nor this", `\u00fc\`, `ü\`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(unescaped(json.RawMessage(tc.text))); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.text, got, tc.want)
			}
		})
	}
}
