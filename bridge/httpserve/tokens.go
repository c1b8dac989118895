package httpserve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// Tokens are the secrets that clients may show, each with the name of the client that has it. The zero value
// has none. Only their hashes are kept.
type Tokens struct{ known []namedHash }

type namedHash struct {
	name string
	hash [sha256.Size]byte
}

const (
	minToken    = 16 // characters; shorter ones can be guessed
	maxTokens   = 1 << 20
	defaultName = "client" // of a token that has no name
)

var (
	// What an HTTP header can carry: https://www.rfc-editor.org/rfc/rfc6750#section-2.1
	tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// ParseTokens reads one token a line: NAME:TOKEN, or a TOKEN alone, whose name is "client". Empty lines and lines
// that begin with # don't count. A name may have several tokens, so that they can be replaced one by one. Errors
// say the number of the line, and never what is in it.
func ParseTokens(text string) (Tokens, error) {
	var tokens Tokens
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, token, named := strings.Cut(line, ":")
		if !named {
			name, token = defaultName, line
		}
		name, token = strings.TrimSpace(name), strings.TrimSpace(token)
		switch hash := sha256.Sum256([]byte(token)); {
		case !namePattern.MatchString(name):
			return Tokens{}, fmt.Errorf("line %d: a name has letters, digits, '.', '_' and '-', at most 64", n)
		case !tokenPattern.MatchString(token):
			return Tokens{}, fmt.Errorf("line %d: a token has letters, digits and -._~+/, as from: openssl rand -hex 32", n)
		case len(token) < minToken:
			return Tokens{}, fmt.Errorf("line %d: the token is shorter than %d characters; make one with: openssl rand -hex 32", n, minToken)
		case tokens.find(hash) != "":
			return Tokens{}, fmt.Errorf("line %d: the token is the same as that of %s", n, tokens.find(hash))
		default:
			tokens.known = append(tokens.known, namedHash{name, hash})
		}
	}
	if len(tokens.known) == 0 {
		return Tokens{}, errors.New("there is no token")
	}
	return tokens, nil
}

// ReadTokens reads a file of tokens, see [ParseTokens].
func ReadTokens(path string) (Tokens, error) {
	f, err := os.Open(path)
	if err != nil {
		return Tokens{}, fmt.Errorf("reading tokens: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTokens))
	if err != nil {
		return Tokens{}, fmt.Errorf("reading tokens: %w", err)
	}
	tokens, err := ParseTokens(string(text))
	if err != nil {
		return Tokens{}, fmt.Errorf("reading tokens: %s: %w", path, err)
	}
	return tokens, nil
}

// Empty reports whether there are none.
func (t Tokens) Empty() bool { return len(t.known) == 0 }

// Names returns how many names there are.
func (t Tokens) Names() int {
	names := make(map[string]bool)
	for _, k := range t.known {
		names[k.name] = true
	}
	return len(names)
}

// find returns the name of the token with a hash, or "". How long it takes says nothing about any token.
func (t Tokens) find(hash [sha256.Size]byte) (name string) {
	for _, k := range t.known {
		if subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1 {
			name = k.name
		}
	}
	return name
}

// require lets only requests with a token through to next. The name of the token is what
// [auth.TokenInfoFromContext] gives as UserID.
func (t Tokens) require(next http.Handler) http.Handler {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if name := t.find(sha256.Sum256([]byte(token))); name != "" {
			return &auth.TokenInfo{UserID: name}, nil
		}
		return nil, auth.ErrInvalidToken
	}
	checked := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		checked.ServeHTTP(&challenger{ResponseWriter: w, asked: req.Header.Get("Authorization") != ""}, req)
	})
}

// A challenger tells clients without a valid token what they need, as
// https://www.rfc-editor.org/rfc/rfc6750#section-3 asks; the SDK does so only for OAuth.
type challenger struct {
	http.ResponseWriter
	asked bool // there was a token
}

func (w *challenger) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		challenge := `Bearer realm="codeexec"`
		if w.asked {
			challenge += `, error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets [http.ResponseController] find the writer itself.
func (w *challenger) Unwrap() http.ResponseWriter { return w.ResponseWriter }
