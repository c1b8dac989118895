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

// maxRemembered bounds the names of an owner's dropped sessions whose next run has to be told.
const maxRemembered = 1024

// A sessionKey names a session. Each owner has names of its own; see [RunRequest].
type sessionKey struct{ owner, name string }

// sessions is the set of named sessions. It only knows names, places in queues and who may be
// dropped; whoever holds a session's turn owns its sandbox.
type sessions struct {
	limit   int           // at most so many have a sandbox
	share   int           // of these, at most so many of one owner
	idle    time.Duration // after which one that nobody uses is dropped; less than 0: never
	onError func(error)   // gets what goes wrong when one is dropped for that

	mu       sync.Mutex
	byKey    map[sessionKey]*session
	clock    uint64                      // counts uses; orders sessions by their last one
	dropped  map[string][]droppedSession // by owner, those whose variables were lost since their last run, oldest first
	closed   bool
	expiring sync.WaitGroup // sandboxes of dropped sessions that are being closed; added to under mu while not closed
}

// A droppedSession is what is left of a session without a sandbox.
type droppedSession struct {
	name string
	why  string // as in "was dropped, since …"
}

func newSessions(limit, share int, idle time.Duration, onError func(error)) *sessions {
	return &sessions{
		limit: limit, share: share, idle: idle, onError: onError,
		byKey:   make(map[sessionKey]*session),
		dropped: make(map[string][]droppedSession),
	}
}

// A session is one queue of runs, and the sandbox they share.
type session struct {
	sessionKey
	sandbox Sandbox // belongs to the holder of the turn; nil before the first run
	anew    string  // why its variables were lost some time; likewise

	// Guarded by sessions.mu.
	busy     bool            // someone holds the turn
	waiting  []chan struct{} // places in the queue behind it, in order; closed to hand over the turn
	lastUsed uint64          // by sessions.clock
	made     time.Time
	used     time.Time   // when it was last used
	runs     int         // that have ended
	memory   int64       // bytes of linear memory after the last of them
	lost     string      // why it was dropped since its last run; empty: it wasn't
	ownerOut bool        // its owner has gone: it is dropped when it is idle
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
	busy  []string // the owner's
}

func (e *sessionLimitError) Error() string {
	if len(e.busy) == 0 {
		return fmt.Sprintf("all %d sessions are running, for other clients; wait", e.limit)
	}
	return fmt.Sprintf("all %d sessions are running; wait, or use one of them: %s", e.limit, strings.Join(e.busy, ", "))
}

// enqueue takes the next place in the queue of a session, which it makes if there is none.
// Places are handed out in the order of calls. The caller must call leave in the end, whether or not
// its turn came.
func (s *sessions) enqueue(key sessionKey) (*place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &place{set: s, turn: make(chan struct{})}
	sess := s.byKey[key]
	if sess == nil {
		var err error
		if p.evicted, err = s.makeRoom(key.owner); err != nil {
			return nil, err
		}
		sess = &session{sessionKey: key, made: time.Now(), lost: s.forget(key)}
		s.byKey[key] = sess
	}
	sess.ownerOut = false
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

// ran counts a run of the session. The caller must have the turn.
func (p *place) ran() {
	var memory int64
	if sandbox, ok := p.session.sandbox.(interface{ Memory() int64 }); ok {
		memory = sandbox.Memory()
	}
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	p.session.runs++
	p.session.memory = memory
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
	if sess.ownerOut {
		p.set.discard(sess)
		return
	}
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
	delete(s.byKey, sess.sessionKey)
	s.remember(sess.sessionKey, why)
}

// discard forgets a session that is idle, and closes its sandbox in the background.
func (s *sessions) discard(sess *session) {
	sess.stopExpiry()
	delete(s.byKey, sess.sessionKey)
	s.expiring.Go(func() {
		if err := sess.close(context.Background()); err != nil {
			s.onError(err)
		}
	})
}

// dropOwner drops all sessions of an owner who won't come back, those that are busy when their runs are over.
func (s *sessions) dropOwner(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for key, sess := range s.byKey {
		switch {
		case key.owner != owner:
		case sess.busy:
			sess.ownerOut = true
		default:
			s.discard(sess)
		}
	}
	delete(s.dropped, owner)
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
	if s.closed || sess.busy || sess.lastUsed != use || s.byKey[sess.sessionKey] != sess {
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

// makeRoom drops a session, if it has to, so that owner may have one more. Its sandbox is still to be closed.
//
// An owner with as many as are its share makes room among its own. Else, whoever has most makes room: who makes
// many sessions doesn't take them from those who need one. What is running is never dropped.
func (s *sessions) makeRoom(owner string) (evicted *session, err error) {
	count := make(map[string]int)
	for key := range s.byKey {
		count[key.owner]++
	}
	limit, crowded := s.limit, len(s.byKey) >= s.limit
	ownOnly := count[owner] >= s.share
	if ownOnly {
		limit = s.share
	}
	if !ownOnly && !crowded {
		return nil, nil
	}
	count[owner]++
	for _, sess := range s.byKey {
		if sess.busy || ownOnly && sess.owner != owner {
			continue
		}
		if evicted == nil || count[sess.owner] > count[evicted.owner] ||
			count[sess.owner] == count[evicted.owner] && sess.lastUsed < evicted.lastUsed {
			evicted = sess
		}
	}
	if evicted == nil {
		return nil, &sessionLimitError{limit: limit, busy: s.names(owner)}
	}
	s.drop(evicted, fmt.Sprintf("only %d are kept", limit))
	return evicted, nil
}

// names are those of an owner's sessions, sorted.
func (s *sessions) names(owner string) []string {
	var names []string
	for key := range s.byKey {
		if key.owner == owner {
			names = append(names, key.name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *sessions) remember(key sessionKey, why string) {
	dropped := append(s.dropped[key.owner], droppedSession{key.name, why})
	if len(dropped) > maxRemembered {
		dropped = slices.Delete(dropped, 0, len(dropped)-maxRemembered)
	}
	s.dropped[key.owner] = dropped
}

func (s *sessions) forget(key sessionKey) (why string) {
	dropped := s.dropped[key.owner]
	i := slices.IndexFunc(dropped, func(d droppedSession) bool { return d.name == key.name })
	if i < 0 {
		return ""
	}
	why = dropped[i].why
	s.dropped[key.owner] = slices.Delete(dropped, i, i+1)
	return why
}

// stats counts all sessions, whoever they belong to.
func (s *sessions) stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{Sessions: len(s.byKey)}
	for _, sess := range s.byKey {
		stats.Memory += sess.memory
		stats.Waiting += len(sess.waiting)
		if sess.busy {
			stats.Running++
		}
	}
	return stats
}

// closeAll closes every sandbox. No run may be in progress or begin.
func (s *sessions) closeAll(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	var errs []error
	for key, sess := range s.byKey {
		sess.stopExpiry()
		errs = append(errs, sess.close(ctx))
		delete(s.byKey, key)
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

// list describes the sessions of an owner, sorted by name.
func (s *sessions) list(owner string) []SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	infos := make([]SessionInfo, 0)
	for _, name := range s.names(owner) {
		sess := s.byKey[sessionKey{owner, name}]
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
