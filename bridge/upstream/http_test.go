package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/config"
)

// remoteServer makes an MCP server with a few tools, whose handlers end with the
// test.
func remoteServer(t testing.TB, opts *mcp.ServerOptions) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, opts)
	schema := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: schema}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
	})
	server.AddTool(&mcp.Tool{Name: "big", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: json.RawMessage(`{"id":12345678901234567890}`)}, nil
	})
	server.AddTool(&mcp.Tool{Name: "large", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", 2<<20)}}}, nil
	})
	server.AddTool(&mcp.Tool{Name: "block", InputSchema: schema}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-ctx.Done():
		case <-t.Context().Done():
		}
		return nil, context.Canceled
	})
	server.AddTool(&mcp.Tool{Name: "grow", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		server.AddTool(&mcp.Tool{Name: "grown", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		})
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	return server
}

// serve serves HTTP until the test ends.
func serve(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web
}

func remoteConfig(url string) config.Server {
	return config.Server{Name: "stub", Transport: config.TransportHTTP, URL: url, Source: "test"}
}

func TestHTTP(t *testing.T) {
	streamable := func(server *mcp.ServerOptions, opts *mcp.StreamableHTTPOptions) func(testing.TB) http.Handler {
		return func(t testing.TB) http.Handler {
			s := remoteServer(t, server)
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opts)
		}
	}
	sse := func(t testing.TB) http.Handler {
		s := remoteServer(t, nil)
		return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}
	only := func(version string) *mcp.ServerOptions {
		return &mcp.ServerOptions{SupportedProtocolVersions: []string{version}}
	}
	tests := []struct {
		name      string
		handler   func(testing.TB) http.Handler
		transport string // as it is configured
		want      string // as it is found out
	}{
		{"the newest version", streamable(nil, nil), "http", "http"},
		{"the newest version only", streamable(only("2026-07-28"), &mcp.StreamableHTTPOptions{Stateless: true}), "http", "http"},
		{"an older version", streamable(only("2025-06-18"), nil), "http", "http"},
		{"the oldest version", streamable(only("2025-03-26"), nil), "http", "http"},
		{"without sessions", streamable(nil, &mcp.StreamableHTTPOptions{Stateless: true}), "http", "http"},
		{"JSON instead of events", streamable(only("2025-11-25"), &mcp.StreamableHTTPOptions{JSONResponse: true}), "http", "http"},
		{"the older transport", sse, "sse", "sse"},
		{"the older transport, found out", sse, "http", "sse"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			cfg := remoteConfig(serve(t, tc.handler(t)).URL)
			cfg.Transport = tc.transport
			m := start(t, Options{maxLine: 1 << 20}, cfg)
			args := `{"n":12345678901234567890,"from":"a","html":"<&>"}`
			if got := text(t, call(t, m, "echo", args)); got != args {
				t.Errorf("%s arrived as %s", args, got)
			}
			raw, _ := call(t, m, "big", "").StructuredContent.(json.RawMessage)
			if string(raw) != `{"id":12345678901234567890}` {
				t.Errorf("structured content %s", raw)
			}
			_, err := m.Call(limit(t), "stub", "large", nil)
			if large, ok := errors.AsType[*TooLargeError](err); !ok || large.Tool != "large" {
				t.Errorf("err = %v", err)
			}
			_, err = m.Call(limit(t), "stub", "no-such-tool", nil)
			if _, ok := errors.AsType[*UnknownToolError](err); !ok {
				t.Errorf("err = %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := m.Call(ctx, "stub", "block", nil); err != context.DeadlineExceeded {
				t.Errorf("err = %v", err)
			}
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					args := fmt.Sprintf(`{"i":%d}`, i)
					if got := text(t, call(t, m, "echo", args)); got != args {
						t.Errorf("%s arrived as %s", args, got)
					}
				})
			}
			wg.Wait()
			if info := m.Servers()[0]; info.Status != StatusReady || info.Transport != tc.want || info.Tools != 5 {
				t.Errorf("info = %+v", info)
			}
			call(t, m, "grow", "")
			eventually(t, "the new tool is listed", func() bool {
				m.Tools(limit(t), "stub")
				return m.Servers()[0].Tools == 6
			})
		})
	}
}

