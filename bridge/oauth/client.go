package oauth

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"codeexec/bridge/config"
)

// The values of [client].Auth that are used
// (https://www.rfc-editor.org/rfc/rfc7591#section-2).
const (
	authNone  = "none"
	authPost  = "client_secret_post"
	authBasic = "client_secret_basic"
	authKey   = "private_key_jwt"
)

// fixedClient returns the client that the configuration names, or nil if one is
// to be registered.
func (a *Access) fixedClient(s *site) *client {
	if a.client.ClientID == "" {
		return nil
	}
	u, err := url.Parse(a.client.ClientID)
	if err == nil && u.Scheme == "https" && u.Host != "" && strings.Trim(u.Path, "/") != "" {
		// https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization#client-id-metadata-documents
		if s.meta.ClientIDMetadataDocumentSupported {
			return &client{ID: a.client.ClientID, Auth: authNone}
		}
		if s.meta.RegistrationEndpoint != "" {
			return nil
		}
	}
	c := &client{ID: a.client.ClientID, Secret: a.client.ClientSecret, Auth: authNone}
	if c.Secret != "" {
		c.Auth = secretMethod(s.meta.TokenEndpointAuthMethodsSupported)
	}
	return c
}

// secretMethod returns how a client with a secret shows it.
func secretMethod(supported []string) string {
	if slices.Contains(supported, authPost) && !slices.Contains(supported, authBasic) {
		return authPost
	}
	return authBasic // every server has to take it
}

func authStyle(c client) oauth2.AuthStyle {
	if c.Auth == authBasic && c.Secret != "" {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

// register registers a client (RFC 7591).
func (a *Access) register(ctx context.Context, s *site, uri string, scopes []string) (registration, error) {
	var reg registration
	if s.meta.RegistrationEndpoint == "" {
		return reg, errors.New(`its authorization server doesn't let clients register themselves: have one registered there, and set "clientId" in "oauth" of the server's configuration`)
	}
	supported := s.meta.TokenEndpointAuthMethodsSupported
	reg.URI, reg.Auth = uri, authNone
	if len(supported) > 0 && !slices.Contains(supported, authNone) {
		reg.Auth = secretMethod(supported)
	}
	given, err := oauthex.RegisterClient(ctx, s.meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: "codeexec", RedirectURIs: []string{uri}, ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		TokenEndpointAuthMethod: reg.Auth, Scope: strings.Join(scopes, " "),
	}, a.http)
	if refusal, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
		return reg, errors.New("the authorization server doesn't register codeexec: " + complaint(refusal.ErrorCode, refusal.ErrorDescription))
	}
	if ctx.Err() != nil {
		return reg, context.Cause(ctx)
	}
	if err != nil {
		// The answer is in the error's text, and may have a secret in it.
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			return reg, errors.New("registering codeexec: " + plain(wrapped))
		}
		if text := err.Error(); strings.HasPrefix(text, "registration failed with status") {
			return reg, errors.New("registering codeexec: " + shown(text))
		}
		return reg, errors.New("registering codeexec: the authorization server's answer can't be used")
	}
	reg.ID, reg.Secret = given.ClientID, given.ClientSecret
	reg.Auth = cmp.Or(given.TokenEndpointAuthMethod, reg.Auth)
	if reg.Auth == authNone {
		reg.Secret = ""
	}
	if reg.Secret != "" {
		reg.Expires = given.ClientSecretExpiresAt
	}
	return reg, nil
}

// assertion proves to an authorization server who we are
// (https://www.rfc-editor.org/rfc/rfc7523#section-3). The errors don't show what
// is in the key.
func assertion(c config.OAuth, issuer string, now time.Time) (string, error) {
	var method jwt.SigningMethod
	block, _ := pem.Decode([]byte(c.PrivateKey))
	if block == nil {
		return "", errors.New("oauth.privateKey isn't a key in PEM")
	}
	var key any
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKCS8PrivateKey,
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
	} {
		if found, err := parse(block.Bytes); err == nil {
			key = found
			break
		}
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		method = map[elliptic.Curve]jwt.SigningMethod{
			elliptic.P256(): jwt.SigningMethodES256, elliptic.P384(): jwt.SigningMethodES384, elliptic.P521(): jwt.SigningMethodES512,
		}[key.Curve]
	case *rsa.PrivateKey:
		method = jwt.SigningMethodRS256
	case ed25519.PrivateKey:
		method = jwt.SigningMethodEdDSA
	}
	if method == nil {
		return "", errors.New("oauth.privateKey isn't a private key of a kind that is known: EC, RSA or Ed25519, not encrypted")
	}
	proof, err := jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Issuer: c.ClientID, Subject: c.ClientID, Audience: jwt.ClaimStrings{issuer}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(time.Minute)),
	}).SignedString(key)
	if err != nil {
		return "", errors.New("oauth.privateKey can't be used for a signature")
	}
	return proof, nil
}
