package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// ErrClosed is what an [UnavailableError] wraps after [Manager.Close].
var ErrClosed = errors.New("codeexec is shutting down")

// An UnavailableError says that a server couldn't be started, has crashed, or
// must not be used. The call may have had an effect if the server crashed in
// the middle of it.
type UnavailableError struct {
	Server string
	// Err says what happened.
	Err error
	// Stderr is the end of what the server wrote to its standard error, at
	// most 64 KiB; empty if it wrote nothing.
	Stderr string
}

// Error returns what happened with the last lines of the server's stderr.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("server %q is not available: %s", e.Server, e.reason())
}

func (e *UnavailableError) reason() string {
	message := e.Err.Error()
	if lines := lastLines(e.Stderr, 20, 2000); lines != "" {
		message += "; the end of its stderr:\n" + lines
	}
	return message
}

// Unwrap returns e.Err.
func (e *UnavailableError) Unwrap() error { return e.Err }

// An UnknownServerError says that no server of this name is configured.
type UnknownServerError struct {
	Server string
	// Suggestions are the names that come closest, best first.
	Suggestions []string
}

func (e *UnknownServerError) Error() string {
	return fmt.Sprintf("there is no server %q%s", e.Server, didYouMean(e.Suggestions))
}

// An UnknownToolError says that the server lists no tool of this name.
type UnknownToolError struct {
	Server, Tool string
	// Suggestions are the names that come closest, best first.
	Suggestions []string
}

func (e *UnknownToolError) Error() string {
	return fmt.Sprintf("server %q has no tool %q%s", e.Server, e.Tool, didYouMean(e.Suggestions))
}

// A ProtocolError is a JSON-RPC error that the server answered with, or an
// answer that isn't valid MCP.
type ProtocolError struct {
	Server string
	// Tool is the tool that was called; empty if none was.
	Tool string
	// Code is the JSON-RPC error code, or 0 if the answer wasn't valid.
	Code int64
	// Message is the server's.
	Message string
	// Data is the server's; nil if it sent none.
	Data json.RawMessage
}

func (e *ProtocolError) Error() string {
	where := fmt.Sprintf("server %q", e.Server)
	if e.Tool != "" {
		where += fmt.Sprintf(", tool %q", e.Tool)
	}
	if e.Code == 0 {
		return where + ": " + e.Message
	}
	return fmt.Sprintf("%s: %s (code %d)", where, e.Message, e.Code)
}

// A TooLargeError says that an answer was longer than a line may be. It was
// dropped; the server and its other calls are not affected.
type TooLargeError struct {
	Server, Tool string
	Limit        int // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("server %q, tool %q: the answer is larger than %d bytes; ask for less", e.Server, e.Tool, e.Limit)
}

// A TimeoutError says that a call took longer than the server's configuration
// allows. It may have had an effect.
type TimeoutError struct {
	Server, Tool string
	Limit        time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("server %q, tool %q: no answer within the %v that its configuration allows", e.Server, e.Tool, e.Limit)
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return "; did you mean " + strings.Join(quoted, ", ") + "?"
}

// lastLines returns the end of a program's output, made fit to be shown: at
// most n lines and about size bytes, valid UTF-8, without terminal controls.
func lastLines(output string, n, size int) string {
	// Controls take room too, but cutting first bounds the work.
	if keep := 4 * size; len(output) > keep {
		output = output[len(output)-keep:]
	}
	lines := strings.Split(strings.TrimSpace(printable(output)), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	text := strings.Join(lines, "\n")
	if len(text) > size {
		text = "…" + strings.ToValidUTF8(text[len(text)-size:], "")
	}
	return text
}

// printable drops invalid UTF-8, terminal escape sequences, and all controls
// but newline and tab.
func printable(s string) string {
	var b strings.Builder
	const (
		text = iota
		escape
		sequence
	)
	state := text
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '\x1b':
			state = escape
		case state == escape && r == '[':
			state = sequence
		case state == escape:
			state = text // a sequence of two characters
		case state == sequence:
			if r >= '@' && r <= '~' {
				state = text
			}
		case r == '\n' || r == '\t' || !unicode.IsControl(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}