// A header that is configured goes with every request, and nothing of it gets
// into an error.
func TestHTTPHeaders(t *testing.T) {
	var mu sync.Mutex
	seen, names := make(map[string]int), make(map[string]bool)
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return remoteServer(t, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
	}, nil)
	web := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Method+" "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Team")]++
		for name := range r.Header {
			names[name] = true
		}
		mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer t0p" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	cfg := remoteConfig(web.URL)
	cfg.Headers = map[string]string{"Authorization": "Bearer t0p", "x-team": "a"}
	m := start(t, Options{}, cfg)
	call(t, m, "echo", "")
	eventually(t, "its own stream is opened", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen["GET Bearer t0p a"] > 0
	})
	closeManager(t, m)
	for key, n := range seen {
		if !strings.HasSuffix(key, " Bearer t0p a") {
			t.Errorf("%d requests %s", n, key)
		}
	}
	// It learns nothing else of us, nor of whoever calls us.
	known := []string{"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "Mcp-Method", "Mcp-Name",
		"Mcp-Protocol-Version", "Mcp-Session-Id", "User-Agent", "X-Team"}
	for name := range names {
		if !slices.Contains(known, name) {
			t.Errorf("it gets the header %s", name)
		}
	}
	if seen["DELETE Bearer t0p a"] != 1 {
		t.Errorf("the session wasn't ended: %v", seen)
	}

	cfg.Headers = map[string]string{"Authorization": "Bearer s3cret"}
	cfg.URL += "/?key=s3cret"
	m = start(t, Options{}, cfg)
	_, err := m.Call(limit(t), "stub", "echo", nil)
	got := unavailable(t, err).Error()
	want := `server "stub" is not available: it answered with HTTP status 401 Unauthorized ("who are you"): check the "headers" of its configuration, such as Authorization`
	if got != want {
		t.Errorf("err = %s\nwant  %s", got, want)
	}

	for _, headers := range []map[string]string{{"X-Key": "s3cret\r\nX-Other: 1"}, {"a b": "s3cret"}, {"": ""}} {
		cfg.Headers = headers
		m = start(t, Options{}, cfg)
		_, err = m.Call(limit(t), "stub", "echo", nil)
		if got := unavailable(t, err).Error(); !strings.Contains(got, "can't be sent") || strings.Contains(got, "s3cret") {
			t.Errorf("err = %s", got)
		}
	}
}

func TestHTTPRedirects(t *testing.T) {
	var leaked atomic.Bool
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Store(true) }))
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return remoteServer(t, nil) }, nil)
	web := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/get":
			http.Redirect(w, r, "/mcp", http.StatusFound)
		case "/slash":
			http.Redirect(w, r, "/mcp", http.StatusPermanentRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
		default:
			inner.ServeHTTP(w, r)
		}
	}))
	for path, want := range map[string]string{
		"/away":  "it redirects to another server, " + elsewhere.URL,
		"/get":   "it redirects to another address",
		"/slash": "",
		"/loop":  "again and again",
	} {
		m := start(t, Options{}, remoteConfig(web.URL+path))
		_, err := m.Call(limit(t), "stub", "echo", nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: err = %v", path, err)
		}
	}
	if leaked.Load() {
		t.Error("a request got to another server")
	}
}

