package bridge

import (
	"slices"
	"sync"
	"time"
)

// A CallRecord is one tool call that a run made.
type CallRecord struct {
	Server  string      `json:"server"`
	Tool    string      `json:"tool"`
	Outcome CallOutcome `json:"outcome"`
	MS      int64       `json:"ms"` // how long it took, in milliseconds
}

// A CallOutcome says how a tool call ended.
type CallOutcome string

const (
	CallOK          CallOutcome = "ok"          // a result
	CallToolError   CallOutcome = "tool_error"  // a result that says isError
	CallFailed      CallOutcome = "error"       // a protocol error, or no such server or tool
	CallUnavailable CallOutcome = "unavailable" // the server could not be started, or died
	CallTimeout     CallOutcome = "timeout"     // the call's own time limit
	CallCancelled   CallOutcome = "cancelled"   // the script or the run's end cancelled it; it may have had effects
	CallRefused     CallOutcome = "refused"     // not sent: the server is not among the run's, or too many calls
)

// maxListedCalls bounds the calls that an answer lists.
const maxListedCalls = 50

// A callLog counts a run's tool calls and keeps the newest of them.
type callLog struct {
	limit int // calls that may be made; 0 or less: none

	mu     sync.Mutex
	count  int
	to     map[string]int // calls by server that the policy lets through
	newest []CallRecord   // in the order in which they ended
}

// begin counts a call, and reports whether it is within the limit.
func (l *callLog) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	return l.count <= l.limit
}

// end records a call that took d.
func (l *callLog) end(server, tool string, outcome CallOutcome, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.newest) == maxListedCalls {
		l.newest = slices.Delete(l.newest, 0, 1)
	}
	l.newest = append(l.newest, CallRecord{
		Server:  firstLine(server, 100),
		Tool:    firstLine(tool, 100),
		Outcome: outcome,
		MS:      d.Milliseconds(),
	})
}

// snapshot returns how many calls were made, and the newest of those that have ended.
func (l *callLog) snapshot() (count int, newest []CallRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, slices.Clone(l.newest)
}

// withinServerLimit counts a call to a server, and reports whether it is within the limit of calls to it.
func (s *runScope) withinServerLimit(server string, limit int) bool {
	l := &s.calls
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		l.to = make(map[string]int)
	}
	l.to[server]++
	return l.to[server] <= limit
}
