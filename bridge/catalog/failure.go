package catalog

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// failureSuffix ends the names of the files that say why a server failed last.
const failureSuffix = ".failure.json"

// maxReason is how much of a reason is kept, in bytes.
const maxReason = 4 << 10

// A Failure is why a server couldn't be used when it was last tried.
type Failure struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"` // as it is shown to people
	// Crashed says that the server had started: it isn't well before it has
	// answered a call.
	Crashed bool `json:"crashed,omitempty"`
}

// Fail records a failure, so that other processes can say why a server can't be
// used.
func (r *Record) Fail(f Failure) {
	f.At, f.Reason = f.At.UTC().Round(0), cut(f.Reason, maxReason)
	r.failing.Store(true)
	if r.path == "" {
		return
	}
	data, err := json.Marshal(f)
	if err == nil {
		err = r.catalog.write(r.failurePath(), append(data, '\n'))
	}
	if err != nil {
		r.log.Debug("a failure wasn't recorded", "error", err)
	}
}

// Started takes note that the server could be started, which ends failures but
// crashes.
func (r *Record) Started() {
	f, ok := r.Failure()
	r.failing.Store(ok)
	if ok && !f.Crashed {
		r.Answered()
	}
}

// Answered takes note that the server has answered a call, after [Record.Started].
func (r *Record) Answered() {
	if !r.failing.Swap(false) || r.path == "" {
		return
	}
	if err := os.Remove(r.failurePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Debug("a failure is still recorded", "error", err)
	}
}

// Failure returns the last failure of the server, in this or another process, if
// nothing has gone well since.
func (r *Record) Failure() (f Failure, ok bool) {
	if r.path == "" {
		return f, false
	}
	data, err := readFile(r.failurePath())
	if err != nil || json.Unmarshal(data, &f) != nil || len(f.Reason) > maxReason {
		return Failure{}, false
	}
	return f, true
}

func (r *Record) failurePath() string {
	return strings.TrimSuffix(r.path, recordSuffix) + failureSuffix
}

// isOurs reports whether a file of the folder is one of a catalogue.
func isOurs(name string) bool {
	return strings.HasSuffix(name, recordSuffix) || strings.HasSuffix(name, failureSuffix)
}
