package wasmhost

import (
	"encoding/json"
	"io"
	"time"
)

// A Request is one run of code in a session.
type Request struct {
	// Code is the body of a Python module. await, async for and async with
	// are allowed at its top level.
	Code string

	// Edit, if not nil, is a question about text that is being typed, in the
	// place of Code. It is no run: variables and the numbers of runs stay as they
	// are. The answer is the Result's Value, as JSON; null if there is none.
	Edit *Edit

	// Env is handed to the Python packages of the sandbox: for package mcp, the
	// servers of the run. Nil: none.
	Env json.RawMessage

	// Stdout and Stderr get the output as it is produced, besides the Result.
	// They are written to by the run's goroutine, one write at a time; after an
	// error no more. Nil: only the Result has it.
	Stdout, Stderr io.Writer

	// Show is called with each thing that the code shows, between the writes to
	// Stdout before and after it; what it returns is put into the output there.
	// The code waits meanwhile. Nil: the Result has what was shown.
	Show func(Display) string

	// Grace is how long code that was interrupted may go on before it is
	// killed, and its session with it. Zero: 1 s.
	Grace time.Duration
}

// An Edit is a question of a line editor. To answer it, no code that is being
// typed is executed, but the session's objects are looked at, which may run code
// of theirs; so it has a context and a Grace, like a run.
type Edit struct {
	About EditQuestion `json:"about"`
	Text  string       `json:"text"` // up to the cursor, for EditNames
}

// An EditQuestion is what a line editor wants to know. Offsets in answers count
// code points.
type EditQuestion string

const (
	EditComplete EditQuestion = "complete" // true: the text is a whole input; false: more lines must follow
	EditNames    EditQuestion = "names"    // [offset, [names]]: what can stand from there on
	EditSpans    EditQuestion = "spans"    // [[start, end, kind]…]: kinds are keyword, builtin, definition, string, number, comment
)

// Outcome says how a run ended.
type Outcome string

const (
	Success   Outcome = "success"   // the code ended, or exited with code 0
	Failure   Outcome = "error"     // an exception, an exit code other than 0, or a crash
	Timeout   Outcome = "timeout"   // the deadline of the context passed
	Cancelled Outcome = "cancelled" // the context was cancelled
)

// A Result is what a run came to.
type Result struct {
	Outcome        Outcome
	ExitCode       int // of sys.exit; 1 after an exception
	Stdout, Stderr Output
	Value          string     // repr of the last statement, if it is an expression that isn't None
	Exception      *Exception // what ended the run, if it was an exception
	Reset          string     // why the session's variables and files are gone; empty: they are kept
	Displays       []Display  // what the code showed, in order, unless Request.Show took it
	Calls          int        // host calls that were made
	Duration       time.Duration
}

// An Exception is a Python exception that nothing caught.
type Exception struct {
	Type      string `json:"type"` // the class, qualified unless it is built in
	Message   string `json:"message"`
	Line      int    `json:"line"` // innermost line of the user's code; 0: none
	Cell      int    `json:"cell"` // the run that line belongs to, counted from 1
	Traceback string `json:"traceback"`
}

// A Display is something that the code showed: a header and its binary parts, as package mcp of the sandbox defines them.
type Display struct {
	Header      json.RawMessage
	Attachments [][]byte
}

// guestResult is the JSON that the guest writes at the end of a run. It is as
// untrusted as everything a guest writes; a field only ever says what the code did.
type guestResult struct {
	Outcome  string     `json:"outcome"` // ok, exception, exit, interrupted
	ExitCode int        `json:"exit_code"`
	Value    string     `json:"value"`
	Error    *Exception `json:"error"`
}
