package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"codeexec/wasmhost"
)

// A Sandbox runs Python in one namespace that lives from run to run. *[wasmhost.Session] is one.
type Sandbox interface {
	Run(context.Context, wasmhost.Request) (*wasmhost.Result, error)
	Close(context.Context) error
}

// maxRemembered bounds the names of dropped sessions whose next run has to be told.
const maxRemembered = 1024

// sessions is the set of named sessions. It only knows names, places in queues and who may be
// dropped; whoever holds a session's turn owns its sandbox.
type sessions struct {
	limit   int           // at most so many have a sandbox
	idle    time.Duration // after which one that nobody uses is dropped; less than 0: never
	onError func(error)   // gets what goes wrong when one is dropped for that

	mu       sync.Mutex
	byName   map[string]*session
	clock    uint64           // counts uses; orders sessions by their last one
	dropped  []droppedSession // those whose variables were lost since their last run, oldest first
	closed   bool
	expiring sync.WaitGroup // sandboxes of expired sessions that are being closed; added to under mu while not closed
}

// A droppedSession is what is left of a session without a sandbox.
type droppedSession struct {
	name string
	why  string // as in "was dropped, since …"
}

func newSessions(limit int, idle time.Duration, onError func(error)) *sessions {
	return &sessions{limit: limit, idle: idle, onError: onError, byName: make(map[string]*session)}
}

// A session is one queue of runs, and the sandbox they share.
type session struct {
	name    string
	sandbox Sandbox // belongs to the holder of the turn; nil before the first run
	anew    string  // why its variables were lost some time; likewise

	// Guarded by sessions.mu.
	busy     bool            // someone holds the turn
	waiting  []chan struct{} // places in the queue behind it, in order; closed to hand over the turn
	lastUsed uint64          // by sessions.clock
	made     time.Time
	used     time.Time   // when it was last used
	runs     int         // that have ended
	lost     string      // why it was dropped since its last run; empty: it wasn't
	expiry   *time.Timer // drops it; nil while it is busy
}

// A place is somebody's place in the queue of a session.
type place struct {
	set     *sessions
	session *session
	turn    chan struct{} // closed when it is this one's turn
	evicted *session      // dropped to make room; its sandbox has to be closed
}

// A sessionLimitError says that no session can be made and none can be dropped.
type sessionLimitError struct {
	limit int
	busy  []string
}

func (e *sessionLimitError) Error() string {
	return fmt.Sprintf("all %d sessions are running; wait, or use one of them: %s", e.limit, strings.Join(e.busy, ", "))
}

// enqueue takes the next place in the queue of the named session, which it makes if there is none.
// Places are handed out in the order of calls. The caller must call leave in the end, whether or not
// its turn came.
func (s *sessions) enqueue(name string) (*place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &place{set: s, turn: make(chan struct{})}
	sess := s.byName[name]
	if sess == nil {
		if len(s.byName) >= s.limit {
			idle := s.leastRecentlyUsedIdle()
			if idle == nil {
				return nil, &sessionLimitError{limit: s.limit, busy: s.names()}
			}
			s.drop(idle, fmt.Sprintf("only %d are kept", s.limit))
			p.evicted = idle
		}
		sess = &session{name: name, made: time.Now(), lost: s.forget(name)}
		s.byName[name] = sess
	}
	p.session = sess
	s.touch(sess)
	sess.stopExpiry()
	if sess.busy {
		sess.waiting = append(sess.waiting, p.turn)
	} else {
		sess.busy = true
		close(p.turn)
	}
	return p, nil
}

// wait returns when it is this place's turn, or with the cause of ctx's end.
func (p *place) wait(ctx context.Context) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// takeLost returns why the session was dropped since its last run, once; it is empty if it wasn't.
func (p *place) takeLost() string {
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	lost := p.session.lost
	p.session.lost = ""
	return lost
}

// ran counts a run of the session.
func (p *place) ran() {
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	p.session.runs++
}

// leave gives up the place, and hands the turn to the next one if this one had it.
func (p *place) leave() {
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	sess := p.session
	p.set.touch(sess)
	if i := slices.Index(sess.waiting, p.turn); i >= 0 {
		sess.waiting = slices.Delete(sess.waiting, i, i+1)
		return
	}
	if len(sess.waiting) > 0 {
		close(sess.waiting[0])
		sess.waiting = sess.waiting[1:]
		return
	}
	sess.busy = false
	p.set.expireLater(sess)
}

