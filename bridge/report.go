package bridge

import (
	"fmt"
	"strings"
	"time"

	"codeexec/bridge/artifact"
	"codeexec/wasmhost"
)

// A Status says how a run ended.
type Status string

const (
	StatusSuccess   Status = "success"
	StatusError     Status = "error"            // an uncaught exception, or an exit code that isn't 0
	StatusTimeout   Status = "timeout"          // the time limit
	StatusCancelled Status = "cancelled"        // the client, or the shutdown of codeexec
	StatusInvalid   Status = "validation_error" // the request was refused; nothing was run
)

// What became of a session's variables.
const (
	SessionKept  = "kept"
	SessionReset = "reset" // before the run, as was asked or because the session had been dropped; or by its end
)

// A RunResult is the answer to a [RunRequest], as clients see it in structuredContent. Text in it is
// printable and bounded: see [Options.OutputBytes].
type RunResult struct {
	Status       Status        `json:"status"`
	Summary      string        `json:"summary,omitempty"`
	ExitCode     int           `json:"exit_code"` // 0 for success; the script's own; 1, 124, 130, 2 for the other states
	Stdout       string        `json:"stdout,omitempty"`
	Stderr       string        `json:"stderr,omitempty"`
	Result       string        `json:"result,omitempty"` // repr of the last expression
	Error        *RunError     `json:"error,omitempty"`
	Servers      []string      `json:"servers,omitempty"` // those that the request named
	Session      string        `json:"session,omitempty"`
	SessionState string        `json:"session_state,omitempty"` // SessionKept or SessionReset
	ToolCalls    int           `json:"tool_calls,omitempty"`
	Calls        []CallRecord  `json:"calls,omitempty"`  // where the status isn't success: the newest 50
	Images       []PictureInfo `json:"images,omitempty"` // those in the content of the answer, in order
	Files        []FileInfo    `json:"files,omitempty"`  // that the script saved in the run's folder: the first 20
	Truncated    bool          `json:"truncated,omitempty"`
	DurationMS   int64         `json:"duration_ms,omitempty"`

	pictures [][]byte // the images

	Whole []WholeText `json:"-"` // where the whole of each text is that was shortened
}

// A WholeText is a resource that holds all of a text of which an answer holds a part.
type WholeText struct {
	Name string // stdout, stderr, result or traceback
	URI  string
	Size int64 // in bytes, as the script wrote it
}

// A RunError is what ended a run that wasn't a success.
type RunError struct {
	Type      string `json:"type"`
	Message   string `json:"message,omitempty"`
	Line      int    `json:"line,omitempty"` // of the innermost frame in the user's code
	Cell      int    `json:"cell,omitempty"` // the run that the line is of, where it was an earlier one of the session
	Traceback string `json:"traceback,omitempty"`
}

// Exit codes of runs that have none of their own. The last two are those of timeout(1) and of a shell for SIGINT.
const (
	exitError     = 1
	exitInvalid   = 2
	exitTimeout   = 124
	exitCancelled = 130
)

// maxMessage bounds an exception's message, which its traceback repeats.
const maxMessage = 2 << 10

func invalidRequest(err error) *RunResult {
	message := firstLine(err.Error(), maxMessage)
	return &RunResult{
		Status:   StatusInvalid,
		ExitCode: exitInvalid,
		Summary:  message,
		Error:    &RunError{Type: "ValidationError", Message: message},
	}
}

// A report collects what there is to say about one run.
type report struct {
	id      string // of the run
	keeps   bool   // what it writes is kept under the id
	plan    *plan
	room    int // bytes for all text
	started time.Time
	calls   *callLog // nil if the script didn't start
	reset   string   // why the session has lost its variables; empty: it hasn't
	gallery gallery
	files   []artifact.File // that it saved
	anew    string          // why it had lost them in this run or an earlier one
}

// result returns a result with what is the same for all outcomes, and the bytes that are left for text.
func (r *report) result(status Status) (*RunResult, int) {
	res := &RunResult{
		Status:       status,
		Session:      r.plan.session,
		SessionState: SessionKept,
		DurationMS:   max(time.Since(r.started).Milliseconds(), 1),
	}
	if r.plan.restricted {
		for _, s := range r.plan.servers {
			res.Servers = append(res.Servers, s.Name)
		}
	}
	if r.reset != "" {
		res.SessionState = SessionReset
	}
	room := r.room - 2<<10 // for the summary and the labels
	if r.calls != nil {
		count, newest := r.calls.snapshot()
		res.ToolCalls = count
		if status != StatusSuccess {
			res.Calls = newest
			for _, c := range newest {
				room -= len(c.Server) + len(c.Tool) + 40
			}
		}
	}
	return res, room
}

// summarize joins what happened with everything else that has to be known.
func (r *report) summarize(what string) string {
	parts := append([]string{what}, r.plan.notes...)
	if r.reset != "" {
		parts = append(parts, firstLine(r.reset, 300))
	}
	return strings.Join(parts, "; ")
}

func (r *report) cancelled(when string) *RunResult {
	res, _ := r.result(StatusCancelled)
	res.ExitCode = exitCancelled
	res.Summary = r.summarize("cancelled " + when + ", nothing was run")
	res.Error = &RunError{Type: "Cancelled", Message: "cancelled " + when}
	return res
}

