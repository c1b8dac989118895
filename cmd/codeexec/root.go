package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// streams are the process's standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Exit codes besides those of scripts, and of signals (128 and the signal's number).
const (
	exitFailure = 1
	exitUsage   = 2
)

// A usageError is a mistake in the command line.
type usageError struct {
	command string // as it was typed, such as "codeexec exec"
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// An exitStatus ends the program with its value, about which everything has been said.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// run executes a command line without the program's name, and returns the exit code.
func run(args []string, std streams) int {
	ctx, stop := withSignals(context.Background())
	defer stop()
	cmd := newRootCommand(std)
	cmd.SetArgs(args)
	cmd.SetIn(std.in)
	cmd.SetOut(std.out)
	cmd.SetErr(std.err)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	fmt.Fprintf(std.err, "codeexec: %v\n", err)
	if usage, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(std.err, "Try '%s --help'.\n", usage.command)
		return exitUsage
	}
	if sig, ok := errors.AsType[*signalError](context.Cause(ctx)); ok {
		return sig.exitCode()
	}
	return exitFailure
}

func newRootCommand(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "codeexec",
		Short:         "Run Python scripts that call MCP servers, in a sandbox",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef(cmd, "unknown command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef(cmd, "%w", err) })
	root.CompletionOptions.HiddenDefaultCmd = true
	env := environment(os.LookupEnv)
	root.AddCommand(
		newExecCommand(std, env), newReplCommand(std, env), newServeCommand(std, env),
		newServersCommand(std, env), newToolsCommand(std, env), newSearchCommand(std, env), newCallCommand(std, env),
		newMemoryCommand(std, env), newSavedCommand(std, env), newPackagesCommand(std, env),
		newInstallCommand(std, env), newUninstallCommand(std, env), newDoctorCommand(std, env),
		newVersionCommand(std),
	)
	return root
}

// noArguments refuses arguments of a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(cmd, "unexpected argument %q", args[0])
	}
	return nil
}