func (s *sessions) touch(sess *session) {
	s.clock++
	sess.lastUsed = s.clock
	sess.used = time.Now()
}

// drop forgets a session, but for why its variables are gone. Its sandbox is still to be closed.
func (s *sessions) drop(sess *session, why string) {
	sess.stopExpiry()
	delete(s.byName, sess.name)
	s.remember(sess.name, why)
}

// expireLater has an idle session dropped unless it is used in time.
func (s *sessions) expireLater(sess *session) {
	if s.idle < 0 || s.closed {
		return
	}
	use := sess.lastUsed
	sess.expiry = time.AfterFunc(s.idle, func() { s.expire(sess, use) })
}

// stopExpiry keeps the session from being dropped, as far as its timer hasn't fired.
func (s *session) stopExpiry() {
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
}

// expire drops a session if its last use is still the given one.
func (s *sessions) expire(sess *session, use uint64) {
	s.mu.Lock()
	if s.closed || sess.busy || sess.lastUsed != use || s.byName[sess.name] != sess {
		s.mu.Unlock()
		return
	}
	s.drop(sess, fmt.Sprintf("nobody had used it for %s", longTime(s.idle)))
	s.expiring.Add(1)
	s.mu.Unlock()
	defer s.expiring.Done()
	if err := sess.close(context.Background()); err != nil {
		s.onError(err)
	}
}

func (s *sessions) leastRecentlyUsedIdle() *session {
	var oldest *session
	for _, sess := range s.byName {
		if !sess.busy && (oldest == nil || sess.lastUsed < oldest.lastUsed) {
			oldest = sess
		}
	}
	return oldest
}

func (s *sessions) names() []string {
	var names []string
	for name := range s.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *sessions) remember(name, why string) {
	s.dropped = append(s.dropped, droppedSession{name, why})
	if len(s.dropped) > maxRemembered {
		s.dropped = slices.Delete(s.dropped, 0, len(s.dropped)-maxRemembered)
	}
}

func (s *sessions) forget(name string) (why string) {
	i := slices.IndexFunc(s.dropped, func(d droppedSession) bool { return d.name == name })
	if i < 0 {
		return ""
	}
	why = s.dropped[i].why
	s.dropped = slices.Delete(s.dropped, i, i+1)
	return why
}

// closeAll closes every sandbox. No run may be in progress or begin.
func (s *sessions) closeAll(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	var errs []error
	for name, sess := range s.byName {
		sess.stopExpiry()
		errs = append(errs, sess.close(ctx))
		delete(s.byName, name)
	}
	s.mu.Unlock()
	s.expiring.Wait()
	return errors.Join(errs...)
}

// A SessionInfo describes a session at one moment.
type SessionInfo struct {
	Name     string       `json:"name"`
	State    SessionState `json:"state"`
	Waiting  int          `json:"waiting,omitempty"` // runs that wait for their turn
	Runs     int          `json:"runs"`              // that have ended
	Made     time.Time    `json:"created"`
	LastUsed time.Time    `json:"last_used"`
	Expires  *time.Time   `json:"expires,omitempty"` // when it is dropped unless it is used; absent while it is running
}

// A SessionState says what a session is doing.
type SessionState string

const (
	SessionIdle    SessionState = "idle"
	SessionRunning SessionState = "running"
)

// list describes the sessions that there are, sorted by name.
func (s *sessions) list() []SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	infos := make([]SessionInfo, 0, len(s.byName))
	for _, name := range s.names() {
		sess := s.byName[name]
		info := SessionInfo{
			Name:     name,
			State:    SessionIdle,
			Waiting:  len(sess.waiting),
			Runs:     sess.runs,
			Made:     sess.made.UTC(),
			LastUsed: sess.used.UTC(),
		}
		switch {
		case sess.busy:
			info.State = SessionRunning
		case s.idle >= 0:
			expires := info.LastUsed.Add(s.idle)
			info.Expires = &expires
		}
		infos = append(infos, info)
	}
	return infos
}

// close drops the session's sandbox, if it has one. The caller must hold its turn, or be the only one
// that knows it.
func (s *session) close(ctx context.Context) error {
	if s.sandbox == nil {
		return nil
	}
	err := s.sandbox.Close(ctx)
	s.sandbox = nil
	if err != nil {
		return fmt.Errorf("closing session %q: %w", s.name, err)
	}
	return nil
}
