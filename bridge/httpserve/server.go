package httpserve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
)

// Where things are.
const (
	EndpointPath = "/mcp"
	HealthPath   = "/healthz"
	MetricsPath  = "/metrics"
)

const (
	maxConnections = 1024
	headerTime     = 10 * time.Second // for the headers of a request
	idleTime       = 2 * time.Minute  // between two requests of a connection
	writeTime      = 30 * time.Second // for a client to take in a part of an answer
	maxHeaders     = 64 << 10
)

// Options configures a [Server].
type Options struct {
	// Addr is where to listen, as HOST:PORT. A port alone, with or without a colon, is one of 127.0.0.1; port 0 is
	// one that is free.
	Addr string

	// Tokens are what clients must show. Without any, Addr must be on the loopback interface.
	Tokens Tokens

	// AllowHosts are names by which clients may call the server, besides those of the loopback interface and the
	// one in Addr.
	AllowHosts []string
	// AllowOrigins are pages that may call it from a browser ("https://host"), besides those on the loopback interface.
	AllowOrigins []string

	Endpoint http.Handler // answers requests to [EndpointPath]; required
	Metrics  http.Handler // to [MetricsPath]; nil: there are none

	// Ready says why no script can run; nil means that one can. The text goes to the log only.
	Ready func() error

	Logger *slog.Logger // nil: nothing is logged
}

// A Server is an endpoint that listens.
type Server struct {
	opts     Options
	listener net.Listener
	http     *http.Server
	stopping atomic.Bool
}

// Listen opens the port. Requests wait until [Server.Serve]. Whoever doesn't call that must call [Server.Close].
func Listen(ctx context.Context, opts Options) (*Server, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	addr := opts.Addr
	if !strings.Contains(addr, ":") {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%q is no address; want HOST:PORT or PORT", opts.Addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	origins := make([]string, len(opts.AllowOrigins))
	for i, origin := range opts.AllowOrigins {
		origins[i] = strings.ToLower(strings.TrimSuffix(origin, "/"))
	}
	hosts := []string{strings.ToLower(host)}
	for _, name := range opts.AllowHosts {
		hosts = append(hosts, hostOnly(name))
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("opening the port: %w", err)
	}
	// What the name has come to counts, and not how it looks.
	bound, err := netip.ParseAddrPort(listener.Addr().String())
	local := err == nil && bound.Addr().Unmap().IsLoopback()
	if opts.Tokens.Empty() && !local {
		listener.Close()
		return nil, fmt.Errorf("%s can be reached from other machines, so clients must show a token: give --token-file or CODEEXEC_HTTP_TOKEN, or listen on 127.0.0.1:%s", addr, port)
	}

	s := &Server{opts: opts, listener: netutil.LimitListener(listener, maxConnections)}
	protect := func(h http.Handler) http.Handler { return h }
	if !opts.Tokens.Empty() {
		protect = opts.Tokens.require
	}
	mux := http.NewServeMux()
	mux.Handle(EndpointPath, protect(opts.Endpoint))
	if opts.Metrics != nil {
		metrics := opts.Metrics
		if !local {
			metrics = protect(metrics)
		}
		mux.Handle("GET "+MetricsPath, metrics)
	}
	// Whoever asks for health often names an address of its own choice.
	outer := http.NewServeMux()
	outer.Handle("/", &guard{hosts: hosts, origins: origins, next: mux})
	outer.HandleFunc("GET "+HealthPath, s.health)
	s.http = &http.Server{
		Handler:           steady(outer),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeaders,
		ErrorLog:          slog.NewLogLogger(opts.Logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// URL is the address of the endpoint.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + EndpointPath }

// Close closes the port of a server that doesn't serve.
func (s *Server) Close() error { return s.listener.Close() }

// Serve answers requests until ctx ends. Then it accepts no more connections, calls stop, which has to see to it
// that requests in progress are answered, and closes what is left when that returns. It returns nil for that.
func (s *Server) Serve(ctx context.Context, stop func()) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	select {
	case err := <-failed:
		stop()
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	s.http.SetKeepAlivesEnabled(false)
	s.listener.Close()
	stop()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if s.http.Shutdown(ending) != nil {
		s.http.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serving HTTP: %w", err)
	}
	return nil
}

// health says whether requests should come here. It is for anybody, and says no more than that.
func (s *Server) health(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if s.stopping.Load() {
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	if s.opts.Ready != nil {
		if err := s.opts.Ready(); err != nil {
			s.opts.Logger.DebugContext(req.Context(), "not ready", "reason", err)
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
	}
	fmt.Fprintln(w, "ok")
}

// steady gives up clients that don't take in what they have asked for.
func steady(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		sw := &steadyWriter{w, http.NewResponseController(w)}
		sw.extend()
		next.ServeHTTP(sw, req)
	})
}

type steadyWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *steadyWriter) extend() {
	// Its error is that of a writer without a connection, in a test.
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime))
}

func (w *steadyWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// WriteHeader implements [http.ResponseWriter].
func (w *steadyWriter) WriteHeader(status int) {
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets [http.ResponseController] find the writer itself.
func (w *steadyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
