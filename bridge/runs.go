package bridge

import (
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"codeexec/wasmhost"
)

// How long and how much of the output of runs is kept, for clients that want to read what an answer had no
// room for.
const (
	DefaultKeepOutput = time.Hour
	maxKeptBytes      = 64 << 20
	maxKeptRuns       = 1000
	maxKeptText       = 16 << 20 // of one text; also what package wasmhost keeps of a stream
)

// newRunID names a run. It can't be guessed: whoever knows it may read the run's output.
func newRunID() string { return strings.ToLower(rand.Text()[:16]) }

// The texts of a run that can be read as a whole.
const (
	textStdout    = "stdout"
	textStderr    = "stderr"
	textResult    = "result"
	textTraceback = "traceback"
)

// A RunInfo describes a run whose output is kept.
type RunInfo struct {
	ID       string         `json:"id"`
	Session  string         `json:"session"`
	Status   Status         `json:"status"`
	Ended    time.Time      `json:"ended"`
	Duration int64          `json:"duration_ms"`
	Expires  time.Time      `json:"expires"`
	Sizes    map[string]int `json:"sizes"` // of its texts in bytes, by name: stdout, stderr, result, traceback
}

// A keptRun is a run and what it wrote.
type keptRun struct {
	owner  string
	info   RunInfo
	texts  map[string]wasmhost.Output // those that aren't empty
	size   int
	expiry *time.Timer
}

// runStore keeps the output of the newest runs. Each owner only sees its own.
type runStore struct {
	keep time.Duration // 0 or less: nothing is kept

	mu     sync.Mutex
	runs   []*keptRun // oldest first
	size   int
	closed bool
}

// enabled reports whether anything is kept.
func (s *runStore) enabled() bool { return s.keep > 0 }

// add keeps what a run of an owner wrote. It makes room by forgetting the oldest runs of whoever has most kept.
func (s *runStore) add(owner string, info RunInfo, out *wasmhost.Result) {
	run := &keptRun{owner: owner, info: info, texts: make(map[string]wasmhost.Output), size: 1 << 10}
	texts := map[string]wasmhost.Output{textStdout: out.Stdout, textStderr: out.Stderr, textResult: wholeOutput(out.Value)}
	if out.Exception != nil {
		texts[textTraceback] = wholeOutput(out.Exception.Traceback)
	}
	run.info.Sizes = make(map[string]int)
	for name, text := range texts {
		if text.Total() == 0 {
			continue
		}
		if n := len(text.Head); n > maxKeptText {
			text.Head = text.Head[:maxKeptText]
			text.Dropped += int64(n - maxKeptText)
		}
		text.Head, text.Tail = compact(text.Head), compact(text.Tail)
		run.texts[name] = text
		run.info.Sizes[name] = int(text.Total())
		run.size += cap(text.Head) + cap(text.Tail)
	}
	if len(run.texts) == 0 || !s.enabled() {
		return
	}
	run.info.Expires = run.info.Ended.Add(s.keep)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for len(s.runs) > 0 && (len(s.runs) >= maxKeptRuns || s.size+run.size > maxKeptBytes) {
		s.forget(s.leastFair(run))
	}
	s.runs = append(s.runs, run)
	s.size += run.size
	run.expiry = time.AfterFunc(s.keep, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forget(run)
	})
}

// leastFair finds the oldest run of the owner with most bytes, once next is kept too. The caller holds mu, and
// there is a run.
func (s *runStore) leastFair(next *keptRun) *keptRun {
	sizes := map[string]int{next.owner: next.size}
	for _, run := range s.runs {
		sizes[run.owner] += run.size
	}
	most := s.runs[0]
	for _, run := range s.runs {
		if sizes[run.owner] > sizes[most.owner] {
			most = run
		}
	}
	return most
}

// dropOwner forgets the runs of an owner who won't come back.
func (s *runStore) dropOwner(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range slices.Clone(s.runs) {
		if run.owner == owner {
			s.forget(run)
		}
	}
}

// compact returns p without much unused memory behind it.
func compact(p []byte) []byte {
	if cap(p)-len(p) > len(p)/8+1<<10 {
		return slices.Clone(p)
	}
	return p
}

// forget drops a run if it is still there. The caller holds mu.
func (s *runStore) forget(run *keptRun) {
	if i := slices.Index(s.runs, run); i >= 0 {
		run.expiry.Stop()
		s.size -= run.size
		s.runs = slices.Delete(s.runs, i, i+1)
	}
}

// close forgets everything.
func (s *runStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for len(s.runs) > 0 {
		s.forget(s.runs[0])
	}
}

// text returns all of a text of a run in its printable form.
func (s *runStore) text(owner, id, name string) (string, bool) {
	out, ok := s.find(owner, id, name)
	if !ok {
		return "", false
	}
	return wholePrintable(out), true
}

func (s *runStore) find(owner, id, name string) (wasmhost.Output, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range s.runs {
		if run.owner == owner && run.info.ID == id {
			out, ok := run.texts[name]
			return out, ok
		}
	}
	return wasmhost.Output{}, false
}

// list describes the runs of an owner, newest first.
func (s *runStore) list(owner string) []RunInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	infos := make([]RunInfo, 0, len(s.runs))
	for _, run := range slices.Backward(s.runs) {
		if run.owner == owner {
			infos = append(infos, run.info)
		}
	}
	return infos
}

// wholePrintable returns the printable form of all that was kept of out.
func wholePrintable(out wasmhost.Output) string {
	if out.Dropped == 0 {
		text, _ := headOf(slices.Concat(out.Head, out.Tail), math.MaxInt) // a character may lie across the border
		return text
	}
	head, _ := headOf(out.Head, math.MaxInt)
	tail := out.Tail
	for range utf8.UTFMax - 1 { // not in the middle of a character
		if len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	end, _ := headOf(tail, math.MaxInt)
	return fmt.Sprintf("%s\n[… %d bytes were not kept …]\n%s", head, out.Dropped+int64(len(out.Tail)-len(tail)), end)
}

// Runs describes the runs of an owner (see [RunRequest]) whose output is kept, newest first; see
// [Options.KeepOutput].
func (b *Bridge) Runs(owner string) []RunInfo { return b.runs.list(owner) }
