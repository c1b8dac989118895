package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"codeexec/bridge"
	"codeexec/bridge/httpserve"
	"codeexec/bridge/metrics"
)

// helloTime is what a client has to itself to say hello and to ask what there is, before Python is made ready:
// that takes all processors, and both would wait. A script that comes earlier doesn't.
const helloTime = 50 * time.Millisecond

const (
	// defaultRuns bounds the scripts that run and wait at once, of all clients over HTTP.
	defaultRuns = 256
	// defaultGrace is how long scripts may still take when the server is told to stop.
	defaultGrace = 10 * time.Second
	// lastAnswers is how long it may take to send the last answers to clients over HTTP.
	lastAnswers = 3 * time.Second
)

// httpFlags say how to serve more than one client.
type httpFlags struct {
	addr      string
	tokenFile string
	hosts     []string
	origins   []string
	grace     time.Duration
}

func (f *httpFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.addr, "http", "", "serve streamable HTTP at `ADDR`, as HOST:PORT or a port of 127.0.0.1, instead of standard input and output")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` with one NAME:TOKEN a line: clients must show a token, and each name has sessions of its own")
	cmd.Flags().StringArrayVar(&f.hosts, "allow-host", nil, "another `NAME` by which clients may call the server; may be repeated")
	cmd.Flags().StringArrayVar(&f.origins, "allow-origin", nil, "`ORIGIN` of pages that may call the server from a browser, such as https://app.example; may be repeated")
	cmd.Flags().DurationVar(&f.grace, "grace", defaultGrace, "how long running scripts may go on when the server is told to stop")
}

// check refuses what would have no effect.
func (f *httpFlags) check(cmd *cobra.Command) error {
	if f.grace < 0 {
		return usagef(cmd, "--grace: want a time such as 10s")
	}
	if f.addr != "" {
		return nil
	}
	for _, name := range []string{"http", "token-file", "allow-host", "allow-origin", "grace"} {
		if cmd.Flags().Changed(name) {
			if name == "http" {
				return usagef(cmd, "--http: want an address such as 127.0.0.1:8080")
			}
			return usagef(cmd, "--%s is of no use without --http", name)
		}
	}
	return nil
}

// tokens are those of the file, or of the environment.
func (f *httpFlags) tokens(s settings) (httpserve.Tokens, error) {
	if f.tokenFile != "" {
		return httpserve.ReadTokens(f.tokenFile)
	}
	if s.token == "" {
		return httpserve.Tokens{}, nil
	}
	tokens, err := httpserve.ParseTokens(s.token)
	if err != nil {
		return tokens, fmt.Errorf("CODEEXEC_HTTP_TOKEN: %w", err)
	}
	return tokens, nil
}

func newServeCommand(std streams, env environment) *cobra.Command {
	var servers serverFlags
	var http httpFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be an MCP server on standard input and output, or over HTTP",
		Long: `Be an MCP server with the tool run_python: on standard input and output for
one client, or with --http for many.

Standard output carries the protocol only; logs go to standard error.

Over HTTP, the endpoint is /mcp, for all versions of the protocol that have
streamable HTTP. /healthz says whether scripts can run, and /metrics has
metrics for Prometheus. Anybody who isn't on this machine needs a token, from
--token-file or CODEEXEC_HTTP_TOKEN, as "Authorization: Bearer TOKEN".`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			if err := http.check(cmd); err != nil {
				return err
			}
			settings, warnings := env.read(slog.LevelInfo)
			logger := newLogger(std.err, settings, warnings)
			set, err := servers.load(cmd, settings, logger, false)
			if err != nil {
				return err
			}
			opts := bridge.Options{Servers: set, KeepOutput: bridge.DefaultKeepOutput, Logger: logger}
			if http.addr != "" {
				return http.serve(ctx, settings, opts)
			}
			b, engine := openBridge(ctx, settings, opts, logProgress(logger))
			defer func() { err = errors.Join(err, closeBridge(ctx, b)) }()
			defer time.AfterFunc(helloTime, engine.Start).Stop()
			return newServer(b, settings, logger).ServeStdio(ctx, std.in, std.out)
		},
	}
	servers.register(cmd)
	http.register(cmd)
	return cmd
}

func newServer(b *bridge.Bridge, s settings, logger *slog.Logger) *bridge.Server {
	return bridge.NewServer(b, bridge.ServerOptions{Version: programVersion(), Text: s.text, Logger: logger})
}

func logProgress(logger *slog.Logger) func(string) {
	return func(message string) { logger.Info(message) }
}

// serve serves HTTP until ctx ends. opts holds what is the same for all ways to serve.
func (f *httpFlags) serve(ctx context.Context, s settings, opts bridge.Options) (err error) {
	logger := opts.Logger
	tokens, err := f.tokens(s)
	if err != nil {
		return err
	}
	counts := metrics.New(programVersion())
	opts.Observer = counts
	opts.MaxRuns = s.runs
	if opts.MaxRuns == 0 {
		opts.MaxRuns = defaultRuns
	}
	if tokens.Names() != 1 { // nobody may keep all others out
		sessions := s.sessions
		if sessions == 0 {
			sessions = bridge.DefaultMaxSessions
		}
		opts.OwnSessions = max(1, sessions/2)
	}
	// A signal doesn't cancel scripts at once: they have the time of --grace.
	b, engine := openBridge(context.WithoutCancel(ctx), s, opts, logProgress(logger))
	defer func() { err = errors.Join(err, closeBridge(ctx, b)) }()
	counts.Watch(b)
	endpoint := newServer(b, s, logger).HTTP()
	server, err := httpserve.Listen(ctx, httpserve.Options{
		Addr:         f.addr,
		Tokens:       tokens,
		AllowHosts:   f.hosts,
		AllowOrigins: f.origins,
		Endpoint:     endpoint,
		Metrics:      counts.Handler(),
		Ready:        b.Ready,
		Logger:       logger,
	})
	if err != nil {
		return err
	}
	engine.Start()
	logger.InfoContext(ctx, "serving MCP over HTTP", "url", server.URL(), "tokens", tokens.Names())
	return server.Serve(ctx, func() {
		logger.Info("stopping", "grace", f.grace)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.grace)
		defer cancel()
		b.Drain(grace)
		if err := closeBridge(ctx, b); err != nil {
			logger.Error(err.Error())
		}
		answering, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
		defer cancel()
		if err := endpoint.Close(answering); err != nil {
			logger.Warn("closing connections", "error", err)
		}
	})
}
