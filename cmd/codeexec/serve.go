package main

import (
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"codeexec/bridge"
)

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
			engine.Start() // while the client is still saying hello
			server := bridge.NewServer(b, bridge.ServerOptions{Version: programVersion(), Text: settings.text, Logger: logger})
			return server.ServeStdio(ctx, std.in, std.out)
		},
	}
	servers.register(cmd)
	return cmd
}
