package toon

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func encode(t testing.TB, data string, opts Options) string {
	t.Helper()
	var b strings.Builder
	if err := Encode(&b, []byte(data), opts); err != nil {
		t.Fatalf("Encode(%s): %v", data, err)
	}
	return b.String()
}

func TestEncode(t *testing.T) {
	tests := []struct {
		name string
		opts Options
		json string
		want []string // lines
	}{
		{"an answer", Options{}, `{"status":"error","summary":"KeyError: 'x' (line 2) after 4 ms","exit_code":1,"stdout":"a\nb\n","calls":[{"server":"files","tool":"read","outcome":"ok","ms":3},{"server":"mail","tool":"send","outcome":"tool_error","ms":12}]}`,
			[]string{
				`status: error`,
				`summary: "KeyError: 'x' (line 2) after 4 ms"`,
				`exit_code: 1`,
				`stdout: "a\nb\n"`,
				`calls[2]{server,tool,outcome,ms}:`,
				`  files,read,ok,3`,
				`  mail,send,tool_error,12`,
			}},
		{"the order of keys", Options{}, `{"z":1,"a":{"y":2,"b":3}}`, []string{`z: 1`, `a:`, `  y: 2`, `  b: 3`}},
		{"a key twice", Options{}, `{"a":1,"b":2,"a":[]}`, []string{`a: []`, `b: 2`}},
		{"white space", Options{}, " [ 1 ,\n\t{ } ]\r\n", []string{`[2]:`, `  - 1`, `  -`}},
		{"a list of lists of objects", Options{}, `[[{"a":1},{"a":2}],[[]],{"b":[[3]],"c":4}]`,
			[]string{
				`[3]:`,
				`  - [2]:`,
				`    - a: 1`,
				`    - a: 2`,
				`  - [1]:`,
				`    - [0]:`,
				`  - b[1]:`,
				`      - [1]: 3`,
				`    c: 4`,
			}},
		{"items that begin with something nested", Options{Indent: 3}, `[{"a":{"b":{"c":1}},"d":2},{"t":[{"x":1}]},{"e":{}}]`,
			[]string{
				`[3]:`,
				`   - a:`,
				`         b:`,
				`            c: 1`,
				`      d: 2`,
				`   - t[1]{x}:`,
				`         1`,
				`   - e:`,
			}},
		{"rows in another order", Options{Delimiter: Pipe}, `[{"a":1,"b|":"x|y"},{"b|":"p,q","a":null}]`,
			[]string{`[2|]{a|"b|"}:`, `  1|"x|y"`, `  null|p,q`}},
		{"same size, other keys", Options{}, `[{"a":1,"b":2},{"a":1,"c":2}]`,
			[]string{`[2]:`, `  - a: 1`, `    b: 2`, `  - a: 1`, `    c: 2`}},
		{"quotes", Options{}, `["","a b"," a","a ","\u00a0a","a\u2003","\ufeffa","-","-a","a-","nul","null","True","1.","1.5",".5","1e5","1E+5","1e","+1","00","0x1","a#b","\u007f","\u0085"]`,
			[]string{"[25]: \"\",a b,\" a\",\"a \",\"\u00a0a\",\"a\u2003\",\"\ufeffa\",\"-\",\"-a\",a-,nul,\"null\",True,1.,\"1.5\",.5,\"1e5\",\"1E+5\",1e,+1,\"00\",0x1,a#b,\u007f,\"\u0085\""}},
		{"escapes", Options{}, `"\u0000\u001f\b\f\/\\\"\u20ac\ud83d\ude00"`, []string{`"\u0000\u001f\u0008\u000c/\\\"€😀"`}},
		{"no text", Options{}, "[\"\\ud800\",\"a\xffb\"]", []string{"[2]: \ufffd,a\ufffdb"}},
		{"keys", Options{}, `{"_a.b9":1,".a":2,"9a":3,"é":4,"a-b":5,"true":6}`,
			[]string{`_a.b9: 1`, `".a": 2`, `"9a": 3`, `"é": 4`, `"a-b": 5`, `true: 6`}},
		{"the delimiter in text", Options{Delimiter: Tab}, `{"a":"x,y","b":["p\tq","r|s"]}`, []string{`a: x,y`, "b[2\t]: \"p\\tq\"\tr|s"}},

		{"folded", Options{Fold: FoldAll}, `{"a":{"b":{"c":1}},"d":{"e":[{"f":1}]},"g":{"h":{}},"i":2}`,
			[]string{`a.b.c: 1`, `d.e[1]{f}:`, `  1`, `g.h:`, `i: 2`}},
		{"folded down to an object of two keys", Options{Fold: FoldAll}, `{"a":{"b":{"c":1,"d":{"e":2}}}}`,
			[]string{`a.b:`, `  c: 1`, `  d.e: 2`}},
		{"folded in items", Options{Fold: FoldAll}, `[{"a":{"b":1}},{"c":{"d":[2]},"e":3}]`,
			[]string{`[2]:`, `  - a.b: 1`, `  - c.d[1]: 2`, `    e: 3`}},
		{"folded in part", Options{Fold: 2}, `{"a":{"b":{"c":{"d":{"e":1,"f":{"g":{"h":2}}}}}}}`,
			[]string{`a.b:`, `  c:`, `    d:`, `      e: 1`, `      f.g:`, `        h: 2`}},
		{"not folded with one key", Options{Fold: 1}, `{"a":{"b":1}}`, []string{`a:`, `  b: 1`}},
		{"not folded beside its equal", Options{Fold: FoldAll}, `{"a":{"b":{"c":1}},"a.b.c":2,"d":{"e":3}}`,
			[]string{`a:`, `  b:`, `    c: 1`, `a.b.c: 2`, `d.e: 3`}},
		{"not folded with a key of two parts", Options{Fold: FoldAll}, `{"a":{"b.c":{"d":1}},"e":{"f-g":2}}`,
			[]string{`a:`, `  b.c:`, `    d: 1`, `e:`, `  "f-g": 2`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got, want := encode(t, tc.json, tc.opts), strings.Join(tc.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	tests := []struct{ json, want string }{
		{"0", "0"}, {"-0", "0"}, {"0.00", "0"}, {"-0e-7", "0"}, {"0e99999999999999999999", "0"},
		{"7", "7"}, {"-120", "-120"}, {"1.0", "1"}, {"1.50", "1.5"}, {"-0.250", "-0.25"}, {"10.010", "10.01"},
		{"1e6", "1000000"}, {"1.25E+1", "12.5"}, {"125e-1", "12.5"}, {"125E-3", "0.125"}, {"0.0010e3", "1"},
		{"1e-6", "0.000001"}, {"0.000000999", "9.99e-7"}, {"1e-7", "1e-7"}, {"-12e-9", "-1.2e-8"},
		{"1e20", "100000000000000000000"}, {"999999999999999999999", "999999999999999999999"},
		{"999999999999999999999.50", "999999999999999999999.5"},
		{"1e21", "1e+21"}, {"1000000000000000000000", "1e+21"}, {"-1234000000000000000000.0", "-1.234e+21"},
		{"12345678901234567890", "12345678901234567890"}, {"3.14159265358979323846264338327950288", "3.14159265358979323846264338327950288"},
		{"1e400", "1e+400"}, {"1E0000400", "1e+400"}, {"15e-400", "1.5e-399"},
		{"1e9223372036854775807", "1e+9223372036854775807"}, {"-2.50E-0099999999999999999999", "-2.50e-99999999999999999999"},
	}
	for _, tc := range tests {
		if got := encode(t, tc.json, Options{}); got != tc.want {
			t.Errorf("%s is written as %s, want %s", tc.json, got, tc.want)
		}
	}
}

func TestManyKeys(t *testing.T) {
	// More keys than are compared one by one, each of them twice.
	var data, want strings.Builder
	for round := range 2 {
		for i := range 100 {
			fmt.Fprintf(&data, `,"k%d":%d`, i, 1000*round+i)
		}
	}
	for i := range 100 {
		fmt.Fprintf(&want, "\nk%d: %d", i, 1000+i)
	}
	if got := encode(t, "{"+data.String()[1:]+"}", Options{}); got != want.String()[1:] {
		t.Errorf("got\n%s", got)
	}
}

func TestErrors(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat(`[{"a":`, depth/2) + "1" + strings.Repeat("}]", depth/2) }
	tests := []struct {
		name string
		opts Options
		json string
		want string // in the error
	}{
		{"nothing", Options{}, ``, "unexpected end"},
		{"half an array", Options{}, `[1,`, "unexpected end"},
		{"no comma", Options{}, `[1 2]`, "invalid character"},
		{"a comma too much", Options{}, `{"a":1,}`, "invalid character"},
		{"no string as key", Options{}, `{1:2}`, "toon: reading JSON"},
		{"two values", Options{}, `{} {}`, "toon: reading JSON: invalid character '{' after top-level value"},
		{"no JSON", Options{}, `NaN`, "invalid character"},
		{"too deep", Options{}, nested(MaxDepth + 2), "nested deeper than 256 levels, at byte 768"},
		{"far too deep", Options{}, strings.Repeat("[", 1<<20), "max depth"},
		{"negative indentation", Options{Indent: -1}, `1`, "Indent is -1, want 1 to 16"},
		{"wide indentation", Options{Indent: 17}, `1`, "Indent is 17"},
		{"unknown delimiter", Options{Delimiter: ';'}, `1`, `Delimiter is ';'`},
		{"negative folding", Options{Fold: -1}, `1`, "Fold is -1"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			err := Encode(&b, []byte(tc.json), tc.opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want … %s …", err, tc.want)
			}
			if b.Len() > 0 {
				t.Errorf("wrote %q nevertheless", b.String())
			}
		})
	}
	encode(t, nested(MaxDepth), Options{})
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestWriterFails(t *testing.T) {
	want := errors.New("disk full")
	for _, size := range []int{1, 1 << 16} {
		data := `"` + strings.Repeat("x", size) + `"`
		if err := Encode(brokenWriter{want}, []byte(data), Options{}); !errors.Is(err, want) {
			t.Errorf("%d bytes: error %v, want %v", size, err, want)
		}
	}
}

func FuzzEncode(f *testing.F) {
	for _, seed := range []string{
		`{"a":[{"b":1,"c":"x"},{"c":null,"b":-0.5e3}],"d":{"e":{"f":[]}}}`, `[[[]],{},[{}],{"a":{}},{"b":[[1,"-"]]}]`,
		`["",":","a b","1e5","\u0000","\ud800",",","|","\t"]`, `{"":{"a.b":1,"a":{"b":2}}}`, `[{"a":[{"x":1},{"x":2}],"b":3}]`,
		`1e21`, `{"a":1,"a":2}`, `[`, `"\ufeff"`, `{"a":{"b":{"c":{"d":1}}}}`,
	} {
		f.Add([]byte(seed), uint8(0), uint8(0))
		f.Add([]byte(seed), uint8(4), uint8(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, indent, delimiter uint8) {
		opts := Options{
			Indent:    int(indent%16) + 1,
			Delimiter: []Delimiter{Comma, Tab, Pipe}[delimiter%3],
		}
		var b strings.Builder
		err := Encode(&b, data, opts)
		if err != nil {
			if b.Len() > 0 {
				t.Errorf("an error (%v), but wrote %q", err, b.String())
			}
			if json.Valid(data) && !strings.Contains(err.Error(), "nested deeper") {
				t.Errorf("valid JSON is refused: %v", err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatal("invalid JSON is encoded")
		}
		doc := b.String()
		for line := range strings.SplitSeq(doc, "\n") {
			if doc != "" && strings.TrimRight(line, " \r") != line || doc != "" && line == "" {
				t.Errorf("line %q in\n%s", line, doc)
			}
		}
		want, err := parse(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(doc, opts)
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		sortRows(got)
		sortRows(want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("what comes back from\n%s\nis\n%+v\nwant\n%+v", doc, got, want)
		}

		opts.Fold = int(indent) // has nothing to be compared with, but must not fail
		if err := Encode(&b, data, opts); err != nil {
			t.Errorf("folding: %v", err)
		}
	})
}

// sortRows sorts the keys of objects that make a table: of their own order only the first one's is kept.
func sortRows(n *node) {
	table := n.kind == array && len(n.children) > 0 && columnsOf(n.children) != nil
	for i := range n.children {
		child := &n.children[i]
		if table {
			slices.SortFunc(child.children, func(a, b node) int { return strings.Compare(a.key, b.key) })
		}
		sortRows(child)
	}
}

func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"0", "-0.0", "1e21", "123.4500e-12", "0.00001", "-99999999999999999999999.9", "1E+2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, number string) {
		var n json.Number
		if err := json.Unmarshal([]byte(number), &n); err != nil || n == "" {
			return
		}
		number = n.String()
		got := canonical(number)
		if !json.Valid([]byte(got)) {
			t.Fatalf("%s is written as %s, which is no number", number, got)
		}
		if again := canonical(got); again != got {
			t.Errorf("%s is written as %s, and that as %s", number, got, again)
		}
		if _, exponent, _ := strings.Cut(strings.ToLower(number), "e"); len(exponent) > 4 {
			return // takes too much memory to compare
		}
		want, _ := new(big.Rat).SetString(number)
		if value, _ := new(big.Rat).SetString(got); want.Cmp(value) != 0 {
			t.Errorf("%s is written as %s", number, got)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	var table, tree strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&table, `,{"id":%d,"name":"name %d","price":%d.50,"note":"a, b: %d","active":true}`, i, i, i, i)
		fmt.Fprintf(&tree, `,{"id":%d,"owner":{"name":"name %d","tags":["a","b"]},"parts":[{"n":%d}]}`, i, i, i)
	}
	for _, bc := range []struct{ name, json string }{
		{"table", "[" + table.String()[1:] + "]"},
		{"tree", "[" + tree.String()[1:] + "]"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			data := []byte(bc.json)
			var out strings.Builder
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				if err := Encode(&out, data, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(out.Len())/float64(len(data)), "size/json")
		})
	}
}
