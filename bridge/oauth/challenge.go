package oauth

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A challenge is what a server wants before it does what it was asked
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization#error-handling).
type challenge struct {
	// Metadata is where the server says that its metadata are; may be empty.
	Metadata string `json:"metadata,omitempty"`
	// Scopes are those that the request needs; may be empty.
	Scopes []string `json:"scopes,omitempty"`
	// More says that the token is good, but not for this.
	More bool `json:"more,omitempty"`
	// Vague says that the server doesn't say that it wants a token.
	Vague bool `json:"vague,omitempty"`
}

// emptyParam is a parameter without a value, such as realm="", which the SDK
// takes for a mistake.
var emptyParam = regexp.MustCompile(`[A-Za-z0-9_-]+\s*=\s*""\s*,?`)

const (
	maxScopes = 100
	maxScope  = 4 << 10 // bytes of all
)

// parseChallenge reads an answer with status 401 or 403. It returns nil if that
// isn't one that a token would help against. A header that can't be read says
// nothing: what is needed can be found elsewhere.
func parseChallenge(status int, header http.Header) *challenge {
	c := &challenge{Vague: true}
	values := slices.Clone(header.Values("WWW-Authenticate"))
	for i := range values {
		values[i] = emptyParam.ReplaceAllString(values[i], "")
	}
	list, err := oauthex.ParseWWWAuthenticate(values)
	if err != nil {
		list = nil
	}
	insufficient := false
	for _, one := range list {
		if one.Scheme != "bearer" {
			continue
		}
		c.Vague = false
		insufficient = insufficient || one.Params["error"] == "insufficient_scope"
		if c.Metadata == "" {
			c.Metadata = one.Params["resource_metadata"]
		}
		if scope := one.Params["scope"]; len(c.Scopes) == 0 && len(scope) <= maxScope {
			c.Scopes = fieldsOf(scope)
		}
	}
	switch {
	case status == http.StatusUnauthorized:
		return c
	case status == http.StatusForbidden && insufficient:
		c.More = true
		return c
	}
	return nil
}

// fieldsOf returns the scopes in a list that are spelled as RFC 6749 has them.
func fieldsOf(scope string) []string {
	var list []string
	for _, s := range strings.Fields(scope) {
		bad := strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
		if !bad && len(list) < maxScopes {
			list = append(list, s)
		}
	}
	return list
}

// reason says what the server wants.
func (c *challenge) reason() string {
	switch {
	case c.More && len(c.Scopes) > 0:
		return fmt.Sprintf("it wants more rights than its user has given (%s)", shown(strings.Join(c.Scopes, " ")))
	case c.More:
		return "it wants more rights than its user has given"
	case c.Vague:
		return `it answered with HTTP status 401 Unauthorized: check the "headers" of its configuration, such as Authorization, or log in`
	}
	return "it wants its user to log in"
}
