package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"codeexec/bridge"
)

// scriptFlags say what scripts may do.
type scriptFlags struct {
	serverFlags
	allowed []string
	timeout seconds // 0: the default
}

func (f *scriptFlags) register(cmd *cobra.Command, noTimeout string) {
	f.serverFlags.register(cmd)
	cmd.Flags().StringSliceVar(&f.allowed, "servers", nil, "the only servers that the script may call, as `A,B` (default all)")
	cmd.Flags().Var(&f.timeout, "timeout", "time limit, such as 90 or 2m (default "+noTimeout+")")
}

// request is one to run a script as the flags say. There is nobody that pictures could be shown to.
func (f *scriptFlags) request(cmd *cobra.Command) bridge.RunRequest {
	request := bridge.RunRequest{Servers: f.allowed, SavePictures: true}
	if cmd.Flags().Changed("servers") && request.Servers == nil {
		request.Servers = []string{} // --servers= means none
	}
	return request
}

type execFlags struct {
	scriptFlags
	code string
	json bool
}

// seconds is a flag whose value is a time limit.
type seconds time.Duration

func (s *seconds) Set(value string) error {
	d, err := parseSeconds(value)
	*s = seconds(d)
	return err
}

func (s *seconds) String() string { return time.Duration(*s).String() }

func (s *seconds) Type() string { return "TIME" }

func newExecCommand(std streams, env environment) *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec [FILE|-]",
		Short: "Run one Python script",
		Long: `Run the Python script FILE, or standard input if it is "-", or the text given by -c.

The script's output passes through as it is produced. Like python, exec doesn't
print the value of the last expression; --json does, with everything else that
there is to know about the run.

The exit code is the script's own; 1 after an uncaught exception, whose traceback
is on standard error; 124 after a timeout, 130 after an interrupt, 2 after a
mistake in the command line.`,
		Example: `  codeexec exec script.py
  codeexec exec -c 'print(6 * 7)'
  codeexec exec --server 'fs=npx -y @modelcontextprotocol/server-filesystem /data' script.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usagef(cmd, "one script at a time: %q is too much", args[1])
			case len(args) == 1 && cmd.Flags().Changed("command"):
				return usagef(cmd, "either -c or a file, not both")
			case len(args) == 0 && !cmd.Flags().Changed("command"):
				return usagef(cmd, "no script: name a file, - for standard input, or give the code with -c")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args, std, env) },
	}
	f.register(cmd, "30s")
	cmd.Flags().StringVarP(&f.code, "command", "c", "", "the script itself, as `CODE`")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON, in the place of the script's output")
	return cmd
}

func (f *execFlags) run(cmd *cobra.Command, args []string, std streams, env environment) (err error) {
	ctx := cmd.Context()
	code, err := f.source(cmd, args, std.in)
	if err != nil {
		return err
	}
	settings, warnings := env.read(slog.LevelWarn)
	logger := newLogger(std.err, settings, warnings)
	servers, err := f.load(cmd, settings, logger, true)
	if err != nil {
		return err
	}
	// Who gives a limit on the command line means it: no maximum applies.
	limit := time.Duration(f.timeout)
	b, _ := openBridge(ctx, settings, bridge.Options{Servers: servers, Timeout: limit, MaxTimeout: limit, Logger: logger}, terminalProgress(std.err))
	defer func() { err = errors.Join(err, closeBridge(ctx, b)) }()

	request := f.request(cmd)
	request.Code = code
	if !f.json {
		request.Stdout, request.Stderr = std.out, std.err
	}
	result, err := b.Run(ctx, request)
	if err != nil {
		return err
	}
	return f.report(ctx, result, std)
}

// maxScript bounds what is read of a script; it is above what the bridge accepts.
const maxScript = 32 << 20

// source returns the script's text.
func (f *execFlags) source(cmd *cobra.Command, args []string, in io.Reader) (string, error) {
	if len(args) == 0 {
		return f.code, nil
	}
	type outcome struct {
		text []byte
		err  error
	}
	read := make(chan outcome, 1)
	go func() { // so that an interrupt gets through while the terminal, or a pipe, is read
		var o outcome
		if args[0] == "-" {
			o.text, o.err = io.ReadAll(io.LimitReader(in, maxScript))
		} else {
			o.text, o.err = os.ReadFile(args[0])
		}
		read <- o
	}()
	select {
	case o := <-read:
		if o.err != nil {
			return "", usagef(cmd, "reading the script: %w", o.err)
		}
		return string(bytes.TrimPrefix(o.text, []byte("\ufeff"))), nil
	case <-cmd.Context().Done():
		return "", context.Cause(cmd.Context())
	}
}

// report writes what the script has not written itself, and returns its exit code as an error.
func (f *execFlags) report(ctx context.Context, r *bridge.RunResult, std streams) error {
	if f.json {
		encoder := json.NewEncoder(std.out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	} else if r.Error != nil {
		if t := r.Error.Traceback; t != "" {
			fmt.Fprintln(std.err, strings.TrimSuffix(t, "\n"))
		}
		switch {
		case r.Status == bridge.StatusTimeout, r.Status == bridge.StatusCancelled:
			// What follows is about the session, which ends with the program.
			what, _, _ := strings.Cut(r.Summary, "; ")
			fmt.Fprintf(std.err, "codeexec: %s\n", what)
		case r.Status == bridge.StatusInvalid, r.Error.Traceback == "" && r.Error.Type != "SystemExit":
			fmt.Fprintf(std.err, "codeexec: %s\n", r.Summary)
		}
	}
	if !f.json {
		namePictures(std.err, r)
	}
	if sig, ok := errors.AsType[*signalError](context.Cause(ctx)); ok && r.Status == bridge.StatusCancelled {
		return exitStatus(sig.exitCode())
	}
	if r.ExitCode == 0 {
		return nil
	}
	return exitStatus(r.ExitCode)
}

// namePictures says where the pictures are that a script showed.
func namePictures(w io.Writer, r *bridge.RunResult) {
	for i, p := range r.Images {
		if p.File == "" {
			fmt.Fprintf(w, "codeexec: image %d is not saved: there is no state directory, or CODEEXEC_KEEP_RUNS is none\n", i+1)
		} else {
			fmt.Fprintf(w, "codeexec: image %d is %s\n", i+1, p.URL)
		}
	}
}
