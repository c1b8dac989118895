package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// OAuth says how codeexec introduces itself to the authorization server of a
// remote server. The zero value is for servers with which any client can
// register, which are most.
type OAuth struct {
	// Off says that the owner wants no OAuth: a server that asks for it isn't
	// usable, and nobody is sent to a login.
	Off bool
	// ClientID is what the authorization server calls us, if somebody has
	// registered us there. One that is an https URL with a path is the address
	// of a client ID metadata document, and used with servers that take those.
	ClientID string
	// ClientSecret goes with it; empty for a public client.
	ClientSecret string
	// Scopes are asked for instead of those that the server names.
	Scopes []string
	// RedirectURI is where the authorization server was told to send users
	// back to, on this machine: http, and 127.0.0.1 or localhost. Without a
	// port it is any. Empty means http://127.0.0.1/callback, and any port.
	RedirectURI string
	// Issuer is the only authorization server that may see ClientSecret. Empty
	// means the one of the first login.
	Issuer string
	// ClientCredentials says that codeexec acts for itself, with its secret or
	// its key, and not for a user who logs in.
	ClientCredentials bool
	// PrivateKey is what a client that acts for itself proves with who it is,
	// if it has no secret: a key in PEM, whose public half the authorization
	// server knows.
	PrivateKey string
}

// oauthFields names, for each field of an entry's "oauth" object, what it is.
// Clients agree on most: Claude Code, VS Code, Gemini CLI and OpenCode in camel
// case, Cursor in capitals and Codex in snake case.
var oauthFields = map[string]string{
	"clientId": "id", "client_id": "id", "CLIENT_ID": "id",
	"clientSecret": "secret", "client_secret": "secret", "CLIENT_SECRET": "secret",
	"privateKey": "key", "private_key": "key",
	"scope": "scopes", "scopes": "scopes",
	"redirectUri": "redirect", "redirect_uri": "redirect",
	"callbackPort": "port", "callback_port": "port",
	"issuer":    "issuer",
	"grantType": "grant", "grant_type": "grant",
	"enabled": "enabled",
	// Found by discovery, which is safer than a file that was right once.
	"authorizationUrl": "found", "tokenUrl": "found", "registrationUrl": "found", "authServerMetadataUrl": "found", "audiences": "found",
}

// decodeOAuth decodes an entry's "oauth", which is an object, or false for none.
func decodeOAuth(e *entry, value hujson.Value) error {
	object, ok := value.Value.(*hujson.Object)
	if !ok {
		on, err := boolean(value)
		if err != nil {
			return errors.New("must be an object or false")
		}
		e.oauth.Off = !on && !isNull(value)
		return nil
	}
	for _, field := range object.Members {
		key := literal(field.Name)
		what := oauthFields[key]
		var err error
		switch {
		case what == "enabled":
			var on bool
			on, err = boolean(field.Value)
			e.oauth.Off = err == nil && !on && !isNull(field.Value)
		case what == "scopes":
			var list []string
			if _, isList := field.Value.Value.(*hujson.Array); isList {
				list, err = texts(field.Value)
			} else {
				var all string
				all, err = text(field.Value)
				list = strings.Fields(all)
			}
			e.oauth.Scopes = list
		default:
			var s string
			if what == "" || what == "found" && empty(field.Value) {
				continue
			}
			if what != "found" {
				s, err = text(field.Value)
			}
			if err == nil {
				err = oauthText(e, what, key, s)
			}
		}
		if err != nil {
			return fmt.Errorf("[%q] %w", key, err)
		}
	}
	return nil
}

// oauthText sets what a field means.
func oauthText(e *entry, what, key, value string) error {
	switch what {
	case "id":
		e.oauth.ClientID = value
	case "secret":
		e.oauth.ClientSecret = value
	case "key":
		e.oauth.PrivateKey = value
	case "redirect":
		e.oauth.RedirectURI = value
	case "port":
		if value != "" {
			e.oauth.RedirectURI = "http://localhost:" + value + "/callback" // as Claude Code has it registered
		}
	case "issuer":
		e.oauth.Issuer = value
	case "grant":
		switch value {
		case "client_credentials":
			e.oauth.ClientCredentials = true
		case "", "authorization_code":
		default:
			return errors.New("must be authorization_code or client_credentials")
		}
	case "found":
		e.ignored = append(e.ignored, "oauth."+key+": it is not used, what it says is found by discovery")
	}
	return nil
}

// oauth expands the variables of an entry's "oauth", and checks it.
func (x expander) oauth(o OAuth) (OAuth, error) {
	o.ClientID = x.expand("oauth.clientId", o.ClientID)
	o.ClientSecret = x.expand("oauth.clientSecret", o.ClientSecret)
	o.PrivateKey = x.expand("oauth.privateKey", o.PrivateKey)
	o.RedirectURI = x.expand("oauth.redirectUri", o.RedirectURI)
	o.Issuer = x.expand("oauth.issuer", o.Issuer)
	o.Scopes = slices.Clone(o.Scopes)
	for i := range o.Scopes {
		o.Scopes[i] = x.expand("oauth.scopes", o.Scopes[i])
	}
	if o.Off {
		return o, nil
	}
	if o.ClientCredentials && (o.ClientID == "" || (o.ClientSecret == "") == (o.PrivateKey == "")) {
		return o, errors.New("oauth: client_credentials needs a clientId, and a clientSecret or a privateKey")
	}
	if o.PrivateKey != "" && !o.ClientCredentials {
		return o, errors.New("oauth: a privateKey is for the grantType client_credentials")
	}
	if o.ClientSecret != "" && o.ClientID == "" {
		return o, errors.New("oauth: a clientSecret needs its clientId")
	}
	if o.RedirectURI != "" {
		u, err := url.Parse(o.RedirectURI)
		if err != nil || u.Scheme != "http" || u.Fragment != "" || u.User != nil || !IsLoopback(u.Hostname()) {
			return o, errors.New("oauth.redirectUri must be on this machine, such as http://127.0.0.1:8765/callback")
		}
	}
	return o, nil
}

// IsLoopback reports whether a host, without a port, can only be this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// writtenOAuth is an entry's "oauth" as codeexec writes it; nil is none.
func writtenOAuth(o OAuth) any {
	if o.Off {
		return false
	}
	written := struct {
		ClientID     string   `json:"clientId,omitempty"`
		ClientSecret string   `json:"clientSecret,omitempty"`
		PrivateKey   string   `json:"privateKey,omitempty"`
		Scopes       []string `json:"scopes,omitempty"`
		RedirectURI  string   `json:"redirectUri,omitempty"`
		Issuer       string   `json:"issuer,omitempty"`
		GrantType    string   `json:"grantType,omitempty"`
	}{o.ClientID, o.ClientSecret, o.PrivateKey, o.Scopes, o.RedirectURI, o.Issuer, ""}
	if o.ClientCredentials {
		written.GrantType = "client_credentials"
	}
	if o.ClientID+o.ClientSecret+o.PrivateKey+o.RedirectURI+o.Issuer == "" && len(o.Scopes) == 0 && !o.ClientCredentials {
		return nil
	}
	return written
}
