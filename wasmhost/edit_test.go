package wasmhost_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"codeexec/wasmhost"
)

func TestEditLooksAtTheSessionAndLeavesItAlone(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	run(t, s, "total = 1\nclass Slow:\n  def __dir__(self):\n    while True: pass\nslow = Slow()\n5")
	ask := func(t *testing.T, limit time.Duration, about wasmhost.EditQuestion, text string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		result, err := s.Run(ctx, wasmhost.Request{Edit: &wasmhost.Edit{About: about, Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		if result.Reset != "" {
			t.Errorf("%s: reset: %s", about, result.Reset)
		}
		return result.Value
	}
	tests := []struct {
		name  string
		limit time.Duration
		about wasmhost.EditQuestion
		text  string
		want  string
	}{
		{"a whole input", time.Minute, wasmhost.EditComplete, "x = 1", "true"},
		{"half an input", time.Minute, wasmhost.EditComplete, "for i in x:", "false"},
		{"names", time.Minute, wasmhost.EditNames, "x + tot", `[4, ["total"]]`},
		{"colours", time.Minute, wasmhost.EditSpans, "x = 1", `[[4, 5, "number"]]`},
		{"a question that nobody knows", time.Minute, "meaning", "x", "null"},
		{"an object that takes too long", 300 * time.Millisecond, wasmhost.EditNames, "slow.x", "null"},
		{"a text that can't be encoded", time.Minute, wasmhost.EditSpans, "x = '\x00\xff'", "[]"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := ask(t, tc.limit, tc.about, tc.text); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	// The next run is the second one, and _ is what the first one gave.
	if result := run(t, s, "1/0"); result.Exception == nil || !strings.Contains(result.Exception.Traceback, "<cell 2>") {
		t.Errorf("exception %+v, want one in cell 2", result.Exception)
	}
	if result := run(t, s, "_, total"); result.Value != "(5, 1)" {
		t.Errorf("value %q, want (5, 1)", result.Value)
	}
}
