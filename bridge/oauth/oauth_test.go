package oauth

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"codeexec/bridge/config"
	"codeexec/testdata/oauthstub"
)

// A user is a process with a browser, or without.
type user struct {
	*Access
	log *bytes.Buffer
}

// newUser makes an access to the stub; visit is what the browser does, nil if there is none.
func newUser(t *testing.T, dir string, s *oauthstub.Server, client config.OAuth, visit func(string) error) user {
	t.Helper()
	log := new(bytes.Buffer)
	opts := Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if visit != nil {
		opts.Ask = func(_ context.Context, address string) (<-chan string, error) {
			go visit(address)
			return nil, nil
		}
	}
	u := user{New(opts).Access(config.Server{Name: "stub", URL: s.URL, OAuth: client}), log}
	t.Cleanup(func() {
		for _, secret := range append(s.Secrets(), client.ClientSecret) {
			if secret != "" && strings.Contains(log.String(), secret) {
				t.Errorf("the log has a secret in it:\n%s", log)
			}
		}
	})
	return u
}

// request makes a request of the stub, as bridge/upstream does, and returns its status.
func (u user) request(ctx context.Context, method string) (int, error) {
	for round := 0; ; round++ {
		token, err := u.Token(ctx)
		if err != nil {
			return 0, err
		}
		body := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": %q}`, method)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url.String(), strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			u.Accepted(ctx, token)
			return resp.StatusCode, nil
		}
		again, err := u.Challenged(ctx, token, resp.StatusCode, resp.Header)
		if err != nil || !again || round == 5 {
			return resp.StatusCode, err
		}
	}
}

// works fails the test unless a request is answered.
func (u user) works(t *testing.T, method string) {
	t.Helper()
	if status, err := u.request(t.Context(), method); status != http.StatusOK || err != nil {
		t.Fatalf("%s: status %d, %v", method, status, err)
	}
}

// fails fails the test unless a request ends in an error with that text.
func (u user) fails(t *testing.T, method, want string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := u.request(ctx, method)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%s: got error %v, want one with %q", method, err, want)
	}
	return err
}

func TestLogin(t *testing.T) {
	s, dir := oauthstub.New(t), filepath.Join(t.TempDir(), "logins")
	script := newUser(t, dir, s, config.OAuth{}, nil)
	err := script.fails(t, "tools/list", "it wants its user to log in; run: codeexec servers login stub")
	if _, ok := errors.AsType[*LoginError](err); !ok {
		t.Errorf("the error is a %T", err)
	}
	if got := script.Status(); got != StatusNeeded {
		t.Errorf("status %q before the login", got)
	}
	if s.Count("register") != 0 {
		t.Error("without a user, a client was registered")
	}

	person := newUser(t, dir, s, config.OAuth{}, oauthstub.Browse)
	if asked, err := person.Login(t.Context()); !asked || err != nil {
		t.Fatalf("Login: %v, %v", asked, err)
	}
	script.works(t, "tools/list")
	if got := script.Status(); got != StatusDone {
		t.Errorf("status %q after the login", got)
	}
	if asked, err := person.Login(t.Context()); asked || err != nil {
		t.Errorf("another Login: %v, %v", asked, err)
	}
	if got := s.Scopes(); len(got) != 1 || got[0] != "base" {
		t.Errorf("scopes %q", got)
	}

	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{dir: 0o700, script.file.path: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}

	had, err := script.Logout(t.Context())
	if !had || err != nil {
		t.Fatalf("Logout: %v, %v", had, err)
	}
	if s.Count("revoke") != 1 {
		t.Error("the token wasn't revoked")
	}
	if _, err := os.Stat(script.file.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is left: %v", err)
	}
	if had, err := script.Logout(t.Context()); had || err != nil {
		t.Errorf("another Logout: %v, %v", had, err)
	}
	script.fails(t, "tools/list", "codeexec servers login stub")
}

