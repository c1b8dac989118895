// Package oauth gets, keeps and renews the tokens that remote MCP servers want
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization).
//
// Its one job is to answer, for one server, which token goes with a request, and
// what is to be done if the server wants another one. It knows OAuth and a
// directory; it knows neither MCP's messages nor how servers are reached.
// bridge/upstream asks it with each request; cmd/codeexec decides whether there
// is somebody who can be asked ([Options.Ask]).
//
// # Why a run never logs in
//
// A login needs a browser and a person. A script that opened windows, or waited
// for somebody who isn't there, would be in everybody's way. So a run uses what
// a login has left, renews it, and otherwise fails at once with a [LoginError],
// which says what to type. What the server wanted is remembered, so that the
// login asks for the right thing. A client that acts for itself
// (client_credentials) needs nobody, and gets its token within the run.
//
// # Why it isn't the SDK's handler
//
// The SDK's metadata, registration and header parsing are used. Its handler for
// the authorization code isn't: it goes on to guess endpoints when a server's
// metadata are for another server, doesn't say which client and issuer a token
// belongs to, which a later process needs to renew it, and leaves the resource
// out of the request that renews it.
//
// # Why the resource may be a parent of the server's URL
//
// RFC 9728 wants the metadata's resource to be the URL that was asked for. Many
// servers name their origin instead, and the SDKs for other languages take that.
// It is taken here too if it is of the same origin: a token then is for nobody
// but who runs that origin. Any other resource is refused.
//
// # Why a secret is bound to the first issuer
//
// The server says which authorization server is its own. If it is taken over, it
// could name one that collects secrets. So a client secret of the configuration
// goes only to the issuer that is configured with it, or else to the one of the
// first login, until the user logs out.
//
// # Why loopback addresses are only for servers of this machine
//
// Everything has to be https, but for servers on this machine, which are tried
// out before they have a certificate. A remote server that names an address of
// this machine would have codeexec make requests that its owner can't.
//
// # Why there is a file for each server
//
// Processes share the tokens, and a refresh token is often good for one use: two
// processes that renew at once would log the user out. A file with a lock of its
// own lets one renew, while the others wait for what it brings, and no server
// waits for another's. The name of the server is part of the key, since two
// entries with one URL are how a user has two accounts.
package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"golang.org/x/oauth2"

	"codeexec/bridge/config"
)

const (
	// requestTimeout bounds each request to an authorization server. It is
	// shorter than others wait for the lock.
	requestTimeout = 20 * time.Second
	// early is how long before its end a token is renewed.
	early = 30 * time.Second
	// refusal is how long a server that refuses a new token isn't got another
	// one like it.
	refusal = time.Minute
	// maxLogins is how often in a row a user is asked to log in.
	maxLogins = 3
	// maxText is how many bytes of a server's words are shown.
	maxText = 200
)

// Options configures a [Keeper].
type Options struct {
	// Dir is where tokens and registrations are kept. It is made when it is
	// needed. Empty means that they are forgotten with the process.
	Dir string
	// Logger gets what goes wrong without consequences. Nil means none.
	Logger *slog.Logger
	// Ask brings a user to an address, with a browser, and returns at once. A
	// browser on another machine can't come back by itself: then the channel,
	// which may be nil, brings the address at which it ended. Nil means that
	// there is no user.
	Ask func(ctx context.Context, address string) (ended <-chan string, err error)
}

// A Keeper keeps what belongs to all servers.
type Keeper struct {
	opts      Options
	transport *http.Transport
}

// New returns a keeper.
func New(opts Options) *Keeper {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // a few requests an hour
	transport.MaxResponseHeaderBytes = 64 << 10
	return &Keeper{opts: opts, transport: transport}
}

// A LoginError says that a server wants a user to log in, or to give it more
// rights.
type LoginError struct {
	Server string
	// Reason is what the server wants, without its name.
	Reason string
	// Vague says that the server may as well want something else.
	Vague bool
}

// Error says what to do.
func (e *LoginError) Error() string {
	return fmt.Sprintf("%s; run: codeexec servers login %s", e.Reason, config.ShellWord(e.Server))
}

