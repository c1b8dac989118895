package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

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
	limit int // at most so many have a sandbox

	mu      sync.Mutex
	byName  map[string]*session
	clock   uint64   // counts uses; orders sessions by their last one
	dropped []string // names whose variables were lost since their last run, oldest first
}

func newSessions(limit int) *sessions {
	return &sessions{limit: limit, byName: make(map[string]*session)}
}

// A session is one queue of runs, and the sandbox they share.
type session struct {
	name    string
	sandbox Sandbox // belongs to the holder of the turn; nil before the first run

	// Guarded by sessions.mu.
	busy     bool            // someone holds the turn
	waiting  []chan struct{} // places in the queue behind it, in order; closed to hand over the turn
	lastUsed uint64
	lost     bool // dropped since its last run
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
			delete(s.byName, idle.name)
			s.remember(idle.name)
			p.evicted = idle
		}
		sess = &session{name: name, lost: s.forget(name)}
		s.byName[name] = sess
	}
	p.session = sess
	s.touch(sess)
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

// takeLost reports whether the session was dropped since its last run, once.
func (p *place) takeLost() bool {
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	lost := p.session.lost
	p.session.lost = false
	return lost
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
}

func (s *sessions) touch(sess *session) {
	s.clock++
	sess.lastUsed = s.clock
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

func (s *sessions) remember(name string) {
	s.dropped = append(s.dropped, name)
	if len(s.dropped) > maxRemembered {
		s.dropped = slices.Delete(s.dropped, 0, len(s.dropped)-maxRemembered)
	}
}

func (s *sessions) forget(name string) bool {
	i := slices.Index(s.dropped, name)
	if i < 0 {
		return false
	}
	s.dropped = slices.Delete(s.dropped, i, i+1)
	return true
}

// closeAll closes every sandbox. No run may be in progress or begin.
func (s *sessions) closeAll(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for name, sess := range s.byName {
		errs = append(errs, sess.close(ctx))
		delete(s.byName, name)
	}
	return errors.Join(errs...)
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