// One entry's login is not another's, even of the same URL.
func TestTwoAccounts(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).works(t, "tools/list")
	other := New(Options{Dir: dir}).Access(config.Server{Name: "other", URL: s.URL})
	if token, err := other.Token(t.Context()); token != "" || err != nil {
		t.Errorf("it has a token: %v", err)
	}
}

// However many processes and goroutines find that a token has ended, one of them renews it, since the refresh token
// is good for one use.
func TestRefreshOnce(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	s.Lifetime(1) // over as soon as it begins
	newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).works(t, "tools/list")
	s.Lifetime(3600)
	before := s.Count("refresh_token")
	var running sync.WaitGroup
	for range 4 {
		process := newUser(t, dir, s, config.OAuth{}, nil)
		for range 4 {
			running.Go(func() {
				if status, err := process.request(t.Context(), "tools/list"); status != http.StatusOK || err != nil {
					t.Errorf("status %d, %v", status, err)
				}
			})
		}
	}
	running.Wait()
	if got := s.Count("refresh_token") - before; got != 1 {
		t.Errorf("renewed %d times", got)
	}
	// A token that the server has forgotten before its time is renewed too.
	s.Forget(false)
	newUser(t, dir, s, config.OAuth{}, nil).works(t, "tools/list")
	if got := s.Count("refresh_token") - before; got != 2 {
		t.Errorf("renewed %d times", got)
	}
}

func TestRefreshFails(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).works(t, "tools/list")
	script := newUser(t, dir, s, config.OAuth{}, nil)

	s.Forget(false)
	s.Override("/token", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "access-secret", http.StatusBadGateway) })
	err := script.fails(t, "tools/list", "its token couldn't be renewed: the authorization server answered with HTTP status 502; try again, or run: codeexec servers login stub")
	if strings.Contains(err.Error(), "access-secret") {
		t.Errorf("the error has the answer in it: %v", err)
	}
	s.Override("/token", nil)
	script.works(t, "tools/list") // nothing was lost

	s.Forget(true)
	script.fails(t, "tools/list", "run: codeexec servers login stub")
	before := s.Count("refresh_token")
	script.fails(t, "tools/list", "run: codeexec servers login stub")
	if s.Count("refresh_token") != before {
		t.Error("a refresh token that was refused was used again")
	}
}

// A client that the authorization server has forgotten is registered again.
func TestForgottenClient(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).works(t, "tools/list")
	s.ForgetClients()
	s.Forget(false)
	newUser(t, dir, s, config.OAuth{}, nil).fails(t, "tools/list", "run: codeexec servers login stub")
	newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).works(t, "tools/list")
	if got := s.Count("register"); got != 2 {
		t.Errorf("registered %d times", got)
	}
}

// A server that refuses whatever it gets isn't got a token for each request.
func TestRefusesEveryToken(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).works(t, "tools/list")
	s.Override("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	})
	script := newUser(t, dir, s, config.OAuth{}, nil)
	for range 3 {
		script.fails(t, "tools/list", "run: codeexec servers login stub")
	}
	if got := s.Count("refresh_token"); got != 1 {
		t.Errorf("renewed %d times", got)
	}
	person := newUser(t, dir, s, config.OAuth{}, oauthstub.Browse)
	person.fails(t, "tools/list", "it refuses the token that it has just been given")
	if got := s.Count("authorize"); got > 1+maxLogins {
		t.Errorf("asked for %d logins", got)
	}
}

// What was refused by accident isn't held against the server once it works.
func TestAcceptedAgain(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	s.Metadata("registration_endpoint", s.Origin+"/register")
	newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).works(t, "tools/list")
	script := newUser(t, dir, s, config.OAuth{}, nil)
	if err := script.file.update(t.Context(), func(r *record) (bool, error) {
		r.Wanted = &challenge{}
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	script.works(t, "tools/list")
	if got := script.Status(); got != StatusDone {
		t.Errorf("status %q", got)
	}
}

func TestStepUp(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	s.Need("tools/call", "write")
	newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).works(t, "tools/list")
	script := newUser(t, dir, s, config.OAuth{}, nil)
	script.fails(t, "tools/call", "it wants more rights than its user has given (write); run: codeexec servers login stub")
	script.works(t, "tools/list")
	if got := script.Status(); got != StatusNeeded {
		t.Errorf("status %q", got)
	}
	if _, err := newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	script.works(t, "tools/call")
	if got := s.Scopes(); len(got) != 2 || got[1] != "base write" {
		t.Errorf("scopes %q", got)
	}
	if s.Count("register") != 1 {
		t.Errorf("registered %d times", s.Count("register"))
	}
}

