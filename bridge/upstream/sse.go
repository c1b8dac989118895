package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// An sse is the carrier of the transport that streamable HTTP replaced: one
// stream brings all messages, and its first event says where to post those for
// the server
// (https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse).
type sse struct {
	*remote
	endpoint *url.URL
}

// openSSE opens the stream and waits for its first event.
func openSSE(ctx context.Context, r *remote) error {
	s := &sse{remote: r}
	r.conn.carrier = s
	opening, cancel := r.joined(ctx)
	streaming, stop := context.WithCancelCause(r.ctx)
	unhook := context.AfterFunc(opening, func() { stop(context.Cause(opening)) })
	resp, err := r.openStream(streaming, "")
	if err != nil {
		cancel()
		stop(nil)
		return err
	}
	events := newEventReader(resp.Body, r.limit)
	first, err := events.next()
	if err == nil {
		err = s.setEndpoint(first)
	}
	if !unhook() && err == nil {
		err = context.Cause(opening)
	}
	cancel()
	if err != nil {
		resp.Body.Close()
		stop(nil)
		return err
	}
	r.run(func() {
		defer stop(nil)
		defer resp.Body.Close()
		s.readAll(events)
	})
	return nil
}

// setEndpoint takes note of where messages are to be posted, which must be at
// the same server: our headers go there too.
func (s *sse) setEndpoint(e event) error {
	if e.name != "endpoint" {
		return errors.New("its event stream doesn't begin with an endpoint; is the URL that of an MCP server?")
	}
	to, err := s.url.Parse(string(e.data))
	if err != nil {
		return errors.New("its event stream begins with an endpoint that isn't a URL")
	}
	if to.Scheme != s.url.Scheme || to.Host != s.url.Host {
		return fmt.Errorf("it wants messages to be sent to another server, %s://%s", to.Scheme, to.Host)
	}
	s.endpoint = to
	return nil
}

func (s *sse) readAll(events *eventReader) {
	for {
		e, err := events.next()
		switch {
		case errors.Is(err, io.EOF):
			s.conn.fail(errors.New("it ended its event stream"))
			return
		case err != nil:
			s.conn.fail(fmt.Errorf("reading its event stream: %w", err))
			return
		case e.name != "" && e.name != "message":
		case e.tooLong:
			s.conn.log.Warn("dropped a message that is too long", "limit", s.limit, "id", e.answers)
			s.conn.refuse(e.answers, errTooLarge)
		case len(e.data) > 0:
			s.conn.accept(e.data, 0)
		}
	}
}

func (s *sse) send(ctx context.Context, msg jsonrpc.Message, data []byte) error {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		if err := s.deliver(ctx, noticeTimeout, data); err != nil {
			s.conn.log.Debug("a message wasn't delivered", "error", err)
		}
		return nil
	}
	s.run(func() {
		id, ok := req.ID.Raw().(int64)
		// The answer comes by the stream, so that the POST ends at once.
		if err := s.deliver(ctx, 0, data); err != nil && ok {
			s.conn.refuse(id, err)
		}
	})
	return nil
}

// deliver posts a message; timeout 0 is none.
func (s *sse) deliver(ctx context.Context, timeout time.Duration, data []byte) error {
	ctx, cancel := s.joined(ctx)
	defer cancel()
	if timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, timeout)
		defer stop()
	}
	resp, err := s.post(ctx, s.endpoint, data, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return s.rejected(resp)
	}
	io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
	return nil
}
