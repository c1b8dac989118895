package main

import (
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"codeexec/bridge"
)

// helloTime is what a client has to itself to say hello and to ask what there is, before Python is made ready:
// that takes all processors, and both would wait. A script that comes earlier doesn't.
const helloTime = 50 * time.Millisecond

func newServeCommand(std streams, env environment) *cobra.Command {
	var servers serverFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be an MCP server on standard input and output",
		Long: `Be an MCP server on standard input and output, with the tool run_python.

Standard output carries the protocol only; logs go to standard error.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			settings, warnings := env.read(slog.LevelInfo)
			logger := newLogger(std.err, settings, warnings)
			set, err := servers.load(cmd, settings, logger, false)
			if err != nil {
				return err
			}
			progress := func(message string) { logger.Info(message) }
			b, engine := openBridge(ctx, settings, bridge.Options{Servers: set, KeepOutput: bridge.DefaultKeepOutput, Logger: logger}, progress)
			defer func() { err = errors.Join(err, closeBridge(ctx, b)) }()
			defer time.AfterFunc(helloTime, engine.Start).Stop()
			server := bridge.NewServer(b, bridge.ServerOptions{Version: programVersion(), Text: settings.text, Logger: logger})
			return server.ServeStdio(ctx, std.in, std.out)
		},
	}
	servers.register(cmd)
	return cmd
}
