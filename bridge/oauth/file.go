package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"codeexec/bridge/config"
	"codeexec/memory/filelock"
)

const (
	// maxFile is the size in bytes of the largest file that is read.
	maxFile = 1 << 20
	// maxToken is the length of the longest token that is taken.
	maxToken = 64 << 10
)

// A record is what is kept about a server.
type record struct {
	// Server and URL are for people who look into the file.
	Server string `json:"server"`
	URL    string `json:"url"`
	// Clients are our registrations, by issuer: what one has given is never
	// shown to another.
	Clients map[string]registration `json:"clients,omitempty"`
	// Issuer is that of the last login.
	Issuer string `json:"issuer,omitempty"`
	Token  *token `json:"token,omitempty"`
	// Wanted is what the server has asked for since the last login.
	Wanted *challenge `json:"wanted,omitempty"`
}

// wanted returns r.Wanted, or an empty one.
func (r *record) wanted() challenge {
	if r.Wanted == nil {
		return challenge{}
	}
	return *r.Wanted
}

// A client is what an authorization server calls us.
type client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	Auth   string `json:"auth"` // a token_endpoint_auth_method of RFC 7591
}

// A registration is a client that we have registered ourselves.
type registration struct {
	client
	URI     string    `json:"redirect_uri"`
	Expires time.Time `json:"expires,omitzero"` // when the secret ends; zero is never
}

// A token is what a login has brought.
type token struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // zero if that isn't known
	Scopes  []string  `json:"scopes,omitempty"`
	grantedBy
}

// A grantedBy says where a token is from, and what for.
type grantedBy struct {
	Issuer     string `json:"issuer"`
	Resource   string `json:"resource"`
	TokenURL   string `json:"token_url"`
	RevokeURL  string `json:"revoke_url,omitempty"`
	Client     client `json:"client"`
	Registered bool   `json:"registered,omitempty"` // the client is one of [record].Clients
}

// valid reports whether a token is good for some time yet.
func (t *token) valid(ahead time.Duration) bool {
	return t.Access != "" && (t.Expires.IsZero() || time.Until(t.Expires) > ahead)
}

// newToken checks what an authorization server has given; scopes are what it was
// asked for.
func newToken(got *oauth2.Token, scopes []string) (*token, error) {
	switch {
	case !strings.EqualFold(cmp.Or(got.TokenType, "Bearer"), "Bearer"):
		return nil, fmt.Errorf("the authorization server gave a token of the type %q, and not Bearer", shown(got.TokenType))
	case len(got.AccessToken) > maxToken || len(got.RefreshToken) > maxToken:
		return nil, errors.New("the authorization server gave a token that is too long")
	case strings.ContainsFunc(got.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("the authorization server gave a token that can't be sent")
	}
	t := &token{Access: got.AccessToken, Refresh: got.RefreshToken, Expires: got.Expiry, Scopes: scopes}
	if granted, ok := got.Extra("scope").(string); ok {
		t.Scopes = strings.Fields(granted)
	}
	return t, nil
}

// A file keeps a record, for all processes. Without a path it keeps it for this
// process.
type file struct {
	path        string
	lock        *filelock.Lock
	server, url string
	log         *slog.Logger

	mu   *sync.Mutex
	here *record
}

// newFile returns the file of a server: one for each name and URL.
func newFile(dir, server, uri, public string, log *slog.Logger) file {
	f := file{server: server, url: public, log: log, mu: new(sync.Mutex), here: new(record)}
	if dir != "" {
		sum := sha256.Sum256([]byte(server + "\x00" + uri))
		f.path = filepath.Join(dir, fmt.Sprintf("%x.json", sum[:16]))
		f.lock = filelock.New(strings.TrimSuffix(f.path, ".json") + ".lock")
	}
	return f
}

// read returns the record as it is now. One that can't be read counts as empty:
// a login replaces it.
func (f *file) read() record {
	if f.path == "" {
		f.mu.Lock()
		defer f.mu.Unlock()
		return *f.here
	}
	r, err := f.load()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log.Warn("what is known of a login can't be read", "server", f.server, "file", f.path, "error", err)
	}
	return r
}

func (f *file) load() (record, error) {
	in, err := os.Open(f.path)
	if err != nil {
		return record{}, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return record{}, err
	}
	var r record
	if len(data) > maxFile || json.Unmarshal(data, &r) != nil {
		return record{}, errors.New("it is damaged") // the decoder's words may show what is in it
	}
	return r, nil
}

// update changes the record, while nobody else does. It is written if change
// says so, also if that returns an error.
func (f *file) update(ctx context.Context, change func(*record) (changed bool, err error)) error {
	if f.path == "" {
		f.mu.Lock()
		defer f.mu.Unlock()
		r := *f.here
		changed, err := change(&r)
		if changed {
			f.here = &r
		}
		return err
	}
	release, err := f.lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	r := f.read()
	changed, err := change(&r)
	if !changed {
		return err
	}
	if len(r.Clients) == 0 && r.Token == nil && r.Wanted == nil && r.Issuer == "" {
		if gone := os.Remove(f.path); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return err
	}
	r.Server, r.URL = f.server, f.url
	data, _ := json.MarshalIndent(r, "", "\t") // strings and times, which can't fail
	return errors.Join(err, config.WriteFile(f.path, append(data, '\n'), 0o600))
}
