package upstream

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestEventReader(t *testing.T) {
	long := strings.Repeat("x", 100)
	tests := []struct{ name, stream, want string }{
		{"nothing", "", ""},
		{"a message", "data: {}\n\n", `"" {}`},
		{"a named one", "event: endpoint\ndata:/x\n\n", `"endpoint" /x`},
		{"lines of data", "data: a\ndata:\ndata: b\n\n", "\"\" a\n\nb"},
		{"one space only", "data:  a \n\n", `""  a `},
		{"CRLF", "event: m\r\ndata: a\r\n\r\ndata: b\r\n\r\n", `"m" a|"" b`},
		{"CR", "data: a\r\rdata: b\r\r", `"" a|"" b`},
		{"a byte order mark", "\uFEFFdata: a\n\n", `"" a`},
		{"comments and unknown fields", ": ping\n\nfoo: bar\ndata\n\nbaz\n\n", `"" `},
		{"an id and a delay", "id: 7\nretry: 1500\n\n", `""  id=7 retry=1.5s`},
		{"an id that is taken back", "id\ndata: a\n\n", `"" a id=`},
		{"a delay that is none", "retry: soon\ndata: a\n\n", `"" a`},
		{"cut off", "data: a\n\ndata: b\n", `"" a`},
		{"too long", "data: {\"id\":12,\"result\":\"" + long + "\"}\n\ndata: b\n\n", `"" too long, answers 12|"" b`},
		{"too long in lines", strings.Repeat("data: "+long[:50]+"\n", 3) + "\n", `"" too long, answers 0`},
		{"a long name", "event: " + strings.Repeat("n", 5000) + "\ndata: a\n\n", `"` + strings.Repeat("n", 4096) + `" a`},
	}
	for _, tc := range tests {
		for how, reader := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "in bytes": iotest.OneByteReader,
		} {
			t.Run(tc.name+" "+how, func(t *testing.T) {
				er := newEventReader(reader(strings.NewReader(tc.stream)), 64)
				var got []string
				for {
					e, err := er.next()
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					s := fmt.Sprintf("%q %s", e.name, e.data)
					if e.tooLong {
						s = fmt.Sprintf("%q too long, answers %d", e.name, e.answers)
					}
					if e.hasID {
						s += " id=" + e.id
					}
					if e.retry > 0 {
						s += " retry=" + e.retry.Round(time.Millisecond).String()
					}
					got = append(got, s)
				}
				if got := strings.Join(got, "|"); got != tc.want {
					t.Errorf("got %s\nwant %s", got, tc.want)
				}
			})
		}
	}
}

func FuzzEventReader(f *testing.F) {
	f.Add([]byte("event: m\r\ndata: {\"id\":1}\r\n\r\n: c\nid: 1\rretry: 3\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		er := newEventReader(strings.NewReader(string(stream)), 16)
		for {
			e, err := er.next()
			if err != nil {
				return
			}
			if len(e.data) > 16 || len(e.id) > maxEventField || len(e.name) > maxEventField {
				t.Fatalf("%+v is too large", e)
			}
		}
	})
}
