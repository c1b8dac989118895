package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// methodDiscover is the request by which a client asks whether a server speaks
// protocol version 2026-07-28 or later.
const methodDiscover = "server/discover"

// A conn stands between the SDK and what carries messages to a server and back.
// It keeps from the SDK what that can't cope with. It is an [mcp.Connection],
// and an [mcp.Transport] that connects to itself once.
type conn struct {
	name    string // of the server
	log     *slog.Logger
	probe   time.Duration // how long an answer to server/discover may take
	carrier carrier

	incoming chan jsonrpc.Message // from the carrier
	injected chan jsonrpc.Message // answers that the server owes

	closed    chan struct{}
	closeOnce sync.Once
	err       error // why it is closed; set before closed is

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	mu       sync.Mutex
	captures map[jsonrpc.ID]*capture
	asked    map[jsonrpc.ID]*inquiry // requests of the server in progress
	discover discover
}

// A carrier takes a conn's messages to the server. What comes back it hands to
// [conn.accept] or [conn.refuse], and when nothing can come any more it calls
// [conn.fail].
type carrier interface {
	// send sends one message, whose encoding is data. For a request it may
	// return before the message is sent, and must not wait for the answer. An
	// error breaks the connection unless it is ctx's.
	send(ctx context.Context, msg jsonrpc.Message, data []byte) error
}

// discover is what became of the request server/discover.
type discover struct {
	id       jsonrpc.ID
	sent     bool
	answered bool // by the server, before its time was up
	timedOut bool
	timer    *time.Timer
}

// The fields of results that a [capture] can get.
const (
	fieldStructured = "structuredContent" // of tools/call
	fieldTools      = "tools"             // of tools/list
)

// A capture gets one field of a result, as the server spelled it. It travels in
// the context of the request, see [withCapture].
//
// The SDK never sees the field. It would decode numbers into floats, which
// can't hold every number, fail where one is too large, and make null and
// absent the same; it would lose the order of a tool's parameters, and lose all
// tools if one of them isn't as it should be.
type capture struct {
	id     jsonrpc.ID
	field  string
	value  json.RawMessage // nil if the result has no such field
	unseen atomic.Bool     // the server hasn't acted on the request

	// Of a call that is made for a client:
	client Client
	tool   string
	token  int64 // of its progress; 0 if nobody wants to know
}

type captureKey struct{}

// withCapture returns a context for one request. When it has succeeded, the
// capture is filled.
//
// This works because the SDK passes the caller's context on to the connection's
// Write, which is where a request gets to know its id.
func withCapture(ctx context.Context, field string) (context.Context, *capture) {
	c := &capture{field: field}
	return context.WithValue(ctx, captureKey{}, c), c
}

// take keeps the field of a result and returns the rest of it.
func (c *capture) take(result json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if !bytes.Contains(result, []byte(c.field)) || json.Unmarshal(result, &fields) != nil {
		return result
	}
	value, ok := fields[c.field]
	if !ok {
		return result
	}
	delete(fields, c.field)
	if c.field == fieldTools {
		// The SDK would keep the list, and answer the next request with what is
		// left of it.
		delete(fields, "ttlMs")
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return result
	}
	c.value = value
	return rest
}

// newConn makes a connection. Its carrier is to be set before it is used.
func newConn(name string, probe time.Duration, log *slog.Logger) *conn {
	ctx, cancel := context.WithCancel(context.Background())
	return &conn{
		name: name, log: bounded(log), probe: probe, ctx: ctx, cancel: cancel,
		asked:    make(map[jsonrpc.ID]*inquiry),
		incoming: make(chan jsonrpc.Message),
		injected: make(chan jsonrpc.Message, 1),
		closed:   make(chan struct{}),
		captures: make(map[jsonrpc.ID]*capture),
	}
}

// Connect returns c. It is called by [mcp.Client.Connect].
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID returns the empty string: sessions are the carrier's business.
func (c *conn) SessionID() string { return "" }

// Close ends the connection.
func (c *conn) Close() error {
	c.fail(io.EOF)
	return nil
}

// fail ends the connection for a reason, which is what calls in flight fail
// with. Only the first reason counts.
func (c *conn) fail(err error) {
	c.closeOnce.Do(func() {
		c.err = err
		c.mu.Lock()
		if c.discover.timer != nil {
			c.discover.timer.Stop()
		}
		c.mu.Unlock()
		close(c.closed)
		c.cancel()
	})
}

// Read returns the next message.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.incoming:
		return msg, nil
	case msg := <-c.injected:
		return msg, nil
	case <-c.closed:
		return nil, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message. A server that doesn't take it can't hold up the caller
// for longer than ctx allows; the message is then sent whole later, or not at
// all.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		c.sending(ctx, req)
	}
	return c.carrier.send(ctx, msg, data)
}