// The values of [Access.Status].
const (
	StatusNone   = ""       // nothing is known of a login
	StatusNeeded = "needed" // the server has said that it wants one since the last
	StatusDone   = "done"   // there is a token, which may have expired
)

// An Access is our access to one server. Its methods may be called concurrently.
type Access struct {
	keeper   *Keeper
	name     string
	url      *url.URL
	loopback bool // the server is on this machine
	client   config.OAuth
	http     *http.Client
	file     file
	turn     chan struct{}        // holds a value while a token is got; guards what follows
	asked    map[string]time.Time // when a token was got for what, in this process
	logins   int                  // how often its user was asked to log in
	rescued  string               // the token that took the place of one that the server refused

	wanted atomic.Bool // the record has something that the server wanted
}

// Access returns the access to a server that is reached by HTTP. It is nil, and
// to be done without, if the owner has switched it off or sends an Authorization
// header of their own. No token is sent to a server that is reached without TLS,
// unless it is on this machine.
func (k *Keeper) Access(server config.Server) *Access {
	u, err := url.Parse(server.URL)
	if err != nil || server.URL == "" || server.OAuth.Off {
		return nil
	}
	for name := range server.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil
		}
	}
	a := &Access{
		keeper: k, name: server.Name, url: u, client: server.OAuth, loopback: config.IsLoopback(u.Hostname()),
		turn: make(chan struct{}, 1), asked: make(map[string]time.Time),
	}
	a.file = newFile(k.opts.Dir, server.Name, canonical(u), config.PublicURL(server.URL), k.opts.Logger)
	a.http = &http.Client{Transport: k.transport, Timeout: requestTimeout, CheckRedirect: a.checkRedirect}
	return a
}

// canonical returns the URI that names a server
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization#canonical-server-uri).
func canonical(u *url.URL) string {
	c := url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: u.Path, RawPath: u.RawPath}
	return c.String()
}

// Status says how the login at the server stands, as far as that is known
// without asking the server.
func (a *Access) Status() string {
	r := a.file.read()
	switch {
	case r.Wanted != nil && !r.Wanted.Vague:
		return StatusNeeded
	case a.usable(r.Token) && (r.Token.valid(0) || r.Token.Refresh != ""):
		return StatusDone
	}
	return StatusNone
}

// Asks reports whether there is a user who can be asked, which takes its time.
func (a *Access) Asks() bool { return a != nil && a.keeper.opts.Ask != nil }

// usable reports whether a token was given to the client that is configured now.
func (a *Access) usable(t *token) bool {
	return t != nil && (t.Registered || t.Client.ID == a.client.ClientID)
}

// Token returns the token that goes with a request now; empty is none. It is
// renewed first if it ends soon. The error is ctx's, or says why it couldn't be
// renewed.
func (a *Access) Token(ctx context.Context) (string, error) {
	if a.url.Scheme != "https" && !a.loopback {
		return "", nil
	}
	r := a.file.read()
	a.wanted.Store(r.Wanted != nil)
	t := r.Token
	if !a.usable(t) {
		return "", nil
	}
	if t.valid(early) {
		return t.Access, nil
	}
	if t.Refresh == "" {
		if t.valid(0) {
			return t.Access, nil
		}
		return "", nil // the server says what it wants
	}
	return a.renewed(ctx, t.Access)
}

