package catalog

import (
	"strings"
	"testing"
)

func TestParseTool(t *testing.T) {
	deep := strings.Repeat(`{"not":`, 300) + "{}" + strings.Repeat("}", 300)
	tests := []struct {
		name, text string
		want       Tool // InputSchema and so on as text below
		input      string
		output     string
		hints      string
	}{
		{"all there is", `{"name":"n","title":"t","description":"d","inputSchema":{"b":1,"a":2},"outputSchema":{"z":[]},"annotations":{"x":1},"_meta":{}}`,
			Tool{Name: "n", Title: "t", Description: "d"}, `{"b":1,"a":2}`, `{"z":[]}`, `{"x":1}`},
		{"only a name", `{"name":"n"}`, Tool{Name: "n"}, "", "", ""},
		{"fields of other types", `{"name":"n","title":1,"description":["d"],"inputSchema":"x","outputSchema":null,"annotations":true}`, Tool{Name: "n"}, "", "", ""},
		{"names are case-sensitive", `{"name":"n","Title":"t","INPUTSCHEMA":{}}`, Tool{Name: "n"}, "", "", ""},
		{"boolean schemas", `{"name":"n","inputSchema":true,"outputSchema":false}`, Tool{Name: "n"}, "true", "false", ""},
		{"white space", "{\"name\":\"n\",\n \"inputSchema\": { \"a b\" : \" c \" } }", Tool{Name: "n"}, `{"a b":" c "}`, "", ""},
		{"numbers keep their spelling", `{"name":"n","inputSchema":{"default":1.0,"maximum":12345678901234567890123}}`, Tool{Name: "n"}, `{"default":1.0,"maximum":12345678901234567890123}`, "", ""},
		{"invalid UTF-8", "{\"name\":\"n\xff\",\"inputSchema\":{\"a\xfe\":1}}", Tool{Name: "n\uFFFD"}, "{\"a\uFFFD\":1}", "", ""},
		{"a lone surrogate", `{"name":"n","inputSchema":{"a":"\ud800"}}`, Tool{Name: "n"}, `{"a":"\ud800"}`, "", ""},
		{"a schema too deep", `{"name":"n","inputSchema":` + deep + `}`, Tool{Name: "n"}, "", "", ""},
		{"brackets and digits in text", `{"name":"n","inputSchema":{"a":"` + strings.Repeat(`[{\"1`, 2000) + `"}}`, Tool{Name: "n"}, `{"a":"` + strings.Repeat(`[{\"1`, 2000) + `"}`, "", ""},
		{"a number too long", `{"name":"n","outputSchema":{"a":` + strings.Repeat("1", 5000) + `}}`, Tool{Name: "n"}, "", "", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseTool([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != tc.want.Name || got.Title != tc.want.Title || got.Description != tc.want.Description ||
				string(got.InputSchema) != tc.input || string(got.OutputSchema) != tc.output || string(got.Annotations) != tc.hints {
				t.Errorf("got %+v", got)
			}
		})
	}
	for _, text := range []string{``, `null`, `[]`, `"x"`, `{}`, `{"name":""}`, `{"name":7}`, `{"name":null}`, `{"name":"` + strings.Repeat("n", 2000) + `"}`,
		`{"name":"n","description":"` + strings.Repeat("d", MaxTool) + `"}`} {
		if tool, err := ParseTool([]byte(text)); err == nil {
			t.Errorf("%.40s is accepted: %+v", text, tool)
		}
	}
}