// accept decodes a message that has arrived and passes it on to whom it is for.
// It returns the id of the request that the message answers, or 0. What isn't
// JSON-RPC and answers that nobody waits for any more go to the log.
// The message came in the stream of a call, or in none, which is 0.
func (c *conn) accept(text []byte, call int64) (answers int64) {
	msg, err := decode(text)
	if err == nil {
		switch msg := msg.(type) {
		case *jsonrpc.Response:
			answers, _ = msg.ID.Raw().(int64)
			c.deliver(c.received(msg))
			return answers
		case *jsonrpc.Request:
			c.deliver(c.requested(msg, call))
			return 0
		}
	}
	// If it answers a request, whoever waits for that must not wait for ever.
	var id answerID
	id.feed(text)
	answers = id.value()
	c.log.Warn("dropped a message that can't be decoded", "error", err, "id", answers, "begins", beginning(text))
	c.refuse(answers, fmt.Errorf("the answer can't be decoded: %w", err))
	return answers
}

// refuse passes on an error in the place of an answer that can't be taken. The
// id is what [answerID] found; 0 is no answer.
func (c *conn) refuse(id int64, err error) {
	if id == 0 {
		return
	}
	rpcID, _ := jsonrpc.MakeID(float64(id))
	c.deliver(c.received(&jsonrpc.Response{ID: rpcID, Error: err}))
}

// deliver gives a message to the reader of the connection, unless it is nil or
// the connection has ended.
func (c *conn) deliver(msg jsonrpc.Message) {
	if msg == nil {
		return
	}
	select {
	case c.incoming <- msg:
	case <-c.closed:
	}
}

// sending takes note of a request.
func (c *conn) sending(ctx context.Context, req *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cap, ok := ctx.Value(captureKey{}).(*capture); ok {
		cap.id = req.ID
		c.captures[req.ID] = cap
	}
	if req.Method == methodDiscover {
		c.discover.id, c.discover.sent, c.discover.answered = req.ID, true, false
		c.discover.timer = time.AfterFunc(c.probe, func() { c.giveUpDiscover(req.ID) })
	}
}

// forget drops a capture whose call has returned.
func (c *conn) forget(cap *capture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over(cap.id)
}

// giveUpDiscover answers server/discover in the server's place, as a server
// that doesn't know the request should have. The client then goes on with
// initialize on the same connection.
func (c *conn) giveUpDiscover(id jsonrpc.ID) {
	c.mu.Lock()
	giveUp := c.discover.id == id && !c.discover.answered
	c.discover.timedOut = giveUp
	c.mu.Unlock()
	if giveUp {
		c.inject(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{
			Code: jsonrpc.CodeMethodNotFound, Message: "no answer to " + methodDiscover,
		}})
	}
}

func (c *conn) inject(msg jsonrpc.Message) {
	select {
	case c.injected <- msg:
	case <-c.closed:
	}
}

// discovered returns what became of server/discover.
func (c *conn) discovered() discover {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.discover
}

// errTooLarge is the error of a response that is longer than a line may be.
var errTooLarge = errors.New("the answer is too large")

// decode is [jsonrpc.DecodeMessage] for text that may be made to break it.
func decode(text []byte) (msg jsonrpc.Message, err error) {
	err = guarded(func() error {
		msg, err = jsonrpc.DecodeMessage(text)
		return err
	})
	return msg, err
}

// guarded calls a function of the SDK that works on what a server sent. The
// SDK's decoders panic on some of what a server can send, and that must not end
// this process.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding failed: %v", p)
		}
	}()
	return f()
}

// requested returns what the SDK gets to see of a server's request or
// notification; nil is nothing. Parameters are taken away from it: the SDK
// decodes and handles them on its own goroutines, where nothing could catch a
// panic. What has parameters that matter is seen to here.
func (c *conn) requested(req *jsonrpc.Request, call int64) jsonrpc.Message {
	switch {
	case req.IsCall() && passable(req.Method):
		c.forward(req, call)
		return nil
	case req.IsCall() && req.Method == "ping":
	case req.IsCall():
		// The SDK answers this with the error that there is no such method.
		c.log.Debug("refused a request", "method", req.Method)
		req.Method = "unsupported:" + req.Method
	case req.Method == "notifications/tools/list_changed":
	default:
		switch req.Method {
		case "notifications/progress":
			c.progressed(req.Params)
		case "notifications/message":
			c.logged(req.Params)
		case "notifications/cancelled":
			c.retract(req.Params)
		default:
			c.log.Debug("ignored a notification", "method", req.Method)
		}
		return nil
	}
	req.Params = nil
	return req
}

// received takes note of a response, and returns it unless it comes too late.
func (c *conn) received(resp *jsonrpc.Response) jsonrpc.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cap, ok := c.captures[resp.ID]; ok {
		c.over(resp.ID)
		resp.Result = cap.take(resp.Result)
	}
	if c.discover.sent && resp.ID == c.discover.id {
		if c.discover.timedOut {
			return nil // it has had another
		}
		c.discover.answered = true
		c.discover.timer.Stop()
	}
	return resp
}

// broken reports whether the connection has ended.
func (c *conn) broken() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}
