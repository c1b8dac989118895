package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"codeexec/bridge/config"
	"codeexec/bridge/oauth"
	"codeexec/testdata/oauthstub"
)

// managerWithLogins opens a manager of the stub, with a user's browser or without.
func managerWithLogins(t *testing.T, dir string, s *oauthstub.Server, browse func(string) error) *Manager {
	t.Helper()
	opts := oauth.Options{Dir: dir}
	if browse != nil {
		opts.Ask = func(_ context.Context, address string) (<-chan string, error) {
			go browse(address)
			return nil, nil
		}
	}
	m := NewManager([]config.Server{{Name: "cloud", Transport: config.TransportHTTP, URL: s.URL}}, Options{OAuth: oauth.New(opts)})
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// wantLogin fails the test unless err sends the user to a login.
func wantLogin(t *testing.T, err error) {
	t.Helper()
	_, unavailable := errors.AsType[*UnavailableError](err)
	_, login := errors.AsType[*oauth.LoginError](err)
	if !unavailable || !login || !strings.HasSuffix(err.Error(), "run: codeexec servers login cloud") {
		t.Fatalf("got %v", err)
	}
}

// However often a script has called a server that wants a login, the first call after the login is answered.
func TestLoginWhileRunning(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	script := managerWithLogins(t, dir, s, nil)
	for range maxFailures + 3 {
		_, err := script.Call(t.Context(), "cloud", "echo", nil)
		wantLogin(t, err)
	}
	if info := script.Servers()[0]; !info.NeedsLogin || info.Status != StatusFailed {
		t.Errorf("before the login: %+v", info)
	}
	if failure, ok := script.Failure("cloud"); ok {
		t.Errorf("it counts as a failure: %+v", failure)
	}
	if _, err := managerWithLogins(t, dir, s, oauthstub.Browse).Refresh(t.Context(), "cloud"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := script.Call(t.Context(), "cloud", "echo", nil); err != nil {
		t.Fatalf("after %v: %v", time.Since(began), err)
	}
	if info := script.Servers()[0]; info.NeedsLogin || info.Status != StatusReady {
		t.Errorf("after the login: %+v", info)
	}

	// A token that ends in the middle of a connection is renewed under it.
	s.Forget(false)
	if _, err := script.Call(t.Context(), "cloud", "echo", nil); err != nil {
		t.Fatal(err)
	}
	if n := s.Count("initialize"); n != 2 {
		t.Errorf("%d greetings of two managers", n)
	}
	s.Need("tools/call", "write")
	_, err := script.Call(t.Context(), "cloud", "echo", nil)
	wantLogin(t, err)
	s.Need("tools/call", "")
	s.Forget(true)
	_, err = script.Call(t.Context(), "cloud", "echo", nil)
	wantLogin(t, err)
}

// A login that fails is not tried again with the next request of the greeting.
func TestFailedLoginAsksOnce(t *testing.T) {
	s := oauthstub.New(t)
	s.Answer("iss", "https://bank.example")
	_, err := managerWithLogins(t, "", s, oauthstub.Browse).Refresh(t.Context(), "cloud")
	if err == nil || !strings.Contains(err.Error(), "the answer is from https://bank.example") {
		t.Errorf("got %v", err)
	}
	if n := s.Count("authorize"); n != 1 {
		t.Errorf("the user was asked %d times", n)
	}
}

// Some servers want a login for what they don't know, and answer a greeting to anybody.
func TestLoginOnlyForTools(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	s.Open("initialize", "notifications/initialized", "tools/list")
	script := managerWithLogins(t, dir, s, nil)
	if tools, err := script.Refresh(t.Context(), "cloud"); err != nil || len(tools) != 1 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	_, err := script.Call(t.Context(), "cloud", "echo", nil)
	wantLogin(t, err)
	if n := s.Count("tools/call"); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// Servers of the older transport get the token with the stream and with each message.
func TestLoginOverSSE(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	if _, err := managerWithLogins(t, dir, s, oauthstub.Browse).Refresh(t.Context(), "cloud"); err != nil {
		t.Fatal(err)
	}
	posted := make(chan string, 1)
	s.Override("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPost {
			select {
			case posted <- r.Header.Get("Authorization"):
			default:
			}
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "event: endpoint\ndata: /mcp\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	open := func(dir string) *Manager {
		m := NewManager([]config.Server{{Name: "cloud", Transport: config.TransportSSE, URL: s.URL}}, Options{OAuth: oauth.New(oauth.Options{Dir: dir})})
		t.Cleanup(func() { m.Close(context.Background()) })
		return m
	}
	_, err := open(t.TempDir()).Refresh(t.Context(), "cloud")
	wantLogin(t, err)
	if _, err = open(dir).Refresh(t.Context(), "cloud"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("got %v", err)
	}
	if got := <-posted; !strings.HasPrefix(got, "Bearer access-") {
		t.Errorf("a message came with %q", got)
	}
}

// The token goes to no other server, wherever the one that it is for sends us.
func TestTokenStaysWithServer(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	if _, err := managerWithLogins(t, dir, s, oauthstub.Browse).Refresh(t.Context(), "cloud"); err != nil {
		t.Fatal(err)
	}
	evil := oauthstub.New(t)
	evil.Override("/mcp", func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it got %q", r.Header.Get("Authorization"))
	})
	s.Override("/mcp", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, evil.URL, http.StatusTemporaryRedirect)
	})
	_, err := managerWithLogins(t, dir, s, nil).Refresh(t.Context(), "cloud")
	if err == nil || !strings.Contains(err.Error(), "it redirects to another server") {
		t.Errorf("got %v", err)
	}
}
