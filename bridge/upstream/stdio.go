package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// pipes carry messages, one a line, over a server's stdin and stdout.
type pipes struct {
	conn     *conn
	outgoing chan outgoing
	limit    int // length of a line in bytes
}

type outgoing struct {
	data []byte
	done chan error // takes one error without blocking
}

// newPipesConn makes a connection from a server's streams. Both are read and
// written until they fail; closing the connection doesn't close them, closing
// them ends the connection.
func newPipesConn(name string, stdout io.Reader, stdin io.Writer, probe time.Duration, limit int, log *slog.Logger) *conn {
	c := newConn(name, probe, log)
	p := &pipes{conn: c, outgoing: make(chan outgoing), limit: limit}
	c.carrier = p
	go p.readLoop(newLineReader(stdout, limit))
	go p.writeLoop(stdin)
	return c
}

func (p *pipes) send(ctx context.Context, _ jsonrpc.Message, data []byte) error {
	item := outgoing{data: append(data, '\n'), done: make(chan error, 1)}
	select {
	case p.outgoing <- item:
	case <-p.conn.closed:
		return p.conn.err
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-item.done:
		return err
	case <-p.conn.closed:
		return p.conn.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipes) writeLoop(w io.Writer) {
	for {
		select {
		case item := <-p.outgoing:
			_, err := w.Write(item.data)
			if err != nil {
				err = fmt.Errorf("writing to its stdin: %w", err)
				p.conn.fail(err) // first, so that who gets the error finds its reason
			}
			item.done <- err
			if err != nil {
				return
			}
		case <-p.conn.closed:
			return
		}
	}
}

func (p *pipes) readLoop(r *lineReader) {
	for {
		l, err := r.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("reading its stdout: %w", err)
			}
			p.conn.fail(err)
			return
		}
		switch {
		case l.tooLong:
			p.conn.log.Warn("dropped a message that is too long", "limit", p.limit, "id", l.id, "begins", l.String())
			p.conn.refuse(l.id, errTooLarge)
		case l.object == nil:
			p.conn.log.Debug("skipped a line on stdout that is no message", "line", l.String())
		default:
			p.conn.accept(l.object, 0)
		}
		if p.conn.broken() {
			return
		}
	}
}