func TestScopes(t *testing.T) {
	tests := []struct {
		name   string
		client config.OAuth
		meta   []string // scopes of the authorization server
		want   string
	}{
		{name: "those of the server", want: "base"},
		{name: "for a refresh token", meta: []string{"base", "offline_access"}, want: "base offline_access"},
		{name: "those of the owner", client: config.OAuth{Scopes: []string{"mine"}}, meta: []string{"offline_access"}, want: "mine"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := oauthstub.New(t)
			s.Metadata("scopes_supported", tc.meta)
			newUser(t, "", s, tc.client, oauthstub.Browse).works(t, "tools/list")
			if got := s.Scopes(); len(got) != 1 || got[0] != tc.want {
				t.Errorf("scopes %q, want %q", got, tc.want)
			}
		})
	}
}

func TestConfiguredClient(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	s.Secret("s3cret")
	s.Metadata("registration_endpoint", nil)
	newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).fails(t, "tools/list", `set "clientId" in "oauth"`)
	client := config.OAuth{ClientID: "configured", ClientSecret: "s3cret", RedirectURI: "http://localhost/back"}
	person := newUser(t, dir, s, client, oauthstub.Browse)
	person.works(t, "tools/list")
	s.Forget(false)
	newUser(t, dir, s, client, nil).works(t, "tools/list") // is renewed with the secret
	if data, err := os.ReadFile(person.file.path); err != nil || bytes.Contains(data, []byte("s3cret")) {
		t.Errorf("the configuration's secret is kept a second time: %v", err)
	}
	client.ClientID = "another"
	newUser(t, dir, s, client, nil).fails(t, "tools/list", "run: codeexec servers login stub")
}

// A secret isn't shown to an authorization server that the MCP server has never named before.
func TestSecretStaysWithIssuer(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	s.Secret("s3cret")
	client := config.OAuth{ClientID: "configured", ClientSecret: "s3cret"}
	newUser(t, dir, s, client, oauthstub.Browse).works(t, "tools/list")
	evil := oauthstub.New(t)
	evil.Override("/token", func(http.ResponseWriter, *http.Request) { t.Error("the secret got to another server") })
	s.Override("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"resource": %q, "authorization_servers": [%q]}`, s.URL, evil.Origin)
	})
	s.Forget(true)
	newUser(t, dir, s, client, oauthstub.Browse).fails(t, "tools/list", "and not "+s.Origin)
	client.Issuer = s.Origin
	newUser(t, t.TempDir(), s, client, oauthstub.Browse).fails(t, "tools/list", "and not "+s.Origin)
	// Registrations are for one issuer too.
	if evil.Count("authorize") != 0 {
		t.Error("the user was sent there")
	}
}

func TestClientCredentials(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		s := oauthstub.New(t)
		s.Secret("s3cret")
		s.Need("tools/call", "write")
		script := newUser(t, dir, s, config.OAuth{ClientID: "configured", ClientSecret: "s3cret", ClientCredentials: true}, nil)
		script.works(t, "tools/list")
		script.works(t, "tools/list")
		if got := s.Count("client_credentials"); got != 1 {
			t.Errorf("%d tokens for two requests", got)
		}
		script.works(t, "tools/call")
		s.Secret("another")
		s.Forget(true)
		script.asked = make(map[string]time.Time) // a minute later
		script.fails(t, "tools/list", "logging in: the authorization server says: invalid_client (no)")
	}
}

