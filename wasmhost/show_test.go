package wasmhost_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"codeexec/wasmhost"
)

const showing = `
from codeexec import host
print("a", end="")
host.show({"n": 1}, [b"x", b"yz"])
print("b")
host.show({"n": 2}, [])
`

// What is shown is taken between the writes before and after it, and what takes it can say something there.
func TestShow(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	var stream bytes.Buffer
	r, err := s.Run(t.Context(), wasmhost.Request{Code: showing, Stdout: &stream, Show: func(d wasmhost.Display) string {
		return fmt.Sprintf("[%s %d after %q]\n", d.Header, len(d.Attachments), stream.String())
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := "a" + `[{"n":1} 2 after "a"]` + "\nb\n" + `[{"n":2} 0 after "a[{\"n\":1} 2 after \"a\"]\nb\n"]` + "\n"
	if r.Stdout.String() != want || stream.String() != want {
		t.Errorf("the output is\n%s\nstreamed\n%s\nwant\n%s", r.Stdout, &stream, want)
	}
	if len(r.Displays) != 0 {
		t.Errorf("the result has %d things that were taken", len(r.Displays))
	}

	r = run(t, s, showing)
	if len(r.Displays) != 2 || string(r.Displays[0].Header) != `{"n":1}` || string(r.Displays[0].Attachments[1]) != "yz" {
		t.Errorf("without anything that takes it, the result has %v", r.Displays)
	}
	if r.Stdout.String() != "ab\n" {
		t.Errorf("the output is %q", r.Stdout)
	}
}

// What a run shows is bounded, and the next run may show as much again.
func TestShowIsBounded(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	for range 2 {
		shown := 0
		r, err := s.Run(t.Context(), wasmhost.Request{
			Code: `
from codeexec import host
try:
    for _ in range(10): host.show({}, [bytes(12 << 20)])
except RuntimeError as e:
    print(type(e).__name__)
try:
    host.show({}, [bytes(17 << 20)])
except OverflowError as e:
    print(e)
`,
			Show: func(d wasmhost.Display) string { shown++; return "" },
		})
		if err != nil {
			t.Fatal(err)
		}
		if shown != 5 || !strings.HasPrefix(r.Stdout.String(), "RuntimeError\nwrite: larger than the host accepts\n") {
			t.Errorf("%d were shown; %s%s", shown, r.Stdout, r.Stderr)
		}
	}
}
