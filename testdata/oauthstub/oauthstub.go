// Package oauthstub is a remote MCP server that wants a login, with the authorization server for it, in one web
// server on this machine: it agrees to everything that is asked in the right way, and tests can make it misbehave.
package oauthstub

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Server is the two servers. What it is asked is checked; mistakes fail the test.
type Server struct {
	// URL is that of the MCP server.
	URL string
	// Origin is what the URL begins with, and the issuer.
	Origin string

	t testing.TB

	mu       sync.Mutex
	override map[string]http.HandlerFunc
	needed   map[string]string // scopes by method of JSON-RPC
	open     map[string]bool   // methods that are for anybody
	lifetime int               // seconds of a token; 0: it isn't said
	secret   string            // of the client "configured"
	metadata map[string]any    // of the authorization server, besides the usual
	answer   url.Values        // of the authorization endpoint, besides the usual
	counts   map[string]int
	clients  map[string]bool
	codes    map[string]code
	tokens   map[string]string // scopes by token that is good
	refresh  map[string]string // scopes by refresh token that is good
	scopes   []string          // what was asked for, in each login
}

type code struct{ challenge, redirect, scope, client string }

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{
		t: t, override: make(map[string]http.HandlerFunc), needed: make(map[string]string), open: make(map[string]bool), counts: make(map[string]int),
		clients: make(map[string]bool), codes: make(map[string]code), tokens: make(map[string]string), refresh: make(map[string]string),
		metadata: make(map[string]any), answer: make(url.Values), lifetime: 3600,
	}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.Origin, s.URL = server.URL, server.URL+"/mcp"
	return s
}

// Override has a path answered by f.
func (s *Server) Override(path string, f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.override[path] = f
}

// Metadata sets a field of the authorization server's metadata.
func (s *Server) Metadata(name string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metadata[name] = value
}

// Answer sets a parameter with which the browser is sent back; empty takes it away.
func (s *Server) Answer(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer.Set(name, value)
}

// Need has requests of a method want scopes.
func (s *Server) Need(method, scopes string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needed[method] = scopes
}

// Open has requests of some methods answered without a token.
func (s *Server) Open(methods ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, method := range methods {
		s.open[method] = true
	}
}

// Lifetime sets how many seconds tokens are said to last.
func (s *Server) Lifetime(seconds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifetime = seconds
}

// Secret registers the client "configured" with a secret.
func (s *Server) Secret(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secret = secret
}

// Forget makes all access tokens invalid, and all refresh tokens too if all is set.
func (s *Server) Forget(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
	if all {
		clear(s.refresh)
	}
}

// ForgetClients makes all registrations invalid.
func (s *Server) ForgetClients() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.clients)
}

// Count returns how often something was asked for: "register", "authorize", "authorization_code", "refresh_token",
// "client_credentials", "revoke" or a method of JSON-RPC that was answered.
func (s *Server) Count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[what]
}

// Scopes returns what was asked for in the logins so far, sorted.
func (s *Server) Scopes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.scopes)
}

// Secrets returns everything that nobody else may see.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for token := range s.tokens {
		all = append(all, token)
	}
	for token := range s.refresh {
		all = append(all, token)
	}
	return all
}