// renewed returns another token than the one that is spent. It is empty if that
// takes a login.
func (a *Access) renewed(ctx context.Context, spent string) (string, error) {
	var access string
	err := a.file.update(ctx, func(r *record) (changed bool, err error) {
		t := r.Token
		switch {
		case !a.usable(t):
			return false, nil
		case t.Access != spent && t.valid(early):
			access = t.Access // somebody else was faster
			return false, nil
		case t.Refresh == "":
			return false, nil
		}
		fresh, err := a.refresh(ctx, t)
		if refused(err) {
			a.keeper.opts.Logger.Info("a login has ended", "server", a.name, "error", err)
			r.Token = nil
			if unknownClient(err) {
				delete(r.Clients, t.Issuer)
			}
			return true, nil
		}
		if err != nil {
			return false, err
		}
		r.Token = fresh
		access = fresh.Access
		return true, nil
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("its token couldn't be renewed: %w; try again, or run: codeexec servers login %s", err, config.ShellWord(a.name))
	}
	return access, err
}

// refresh renews a token
// (https://www.rfc-editor.org/rfc/rfc6749#section-6), for the same resource.
func (a *Access) refresh(ctx context.Context, t *token) (*token, error) {
	if err := a.allowed(t.TokenURL); err != nil {
		return nil, err
	}
	client := t.Client
	if !t.Registered {
		client.Secret = a.client.ClientSecret
	}
	got, err := a.grant(ctx, client, t.TokenURL, url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}, "resource": {t.Resource},
	}, nil)
	if err != nil {
		return nil, err
	}
	fresh, err := newToken(got, t.Scopes)
	if err != nil {
		return nil, err
	}
	fresh.grantedBy = t.grantedBy
	fresh.Refresh = cmp.Or(fresh.Refresh, t.Refresh)
	return fresh, nil
}

