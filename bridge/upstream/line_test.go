package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"codeexec/bridge/catalog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 200)
	tests := []struct {
		name, stream string
		want         string // one line each: object, or !prefix, or >id of what is too long
	}{
		{"nothing", "", ""},
		{"objects", "{\"a\":1}\n{\"b\":2}\n", "{\"a\":1}\n{\"b\":2}"},
		{"carriage returns and blank lines", "\r\n\n  \n{\"a\":1}\r\n", "{\"a\":1}"},
		{"a byte order mark", "\uFEFF{\"a\":1}\n", "{\"a\":1}"},
		{"no newline at the end", "{\"a\":1}\n{\"b\"", "{\"a\":1}\n{\"b\""},
		{"a banner", "Server v1\n  [1,2]\n{}\n", "!Server v1\n![1,2]\n{}"},
		{"text that is too long", long + "\n{}\n", "!" + long[:shownPrefix] + "\n{}"},
		{"an answer that is too long", `{"jsonrpc":"2.0","id": 12 ,"result":"` + long + "\"}\n{}\n", ">12\n{}"},
		{"the id comes last", `{"result":{"id":7,"x":["` + long + `",{"id":8}]},"jsonrpc":"2.0","id":34}` + "\n", ">34"},
		{"brackets and quotes in text", `{"result":{"x":"\"},\\` + long + `{\"id\":5,"},"id":6}` + "\n", ">6"},
		{"a request that is too long", `{"id":5,"method":"x","params":"` + long + "\"}\n", ">0"},
		{"a text as id", `{"id":"5","result":"` + long + "\"}\n", ">0"},
		{"no id", `{"result":"` + long + "\"}\n{}\n", ">0\n{}"},
		{"a huge id", `{"id":99999999999999999999999999999999,"result":"` + long + "\"}\n", ">0"},
		{"id in a key's value", `{"a":"id","b":5,"result":"` + long + "\"}\n", ">0"},
	}
	for _, tc := range tests {
		for how, stream := range map[string]io.Reader{
			"whole": strings.NewReader(tc.stream), "by bytes": iotest.OneByteReader(strings.NewReader(tc.stream)),
		} {
			t.Run(tc.name+" "+how, func(t *testing.T) {
				r := newLineReader(stream, 150)
				var got []string
				for {
					l, err := r.next()
					if err != nil {
						if err != io.EOF {
							t.Fatal(err)
						}
						break
					}
					switch {
					case l.tooLong:
						got = append(got, fmt.Sprint(">", l.id))
					case l.object != nil:
						got = append(got, strings.TrimSpace(string(l.object)))
					default:
						got = append(got, "!"+strings.TrimSpace(l.prefix))
					}
				}
				if got := strings.Join(got, "\n"); got != tc.want {
					t.Errorf("got  %q\nwant %q", got, tc.want)
				}
			})
		}
	}
}

// endless is a stream of n bytes without a newline.
type endless struct {
	head string
	n    int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.head != "" {
		n := copy(p, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	if e.n <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.n)
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.n -= n
	return n, nil
}

func TestLineReaderMemoryIsBounded(t *testing.T) {
	for _, head := range []string{"x", `{"a":"`} {
		var before, after runtime.MemStats
		r := newLineReader(&endless{head: head, n: 64 << 20}, 1<<20)
		runtime.GC()
		runtime.ReadMemStats(&before)
		if _, err := r.next(); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 32<<20 {
			t.Errorf("%q: the heap grew by %d bytes", head, grown)
		}
	}
}

func FuzzLineReader(f *testing.F) {
	f.Add([]byte("banner\n{\"id\":1,\"result\":{}}\n"), 10)
	f.Add([]byte(`{"a":"\"`), 3)
	f.Fuzz(func(t *testing.T, stream []byte, limit int) {
		limit = max(1, limit%1000)
		r := newLineReader(bytes.NewReader(stream), limit)
		total := 0
		for {
			l, err := r.next()
			if err != nil {
				break
			}
			if len(l.object) > limit || len(l.prefix) > shownPrefix {
				t.Fatalf("%d bytes of object, %d of prefix", len(l.object), len(l.prefix))
			}
			if total += len(l.object); total > len(stream) {
				t.Fatal("more than there was")
			}
		}
	})
}

// Whatever a server writes, the client must not panic, nor hang after the end.
func FuzzServerOutput(f *testing.F) {
	const hello = `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}` + "\n"
	f.Add([]byte(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"x"}],"structuredContent":null}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete"}` + "\n" + `{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":null}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"sampling/createMessage","params":{"messages":[null]}}` + "\n" + `{"jsonrpc":"2.0","id":3,"result":{"inputRequests":{"a":null},"resultType":"input_required"}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":3,"error":{"code":-32042,"message":"x","data":{"elicitations":[null]}}}` + "\n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		quiet := slog.New(slog.DiscardHandler)
		c := newPipesConn("x", io.MultiReader(strings.NewReader(hello), bytes.NewReader(output)), io.Discard, time.Second, 1<<16, quiet)
		defer c.Close()
		s := newServer(ctx, stubServer(), &Options{Logger: quiet, maxLine: 1 << 16, ClientName: "x", Version: "1", Catalog: catalog.Open("", nil)})
		gone := &process{exited: make(chan struct{}), drained: make(chan struct{}), stderr: newTail(1)}
		close(gone.exited)
		close(gone.drained)
		l := &link{server: s, conn: c, backend: gone, listing: make(chan struct{}, 1)}
		err := guarded(func() (err error) {
			l.session, err = l.client(&mcp.ClientCapabilities{}).Connect(ctx, c, nil)
			return err
		})
		if err == nil {
			l.call(ctx, "x", json.RawMessage("{}"))
			l.list(ctx, false)
			c.fail(io.EOF)
			l.session.Close()
		}
		if ctx.Err() != nil {
			t.Error("it hung")
		}
	})
}