// A client that proves with a key who it is signs what the authorization server can check with the public half.
func TestAssertion(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	big, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8 := func(key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	tests := []struct {
		name   string
		der    []byte
		public any
		want   string // algorithm; empty: it can't be used
	}{
		{"EC", pkcs8(ec), &ec.PublicKey, "ES256"},
		{"EC, the older form", sec1, &ec.PublicKey, "ES256"},
		{"RSA", pkcs8(big), &big.PublicKey, "RS256"},
		{"RSA, the older form", x509.MarshalPKCS1PrivateKey(big), &big.PublicKey, "RS256"},
		{"Ed25519", pkcs8(ed), public, "EdDSA"},
		{"nonsense", []byte("sesame"), nil, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: tc.der}))
			proof, err := assertion(config.OAuth{ClientID: "me", PrivateKey: key}, "https://a.example", time.Now())
			if tc.want == "" {
				if err == nil || strings.Contains(err.Error(), "sesame") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := jwt.Parse(proof, func(*jwt.Token) (any, error) { return tc.public, nil },
				jwt.WithValidMethods([]string{tc.want}), jwt.WithAudience("https://a.example"), jwt.WithIssuer("me"), jwt.WithSubject("me"), jwt.WithExpirationRequired())
			if err != nil || parsed.Claims.(jwt.MapClaims)["jti"] == "" {
				t.Errorf("%s: %v", proof, err)
			}
		})
	}
	if _, err := assertion(config.OAuth{PrivateKey: "sesame"}, "", time.Now()); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("got %v", err)
	}
}