func TestHTTPFailures(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	plain := func(status int, kind, body string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			io.WriteString(w, body)
		})).URL
	}
	tests := []struct{ name, url, want string }{
		{"nobody there", gone.URL, "it can't be reached"},
		{"no URL", "ftp://x", "its URL isn't one that begins with http"},
		{"a web site", plain(200, "text/html", "<html>"), "with text/html where JSON or events were expected"},
		{"nothing", plain(404, "text/plain", ""), "HTTP status 404 Not Found"},
		{"broken", plain(500, "text/plain", "oops"), "HTTP status 500 Internal Server Error"},
		{"not JSON", plain(200, "application/json", "{oops"), "the answer broke off"},
		{"not JSON-RPC", plain(200, "application/json", "{}"), "the answer broke off"},
		{"an empty stream", plain(200, "text/event-stream", ""), "the answer broke off"},
		{"an error", plain(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"go away"}}`), "it refused the greeting: go away (code -32000)"},
		{"malformed", plain(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[{}]}\n\n"), "the greeting failed: calling \"initialize\""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			m := start(t, Options{}, remoteConfig(tc.url))
			_, err := m.Call(limit(t), "stub", "echo", nil)
			if got := unavailable(t, err).Error(); !strings.Contains(got, tc.want) {
				t.Errorf("err = %s\nwant  … %s", got, tc.want)
			}
			if info := m.Servers()[0]; info.Status != StatusFailed || info.Err == nil {
				t.Errorf("info = %+v", info)
			}
		})
	}
	t.Run("never answers", func(t *testing.T) {
		web := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // or else it isn't seen that the client leaves
			<-r.Context().Done()
		}))
		m := start(t, Options{StartTimeout: 300 * time.Millisecond, ProbeTimeout: 50 * time.Millisecond}, remoteConfig(web.URL))
		_, err := m.Call(limit(t), "stub", "echo", nil)
		if got := unavailable(t, err).Error(); !strings.Contains(got, "it didn't answer the greeting within 300ms") {
			t.Errorf("err = %s", got)
		}
	})
}

// A server that has forgotten the session, as after its restart, is greeted
// again, and nobody notices.
func TestHTTPSessionThatEnded(t *testing.T) {
	var inner atomic.Pointer[mcp.StreamableHTTPHandler]
	fresh := func() {
		server := remoteServer(t, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
		inner.Store(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	}
	fresh()
	web := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner.Load().ServeHTTP(w, r) }))
	m := start(t, Options{}, remoteConfig(web.URL))
	for range 3 {
		call(t, m, "echo", "")
		fresh()
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { call(t, m, "echo", "") })
	}
	wg.Wait()
	if info := m.Servers()[0]; info.Status != StatusReady || info.Err != nil {
		t.Errorf("info = %+v", info)
	}
}

// handmade is a server of version 2025-11-25 whose answers to calls are made by
// hand; get answers GET.
func handmade(t testing.TB, answer func(w http.ResponseWriter, id json.RawMessage), get http.HandlerFunc) string {
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			get(w, r)
			return
		}
		var msg struct {
			ID     json.RawMessage
			Method string
		}
		json.NewDecoder(r.Body).Decode(&msg)
		result := ""
		switch msg.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			answer(w, msg.ID)
			return
		default:
			if msg.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, msg.ID)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, result)
	})).URL
}

func noStream(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }

// A stream that the server closes before the answer is taken up again where it
// broke off, when the server says.
// What a server asks on its own stream isn't lost because the stream opens after the first call. Where it doesn't
// open, calls go on.
func TestHTTPCallsWaitForTheServersOwnStream(t *testing.T) {
	for name, opens := range map[string]bool{"opens late": true, "never opens": false} {
		t.Run(name, func(t *testing.T) {
			server := remoteServer(t, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
			inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
			var open atomic.Bool
			m := start(t, Options{}, remoteConfig(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				switch {
				case r.Method == http.MethodGet && opens:
					time.Sleep(100 * time.Millisecond)
					open.Store(true)
				case r.Method == http.MethodGet:
					<-r.Context().Done()
					return
				case strings.Contains(string(body), `"tools/call"`) && opens && !open.Load():
					t.Error("the call comes before the stream is open")
				}
				inner.ServeHTTP(w, r)
			})).URL))
			call(t, m, "echo", "{}")
			call(t, m, "echo", "{}")
		})
	}
}

func TestHTTPStreamIsResumed(t *testing.T) {
	var id atomic.Value
	var asked sync.Map
	answer := func(w http.ResponseWriter, callID json.RawMessage) {
		id.Store(string(callID))
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "id: e1\nretry: 20\ndata:\n\n")
	}
	get := func(w http.ResponseWriter, r *http.Request) {
		last := r.Header.Get("Last-Event-ID")
		if last == "" {
			noStream(w, r)
			return
		}
		asked.Store(last, true)
		w.Header().Set("Content-Type", "text/event-stream")
		if last == "e1" {
			io.WriteString(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n")
			return
		}
		fmt.Fprintf(w, "id: e3\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"late\"}]}}\n\n", id.Load())
	}
	m := start(t, Options{}, remoteConfig(handmade(t, answer, get)))
	if got := text(t, call(t, m, "echo", "")); got != "late" {
		t.Error(got)
	}
	for _, last := range []string{"e1", "e2"} {
		if _, ok := asked.Load(last); !ok {
			t.Errorf("the stream wasn't taken up after %s", last)
		}
	}
}

func TestHTTPAnswersThatAreNone(t *testing.T) {
	events := func(body string) func(w http.ResponseWriter, id json.RawMessage) {
		return func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, strings.ReplaceAll(body, "ID", string(id)))
		}
	}
	tests := []struct {
		name   string
		answer func(w http.ResponseWriter, id json.RawMessage)
		want   string
	}{
		{"breaks off", events("data: {\"jsonrpc\":\"2.0\",\"id\":ID"), "the answer broke off"},
		{"panics the SDK", events("data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[null]}}\n\n"), "its answer isn't valid"},
		{"of another version", events("data: {\"jsonrpc\":\"1.0\",\"id\":ID,\"result\":{}}\n\n"), "can't be decoded"},
		{"busy", func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(503) }, "HTTP status 503"},
		{"accepted", func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(202) }, "HTTP status 202"},
		{"an endless event", func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"x\":\"", id)
			for range 4 {
				io.WriteString(w, strings.Repeat("x", 1<<20))
			}
			io.WriteString(w, "\"}}\n\n")
		}, "larger than 1048576 bytes"},
		{"a compressed bomb", func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			for range 3 {
				io.WriteString(w, strings.Repeat(" ", 1<<20))
			}
		}, "larger than 1048576 bytes"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			m := start(t, Options{maxLine: 1 << 20}, remoteConfig(handmade(t, tc.answer, noStream)))
			_, err := m.Call(limit(t), "stub", "echo", nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want … %s", err, tc.want)
			}
			if status := m.Servers()[0].Status; status != StatusReady {
				t.Errorf("status %s", status)
			}
		})
	}
}

// The older transport must not send our headers where the server likes.
func TestSSEEndpointElsewhere(t *testing.T) {
	var leaked atomic.Bool
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Store(true) }))
	for data, want := range map[string]string{
		"event: endpoint\ndata: " + elsewhere.URL + "\n\n": "it wants messages to be sent to another server",
		"data: hello\n\n": "doesn't begin with an endpoint",
		"":                "EOF",
	} {
		web := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, data)
		}))
		cfg := remoteConfig(web.URL)
		cfg.Transport = config.TransportSSE
		m := start(t, Options{}, cfg)
		_, err := m.Call(limit(t), "stub", "echo", nil)
		if got := unavailable(t, err).Error(); !strings.Contains(got, want) {
			t.Errorf("err = %s, want … %s", got, want)
		}
	}
	if leaked.Load() {
		t.Error("a request got to another server")
	}
}

func TestParamHeaders(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"count":{"type":"integer","x-mcp-header":"Count"},
		"dry":{"type":"boolean","x-mcp-header":"Dry"},
		"maybe":{"type":["string","null"],"x-mcp-header":"Maybe"},
		"in":{"type":"object","properties":{"deep":{"type":"string","x-mcp-header":"Deep"}}},
		"plain":{"type":"string"}}}`)
	tests := []struct{ args, want string }{
		{`{}`, ``},
		{`{"region":"eu","count":3,"dry":false,"maybe":"x","plain":"y"}`, `Count=3 Dry=false Maybe=x Region=eu`},
		{`{"region":" eu","count":1.5,"dry":null}`, `Region==?base64?IGV1?=`},
		{`{"region":"=?base64?eA==?=","count":9007199254740993}`, `Region==?base64?PT9iYXNlNjQ/ZUE9PT89?=`},
		{`{"region":"ü\r\n","count":1e3}`, `Count=1000 Region==?base64?w7wNCg==?=`},
		{`{"in":{"deep":"x"}}`, `Deep=x`},
		{`{"in":"x","maybe":null}`, ``},
		{`[]`, ``},
	}
	for _, tc := range tests {
		set := make(map[string]string)
		paramHeaders(set, schema, json.RawMessage(tc.args))
		var got []string
		for name, value := range set {
			got = append(got, strings.TrimPrefix(name, "Mcp-Param-")+"="+value)
		}
		slices.Sort(got)
		if got := strings.Join(got, " "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.args, got, tc.want)
		}
	}
}

