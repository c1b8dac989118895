// Package audit keeps a record of what scripts did: each run and each call of a
// tool is a line of JSON in a file that only the owner may read.
//
// Its one job is to write those lines and to keep the files small. It knows
// nothing of servers or sandboxes; the bridge tells it what has happened.
//
//	[audit]
//	enabled   = true      # the default
//	arguments = false     # the default; true: the arguments of calls too
//
// # Why arguments are left out by default
//
// They are the user's letters, names and passwords. Who called what, when and
// with which outcome answers most questions, and can be kept without a thought.
//
// # Why processes share a file
//
// Each client starts a codeexec of its own, and whoever looks for a call doesn't
// know which. A line is one write to a file that is only appended to, so lines
// stay whole. A process that rotates the file leaves the others writing to the
// old one until it is their turn.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"
	"gopkg.in/natefinch/lumberjack.v2"
)

const (
	// FileName is the name of the newest file in [Options.Dir]. Older ones have
	// the time of their end in their name.
	FileName = "audit.jsonl"

	maxFileSize  = 10 // MiB, after which a file is rotated
	maxFiles     = 10 // old ones
	maxArguments = 16 << 10
	maxText      = 1 << 10 // bytes of a name
)

// Options configures a [Log].
type Options struct {
	// Dir is the directory of the files. It is made if it isn't there.
	Dir string
	// Arguments says whether to write the arguments of calls.
	Arguments bool
	// Logger gets to know if lines can't be written. Nil means nobody.
	Logger *slog.Logger

	maxSize int // see maxFileSize; tests lower it
}

// A Run is a script that has run.
type Run struct {
	ID       string // ties calls to it
	Client   string // whose session it is; empty where there is only one client
	Session  string
	Start    time.Time
	Duration time.Duration
	Outcome  string
	Code     int // bytes of source
	Output   int // bytes of stdout and stderr, as far as they were kept
	Calls    int // of tools
}

// A Call is a tool that was called, or was not allowed to be.
type Call struct {
	Run       string // [Run.ID]
	Client    string // as in Run
	Session   string
	Server    string
	Tool      string
	Start     time.Time
	Duration  time.Duration
	Outcome   string
	Rule      string          // of the policy that applied; empty if none had to
	Arguments json.RawMessage // a JSON object
	Result    int             // bytes of the result; 0 if there was none
}

// A Log writes lines. Nil is one that doesn't. Its methods may be called
// concurrently.
type Log struct {
	opts Options
	file *lumberjack.Logger

	mu     sync.Mutex
	size   int64 // of the file, without what other processes add
	failed bool  // the last line couldn't be written
}

// Open makes the directory and returns a log. The error says that the directory
// can't be used.
func Open(opts Options) (*Log, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.maxSize == 0 {
		opts.maxSize = maxFileSize
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the audit log can't be written: %w", err)
	}
	// The library opens a file for appending only if it is there already.
	f, err := os.OpenFile(filepath.Join(opts.Dir, FileName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the audit log can't be written: %w", err)
	}
	defer f.Close()
	if err := f.Chmod(0o600); err != nil && runtime.GOOS != "windows" { // it may have been there with another mode
		return nil, fmt.Errorf("the audit log can't be kept private: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("the audit log can't be written: %w", err)
	}
	return &Log{
		opts: opts,
		size: info.Size(),
		// The limit is never reached: we rotate before, see write.
		file: &lumberjack.Logger{Filename: f.Name(), MaxSize: opts.maxSize + 1, MaxBackups: maxFiles},
	}, nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// line is one of a run or a call. The order is that of the keys in the file.
type line struct {
	Time      string          `json:"time"` // when it began, UTC
	Kind      string          `json:"kind"` // "run" or "call"
	Run       string          `json:"run"`
	Client    string          `json:"client,omitempty"`
	Session   string          `json:"session"`
	Server    string          `json:"server,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Outcome   string          `json:"outcome"`
	MS        float64         `json:"duration_ms"`
	Rule      string          `json:"rule,omitempty"`
	Code      *int            `json:"code_bytes,omitempty"`
	Output    *int            `json:"output_bytes,omitempty"`
	Calls     *int            `json:"calls,omitempty"`
	ArgBytes  *int            `json:"argument_bytes,omitempty"`
	Result    *int            `json:"result_bytes,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Cut       bool            `json:"arguments_cut,omitempty"` // they are too long to be kept
}

// Run records a run.
func (l *Log) Run(r Run) {
	if l == nil {
		return
	}
	l.write(line{
		Kind: "run", Time: stamp(r.Start), Run: r.ID, Client: cut(r.Client), Session: cut(r.Session), Outcome: r.Outcome,
		MS: ms(r.Duration), Code: &r.Code, Output: &r.Output, Calls: &r.Calls,
	})
}

// Call records a call.
func (l *Log) Call(c Call) {
	if l == nil {
		return
	}
	size := len(c.Arguments)
	out := line{
		Kind: "call", Time: stamp(c.Start), Run: c.Run, Client: cut(c.Client), Session: cut(c.Session), Server: cut(c.Server), Tool: cut(c.Tool),
		Outcome: c.Outcome, MS: ms(c.Duration), Rule: c.Rule, ArgBytes: &size, Result: &c.Result,
	}
	if l.opts.Arguments {
		if out.Cut = size > maxArguments; !out.Cut && json.Valid(c.Arguments) {
			out.Arguments = c.Arguments
		}
	}
	l.write(out)
}

func (l *Log) write(record line) {
	text, err := json.Marshal(record)
	if err != nil {
		l.opts.Logger.Error("a line of the audit log can't be encoded", "error", err)
		return
	}
	text = append(text, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(text)) > int64(l.opts.maxSize)<<20 {
		// Closed, it is opened again for appending, as other processes may have
		// opened it by then.
		err = errors.Join(l.file.Rotate(), l.file.Close())
		l.size = 0
	}
	if err == nil {
		_, err = l.file.Write(text)
		l.size += int64(len(text))
	}
	if err != nil && !l.failed {
		l.opts.Logger.Error("the audit log can't be written", "error", err)
	}
	l.failed = err != nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cut bounds what a script chose.
func cut(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

// Settings are the table audit of a file codeexec.toml.
type Settings struct {
	Enabled, Arguments bool
}

// LoadSettings reads the table. A file or key that doesn't exist stands for its
// default; the settings can be used even if there is an error.
func LoadSettings(path string) (Settings, error) {
	out := Settings{Enabled: true}
	var f struct {
		Audit struct {
			Enabled   *bool `toml:"enabled"`
			Arguments bool  `toml:"arguments"`
		} `toml:"audit"`
	}
	meta, err := toml.DecodeFile(path, &f)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", path, err)
	}
	for _, key := range meta.Undecoded() {
		if strings.EqualFold(key[0], "audit") {
			return out, fmt.Errorf("%s: %s is not a setting", path, key)
		}
	}
	if f.Audit.Enabled != nil {
		out.Enabled = *f.Audit.Enabled
	}
	out.Arguments = f.Audit.Arguments
	return out, nil
}