func (r *report) hostFault(err error) *RunResult {
	res, _ := r.result(StatusError)
	message := firstLine(err.Error(), maxMessage)
	res.ExitCode = exitError
	res.Summary = r.summarize("the sandbox failed: " + message)
	res.Error = &RunError{Type: "SandboxError", Message: message}
	return res
}

func (r *report) finished(out *wasmhost.Result) *RunResult {
	if out.Reset != "" {
		r.reset = "the session was reset: " + out.Reset
	}
	res, room := r.result(Status(out.Outcome))
	res.DurationMS = max(out.Duration.Milliseconds(), 1)
	res.ExitCode = out.ExitCode
	if e := out.Exception; e != nil {
		res.Error = &RunError{Type: firstLine(e.Type, 200), Line: e.Line, Cell: e.Cell}
		var cut bool
		res.Error.Message, cut = printable(wholeOutput(e.Message), maxMessage)
		res.Truncated = cut
		room -= len(res.Error.Message)
	}
	var namesTaken, omitted int
	res.Files, namesTaken, omitted = answerFiles(r.files)
	res.Images, res.pictures = r.gallery.pictures, r.gallery.data
	r.fill(res, out, room-namesTaken-120*len(res.Images))

	took := seconds(out.Duration)
	what := ""
	switch res.Status {
	case StatusSuccess:
		what = "finished in " + took
		res.ExitCode = 0
	case StatusTimeout:
		what = fmt.Sprintf("stopped at its time limit of %s", seconds(r.plan.timeout))
		res.ExitCode = exitTimeout
		res.setError("Timeout", what)
	case StatusCancelled:
		what = "cancelled after " + took
		res.ExitCode = exitCancelled
		res.setError("Cancelled", what)
	default:
		res.Status = StatusError
		if res.ExitCode == 0 {
			res.ExitCode = exitError
		}
		res.setError("SystemExit", fmt.Sprint(res.ExitCode))
		what = exceptionLine(res.Error) + " after " + took
	}
	if res.ToolCalls > 0 {
		what += fmt.Sprintf(", %s", plural(res.ToolCalls, "tool call"))
	}
	if n := len(res.Images); n > 0 {
		what += ", " + plural(n, "image")
	}
	if n := len(res.Files); n > 0 {
		what += fmt.Sprintf(", %s saved", plural(n+omitted, "file"))
	}
	if omitted > 0 {
		what += fmt.Sprintf(", of which %d are not listed", omitted)
	}
	if res.SessionState == SessionKept && (res.Status == StatusTimeout || res.Status == StatusCancelled) {
		what += "; the session and its variables are kept"
	}
	if res.Truncated {
		what += "; the output was shortened"
		for i, w := range res.Whole {
			what += [2]string{", whole: ", " "}[min(i, 1)] + w.URI
		}
	}
	res.Summary = r.summarize(what)
	if res.Error != nil && res.Error.Type == "NameError" && r.anew != "" {
		res.Summary += "; hint: variables from before are gone"
		if r.reset == "" {
			res.Summary += ", since " + firstLine(r.anew, 300)
		}
	}
	return res
}

// setError sets the error of a run that ended without an exception of its own.
func (r *RunResult) setError(kind, message string) {
	if r.Error == nil {
		r.Error = &RunError{Type: kind, Message: message}
	}
}

// fill sets the texts that the script determines, in at most room bytes together.
func (r *report) fill(res *RunResult, out *wasmhost.Result, room int) {
	type field struct {
		name string
		text wasmhost.Output
		dst  *string
	}
	fields := []field{
		{textStdout, out.Stdout, &res.Stdout},
		{textStderr, out.Stderr, &res.Stderr},
		{textResult, wholeOutput(out.Value), &res.Result},
	}
	if out.Exception != nil {
		fields = append(fields, field{textTraceback, wholeOutput(out.Exception.Traceback), &res.Error.Traceback})
	}
	room = max(room, 0)
	sizes := make([]int, len(fields))
	for i, f := range fields {
		sizes[i] = printableSize(f.text.Head, room)
		if sizes[i] <= room {
			sizes[i] += printableSize(f.text.Tail, room)
		}
		if f.text.Dropped > 0 {
			sizes[i] = room + 1 // there is more of it than can be shown
		}
	}
	for i, share := range shares(room, sizes) {
		text, shortened := printable(fields[i].text, share)
		*fields[i].dst = text
		res.Truncated = res.Truncated || shortened
		if shortened && r.keeps {
			res.Whole = append(res.Whole, WholeText{fields[i].name, runURI(r.id, fields[i].name), fields[i].text.Total()})
		}
	}
}

// exceptionLine is what happened, in one line.
func exceptionLine(e *RunError) string {
	line := e.Type
	if m := firstLine(e.Message, 300); m != "" {
		line += ": " + m
	}
	switch {
	case e.Line > 0 && e.Cell > 0:
		line += fmt.Sprintf(" (line %d of cell %d)", e.Line, e.Cell)
	case e.Line > 0:
		line += fmt.Sprintf(" (line %d)", e.Line)
	}
	return line
}

// seconds writes a duration the way people say it: "12 ms", "1.5 s", "30 s".
func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", max(d.Milliseconds(), 1))
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
}

// longTime writes a duration of minutes or more.
func longTime(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return seconds(d)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
