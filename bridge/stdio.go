package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessageLine bounds one message of a client, in bytes.
const maxMessageLine = 16 << 20

// drainTime is how long calls may still take when the client has closed its side: enough to answer a script
// that was piped in ("printf … | codeexec serve"), too little for one that goes on after its client has died.
// With the second that servers have to end by themselves it makes less than 3 s, after which nothing may be left.
const drainTime = time.Second

// errInputEnded is the cause of the end of calls whose client doesn't talk to us any more.
var errInputEnded = errors.New("the client has closed the connection")

// ServeStdio speaks MCP over a pair of streams, one message a line, until in ends or ctx does. It returns
// nil in both cases. A line that is not a message is answered with an error, as JSON-RPC asks, and does no
// more harm. in is not closed: a read that is still blocked is left behind.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &stdioTransport{
		in:    in,
		out:   &lineWriter{w: out},
		gate:  &admissionGate{},
		ready: s.bridge.ready(),
		stop:  func() { cancel(errInputEnded) },
	}
	return s.serve(ctx, t, &connection{ctx: ctx, gate: t.gate, drain: t.drain})
}

// ready is closed when Python is ready to run scripts, where that can be known.
func (b *Bridge) ready() <-chan struct{} {
	if e, ok := b.opts.Engine.(interface{ Ready() <-chan struct{} }); ok {
		return e.Ready()
	}
	ready := make(chan struct{})
	close(ready)
	return ready
}

var (
	errStarting = errors.New("the interpreter is still starting")
	errNoPython = errors.New("the interpreter can't be started")
)

// Ready says why no script can run at the moment; nil means that one can.
func (b *Bridge) Ready() error {
	b.mu.Lock()
	draining := b.draining
	b.mu.Unlock()
	if draining {
		return errClosing
	}
	select {
	case <-b.ready():
	default:
		return errStarting
	}
	if e, ok := b.opts.Engine.(interface{ Err() error }); ok && e.Err() != nil {
		return fmt.Errorf("%w: %w", errNoPython, e.Err())
	}
	return nil
}

// An admissionGate is closed while a call has been read, but hasn't taken its place among the runs.
type admissionGate struct {
	mu   sync.Mutex
	open chan struct{} // nil while the gate is open; closed to open it
}

// shut closes the gate, and returns a channel that is closed when it opens.
func (g *admissionGate) shut() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
	return g.open
}

// admit opens the gate.
func (g *admissionGate) admit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil {
		close(g.open)
		g.open = nil
	}
}

// A lineWriter makes lines that are written concurrently come out one after another.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

func (w *lineWriter) Close() error { return nil }

// stdioTransport is [mcp.IOTransport] with three differences: what isn't a message is answered and skipped,
// where the SDK gives up the connection; calls of tools begin in the order in which they arrive; and when
// the input ends, calls in progress get a moment to answer, where the SDK drops their answers.
type stdioTransport struct {
	in    io.Reader
	out   *lineWriter
	gate  *admissionGate
	ready <-chan struct{}
	stop  func() // cancels all requests

	conn *stdioConn // set by Connect
}

// drain waits until requests in progress are answered, see [stdioConn.drain].
func (t *stdioTransport) drain() { t.conn.drain() }

// Connect implements [mcp.Transport].
func (t *stdioTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	messages, lines := io.Pipe()
	inner := &mcp.IOTransport{Reader: messages, Writer: t.out, MaxLineLength: -1} // copyMessages bounds them
	conn, err := inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	go func() { lines.CloseWithError(copyMessages(lines, t.out, t.in)) }()
	t.conn = &stdioConn{
		Connection: conn,
		gate:       t.gate,
		ready:      t.ready,
		stop:       t.stop,
		closed:     make(chan struct{}),
		pending:    make(map[jsonrpc.ID]bool),
	}
	return t.conn, nil
}