// Challenged acts on an answer with status 401 or 403 to a request that was made
// with the token sent. It reports whether the request should be made again. An
// error is ctx's, or says what the server wants, often as a [LoginError].
func (a *Access) Challenged(ctx context.Context, sent string, status int, header http.Header) (again bool, err error) {
	c := parseChallenge(status, header)
	if c == nil {
		return false, nil
	}
	if a.url.Scheme != "https" && !a.loopback {
		return false, errors.New("it wants a login, for which its URL would have to begin with https://")
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	r := a.file.read()
	if a.usable(r.Token) {
		switch {
		case r.Token.Access != sent && r.Token.valid(0):
			return true, nil // there is another one by now
		case !c.More && r.Token.Access == sent && r.Token.Refresh != "" && sent != a.rescued:
			access, err := a.renewed(ctx, sent)
			if err != nil || access != "" {
				a.rescued = access
				return err == nil, err
			}
			r = a.file.read()
		}
	}
	if !a.client.ClientCredentials && !a.Asks() {
		err := a.file.update(ctx, func(r *record) (bool, error) {
			if slices.Equal(c.Scopes, r.wanted().Scopes) && r.Wanted != nil {
				return false, nil
			}
			r.Wanted = c
			return true, nil
		})
		if err != nil {
			a.keeper.opts.Logger.Warn("what a server wants couldn't be remembered", "server", a.name, "error", err)
		}
		return false, &LoginError{Server: a.name, Reason: c.reason(), Vague: c.Vague}
	}
	if err := a.authorize(ctx, c, r, sent != ""); err != nil {
		return false, err
	}
	return true, nil
}

// Accepted takes note that a server did what it was asked with the token: what
// it refused before, it doesn't any more.
func (a *Access) Accepted(ctx context.Context, sent string) {
	if sent == "" || !a.wanted.Load() {
		return
	}
	err := a.file.update(ctx, func(r *record) (bool, error) {
		if r.Wanted == nil || r.Wanted.More || r.Token == nil || r.Token.Access != sent {
			return false, nil
		}
		r.Wanted = nil
		return true, nil
	})
	if err != nil {
		a.keeper.opts.Logger.Debug("what a server wanted couldn't be forgotten", "server", a.name, "error", err)
	}
}

// Login has a user log in if the server has asked for that, or for more rights,
// since the last login. It reports whether it has.
func (a *Access) Login(ctx context.Context) (bool, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	r := a.file.read()
	if r.Wanted == nil || a.url.Scheme != "https" && !a.loopback {
		return false, nil
	}
	return true, a.authorize(ctx, r.Wanted, r, false)
}

// Logout forgets everything about the server, and tells the authorization server
// so if it takes that. It reports whether there was anything.
func (a *Access) Logout(ctx context.Context) (bool, error) {
	var t *token
	had := false
	err := a.file.update(ctx, func(r *record) (bool, error) {
		t = r.Token
		had = t != nil || len(r.Clients) > 0 || r.Wanted != nil
		*r = record{}
		return had, nil
	})
	if err == nil && a.usable(t) {
		a.revoke(ctx, t)
	}
	return had, err
}

// authorize gets a token and keeps it; again says that the server wants another
// one than it was sent. The caller must have the turn.
func (a *Access) authorize(ctx context.Context, c *challenge, r record, again bool) error {
	site, err := a.discover(ctx, c)
	if err != nil {
		return err
	}
	if a.client.ClientSecret != "" || a.client.PrivateKey != "" {
		want := cmp.Or(a.client.Issuer, r.Issuer)
		if want != "" && want != site.meta.Issuer {
			return fmt.Errorf("its authorization server is %s now, and not %s that its secret is for; if that is right, set \"issuer\" or run: codeexec servers logout %s",
				shown(site.meta.Issuer), shown(want), config.ShellWord(a.name))
		}
	}
	scopes := a.scopes(site, c, r)
	purpose := strings.Join(append([]string{site.meta.Issuer}, scopes...), " ")
	if at, got := a.asked[purpose]; again && got && time.Since(at) < refusal {
		return fmt.Errorf("it refuses the token that it has just been given: %s", c.reason())
	}
	var got *oauth2.Token
	by := grantedBy{Issuer: site.meta.Issuer, Resource: site.resource, TokenURL: site.meta.TokenEndpoint, RevokeURL: site.meta.RevocationEndpoint}
	if a.client.ClientCredentials {
		by.Client, got, err = a.ownGrant(ctx, site, scopes)
	} else {
		if a.logins++; a.logins > maxLogins {
			return errors.New("it asks for a login again and again")
		}
		var reg registration
		reg, got, err = a.login(ctx, site, scopes, r)
		by.Client, by.Registered = reg.client, reg.URI != ""
		if by.Registered && err == nil {
			r.Clients = map[string]registration{site.meta.Issuer: reg}
		}
	}
	if unknownClient(err) {
		a.forgetClient(ctx, site.meta.Issuer)
	}
	if err != nil {
		return fmt.Errorf("logging in: %w", err)
	}
	t, err := newToken(got, scopes)
	if err != nil {
		return fmt.Errorf("logging in: %w", err)
	}
	if !by.Registered {
		by.Client.Secret = "" // it is in the configuration
	}
	t.grantedBy = by
	a.asked[purpose] = time.Now()
	err = a.file.update(ctx, func(now *record) (bool, error) {
		now.Token, now.Issuer, now.Wanted = t, site.meta.Issuer, nil
		if reg, ok := r.Clients[site.meta.Issuer]; ok {
			if now.Clients == nil {
				now.Clients = make(map[string]registration)
			}
			now.Clients[site.meta.Issuer] = reg
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("keeping the token: %w", err)
	}
	return nil
}

// forgetClient forgets a registration that the issuer has forgotten: the next
// login makes another.
func (a *Access) forgetClient(ctx context.Context, issuer string) {
	err := a.file.update(ctx, func(r *record) (bool, error) {
		_, had := r.Clients[issuer]
		delete(r.Clients, issuer)
		return had, nil
	})
	if err != nil {
		a.keeper.opts.Logger.Warn("a registration couldn't be forgotten", "server", a.name, "error", err)
	}
}

// scopes are what is asked for
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization#scope-selection-strategy).
// What the issuer has granted before is asked for again: the new token takes the
// place of the old one.
func (a *Access) scopes(s *site, c *challenge, r record) []string {
	const offline = "offline_access"
	wanted := c.Scopes
	switch {
	case len(a.client.Scopes) > 0 && c.More:
		wanted = append(slices.Clone(a.client.Scopes), c.Scopes...)
	case len(a.client.Scopes) > 0:
		wanted = a.client.Scopes
	case len(wanted) == 0:
		wanted = s.scopes
	}
	wanted = slices.Clone(wanted)
	if len(a.client.Scopes) == 0 && !a.client.ClientCredentials && slices.Contains(s.meta.ScopesSupported, offline) {
		wanted = append(wanted, offline)
	}
	if c.More && a.usable(r.Token) && r.Token.Issuer == s.meta.Issuer {
		wanted = append(wanted, r.Token.Scopes...)
	}
	slices.Sort(wanted)
	return slices.Compact(wanted)
}

// shown returns the beginning of somebody else's text, on one line.
func shown(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
