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

	// Env is handed to the Python packages of the sandbox: for package mcp, the
	// servers of the run. Nil: none.
	Env json.RawMessage

	// Stdout and Stderr get the output as it is produced, besides the Result.
	// They are written to by the run's goroutine, one write at a time; after an
	// error no more. Nil: only the Result has it.
	Stdout, Stderr io.Writer

	// Grace is how long code that was interrupted may go on before it is
	// killed, and its session with it. Zero: 1 s.
	Grace time.Duration
}

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
	Displays       []Display  // what the code showed, in order
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
