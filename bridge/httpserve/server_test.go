package httpserve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

const secret = "0123456789abcdef"

// serve starts a server, and returns its base address and a function that stops it.
func serve(t *testing.T, opts Options) (base string, stop func()) {
	t.Helper()
	if opts.Addr == "" {
		opts.Addr = "0"
	}
	if opts.Endpoint == nil {
		opts.Endpoint = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			name := ""
			if info := auth.TokenInfoFromContext(req.Context()); info != nil {
				name = info.UserID
			}
			fmt.Fprintf(w, "hello %s", name)
		})
	}
	s, err := Listen(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, func() {}) }()
	stop = func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		served <- nil
	}
	t.Cleanup(stop)
	return strings.TrimSuffix(s.URL(), EndpointPath), stop
}

func tokens(t *testing.T, text string) Tokens {
	t.Helper()
	parsed, err := ParseTokens(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestListen(t *testing.T) {
	known := tokens(t, secret)
	tests := []struct {
		name, addr string
		tokens     Tokens
		wantHost   string
		wantErr    string
	}{
		{name: "a port alone", addr: "0", wantHost: "127.0.0.1"},
		{name: "a port after a colon", addr: ":0", wantHost: "127.0.0.1"},
		{name: "a name", addr: "localhost:0", wantHost: "127.0.0.1"},
		{name: "another loopback address", addr: "127.0.0.2:0", wantHost: "127.0.0.2"},
		{name: "everybody without a token", addr: "0.0.0.0:0", wantErr: "--token-file"},
		{name: "everybody without a token, otherwise spelt", addr: "[::]:0", wantErr: "--token-file"},
		{name: "everybody with a token", addr: "0.0.0.0:0", tokens: known, wantHost: "0.0.0.0"},
		{name: "no address", addr: "localhost:1:2", wantErr: "want HOST:PORT"},
		{name: "no port", addr: "localhost", wantErr: "opening the port"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Listen(t.Context(), Options{Addr: tc.addr, Tokens: tc.tokens, Endpoint: http.NotFoundHandler()})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got %v, want an error with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			host, _, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), EndpointPath))
			if want := tc.wantHost; err != nil || host != want && (want != "0.0.0.0" || host != "::") {
				t.Errorf("listens on %s, want %s", s.URL(), want)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	base, _ := serve(t, Options{
		Tokens:       tokens(t, "# clients\nann:"+secret+"1\n\nann:"+secret+"2\nben:"+secret+"3\n"),
		AllowHosts:   []string{"Codeexec.Example"},
		AllowOrigins: []string{"https://app.example/"},
		Metrics:      http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") }),
	})
	tests := []struct {
		name         string
		method, path string // GET /mcp
		token        string
		host, origin string
		header       http.Header
		want         int
		wantBody     string
		wantHeader   [2]string
	}{
		{name: "a token", token: "Bearer " + secret + "1", want: 200, wantBody: "hello ann"},
		{name: "another token of the same client", token: "bearer " + secret + "2", want: 200, wantBody: "hello ann"},
		{name: "another client", token: "Bearer " + secret + "3", want: 200, wantBody: "hello ben"},
		{name: "no token", want: 401, wantHeader: [2]string{"Www-Authenticate", `Bearer realm="codeexec"`}},
		{name: "a wrong token", token: "Bearer " + secret, want: 401, wantHeader: [2]string{"Www-Authenticate", `Bearer realm="codeexec", error="invalid_token"`}},
		{name: "a token of another kind", token: "Basic " + secret + "1", want: 401},
		{name: "the name with the token", token: "Bearer ann:" + secret + "1", want: 401},
		{name: "our name", token: "Bearer " + secret + "1", host: "codeexec.example:443", want: 200},
		{name: "localhost", token: "Bearer " + secret + "1", host: "LOCALHOST:1", want: 200},
		{name: "IPv6 loopback", token: "Bearer " + secret + "1", host: "[::1]:80", want: 200},
		{name: "a rebound name", token: "Bearer " + secret + "1", host: "evil.example", want: 403, wantBody: "--allow-host"},
		{name: "a name that begins like ours", token: "Bearer " + secret + "1", host: "localhost.evil.example", want: 403},
		{name: "another address", token: "Bearer " + secret + "1", host: "10.1.2.3", want: 403},
		{name: "a page of this machine", token: "Bearer " + secret + "1", origin: "http://localhost:6274", want: 200},
		{name: "a page that is listed", token: "Bearer " + secret + "1", origin: "https://app.example", want: 200, wantHeader: [2]string{"Access-Control-Allow-Origin", "https://app.example"}},
		{name: "another page", token: "Bearer " + secret + "1", origin: "https://evil.example", want: 403, wantBody: "--allow-origin"},
		{name: "a page with a name like ours", token: "Bearer " + secret + "1", origin: "http://localhost.evil.example", want: 403},
		{name: "a page in a sandbox", token: "Bearer " + secret + "1", origin: "null", want: 403},
		{
			name: "what a browser asks first", method: "OPTIONS", origin: "https://app.example", header: http.Header{"Access-Control-Request-Method": {"POST"}},
			want: 204, wantHeader: [2]string{"Access-Control-Allow-Methods", "GET, POST, DELETE"},
		},
		{name: "health", path: HealthPath, host: "10.1.2.3", want: 200, wantBody: "ok"},
		{name: "metrics on loopback", path: MetricsPath, want: 200, wantBody: "metrics"},
		{name: "nothing else", path: "/", token: "Bearer " + secret + "1", want: 404},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if tc.path == "" {
				tc.path = EndpointPath
			}
			req, err := http.NewRequest(tc.method, base+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.header != nil {
				req.Header = tc.header
			}
			if tc.token != "" {
				req.Header.Set("Authorization", tc.token)
			}
			if tc.origin != "" {
				req.Header.Set("Origin", tc.origin)
			}
			req.Host = tc.host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tc.want || !strings.Contains(string(body), tc.wantBody) {
				t.Errorf("got %d %q, want %d with %q", resp.StatusCode, body, tc.want, tc.wantBody)
			}
			if key, value := tc.wantHeader[0], tc.wantHeader[1]; key != "" && resp.Header.Get(key) != value {
				t.Errorf("%s: %q, want %q", key, resp.Header.Get(key), value)
			}
			if strings.Contains(string(body), secret) {
				t.Errorf("the answer has the token: %q", body)
			}
		})
	}
}

func TestMetricsElsewhereNeedAToken(t *testing.T) {
	base, _ := serve(t, Options{
		Addr:    "0.0.0.0:0",
		Tokens:  tokens(t, secret),
		Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{"": 401, secret: 200} {
		req, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+port+MetricsPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with token %q: %d, want %d", token, resp.StatusCode, want)
		}
	}
}

func TestParseTokens(t *testing.T) {
	tests := []struct{ name, text, wantErr string }{
		{name: "nothing", text: "\n# none\n", wantErr: "no token"},
		{name: "a short one", text: "ann:short", wantErr: "line 1: the token is shorter"},
		{name: "what a header can't carry", text: "\nann:" + secret + " x", wantErr: "line 2: a token has"},
		{name: "no name", text: ":" + secret, wantErr: "line 1: a name has"},
		{name: "a name with a colon", text: "a:b:" + secret, wantErr: "a token has"},
		{name: "twice", text: "ann:" + secret + "\nben:" + secret, wantErr: "line 2: the token is the same as that of ann"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseTokens(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("got %v, want an error with %q", err, tc.wantErr)
			}
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "short:") {
				t.Errorf("the error has the token: %v", err)
			}
		})
	}
}