type stdioConn struct {
	mcp.Connection
	gate  *admissionGate
	ready <-chan struct{}
	stop  func()

	closeOnce sync.Once
	closed    chan struct{}

	admitted <-chan struct{} // of the last call, closed when the gate opens; only for Read

	mu      sync.Mutex
	last    jsonrpc.ID          // of the last call
	pending map[jsonrpc.ID]bool // requests without an answer
	drained chan struct{}       // closed when pending gets empty; nil while nobody waits for that
}

// Read implements [mcp.Connection].
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	if c.admitted != nil {
		select {
		case <-c.admitted:
		case <-c.closed:
			return nil, io.EOF
		}
		c.admitted = nil
	}
	msg, err := c.Connection.Read(ctx)
	if err == io.EOF {
		c.drain()
		c.stop()
		c.drain() // those that were cancelled answer too
	}
	// A listening request is answered only when it is cancelled.
	if req, ok := msg.(*jsonrpc.Request); ok && err == nil && req.IsCall() && req.Method != "subscriptions/listen" {
		c.mu.Lock()
		c.pending[req.ID] = true
		if req.Method == "tools/call" {
			c.last = req.ID
			c.admitted = c.gate.shut()
		}
		c.mu.Unlock()
	}
	return msg, err
}

// Write implements [mcp.Connection].
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	if resp, ok := msg.(*jsonrpc.Response); ok {
		c.mu.Lock()
		if resp.ID == c.last {
			c.gate.admit() // the call was refused before it reached the tool
		}
		delete(c.pending, resp.ID)
		if c.drained != nil && len(c.pending) == 0 {
			close(c.drained)
			c.drained = nil
		}
		c.mu.Unlock()
	}
	return err
}

// Close implements [mcp.Connection].
func (c *stdioConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

// drain waits until all requests are answered, but no longer than drainTime from when Python is ready.
func (c *stdioConn) drain() {
	c.mu.Lock()
	if len(c.pending) == 0 {
		c.mu.Unlock()
		return
	}
	if c.drained == nil {
		c.drained = make(chan struct{})
	}
	drained := c.drained
	c.mu.Unlock()
	select {
	case <-c.ready:
	case <-drained:
	case <-c.closed:
	}
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-drained:
	case <-c.closed:
	}
}

// copyMessages copies the lines of in that are JSON-RPC messages to lines, and answers the others on out.
// It returns nil at the end of in.
func copyMessages(lines, out io.Writer, in io.Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, tooLong, readErr := readLine(r, maxMessageLine)
		var messages []json.RawMessage
		var complaint *jsonrpc.Error
		switch {
		case tooLong:
			complaint = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("the message is longer than %d bytes", maxMessageLine)}
		case len(line) > 0:
			messages, complaint = splitMessages(line)
		}
		if complaint != nil {
			answer, _ := json.Marshal(object{"jsonrpc": "2.0", "id": nil, "error": complaint}) // always encodes
			if _, err := out.Write(append(answer, '\n')); err != nil {
				return err
			}
		}
		for _, m := range messages {
			if _, err := lines.Write(append(m, '\n')); err != nil {
				return err
			}
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

// splitMessages returns the JSON-RPC messages of a line: one, or those of a batch. Batches exist in version
// 2025-03-26 of the protocol only; their requests are answered one by one.
func splitMessages(line []byte) ([]json.RawMessage, *jsonrpc.Error) {
	if !json.Valid(line) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the line is not a JSON text"}
	}
	messages := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &messages); err != nil || len(messages) == 0 {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the batch is empty"}
		}
	}
	for _, m := range messages {
		if _, err := jsonrpc.DecodeMessage(m); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: firstLine(err.Error(), 200)}
		}
	}
	return messages, nil
}

// readLine reads up to the end of a line, and returns it without that and the space around it. Of a line
// that is longer than limit, nothing is returned.
func readLine(r *bufio.Reader, limit int) (line []byte, tooLong bool, err error) {
	for {
		var part []byte
		part, err = r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > limit; tooLong {
			line, part = nil, nil
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), tooLong, err
		}
	}
}
