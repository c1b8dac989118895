package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"codeexec/bridge"
)

func newToolsCommand(std streams, env environment) *cobra.Command {
	var flags serverFlags
	cmd := &cobra.Command{
		Use:   "tools SERVER [TOOL]",
		Short: "Show the tools of a server as scripts see them",
		Long: `Show the tools of a server as scripts see them: as Python signatures with types
and documentation. With a name, only that tool.`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef(cmd, "name a server")
			case len(args) > 2:
				return usagef(cmd, "one tool at a time: %q is too much", args[2])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			code := "print(runtime.stubs(arguments[0]), end='')"
			if len(args) == 2 {
				code = "print(runtime.query_tool_docs(arguments[0], arguments[1], detail='stub')[0]['stub'])"
			}
			flags.only = args[0]
			return flags.ask(cmd, std, env, code, args, std.out)
		},
	}
	flags.register(cmd)
	return cmd
}

// ask runs a short script that asks the runtime about servers, and writes what it prints to w. The script finds
// args in the variable "arguments". What goes wrong is told in one line, without a traceback.
//
// Why a script: what it prints is then what a script would get, and not another program's idea of it.
func (f *serverFlags) ask(cmd *cobra.Command, std streams, env environment, code string, args []string, w io.Writer) (err error) {
	ctx := cmd.Context()
	settings, warnings := env.read(slog.LevelWarn)
	logger := newLogger(std.err, settings, warnings)
	servers, err := f.load(cmd, settings, logger, true)
	if err != nil {
		return err
	}
	b, _ := openBridge(ctx, settings, bridge.Options{Servers: servers, Logger: logger}, terminalProgress(std.err))
	defer func() { err = errors.Join(err, closeBridge(ctx, b)) }()
	list, err := json.Marshal(args) // JSON of strings is Python too
	if err != nil {
		return err
	}
	result, err := b.Run(ctx, bridge.RunRequest{
		Code:   fmt.Sprintf("arguments = %s\n%s", list, code),
		Stdout: w,
		Stderr: std.err,
	})
	switch {
	case err != nil:
		return err
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case result.Status == bridge.StatusSuccess:
		return nil
	case result.Error != nil && result.Status == bridge.StatusError:
		return errors.New(result.Error.Message)
	}
	return errors.New(result.Summary)
}