func FuzzParseTokens(f *testing.F) {
	f.Add("ann:" + secret)
	f.Add("a\r\n:\n#:\nb:c:" + secret)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseTokens(text)
		if (err == nil) == parsed.Empty() {
			t.Errorf("%d tokens and error %v", len(parsed.known), err)
		}
		for _, k := range parsed.known {
			if !namePattern.MatchString(k.name) {
				t.Errorf("name %q", k.name)
			}
		}
	})
}

func TestReadTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if _, err := ReadTokens(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte("ann:short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTokens(file); err == nil || !strings.Contains(err.Error(), file+": line 1") {
		t.Errorf("got %v, want the file and the line", err)
	}
	if err := os.WriteFile(file, []byte("ann:"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if parsed, err := ReadTokens(file); err != nil || parsed.Names() != 1 {
		t.Errorf("got %v, %v", parsed, err)
	}
}

// A server that stops says so to who asks for its health, and waits for requests in progress.
func TestStop(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	s, err := Listen(t.Context(), Options{Addr: "0", Endpoint: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(inside)
		<-release
		fmt.Fprint(w, "answered")
	})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served, stopping := make(chan error, 1), make(chan struct{})
	go func() {
		served <- s.Serve(ctx, func() {
			close(stopping)
			<-release
		})
	}()
	base := strings.TrimSuffix(s.URL(), EndpointPath)
	health := func(client net.Conn) string {
		fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", HealthPath)
		p := make([]byte, 64)
		if err := client.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, p); err != nil {
			t.Fatal(err)
		}
		return string(p)
	}
	client, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Get(s.URL())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-inside
	cancel()
	<-stopping
	if got := health(client); !strings.HasPrefix(got, "HTTP/1.1 503") {
		t.Errorf("health: %q", got)
	}
	if resp, err := http.Get(base + HealthPath); err == nil {
		resp.Body.Close()
		t.Error("it still accepts connections")
	}
	close(release)
	if got := <-answer; got != "answered" {
		t.Errorf("the request in progress: %q", got)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestHealthSaysNoMoreThanItMust(t *testing.T) {
	base, _ := serve(t, Options{Ready: func() error { return errors.New("no space left on /secret") }})
	resp, err := http.Get(base + HealthPath)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusServiceUnavailable || strings.Contains(string(body), "secret") {
		t.Errorf("got %d %q", resp.StatusCode, body)
	}
}
