package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// grant makes a request for a token that needs no user.
func (a *Access) grant(ctx context.Context, c client, address string, params url.Values, scopes []string) (*oauth2.Token, error) {
	cfg := clientcredentials.Config{
		ClientID: c.ID, ClientSecret: c.Secret, TokenURL: address, Scopes: scopes, AuthStyle: authStyle(c), EndpointParams: params,
	}
	got, err := cfg.Token(a.withClient(ctx))
	return got, cleaned(ctx, err)
}

// ownGrant gets a token for a client that acts for itself
// (https://github.com/modelcontextprotocol/ext-auth/blob/main/specification/draft/oauth-client-credentials.mdx).
func (a *Access) ownGrant(ctx context.Context, s *site, scopes []string) (client, *oauth2.Token, error) {
	c := client{ID: a.client.ClientID, Secret: a.client.ClientSecret, Auth: secretMethod(s.meta.TokenEndpointAuthMethodsSupported)}
	params := url.Values{"resource": {s.resource}}
	if a.client.PrivateKey != "" {
		c.Auth = authKey
		proof, err := assertion(a.client, s.meta.Issuer, time.Now())
		if err != nil {
			return c, nil, err
		}
		params.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		params.Set("client_assertion", proof)
	}
	got, err := a.grant(ctx, c, s.meta.TokenEndpoint, params, scopes)
	return c, got, err
}

func (a *Access) withClient(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, a.http)
}

// A refusalError is an error that an authorization server answers with
// (https://www.rfc-editor.org/rfc/rfc6749#section-5.2).
type refusalError struct {
	code, description string
}

func (e *refusalError) Error() string {
	return "the authorization server says: " + complaint(e.code, e.description)
}

// refused reports whether what was sent is no good, now or later.
func refused(err error) bool {
	refusal, ok := errors.AsType[*refusalError](err)
	return ok && slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client", "invalid_scope", "invalid_target"}, refusal.code)
}

// unknownClient reports whether an authorization server doesn't know us (any
// more).
func unknownClient(err error) bool {
	refusal, ok := errors.AsType[*refusalError](err)
	return ok && (refusal.code == "invalid_client" || refusal.code == "unauthorized_client")
}

// complaint puts an error code and what is said about it together.
func complaint(code, description string) string {
	if description == "" {
		return shown(code)
	}
	return fmt.Sprintf("%s (%s)", shown(code), shown(description))
}

// cleaned returns an error of a request for a token without what was sent or
// answered, which may be secret.
func cleaned(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		if refusal.ErrorCode != "" {
			return &refusalError{refusal.ErrorCode, refusal.ErrorDescription}
		}
		if refusal.Response != nil {
			return fmt.Errorf("the authorization server answered with HTTP status %d", refusal.Response.StatusCode)
		}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return errors.New("the authorization server: " + plain(wrapped))
	}
	return errors.New("the authorization server's answer can't be used")
}

// revokeTimeout is how long an authorization server may take to forget a token.
const revokeTimeout = 5 * time.Second

// revoke has the authorization server forget a token, if it can (RFC 7009).
func (a *Access) revoke(ctx context.Context, t *token) {
	if t.RevokeURL == "" || a.allowed(t.RevokeURL) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, revokeTimeout)
	defer cancel()
	c := t.Client
	if !t.Registered {
		c.Secret = a.client.ClientSecret
	}
	form := url.Values{"token": {cmp.Or(t.Refresh, t.Access)}}
	if authStyle(c) == oauth2.AuthStyleInParams {
		form.Set("client_id", c.ID)
		if c.Secret != "" {
			form.Set("client_secret", c.Secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if authStyle(c) == oauth2.AuthStyleInHeader {
		req.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret))
	}
	resp, err := a.http.Do(req)
	if err != nil {
		a.keeper.opts.Logger.Debug("a token couldn't be revoked", "server", a.name, "error", plain(err))
		return
	}
	resp.Body.Close()
}
