package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxConnections bounds the connections of one user, in the sense of the protocol: they have an
	// Mcp-Session-Id. Whoever opens more loses those used least recently.
	maxConnections = 200
	// connectionIdle is after how long without a request a connection is closed, or later where sessions last longer.
	connectionIdle = 30 * time.Minute
	// maxReplayed bounds, in bytes, the messages that are kept for clients whose stream has broken.
	maxReplayed = 32 << 20
	// bodyTime is how long a client may take to send a request.
	bodyTime = time.Minute
)

var (
	errDisconnected = errors.New("the client has closed its connection")
	errTooMany      = errors.New("the client has opened many other connections since")
)

// An HTTPHandler speaks MCP over streamable HTTP: all versions of the protocol at one address. Whom a request
// comes from is what [auth.RequireBearerToken] says, if it is in front of the handler.
type HTTPHandler struct {
	server    *Server
	stateful  http.Handler // versions with connections
	stateless http.Handler // from roundsVersion on

	ctx    context.Context // ends when Close begins
	cancel context.CancelFunc

	mu          sync.Mutex
	closed      bool
	busy        sync.WaitGroup // requests, and what watches connections; added to under mu while not closed
	connections map[string]*httpConnection
}

// An httpConnection is one that a client has opened by "initialize".
type httpConnection struct {
	*connection
	session *mcp.ServerSession
	user    string // by token; empty: none
	cancel  context.CancelCauseFunc
	used    time.Time
	busy    int // requests in progress
}

// HTTP returns a handler of s. [HTTPHandler.Close] must be called in the end.
func (s *Server) HTTP() *HTTPHandler {
	h := &HTTPHandler{server: s, connections: make(map[string]*httpConnection)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	serve := func(*http.Request) *mcp.Server { return s.mcp }
	opts := mcp.StreamableHTTPOptions{
		Logger:                       sdkLogger(s.opts.Logger),
		MaxRequestBodyBytes:          maxMessageLine,
		PropagateRequestCancellation: true,
		// Which hosts may be named is the business of whoever listens: it knows its own name.
		DisableLocalhostProtection: true,
	}
	stateless := opts
	stateless.Stateless = true
	h.stateless = mcp.NewStreamableHTTPHandler(serve, &stateless)
	replayed := mcp.NewMemoryEventStore(nil)
	replayed.SetMaxBytes(maxReplayed)
	opts.EventStore = replayed
	opts.SessionTimeout = max(connectionIdle, s.bridge.opts.SessionIdle)
	h.stateful = mcp.NewStreamableHTTPHandler(serve, &opts)
	s.mcp.AddReceivingMiddleware(h.watchConnections)
	return h
}

// ServeHTTP implements [http.Handler].
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		w.Header().Set("Retry-After", "5")
		http.Error(w, errClosing.Error(), http.StatusServiceUnavailable)
		return
	}
	h.busy.Add(1)
	h.mu.Unlock()
	defer h.busy.Done()

	id := req.Header.Get("Mcp-Session-Id")
	defer h.use(id)()
	if req.Method != http.MethodPost {
		if req.Method == http.MethodDelete {
			h.end(id, userOf(req))
		}
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		defer context.AfterFunc(h.ctx, cancel)() // a client that listens does so for ever
		h.stateful.ServeHTTP(w, req.WithContext(ctx))
		return
	}
	body, err := readBody(w, req)
	if err != nil {
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	message := peek(body)
	// The context of the first request of a connection is that of all of them.
	ctx, cancel := context.WithCancelCause(h.ctx)
	conn := &httpConnection{
		connection: &connection{ctx: ctx, gate: &admissionGate{}, drain: func() {}},
		user:       userOf(req),
		cancel:     cancel,
	}
	reqCtx := context.WithValue(req.Context(), connectionKey{}, conn.connection)
	reqCtx = context.WithValue(reqCtx, httpConnectionKey{}, conn)
	if message.listens() {
		var stop context.CancelFunc
		reqCtx, stop = context.WithCancel(reqCtx)
		defer stop()
		defer context.AfterFunc(h.ctx, stop)()
	}
	req = req.WithContext(reqCtx)
	if id == "" && (req.Header.Get("Mcp-Protocol-Version") >= roundsVersion || message.version() >= roundsVersion) {
		defer cancel(nil)
		h.stateless.ServeHTTP(w, req)
		return
	}
	h.stateful.ServeHTTP(w, req)
	h.mu.Lock()
	defer h.mu.Unlock()
	if conn.session == nil {
		cancel(nil) // no connection has come of it
	}
}

