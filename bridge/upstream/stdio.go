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
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// methodDiscover is the request by which a client asks whether a server speaks
// protocol version 2026-07-28 or later.
const methodDiscover = "server/discover"

// A conn carries JSON-RPC messages, one a line, over a server's stdin and
// stdout. It is an [mcp.Connection], and an [mcp.Transport] that connects to
// itself once.
type conn struct {
	log   *slog.Logger
	probe time.Duration // how long an answer to server/discover may take

	incoming chan jsonrpc.Message // from the read loop
	injected chan jsonrpc.Message // answers that the server owes
	outgoing chan outgoing

	closed    chan struct{}
	closeOnce sync.Once
	err       error // why it is closed; set before closed is

	mu       sync.Mutex
	captures map[jsonrpc.ID]*capture
	discover discover
}

// discover is what became of the request server/discover.
type discover struct {
	id       jsonrpc.ID
	sent     bool
	answered bool // by the server, before its time was up
	timedOut bool
	timer    *time.Timer
}

type outgoing struct {
	data []byte
	done chan error // takes one error without blocking
}

// A capture gets the structured content of the result of a tool call, as the
// server spelled it. It travels in the context of the call, see [withCapture].
//
// The SDK never sees the structured content. It would decode it into floats,
// which can't hold every number, fail where one is too large, and make null
// and absent the same.
type capture struct {
	id         jsonrpc.ID
	structured json.RawMessage // nil if the result has none
}

type captureKey struct{}

// withCapture returns a context for one call of a tool. When the call has
// succeeded, the capture is filled.
//
// This works because the SDK passes the caller's context on to the connection's
// Write, which is where a request gets to know its id.
func withCapture(ctx context.Context) (context.Context, *capture) {
	c := new(capture)
	return context.WithValue(ctx, captureKey{}, c), c
}

// take keeps the structured content of a result and returns the rest of it.
func (c *capture) take(result json.RawMessage) json.RawMessage {
	const key = "structuredContent"
	var fields map[string]json.RawMessage
	if !bytes.Contains(result, []byte(key)) || json.Unmarshal(result, &fields) != nil {
		return result
	}
	structured, ok := fields[key]
	if !ok {
		return result
	}
	delete(fields, key)
	rest, err := json.Marshal(fields)
	if err != nil {
		return result
	}
	c.structured = structured
	return rest
}

// newConn makes a connection from a server's streams. Both are read and
// written until they fail; closing the connection doesn't close them, closing
// them ends the connection.
func newConn(stdout io.Reader, stdin io.Writer, probe time.Duration, limit int, log *slog.Logger) *conn {
	c := &conn{
		log: log, probe: probe,
		incoming: make(chan jsonrpc.Message),
		injected: make(chan jsonrpc.Message, 1),
		outgoing: make(chan outgoing),
		closed:   make(chan struct{}),
		captures: make(map[jsonrpc.ID]*capture),
	}
	go c.readLoop(newLineReader(stdout, limit), limit)
	go c.writeLoop(stdin)
	return c
}

// Connect returns c. It is called by [mcp.Client.Connect].
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID returns the empty string: the process is the session.
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

// Write sends a message. A server that doesn't read its stdin can't hold up
// the caller for longer than ctx allows; the message is then sent whole later,
// or not at all.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		c.sending(ctx, req)
	}
	item := outgoing{data: append(data, '\n'), done: make(chan error, 1)}
	select {
	case c.outgoing <- item:
	case <-c.closed:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-item.done:
		return err
	case <-c.closed:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
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
	delete(c.captures, cap.id)
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

func (c *conn) writeLoop(w io.Writer) {
	for {
		select {
		case item := <-c.outgoing:
			_, err := w.Write(item.data)
			if err != nil {
				err = fmt.Errorf("writing to its stdin: %w", err)
				c.fail(err) // first, so that who gets the error finds its reason
			}
			item.done <- err
			if err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

func (c *conn) readLoop(r *lineReader, limit int) {
	for {
		l, err := r.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("reading its stdout: %w", err)
			}
			c.fail(err)
			return
		}
		msg := c.message(l, limit)
		if msg == nil {
			continue
		}
		select {
		case c.incoming <- msg:
		case <-c.closed:
			return
		}
	}
}

// errTooLarge is the error of a response that is longer than a line may be.
var errTooLarge = errors.New("the answer is too large")

// message decodes a line. It returns nil for what isn't JSON-RPC and for
// answers that nobody waits for any more.
func (c *conn) message(l line, limit int) jsonrpc.Message {
	if l.tooLong {
		c.log.Warn("dropped a message that is too long", "limit", limit, "id", l.id, "begins", l.String())
		if l.id == 0 {
			return nil
		}
		id, _ := jsonrpc.MakeID(float64(l.id))
		return c.received(&jsonrpc.Response{ID: id, Error: errTooLarge})
	}
	if l.object == nil {
		c.log.Debug("skipped a line on stdout that is no message", "line", l.String())
		return nil
	}
	msg, err := decode(l.object)
	if err == nil {
		switch msg := msg.(type) {
		case *jsonrpc.Response:
			return c.received(msg)
		case *jsonrpc.Request:
			return c.requested(msg)
		}
	}
	// If it answers a request, whoever waits for that must not wait for ever.
	var id answerID
	id.feed(l.object)
	n := id.value()
	c.log.Warn("dropped a message that can't be decoded", "error", err, "id", n, "line", l.String())
	if n == 0 {
		return nil
	}
	rpcID, _ := jsonrpc.MakeID(float64(n))
	return c.received(&jsonrpc.Response{ID: rpcID, Error: fmt.Errorf("the answer can't be decoded: %w", err)})
}

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
// panic, and none that is of use here has any that matter.
func (c *conn) requested(req *jsonrpc.Request) jsonrpc.Message {
	req.Params = nil
	switch {
	case req.Method == "ping" && req.IsCall():
	case req.IsCall():
		// The SDK answers this with the error that there is no such method.
		c.log.Debug("refused a request", "method", req.Method)
		req.Method = "unsupported:" + req.Method
	case req.Method == "notifications/tools/list_changed":
	default:
		c.log.Debug("ignored a notification", "method", req.Method)
		return nil
	}
	return req
}

// received takes note of a response, and returns it unless it comes too late.
func (c *conn) received(resp *jsonrpc.Response) jsonrpc.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cap, ok := c.captures[resp.ID]; ok {
		delete(c.captures, resp.ID)
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
