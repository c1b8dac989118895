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
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"codeexec/bridge"
	"codeexec/wasmhost"
)

const (
	// replTimeout is the time limit of an input where none is given: a person at the prompt has Ctrl-C.
	replTimeout = 24 * time.Hour
	// answerTime is how long the prompt waits for what Python knows about the text; names may come from a server
	// that has to be started first.
	answerTime, namesTime = 2 * time.Second, 10 * time.Second
)

type replFlags struct{ scriptFlags }

func newReplCommand(std streams, env environment) *cobra.Command {
	var f replFlags
	cmd := &cobra.Command{
		Use:   "repl",
		Short: "Type Python at a prompt, in the sandbox",
		Long: `Type Python at a prompt, in the sandbox that scripts run in, with the same servers.

As in a notebook, await works at top level, and the value of an input's last
expression is shown; _ holds it. A block ends with an empty line. Tab completes
names, tools and their arguments; the arrows and Ctrl-R go through the inputs of
earlier days. Ctrl-C stops what is running and keeps the variables; Ctrl-D or
exit() leaves.

Input that doesn't come from a terminal is executed in the same way, without a prompt.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, std, env) },
	}
	f.register(cmd, "none")
	return cmd
}

func (f *replFlags) run(cmd *cobra.Command, std streams, env environment) (err error) {
	ctx := cmd.Context()
	settings, warnings := env.read(slog.LevelWarn)
	logs := &heldWriter{to: std.err}
	logger := newLogger(logs, settings, warnings)
	servers, err := f.load(cmd, settings, logger, true)
	if err != nil {
		return err
	}
	limit := time.Duration(f.timeout)
	if limit == 0 {
		limit = replTimeout
	}
	b, engine := openBridge(ctx, settings, bridge.Options{Servers: servers, Timeout: limit, MaxTimeout: limit, Logger: logger}, terminalProgress(std.err))
	defer func() { err = errors.Join(err, closeBridge(ctx, b)) }()
	engine.Start() // while the first input is typed

	r := &repl{
		bridge:  b,
		request: f.request(cmd),
		out:     &lineWriter{to: std.out},
		err:     &lineWriter{to: std.err},
		logs:    logs,
	}
	r.request.Session = "repl"
	terminal, ok := openTerminal(std, r, historyFile(settings, logger))
	if !ok {
		r.input = newPlainInput(std.in, r)
		return r.loop(ctx)
	}
	r.input, r.style = terminal, terminal.style
	// From here on Ctrl-C is a key of the prompt, and in a run it stops the run only.
	signal.Reset(os.Interrupt)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	r.interrupts = interrupts
	fmt.Fprintf(std.out, "codeexec %s, %s; exit() leaves, help() helps\n", programVersion(), countOf(len(servers.Servers), "server"))
	return r.loop(ctx)
}

// countOf says how many of something there are.
func countOf(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// An input is where a repl gets what is to be executed.
type input interface {
	// read returns the next input. It fails with io.EOF at the end, and with errAbandoned where the user took
	// it back.
	read(context.Context) (string, error)
}

var errAbandoned = errors.New("the input was abandoned")

// A repl executes one input after the other in one session.
type repl struct {
	bridge     *bridge.Bridge
	request    bridge.RunRequest
	input      input
	out, err   *lineWriter
	logs       *heldWriter
	style      style
	interrupts <-chan os.Signal // stop a run; nil: never
}

// loop returns when there is no more input, or the user leaves; the error may be an exit status.
func (r *repl) loop(ctx context.Context) error {
	for {
		text, err := r.input.read(ctx)
		switch {
		case errors.Is(err, errAbandoned):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch strings.TrimSpace(text) {
		case "":
			continue
		case "exit", "quit", "exit()", "quit()":
			return nil
		}
		result, err := r.execute(ctx, text)
		if err != nil {
			return err
		}
		if result.Error != nil && result.Error.Type == "SystemExit" {
			return exitStatus(result.ExitCode)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// execute runs one input and shows what came of it.
func (r *repl) execute(ctx context.Context, text string) (*bridge.RunResult, error) {
	runCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	if r.interrupts != nil {
		go func() {
			select {
			case <-r.interrupts:
				cancel()
			case <-ended:
			}
		}()
	}
	request := r.request
	request.Code, request.Stdout, request.Stderr = text, r.out, r.err
	result, err := r.bridge.Run(runCtx, request)
	if err != nil {
		return nil, err
	}
	// What comes next begins on a line of its own.
	r.out.endLine()
	r.err.endLine()
	if result.Result != "" {
		fmt.Fprintln(r.out, result.Result)
	}
	namePictures(r.err, result)
	switch {
	case result.Status == bridge.StatusSuccess:
	case result.Status == bridge.StatusError && result.Error != nil && result.Error.Traceback != "":
		fmt.Fprintln(r.err, r.style.traceback(strings.TrimSuffix(result.Error.Traceback, "\n")))
	case result.Error != nil && result.Error.Type == "SystemExit":
	default:
		fmt.Fprintln(r.err, r.style.paint(styleError, result.Summary))
	}
	return result, nil
}

// ask has Python answer a question about a text, in the time that a person waits. No answer is no error: the
// prompt works without.
func (r *repl) ask(ctx context.Context, question wasmhost.EditQuestion, text string, answer any) bool {
	limit := answerTime
	if question == wasmhost.EditNames {
		limit = namesTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	value, err := r.bridge.Edit(ctx, r.request, wasmhost.Edit{About: question, Text: text})
	return err == nil && string(value) != "null" && json.Unmarshal(value, answer) == nil
}

// isComplete reports whether a text can be executed as it is.
func (r *repl) isComplete(ctx context.Context, text string) bool {
	complete := true
	return !r.ask(ctx, wasmhost.EditComplete, text, &complete) || complete
}

// A heldWriter keeps what is written until it is released, for as long as something else has the screen.
type heldWriter struct {
	mu   sync.Mutex
	to   io.Writer
	held *bytes.Buffer // nil: nothing is kept
}

func (w *heldWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		return w.held.Write(p)
	}
	return w.to.Write(p)
}

func (w *heldWriter) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held = &bytes.Buffer{}
	}
}

func (w *heldWriter) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		_, _ = w.held.WriteTo(w.to) // as with any log, nobody could be told
		w.held = nil
	}
}

// A lineWriter knows whether the line that was written last has ended.
type lineWriter struct {
	to   io.Writer
	open bool
}

func (w *lineWriter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		w.open = p[len(p)-1] != '\n'
	}
	return w.to.Write(p)
}

func (w *lineWriter) endLine() {
	if w.open {
		fmt.Fprintln(w)
	}
}