func TestHostile(t *testing.T) {
	const resourcePath, serverPath = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"
	jsonText := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, text)
		}
	}
	tests := []struct {
		name string
		make func(s *oauthstub.Server)
		want string
	}{
		{"huge metadata", func(s *oauthstub.Server) {
			s.Override(resourcePath, jsonText(`{"resource": "`+strings.Repeat("x", 2<<20)+`"}`))
		}, "its metadata can't be read"},
		{"huge metadata of the authorization server", func(s *oauthstub.Server) {
			s.Override(serverPath, jsonText(`{"issuer": "`+strings.Repeat("x", 2<<20)+`"}`))
		}, "the metadata of its authorization server"},
		{"metadata of another server", func(s *oauthstub.Server) {
			s.Override(resourcePath, jsonText(`{"resource": "https://bank.example/mcp", "authorization_servers": ["`+s.Origin+`"]}`))
		}, "its metadata are for another server, https://bank.example/mcp"},
		{"metadata of a sibling", func(s *oauthstub.Server) {
			s.Override(resourcePath, jsonText(`{"resource": "`+s.Origin+`/mc", "authorization_servers": ["`+s.Origin+`"]}`))
		}, "its metadata are for another server"},
		{"metadata without an authorization server", func(s *oauthstub.Server) {
			s.Override(resourcePath, jsonText(`{"resource": "`+s.URL+`"}`))
		}, "name no authorization server"},
		{"an authorization server that isn't https", func(s *oauthstub.Server) {
			s.Override(resourcePath, jsonText(`{"resource": "`+s.URL+`", "authorization_servers": ["http://bank.example"]}`))
		}, "which isn't https"},
		{"an authorization server without metadata", func(s *oauthstub.Server) {
			s.Override(serverPath, http.NotFound)
		}, "has no metadata"},
		{"metadata of another issuer", func(s *oauthstub.Server) { s.Metadata("issuer", "https://bank.example") }, "does not match"},
		{"no PKCE", func(s *oauthstub.Server) { s.Metadata("code_challenge_methods_supported", []string{"plain"}) }, "PKCE"},
		{"a script as a page", func(s *oauthstub.Server) { s.Metadata("authorization_endpoint", "javascript:alert(1)") }, "authorization_endpoint"},
		{"a page with a command in it", func(s *oauthstub.Server) {
			s.Metadata("authorization_endpoint", s.Origin+"/a b")
		}, "isn't a URL"},
		{"a token endpoint that isn't https", func(s *oauthstub.Server) { s.Metadata("token_endpoint", "http://bank.example/token") }, "token_endpoint"},
		{"the answer of another issuer", func(s *oauthstub.Server) { s.Answer("iss", "https://bank.example") }, "the answer is from https://bank.example"},
		{"the answer of nearly the issuer", func(s *oauthstub.Server) { s.Answer("iss", s.Origin+"/") }, "the answer is from"},
		{"an answer of no issuer", func(s *oauthstub.Server) { s.Answer("iss", "") }, "doesn't say which authorization server"},
		{"no code", func(s *oauthstub.Server) { s.Answer("code", "") }, "the answer has no code"},
		{"a refusal", func(s *oauthstub.Server) {
			s.Answer("error", "access_denied")
			s.Answer("error_description", "\x1b[2Jno\nway")
		}, "the authorization server says: access_denied ( [2Jno way)"},
		{"a token endpoint that redirects", func(s *oauthstub.Server) {
			s.Override("/token", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
			})
		}, "redirects to another address"},
		{"metadata that redirect to http", func(s *oauthstub.Server) {
			s.Override(resourcePath, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://bank.example/", http.StatusFound)
			})
		}, "which isn't https"},
		{"metadata that redirect for ever", func(s *oauthstub.Server) {
			s.Override(resourcePath, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, resourcePath, http.StatusFound) })
		}, "redirects again and again"},
		{"a token of another type", func(s *oauthstub.Server) {
			s.Override("/token", jsonText(`{"access_token": "secret", "token_type": "DPoP"}`))
		}, `a token of the type "DPoP"`},
		{"a token with a line break", func(s *oauthstub.Server) {
			s.Override("/token", jsonText(`{"access_token": "a\r\nHost: b", "token_type": "Bearer"}`))
		}, "a token that can't be sent"},
		{"no token", func(s *oauthstub.Server) { s.Override("/token", jsonText(`{"id_token": "secret"}`)) }, "answer can't be used"},
		{"a registration that isn't one", func(s *oauthstub.Server) { s.Override("/register", jsonText(`{"client_secret": "secret"}`)) }, "registering codeexec"},
		{"a registration that is refused", func(s *oauthstub.Server) {
			s.Override("/register", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not you", http.StatusForbidden) })
		}, "403 Forbidden: not you"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := oauthstub.New(t)
			tc.make(s)
			u := newUser(t, t.TempDir(), s, config.OAuth{}, oauthstub.Browse)
			err := u.fails(t, "tools/list", tc.want)
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has a secret in it: %v", err)
			}
			if token, err := u.Token(t.Context()); token != "" || err != nil {
				t.Errorf("it has a token: %v", err)
			}
		})
	}
}

// Who waits for a server that says nothing waits no longer than they want.
func TestSlow(t *testing.T) {
	for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/register", "/token", "/authorize"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := oauthstub.New(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			s.Override(path, func(_ http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) // else the end of the request isn't noticed
				cancel(enough)
				select {
				case <-r.Context().Done():
				case <-t.Context().Done():
				}
			})
			browse := func(address string) error {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
				if err != nil {
					return err
				}
				resp, err := http.DefaultClient.Do(req)
				if err == nil {
					resp.Body.Close()
				}
				return err
			}
			_, err := newUser(t, t.TempDir(), s, config.OAuth{}, browse).request(ctx, "tools/list")
			if !errors.Is(err, enough) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What comes with another state, by another way or for another host isn't the answer, and doesn't end the login.
