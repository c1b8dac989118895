package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"time"
)

// A callback is a web server on this machine, to which the browser is sent back
// (https://www.rfc-editor.org/rfc/rfc8252#section-7.3). It takes one answer.
type callback struct {
	uri      string
	path     string
	hosts    []string // by which it may be addressed
	listener net.Listener
}

// listen opens the port of a redirect URI; of one without, any. If exact isn't
// set and the port isn't free, it is any other.
func listen(uri string, exact bool) (*callback, error) {
	port, host, path := "0", "127.0.0.1", "/callback"
	if uri != "" {
		u, err := url.Parse(uri)
		if err != nil {
			return nil, errors.New("the redirect URI can't be used")
		}
		host, path = u.Hostname(), u.EscapedPath()
		if port = u.Port(); port == "" {
			port = "0" // which the authorization server must allow
		}
	}
	address := "127.0.0.1"
	if ip := net.ParseIP(host); ip != nil {
		address = host
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil && uri != "" && !exact {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("the port to which the browser is to be sent back: %w", err)
	}
	bound := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	c := &callback{path: path, listener: l, hosts: []string{net.JoinHostPort(host, bound)}}
	c.uri = (&url.URL{Scheme: "http", Host: c.hosts[0]}).String() + path
	if exact && port == bound {
		c.uri = uri // as it was registered, to the letter
	}
	if bound == "80" {
		c.hosts = append(c.hosts, host) // browsers leave it out
	}
	return c, nil
}

// answers reports whether a query is the answer to the request with that state.
func answers(query url.Values, state string) bool {
	return subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state)) == 1
}

func (c *callback) close() { c.listener.Close() }

// wait returns the query with which the browser came back, here or at the address
// that ended brings. What comes with another state isn't the answer: any page can
// send a browser here.
func (c *callback) wait(ctx context.Context, state string, ended <-chan string) (url.Values, error) {
	came := make(chan url.Values, 1)
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			ours := false
			for _, host := range c.hosts {
				ours = ours || r.Host == host
			}
			text, status := "You can close this window.", http.StatusOK
			switch {
			case !ours || r.URL.EscapedPath() != c.path && c.path+r.URL.EscapedPath() != "/":
				text, status = "There is nothing here.", http.StatusNotFound
			case r.Method != http.MethodGet:
				text, status = "This is no answer.", http.StatusMethodNotAllowed
			case !answers(query, state):
				text, status = "This isn't the answer to the login that codeexec waits for.", http.StatusBadRequest
			default:
				if query.Get("error") != "" {
					text = "The login failed. You can close this window."
				}
				select {
				case came <- query:
				default:
					text, status = "There was an answer already.", http.StatusConflict
				}
			}
			header := w.Header()
			header.Set("Content-Type", "text/plain; charset=utf-8")
			header.Set("Cache-Control", "no-store")
			header.Set("Referrer-Policy", "no-referrer")
			header.Set("X-Content-Type-Options", "nosniff")
			header.Set("Connection", "close")
			w.WriteHeader(status)
			io.WriteString(w, text+"\n")
		}),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(c.listener)
	}()
	var answer url.Values
	var err error
	for waiting := true; waiting; {
		select {
		case answer = <-came:
			waiting = false
		case text, ok := <-ended:
			if ended = nil; !ok {
				continue
			}
			waiting = false
			u, parseErr := url.Parse(text)
			if parseErr == nil {
				answer = u.Query()
			}
			if !answers(answer, state) {
				err = errors.New("the address that was given isn't the one at which the browser ends after this login")
			}
		case <-ctx.Done():
			waiting = false
			err = context.Cause(ctx)
		}
	}
	// The page gets to the browser before the port is closed.
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(patience) != nil {
		server.Close()
	}
	<-served
	return answer, err
}