// Browse is a browser of a user who agrees: it goes to an address and where it is sent from there.
func Browse(address string) error {
	resp, err := http.Get(address)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f := s.override[r.URL.Path]
	s.mu.Unlock()
	if f != nil {
		f(w, r)
		return
	}
	switch r.URL.Path {
	case "/mcp":
		s.mcp(w, r)
	case "/.well-known/oauth-protected-resource/mcp":
		reply(w, 200, map[string]any{"resource": s.URL, "authorization_servers": []string{s.Origin}, "scopes_supported": []string{"base"}})
	case "/.well-known/oauth-authorization-server":
		meta := map[string]any{
			"issuer": s.Origin, "authorization_endpoint": s.Origin + "/authorize", "token_endpoint": s.Origin + "/token",
			"registration_endpoint": s.Origin + "/register", "revocation_endpoint": s.Origin + "/revoke",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic"},
			"authorization_response_iss_parameter_supported": true,
		}
		s.mu.Lock()
		for name, value := range s.metadata {
			meta[name] = value
		}
		s.mu.Unlock()
		reply(w, 200, meta)
	case "/register":
		s.register(w, r)
	case "/authorize":
		s.authorize(w, r)
	case "/token":
		s.token(w, r)
	case "/revoke":
		s.mu.Lock()
		s.counts["revoke"]++
		delete(s.refresh, r.PostFormValue("token"))
		s.mu.Unlock()
	default:
		http.NotFound(w, r)
	}
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value)
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var client struct {
		URIs   []string `json:"redirect_uris"`
		Grants []string `json:"grant_types"`
		Type   string   `json:"application_type"`
	}
	if json.NewDecoder(r.Body).Decode(&client) != nil || len(client.URIs) != 1 || !slices.Contains(client.Grants, "refresh_token") || client.Type != "native" {
		s.t.Errorf("registration of %+v", client)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts["register"]++
	id := "client-" + rand.Text()
	s.clients[id] = true
	reply(w, 201, map[string]any{"client_id": id, "redirect_uris": client.URIs, "token_endpoint_auth_method": "none"})
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts["authorize"]++
	s.scopes = append(s.scopes, q.Get("scope"))
	known := s.clients[q.Get("client_id")] || s.secret != "" && q.Get("client_id") == "configured"
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" || q.Get("resource") != s.URL || !known {
		s.t.Errorf("authorization request %v", q)
	}
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Hostname() != "127.0.0.1" && back.Hostname() != "localhost" {
		s.t.Errorf("redirect URI %q", q.Get("redirect_uri"))
		return
	}
	id := rand.Text()
	s.codes[id] = code{q.Get("code_challenge"), q.Get("redirect_uri"), q.Get("scope"), q.Get("client_id")}
	answer := url.Values{"code": {id}, "state": {q.Get("state")}, "iss": {s.Origin}}
	for name := range s.answer {
		answer.Set(name, s.answer.Get(name))
		if s.answer.Get(name) == "" {
			answer.Del(name)
		}
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ParseForm()
	form := r.PostForm
	grant := form.Get("grant_type")
	s.counts[grant]++
	if form.Get("resource") != s.URL {
		s.t.Errorf("%s for the resource %q", grant, form.Get("resource"))
	}
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = form.Get("client_id"), form.Get("client_secret")
	}
	refuse := func(code string) { reply(w, 400, map[string]any{"error": code, "error_description": "no"}) }
	if !s.clients[id] && (id != "configured" || s.secret == "" || secret != s.secret) {
		refuse("invalid_client")
		return
	}
	var scope string
	switch grant {
	case "authorization_code":
		c, ok := s.codes[form.Get("code")]
		delete(s.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != c.challenge || form.Get("redirect_uri") != c.redirect || id != c.client {
			refuse("invalid_grant")
			return
		}
		scope = c.scope
	case "refresh_token":
		granted, ok := s.refresh[form.Get("refresh_token")]
		delete(s.refresh, form.Get("refresh_token")) // each is good for one use
		if !ok {
			refuse("invalid_grant")
			return
		}
		scope = granted
	case "client_credentials":
		scope = form.Get("scope")
	default:
		refuse("unsupported_grant_type")
		return
	}
	access := "access-" + rand.Text()
	s.tokens[access] = scope
	given := map[string]any{"access_token": access, "token_type": "Bearer", "scope": scope}
	if s.lifetime != 0 {
		given["expires_in"] = s.lifetime
	}
	if grant != "client_credentials" {
		again := "refresh-" + rand.Text()
		s.refresh[again] = scope
		given["refresh_token"] = again
	}
	reply(w, 200, given)
}

// mcp is a stateless MCP server of version 2025-11-25 with one tool, echo.
func (s *Server) mcp(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage
		Method string
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&req) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	metadata := fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, s.Origin)
	granted, ok := s.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !ok && !s.open[req.Method] {
		w.Header().Set("WWW-Authenticate", metadata)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	for _, scope := range strings.Fields(s.needed[req.Method]) {
		if !slices.Contains(strings.Fields(granted), scope) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`%s, error="insufficient_scope", scope="%s"`, metadata, s.needed[req.Method]))
			w.WriteHeader(http.StatusForbidden)
			return
		}
	}
	s.counts[req.Method]++
	var result any
	switch req.Method {
	case "initialize":
		result = map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "stub", "version": "1"}}
	case "tools/list":
		result = map[string]any{"tools": []any{map[string]any{"name": "echo", "inputSchema": map[string]any{"type": "object"}}}}
	case "tools/call":
		result = map[string]any{"content": []any{map[string]any{"type": "text", "text": "heard"}}}
	default:
		if len(req.ID) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		reply(w, 200, map[string]any{"jsonrpc": "2.0", "id": req.ID, "error": map[string]any{"code": -32601, "message": "no such method"}})
		return
	}
	reply(w, 200, map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result})
}