func TestWrongState(t *testing.T) {
	s := oauthstub.New(t)
	visit := func(address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		back := u.Query().Get("redirect_uri")
		for _, wrong := range []struct {
			method, address, host string
			want                  int
		}{
			{"GET", back + "?code=stolen&state=guessed", "", 400},
			{"GET", back + "?code=stolen", "", 400},
			{"GET", strings.TrimSuffix(back, "/callback") + "/other?state=" + u.Query().Get("state"), "", 404},
			{"POST", back + "?code=stolen&state=" + u.Query().Get("state"), "", 405},
			{"GET", back + "?code=stolen&state=" + u.Query().Get("state"), "rebound.example", 404},
		} {
			req, err := http.NewRequest(wrong.method, wrong.address, nil)
			if err != nil {
				return err
			}
			req.Host = wrong.host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return err
			}
			resp.Body.Close()
			if resp.StatusCode != wrong.want {
				t.Errorf("%+v was answered with status %d", wrong, resp.StatusCode)
			}
		}
		resp, err := http.Get(address)
		if err != nil {
			t.Error(err)
			return err
		}
		defer resp.Body.Close()
		page, _ := io.ReadAll(resp.Body)
		if !strings.Contains(string(page), "You can close this window") {
			t.Errorf("the page says %q", page)
		}
		return nil
	}
	newUser(t, "", s, config.OAuth{}, visit).works(t, "tools/list")
}

// The address at which a browser on another machine ends can be given by hand.
func TestBrowserElsewhere(t *testing.T) {
	for _, stray := range []bool{false, true} {
		s := oauthstub.New(t)
		u := newUser(t, "", s, config.OAuth{}, oauthstub.Browse)
		u.keeper.opts.Ask = func(_ context.Context, address string) (<-chan string, error) {
			client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			resp, err := client.Get(address)
			if err != nil {
				return nil, err
			}
			resp.Body.Close()
			ended := make(chan string, 1)
			ended <- resp.Header.Get("Location")
			if stray {
				<-ended
				ended <- "http://127.0.0.1/callback?code=stolen&state=guessed"
			}
			return ended, nil
		}
		if stray {
			u.fails(t, "tools/list", "isn't the one at which the browser ends")
		} else {
			u.works(t, "tools/list")
		}
	}
}

// Servers of versions before 2025-06-18 are authorization servers themselves, and need not say so.
func TestOldServers(t *testing.T) {
	for _, metadata := range []bool{true, false} {
		t.Run(fmt.Sprint("metadata ", metadata), func(t *testing.T) {
			s := oauthstub.New(t)
			s.Override("/.well-known/oauth-protected-resource/mcp", http.NotFound)
			if !metadata {
				s.Override("/.well-known/oauth-authorization-server", http.NotFound)
				s.Answer("iss", "")
			}
			newUser(t, "", s, config.OAuth{}, oauthstub.Browse).works(t, "tools/list")
		})
	}
}

func TestNothingThere(t *testing.T) {
	s := oauthstub.New(t)
	for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/register"} {
		s.Override(path, http.NotFound)
	}
	s.Override("/mcp", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	script := newUser(t, "", s, config.OAuth{}, nil)
	defer func() {
		if got := script.Status(); got != StatusNone {
			t.Errorf("status %q of a server that doesn't say that it wants a login", got)
		}
	}()
	script.fails(t, "tools/list", `check the "headers" of its configuration, such as Authorization, or log in; run: codeexec servers login stub`)
	newUser(t, "", s, config.OAuth{}, oauthstub.Browse).fails(t, "tools/list", `does it want a key in the "headers"`)
}

func TestAllowed(t *testing.T) {
	local, remote := &Access{loopback: true}, &Access{}
	tests := []struct {
		address       string
		local, remote bool
	}{
		{"https://auth.example/token", true, true},
		{"http://auth.example/token", false, false},
		{"http://127.0.0.1:80/token", true, false},
		{"http://localhost/token", true, false},
		{"http://[::1]:8080/token", true, false},
		{"https://localhost/token", true, false},
		{"http://localhost.example/token", false, false},
		{"https://user:pass@auth.example/", false, false},
		{"file:///etc/passwd", false, false},
		{"javascript:alert(1)", false, false},
		{"//auth.example", false, false},
		{"", false, false},
		{"https://auth.example/\x1b[2J", false, false},
	}
	for _, tc := range tests {
		if got := local.allowed(tc.address) == nil; got != tc.local {
			t.Errorf("%q for a local server: %v", tc.address, got)
		}
		if got := remote.allowed(tc.address) == nil; got != tc.remote {
			t.Errorf("%q for a remote server: %v", tc.address, got)
		}
	}
}