type httpConnectionKey struct{}

// watchConnections takes note of connections when they are opened, and ends what they have begun when they are
// closed, in whatever way.
func (h *HTTPHandler) watchConnections(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		conn, ok := ctx.Value(httpConnectionKey{}).(*httpConnection)
		session, isServer := req.GetSession().(*mcp.ServerSession)
		if ok && isServer && method == "initialize" && session.ID() != "" {
			h.opened(session, conn)
		}
		return next(ctx, method, req)
	}
}

func (h *HTTPHandler) opened(session *mcp.ServerSession, conn *httpConnection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || conn.session != nil {
		return
	}
	conn.session = session
	conn.used = time.Now()
	id := session.ID()
	h.connections[id] = conn
	h.busy.Go(func() {
		// Its error is that of a client that broke off.
		_ = session.Wait()
		conn.cancel(errDisconnected)
		h.mu.Lock()
		delete(h.connections, id)
		h.mu.Unlock()
		if conn.user == "" {
			h.server.bridge.dropOwner(connectionOwner(id))
		}
	})
	var oldest *httpConnection
	count := 0
	for _, other := range h.connections {
		if other.user != conn.user {
			continue
		}
		count++
		if other != conn && other.busy == 0 && (oldest == nil || other.used.Before(oldest.used)) {
			oldest = other
		}
	}
	if count > maxConnections && oldest != nil {
		delete(h.connections, oldest.session.ID())
		oldest.cancel(errTooMany)
		h.busy.Go(func() { _ = oldest.session.Close() })
	}
}

// use marks a connection as in use until the returned function is called.
func (h *HTTPHandler) use(id string) (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	conn := h.connections[id]
	if conn == nil {
		return func() {}
	}
	conn.busy++
	conn.used = time.Now()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		conn.busy--
		conn.used = time.Now()
	}
}

// end cancels what a user's connection has begun. The SDK, which closes it, waits for that.
func (h *HTTPHandler) end(id, user string) {
	h.mu.Lock()
	conn := h.connections[id]
	h.mu.Unlock()
	if conn != nil && conn.user == user {
		conn.cancel(errDisconnected)
	}
}

// Close answers no more requests, waits until those in progress are answered, and closes all connections. Runs
// that should not be waited for must be cancelled first, see [Bridge.Close]. Where ctx ends first, what is
// still there is left behind.
func (h *HTTPHandler) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for session := range h.server.mcp.Sessions() {
			_ = session.Close() // waits for its answers
		}
		h.busy.Wait()
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return errors.New("some clients are still connected")
	}
}

func userOf(req *http.Request) string {
	if info := auth.TokenInfoFromContext(req.Context()); info != nil {
		return info.UserID
	}
	return ""
}

// readBody reads the body of a request. If it can't, it has answered.
func readBody(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	// Its error is that of a writer in a test, which has no limits.
	_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxMessageLine))
	_ = control.SetReadDeadline(time.Time{}) // else the request would end with it
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		http.Error(w, "the request is larger than 16 MiB", http.StatusRequestEntityTooLarge)
	} else if err != nil {
		http.Error(w, "the request can't be read", http.StatusBadRequest)
	}
	return body, err
}

// A peeked is what must be known of a message before it goes to the SDK.
type peeked struct {
	Method string `json:"method"`
	Params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
}

func peek(body []byte) (p peeked) {
	// What isn't a message is refused by the SDK.
	_ = json.Unmarshal(body, &p)
	return p
}

// listens reports whether the answer is a stream that only ends with the client's request.
func (p peeked) listens() bool { return p.Method == "subscriptions/listen" }

// version is what the message itself says, from roundsVersion on.
func (p peeked) version() (version string) {
	_ = json.Unmarshal(p.Params.Meta[mcp.MetaKeyProtocolVersion], &version)
	return version
}
