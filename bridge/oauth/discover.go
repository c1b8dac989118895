package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"codeexec/bridge/config"
)

// maxMetadata is the size in bytes above which metadata aren't read.
const maxMetadata = 1 << 20

// A site is where tokens for a server come from.
type site struct {
	resource string   // what the token is for
	scopes   []string // of the resource; may be empty
	meta     *oauthex.AuthServerMeta
	guessed  bool // nobody has said that there is one
}

// allowed checks an address that somebody else has named.
func (a *Access) allowed(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("an address that its login needs isn't a URL")
	case config.IsLoopback(u.Hostname()) && !a.loopback:
		return errors.New("its login would use an address of this machine, which a remote server must not name")
	case u.Scheme == "https" || u.Scheme == "http" && a.loopback && config.IsLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("its login would use the address %s, which isn't https", config.PublicURL(address))
}

// checkRedirect follows what moves metadata. A request with a secret in it is
// never sent elsewhere.
func (a *Access) checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case via[0].Method != http.MethodGet || req.Method != http.MethodGet:
		return errors.New("the authorization server redirects to another address")
	case len(via) > 3:
		return errors.New("it redirects again and again")
	}
	return a.allowed(req.URL.String())
}

// discover finds where tokens for the server come from
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization#authorization-server-discovery).
func (a *Access) discover(ctx context.Context, c *challenge) (*site, error) {
	resource, err := a.resource(ctx, c)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("finding out how to log in: %w", err)
	}
	issuer, known := origin(a.url), false
	s := &site{resource: canonical(a.url)}
	if resource != nil {
		if len(resource.AuthorizationServers) == 0 {
			return nil, errors.New("finding out how to log in: its metadata name no authorization server")
		}
		issuer, known = resource.AuthorizationServers[0], true
		if i := slices.Index(resource.AuthorizationServers, a.client.Issuer); i > 0 {
			issuer = a.client.Issuer
		}
		s.resource = resource.Resource
		s.scopes = fieldsOf(strings.Join(resource.ScopesSupported, " "))
	}
	if err := a.allowed(issuer); err != nil {
		return nil, err
	}
	// Many issuers end in a slash, with which the SDK looks in the wrong place.
	s.meta, err = auth.GetAuthServerMetadata(ctx, strings.TrimSuffix(issuer, "/"), a.http)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("the metadata of its authorization server: %s", plain(err))
	case s.meta == nil && known:
		return nil, fmt.Errorf("its authorization server, %s, has no metadata", config.PublicURL(issuer))
	case s.meta == nil:
		// As in version 2025-03-26 of the specification.
		s.meta = &oauthex.AuthServerMeta{
			Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register",
		}
		s.guessed = true
		return s, nil
	case !slices.Contains(s.meta.CodeChallengeMethodsSupported, "S256") && !a.client.ClientCredentials:
		return nil, errors.New("its authorization server doesn't take PKCE with S256, without which a login isn't safe")
	}
	for _, address := range []string{s.meta.AuthorizationEndpoint, s.meta.TokenEndpoint, s.meta.RegistrationEndpoint, s.meta.RevocationEndpoint} {
		if address == "" {
			continue
		}
		if err := a.allowed(address); err != nil {
			return nil, err
		}
	}
	if s.meta.TokenEndpoint == "" || s.meta.AuthorizationEndpoint == "" && !a.client.ClientCredentials {
		return nil, errors.New("the metadata of its authorization server lack an endpoint")
	}
	return s, nil
}

func origin(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host)
}

// resource fetches the server's metadata (RFC 9728). It returns nil if there are
// none.
func (a *Access) resource(ctx context.Context, c *challenge) (*oauthex.ProtectedResourceMetadata, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	var places []string
	if c.Metadata != "" {
		places = append(places, c.Metadata)
	}
	path := strings.TrimSuffix(a.url.EscapedPath(), "/")
	for _, place := range []string{origin(a.url) + wellKnown + path, origin(a.url) + wellKnown} {
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	for _, place := range places {
		if err := a.allowed(place); err != nil {
			return nil, err
		}
		found, err := a.fetch(ctx, place)
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}

// fetch fetches the server's metadata from one place. It returns nil if they
// aren't there.
func (a *Access) fetch(ctx context.Context, place string) (*oauthex.ProtectedResourceMetadata, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return nil, errors.New("its metadata's address can't be used")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("its metadata: %s", plain(err))
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 500:
		return nil, fmt.Errorf("its metadata: it answered with HTTP status %d", resp.StatusCode)
	case resp.StatusCode != http.StatusOK || kind != "application/json":
		return nil, nil // some sites have a page at any address
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata+1))
	if err != nil {
		return nil, fmt.Errorf("its metadata: %s", plain(err))
	}
	found := new(oauthex.ProtectedResourceMetadata)
	if len(data) > maxMetadata || json.Unmarshal(data, found) != nil {
		return nil, errors.New("its metadata can't be read")
	}
	if !a.covers(found.Resource) {
		return nil, fmt.Errorf("its metadata are for another server, %s", config.PublicURL(found.Resource))
	}
	return found, nil
}

// covers reports whether a token for the resource is one for the server.
func (a *Access) covers(resource string) bool {
	u, err := url.Parse(resource)
	if err != nil || u.User != nil || u.Fragment != "" || u.Opaque != "" || origin(u) != origin(a.url) {
		return false
	}
	parent := strings.TrimSuffix(u.EscapedPath(), "/")
	rest, ok := strings.CutPrefix(a.url.EscapedPath(), parent)
	return ok && (rest == "" || rest[0] == '/')
}

// plain is the text of an error about a request, without its URL.
func plain(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return shown(err.Error())
}
