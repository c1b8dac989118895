package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// login has a user log in with the browser, and returns the token that brings.
// The registration's URI is empty if the client isn't one that was registered
// here.
func (a *Access) login(ctx context.Context, s *site, scopes []string, r record) (registration, *oauth2.Token, error) {
	known, registered := r.Clients[s.meta.Issuer]
	registered = registered && (known.Expires.IsZero() || time.Until(known.Expires) > early)
	fixed := a.fixedClient(s)
	want := a.client.RedirectURI
	if want == "" && fixed == nil && registered {
		want = known.URI
	}
	back, err := listen(want, a.client.RedirectURI != "")
	if err != nil {
		return registration{}, nil, err
	}
	defer back.close()
	var reg registration
	switch {
	case fixed != nil:
		reg.client = *fixed
	case registered && known.URI == back.uri:
		reg = known
	default:
		if reg, err = a.register(ctx, s, back.uri, scopes); err != nil {
			if s.guessed && ctx.Err() == nil {
				err = fmt.Errorf("it doesn't say where to log in, and has no authorization server of its own (%w); does it want a key in the \"headers\" of its configuration?", err)
			}
			return reg, nil, err
		}
	}
	cfg := &oauth2.Config{
		ClientID: reg.ID, ClientSecret: reg.Secret, RedirectURL: back.uri, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: s.meta.AuthorizationEndpoint, TokenURL: s.meta.TokenEndpoint, AuthStyle: authStyle(reg.client)},
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	resource := oauth2.SetAuthURLParam("resource", s.resource)
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), resource}
	if slices.Contains(scopes, "offline_access") {
		// https://openid.net/specs/openid-connect-core-1_0.html#OfflineAccess
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	ended, err := a.keeper.opts.Ask(ctx, cfg.AuthCodeURL(state, options...))
	if err != nil {
		return reg, nil, err
	}
	answer, err := back.wait(ctx, state, ended)
	if err != nil {
		return reg, nil, err
	}
	code, err := readAnswer(answer, s.meta)
	if err != nil {
		return reg, nil, err
	}
	got, err := cfg.Exchange(a.withClient(ctx), code, oauth2.VerifierOption(verifier), resource)
	return reg, got, cleaned(ctx, err)
}

// readAnswer checks with what a user was sent back, and returns the code
// (https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2,
// https://www.rfc-editor.org/rfc/rfc9207#section-2.4).
func readAnswer(answer url.Values, meta *oauthex.AuthServerMeta) (code string, err error) {
	iss, sent := answer.Get("iss"), answer.Has("iss")
	switch {
	case sent && iss != meta.Issuer:
		return "", fmt.Errorf("the answer is from %s, and not from the authorization server %s", shown(iss), shown(meta.Issuer))
	case !sent && meta.AuthorizationResponseIssParameterSupported:
		return "", errors.New("the answer doesn't say which authorization server it is from, though that server always does")
	case answer.Get("error") != "":
		return "", errors.New("the authorization server says: " + complaint(answer.Get("error"), answer.Get("error_description")))
	case answer.Get("code") == "":
		return "", errors.New("the answer has no code")
	}
	return answer.Get("code"), nil
}