func TestCovers(t *testing.T) {
	tests := []struct {
		server, resource string
		want             bool
	}{
		{"https://a.example/mcp", "https://a.example/mcp", true},
		{"https://a.example/mcp", "https://a.example/mcp/", true},
		{"https://a.example/mcp", "https://a.example", true},
		{"https://a.example/mcp", "https://a.example/", true},
		{"https://a.example", "https://a.example/", true},
		{"https://a.example/v1/mcp", "https://a.example/v1", true},
		{"https://a.example/mcp?key=1", "https://a.example/mcp", true},
		{"https://a.example/mcp", "HTTPS://A.example/mcp", true},
		{"https://a.example/mcp", "https://a.example/mcp2", false},
		{"https://a.example/mcp2", "https://a.example/mcp", false},
		{"https://a.example/mcp", "https://a.example/mcp/more", false},
		{"https://a.example/mcp", "http://a.example/mcp", false},
		{"https://a.example/mcp", "https://a.example:8443/mcp", false},
		{"https://a.example/mcp", "https://b.example/mcp", false},
		{"https://a.example/mcp", "https://user@a.example/mcp", false},
		{"https://a.example/mcp", "https://a.example/mcp#x", false},
		{"https://a.example/mcp", "", false},
	}
	for _, tc := range tests {
		a := New(Options{}).Access(config.Server{URL: tc.server})
		if got := a.covers(tc.resource); got != tc.want {
			t.Errorf("%s for %s: %v", tc.resource, tc.server, got)
		}
	}
}

// A registration is for a redirect URI. It is used again if its port is free, and else made anew; a port that the
// owner has fixed must be free.
func TestPort(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	newUser(t, dir, s, config.OAuth{}, oauthstub.Browse).works(t, "tools/list")
	again := func(wantRegistered int) string {
		t.Helper()
		s.Forget(true)
		u := newUser(t, dir, s, config.OAuth{}, oauthstub.Browse)
		u.works(t, "tools/list")
		if got := s.Count("register"); got != wantRegistered {
			t.Errorf("registered %d times, want %d", got, wantRegistered)
		}
		return u.file.read().Clients[s.Origin].URI
	}
	first := again(1)
	u, err := url.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", u.Host)
	if err != nil {
		t.Skipf("somebody else has the port: %v", err)
	}
	defer taken.Close()
	if second := again(2); second == first {
		t.Errorf("the redirect URI is still %s", second)
	}
	s.Secret("s3cret")
	s.Forget(true)
	newUser(t, dir, s, config.OAuth{ClientID: "configured", ClientSecret: "s3cret", RedirectURI: first}, oauthstub.Browse).
		fails(t, "tools/list", "the port to which the browser is to be sent back: ")
}

