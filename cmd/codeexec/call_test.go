package main

import "testing"

func TestArgument(t *testing.T) {
	tests := []struct {
		schema, value, want string
	}{
		{`{"type": "string"}`, "5", `"5"`},
		{`{"type": ["string", "null"]}`, "null", `"null"`},
		{`{"anyOf": [{"type": "string"}, {"type": "null"}]}`, "true", `"true"`},
		{`{"anyOf": [{"type": "string"}, {"type": "integer"}]}`, "5", `5`},
		{`{"enum": ["1", "2", null]}`, "1", `"1"`},
		{`{"enum": [1, "2"]}`, "1", `1`},
		{`{"type": "integer"}`, "5", `5`},
		{`{"type": "integer"}`, "five", `"five"`}, // for the server to refuse
		{`{"type": "array"}`, `["a"]`, `["a"]`},
		{`{}`, "true", `true`},
		{`true`, "x y", `"x y"`},
		{``, `{"a": 1}`, `{"a": 1}`},
		{``, ``, `""`},
	}
	for _, tc := range tests {
		t.Run(tc.schema+tc.value, func(t *testing.T) {
			if got := string(argument([]byte(tc.schema), tc.value)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	tests := []struct{ in, want string }{
		{"short", "short"},
		{"two\n\tlines\r", "two lines"},
		{"a\x1b[2Jb", "a[2Jb"},
		{"0123456789ab", "012345678…"},
		{"ünïcödé äöü", "ünïcödé ä…"},
	}
	for _, tc := range tests {
		if got := oneLine(tc.in, 10); got != tc.want {
			t.Errorf("oneLine(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}
