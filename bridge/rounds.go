package bridge

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// roundsVersion is the first version of the protocol in which servers make no requests. A client is asked by
// the answer to its own request, which it repeats with what was asked for
// (https://modelcontextprotocol.io/seps/2322-multi-round-trip-requests).
const roundsVersion = "2026-07-28"

const (
	// maxPending bounds the runs that wait for a client to repeat its request.
	maxPending = 1000
	// resultTime is how long the result of such a run is kept for its client.
	resultTime = 5 * time.Minute
)

// A question is what a run waits for its client to answer.
type question struct {
	request mcp.InputRequest
	answer  chan json.RawMessage // takes one answer without blocking; nil means that there is none
}

// rounds carry the questions of a run to whoever answers its client's request. The run goes on meanwhile.
type rounds struct {
	questions chan *question
	ended     chan struct{} // closed when the run is over
}

// errOver is what is said to servers whose question comes too late.
var errOver = errors.New("the run is over")

func (r *rounds) ask(ctx context.Context, request mcp.InputRequest) (json.RawMessage, error) {
	q := &question{request: request, answer: make(chan json.RawMessage, 1)}
	select {
	case r.questions <- q:
	case <-r.ended:
		return nil, errOver
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case answer := <-q.answer:
		if answer == nil {
			return nil, errors.New("the client has sent no answer")
		}
		return answer, nil
	case <-r.ended:
		return nil, errOver
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A pendingRun is a run that may outlive the request that started it.
type pendingRun struct {
	owner  string
	rounds *rounds
	feed   *feed
	cancel context.CancelCauseFunc
	result chan *RunResult // takes one without blocking
	asked  *question       // by the last answer; nil if there was none
}

// pendingRuns are the runs that wait for their client to repeat its request, by the state that it has to send
// along. The zero value is ready for use.
type pendingRuns struct {
	mu   sync.Mutex
	runs map[string]*pendingRun
}

// put returns a state that nobody can guess, or "" if there are too many runs.
func (p *pendingRuns) put(run *pendingRun) (state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.runs) >= maxPending {
		return ""
	}
	if p.runs == nil {
		p.runs = make(map[string]*pendingRun)
	}
	state = rand.Text()
	p.runs[state] = run
	return state
}

// take returns an owner's run of a state, once; nil if there is none.
func (p *pendingRuns) take(owner, state string) *pendingRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	run := p.runs[state]
	if run == nil || run.owner != owner {
		return nil
	}
	delete(p.runs, state)
	return run
}

// drop forgets a run.
func (p *pendingRuns) drop(run *pendingRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for state, r := range p.runs {
		if r == run {
			delete(p.runs, state)
		}
	}
}

// begin starts a run that may outlive ctx.
func (s *Server) begin(ctx context.Context, req *mcp.CallToolRequest, run RunRequest) *pendingRun {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &pendingRun{
		owner:  run.Owner,
		rounds: &rounds{questions: make(chan *question), ended: make(chan struct{})},
		feed:   newFeed(),
		cancel: cancel,
		result: make(chan *RunResult, 1),
	}
	client := &sessionClient{session: req.Session, owner: run.Owner, feed: p.feed}
	if params := req.Session.InitializeParams(); params != nil && params.ProtocolVersion >= roundsVersion {
		client.rounds, client.capabilities = p.rounds, params.Capabilities
	}
	run.Client = client
	if req.Params.GetProgressToken() != nil {
		run.Stdout = p.feed
	}
	go func() {
		defer cancel(nil)
		p.result <- s.run(ctx, run)
		close(p.rounds.ended)
		time.AfterFunc(resultTime, func() { s.pending.drop(p) })
	}()
	return p
}

// resume hands the client's answer to the run that waits for it.
func (s *Server) resume(req *mcp.CallToolRequest) *pendingRun {
	p := s.pending.take(ownerOf(req), req.Params.RequestState)
	if p == nil {
		return nil
	}
	var answer json.RawMessage
	if response, ok := req.Params.InputResponses[inputID]; ok && response != nil {
		answer, _ = json.Marshal(response) // without it the asker gets an error
	}
	p.asked.answer <- answer
	p.asked = nil
	return p
}

// inputID names the one thing that is asked for at a time.
const inputID = "input"

// follow waits until the run is over or asks its client something. While it waits, the end of ctx is that of
// the run.
func (s *Server) follow(ctx context.Context, p *pendingRun, version string) *mcp.CallToolResult {
	defer context.AfterFunc(ctx, func() { p.cancel(endOf(ctx)) })()
	for {
		select {
		case result := <-p.result:
			return s.answer(result, version)
		case p.asked = <-p.rounds.questions:
			request := p.asked.request
			if state := s.pending.put(p); state != "" {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{inputID: request}, RequestState: state}
			}
			p.asked.answer <- nil
		}
	}
}