// Without TLS a token would be anybody's.
func TestNoTokenWithoutTLS(t *testing.T) {
	a := New(Options{Dir: t.TempDir()}).Access(config.Server{Name: "plain", URL: "http://mcp.example/mcp"})
	err := a.file.update(t.Context(), func(r *record) (bool, error) {
		r.Token = &token{Access: "secret", grantedBy: grantedBy{Registered: true}}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if token, err := a.Token(t.Context()); token != "" || err != nil {
		t.Errorf("got a token, %v", err)
	}
	if _, err := a.Challenged(t.Context(), "", http.StatusUnauthorized, nil); err == nil || !strings.Contains(err.Error(), "https://") {
		t.Errorf("got %v", err)
	}
}

func TestDamagedFile(t *testing.T) {
	s, dir := oauthstub.New(t), t.TempDir()
	u := newUser(t, dir, s, config.OAuth{}, oauthstub.Browse)
	if err := os.WriteFile(u.file.path, []byte(`{"token": {"access": "access-half`), 0o600); err != nil {
		t.Fatal(err)
	}
	u.works(t, "tools/list")
	if log := u.log.String(); !strings.Contains(log, "damaged") || strings.Contains(log, "access-half") {
		t.Errorf("log:\n%s", log)
	}
}

func TestNoAccess(t *testing.T) {
	tests := []struct {
		name   string
		server config.Server
	}{
		{"a program", config.Server{Command: "x"}},
		{"switched off", config.Server{URL: "https://mcp.example", OAuth: config.OAuth{Off: true}}},
		{"a header of the owner's", config.Server{URL: "https://mcp.example", Headers: map[string]string{"authorization": "Bearer x"}}},
	}
	for _, tc := range tests {
		if New(Options{}).Access(tc.server) != nil {
			t.Errorf("%s: there is an access", tc.name)
		}
	}
}

func TestParseChallenge(t *testing.T) {
	tests := []struct {
		name   string
		status int
		header []string
		want   *challenge
	}{
		{"nothing", 401, nil, &challenge{Vague: true}},
		{"another scheme", 401, []string{`Basic realm="x"`}, &challenge{Vague: true}},
		{"a bare word", 401, []string{"bearer"}, &challenge{}},
		{"everything", 401, []string{`Bearer realm="a, b", resource_metadata="https://a.example/m", scope="r w"`},
			&challenge{Metadata: "https://a.example/m", Scopes: []string{"r", "w"}}},
		{"no realm", 401, []string{`Bearer realm="", scope="r"`}, &challenge{Scopes: []string{"r"}}},
		{"several", 401, []string{`Basic realm="x", Bearer scope=r`}, &challenge{Scopes: []string{"r"}}},
		{"several headers", 401, []string{`Basic realm="x"`, `Bearer scope=r`}, &challenge{Scopes: []string{"r"}}},
		{"nonsense", 401, []string{`Bearer scope="r`}, &challenge{Vague: true}},
		{"odd scopes", 401, []string{`Bearer scope="r \"x\" ü w"`}, &challenge{Scopes: []string{"r", "w"}}},
		{"forbidden", 403, []string{"Bearer"}, nil},
		{"more", 403, []string{`Bearer error="insufficient_scope", scope="w"`}, &challenge{Scopes: []string{"w"}, More: true}},
		{"more of a kind that isn't known", 403, []string{`Bearer error=insufficient_scope`}, &challenge{More: true}},
		{"another status", 404, []string{`Bearer error=insufficient_scope`}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := parseChallenge(tc.status, http.Header{"Www-Authenticate": tc.header}); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func FuzzParseChallenge(f *testing.F) {
	f.Add(401, `Bearer resource_metadata="https://a.example/m", scope="a b"`)
	f.Add(403, `Bearer error="insufficient_scope", scope="write", error_description="a \"b\", c"`)
	f.Add(403, `Basic realm="x", Bearer error=insufficient_scope`)
	f.Add(401, `Negotiate abc==, Bearer realm=""`)
	f.Add(401, "Bearer scope=\"\x00ü\\\"")
	f.Fuzz(func(t *testing.T, status int, header string) {
		c := parseChallenge(status, http.Header{"Www-Authenticate": {header}})
		if c == nil {
			if status == 401 {
				t.Errorf("%q was ignored", header)
			}
			return
		}
		if status != 401 && (status != 403 || !c.More) {
			t.Errorf("%d %q: %+v", status, header, c)
		}
		if len(c.Scopes) > maxScopes {
			t.Errorf("%d scopes", len(c.Scopes))
		}
		for _, scope := range c.Scopes {
			if scope == "" || strings.ContainsAny(scope, "\"\\ \n\x00") {
				t.Errorf("scope %q", scope)
			}
		}
		if strings.ContainsAny(c.reason(), "\n\x1b") {
			t.Errorf("reason %q", c.reason())
		}
	})
}