func TestHeaderAnnotationsThatAreWrong(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"no name", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, "isn't a name"},
		{"no string", `{"properties":{"a":{"type":"string","x-mcp-header":7}}}`, "isn't a name"},
		{"a space", `{"properties":{"a":{"type":"string","x-mcp-header":"A b"}}}`, "isn't a name"},
		{"not ASCII", `{"properties":{"a":{"type":"string","x-mcp-header":"Région"}}}`, "isn't a name"},
		{"number", `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, "isn't allowed"},
		{"object", `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, "isn't allowed"},
		{"null", `{"properties":{"a":{"type":"null","x-mcp-header":"A"}}}`, "isn't allowed"},
		{"any", `{"properties":{"a":{"x-mcp-header":"A"}}}`, "isn't allowed"},
		{"twice", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"a"}}}}}`, "second time"},
		{"the whole", `{"type":"string","x-mcp-header":"A"}`, "can't be told"},
		{"in a list", `{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}`, "can't be told"},
		{"in one of several", `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, "can't be told"},
		{"in a definition", `{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`, "can't be told"},
		{"a property of that name", `{"properties":{"x-mcp-header":{"type":"string"}}}`, ""},
		{"a value", `{"properties":{"a":{"default":{"x-mcp-header":""}}}}`, ""},
		{"no schema", `true`, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			switch _, err := headerParams(json.RawMessage(tc.schema)); {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("err = %v, want … %s", err, tc.want)
			}
		})
	}
}
