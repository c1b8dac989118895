package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/config"
	"codeexec/bridge/oauth"
)

const (
	// maxErrorBody is how many bytes of the answer to a failed HTTP request are
	// read.
	maxErrorBody = 1 << 20
	// noticeTimeout is how long a server may take to accept a message that it
	// doesn't answer.
	noticeTimeout = 10 * time.Second
	// farewellTimeout is how long a server may take to end a session.
	farewellTimeout = time.Second
	// openPatience is how long the first call waits for the server's own stream.
	openPatience = time.Second
	// maxResumes is how often in a row a stream is opened again that brings
	// nothing new.
	maxResumes = 5
	// maxRetryDelay bounds how long a server can have us wait before that.
	maxRetryDelay = 30 * time.Second
	// maxTokens is how many tokens a request is made with.
	maxTokens = 4
	// standardHeadersVersion is the first protocol version that has headers
	// for the method and the name of a request.
	standardHeadersVersion = "2026-07-28"
)

// errSessionEnded says that a server has forgotten our session, and so hasn't
// acted on the request.
var errSessionEnded = errors.New("the server has ended the session")

// A statusError is an HTTP answer that isn't a success and isn't JSON-RPC.
type statusError struct {
	code int
	body string // the beginning of what it says; may be empty
	hint string // what to do; may be empty
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("it answered with HTTP status %d", e.code)
	if name := http.StatusText(e.code); name != "" {
		text += " " + name
	}
	if e.body != "" {
		text += fmt.Sprintf(" (%q)", e.body)
	}
	switch {
	case e.hint != "":
		return text + ": " + e.hint
	case e.code == http.StatusUnauthorized || e.code == http.StatusForbidden:
		return text + `: check the "headers" of its configuration, such as Authorization`
	}
	return text
}

// An accessError says why a server can't be given the token that it wants. It
// often wraps an [oauth.LoginError].
type accessError struct{ err error }

func (e *accessError) Error() string { return e.err.Error() }

func (e *accessError) Unwrap() error { return e.err }

// wantsLogin reports whether a server can't be used before its user logs in.
func wantsLogin(err error) bool {
	_, ok := errors.AsType[*oauth.LoginError](err)
	return ok
}

// A transferError says that an HTTP request didn't come to its end.
type transferError struct {
	err  error
	dial bool // there was no connection
}

func (e *transferError) Error() string {
	if e.dial {
		return "it can't be reached: " + e.err.Error()
	}
	return "the HTTP request failed: " + e.err.Error()
}

func (e *transferError) Unwrap() error { return e.err }

// A remote is a server that is reached over HTTP. It is the carrier of the
// streamable HTTP transport
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http)
// and the base of [sse].
//
// # Why it isn't the SDK's
//
// The SDK decodes what a server sends on goroutines of its own, where nothing
// can catch the panics that its decoders are good for; it reads bodies without
// a limit, follows redirects to other hosts with all headers, and sends one
// request after the other.
type remote struct {
	conn    *conn
	client  *http.Client
	url     *url.URL
	headers map[string]string // the owner's
	access  *oauth.Access     // nil if there is no OAuth
	limit   int               // bytes of a message
	ctx     context.Context   // ends when stop is called
	cancel  context.CancelFunc

	mu      sync.Mutex
	stopped bool
	tasks   sync.WaitGroup // added to under mu while not stopped
	session string         // as the server named it; empty if there is none
	version string         // of the protocol; empty before the greeting's end
	denied  *accessError   // what became of server/discover; nil if it wasn't denied
	opening chan struct{}  // closed when the server's own stream is open, or isn't to be; nil: nobody need wait
}

func newRemote(cfg config.Server, access *oauth.Access, probe time.Duration, limit int, log *slog.Logger) (*remote, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("its URL isn't one that begins with http:// or https://") // the text may be secret
	}
	for name, value := range cfg.Headers {
		if !validHeader(name, value) {
			return nil, fmt.Errorf("its header %q can't be sent: a name or value has characters that HTTP doesn't allow", name)
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	ctx, cancel := context.WithCancel(context.Background())
	r := &remote{
		conn: newConn(cfg.Name, probe, log), url: u, headers: cfg.Headers, access: access, limit: limit, ctx: ctx, cancel: cancel,
		client: &http.Client{Transport: transport, CheckRedirect: checkRedirect},
	}
	r.conn.carrier = r
	return r, nil
}

func validHeader(name, value string) bool {
	if name == "" || strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, c)
	}) {
		return false
	}
	return !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// checkRedirect follows redirects only where they lead to the same server, as
// the same request: the headers are secret, and the body is the user's.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 3:
		return errors.New("it redirects again and again")
	case req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host:
		return fmt.Errorf("it redirects to another server, %s://%s; if that is the right one, change the URL", req.URL.Scheme, req.URL.Host)
	case req.Method != first.Method:
		return errors.New("it redirects to another address; change the URL")
	}
	return nil
}

// run calls f on a goroutine that stop waits for, unless it has been called.
func (r *remote) run(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.tasks.Go(f)
	}
}

// stop ends the session and all requests. It returns when nothing is left.
func (r *remote) stop() {
	r.mu.Lock()
	session, stopped := r.session, r.stopped
	r.stopped = true
	r.mu.Unlock()
	if stopped {
		return
	}
	if session != "" && !errors.Is(r.conn.err, errSessionEnded) {
		ctx, cancel := context.WithTimeout(r.ctx, farewellTimeout)
		if resp, _, err := r.attempt(ctx, http.MethodDelete, r.url, nil, nil); err == nil {
			resp.Body.Close()
		}
		cancel()
	}
	r.cancel()
	r.tasks.Wait()
	r.client.CloseIdleConnections()
}

// postmortem says why the connection broke, which it has.
func (r *remote) postmortem() (stderr string, err error) { return "", r.conn.err }

// stderrTail returns nothing: a remote server has no stderr that we could see.
func (r *remote) stderrTail() string { return "" }

// send posts a message. Errors are the answer of the request that they concern.
func (r *remote) send(ctx context.Context, msg jsonrpc.Message, data []byte) error {
	req, ok := msg.(*jsonrpc.Request)
	if ok && req.IsCall() {
		r.run(func() { r.call(ctx, req, data) })
		return nil
	}
	r.notify(ctx, msg, data)
	if ok && req.Method == "notifications/initialized" {
		opened := make(chan struct{})
		r.mu.Lock()
		r.opening = opened
		r.mu.Unlock()
		r.run(func() { r.listen(opened) })
	}
	return nil
}

// do makes one HTTP request. The error is a [transferError], an [accessError] or
// ctx's.
func (r *remote) do(ctx context.Context, method string, body []byte, set map[string]string) (*http.Response, error) {
	return r.request(ctx, method, r.url, body, set)
}

// request makes a request, again with another token if the server wants one and
// it can be had.
func (r *remote) request(ctx context.Context, method string, to *url.URL, body []byte, set map[string]string) (*http.Response, error) {
	for round := 1; ; round++ {
		resp, token, err := r.attempt(ctx, method, to, body, set)
		if err != nil || r.access == nil || round == maxTokens {
			return resp, err
		}
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			if resp.StatusCode/100 == 2 {
				r.access.Accepted(ctx, token)
			}
			return resp, nil
		}
		again, err := r.access.Challenged(ctx, token, resp.StatusCode, resp.Header)
		if err == nil && !again {
			return resp, nil
		}
		resp.Body.Close()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, &accessError{err}
		}
	}
}

// attempt makes a request once, with the token that it returns.
func (r *remote) attempt(ctx context.Context, method string, to *url.URL, body []byte, set map[string]string) (resp *http.Response, token string, err error) {
	if r.access != nil {
		token, err = r.access.Token(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, "", context.Cause(ctx)
		case err != nil:
			return nil, "", &accessError{err}
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, token, &transferError{err: errors.New("its URL can't be used")}
	}
	if body == nil {
		req.Body, req.GetBody, req.ContentLength = nil, nil, 0
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.headers {
		if strings.EqualFold(name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	r.mu.Lock()
	if r.session != "" {
		req.Header.Set("Mcp-Session-Id", r.session)
	}
	if r.version != "" {
		req.Header.Set("Mcp-Protocol-Version", r.version)
	}
	r.mu.Unlock()
	for name, value := range set {
		req.Header.Set(name, value)
	}
	resp, err = r.client.Do(req)
	if err == nil {
		return resp, token, nil
	}
	if ctx.Err() != nil {
		return nil, token, context.Cause(ctx)
	}
	// The error's own text has the URL in it.
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err
	}
	op, ok := errors.AsType[*net.OpError](err)
	failure := &transferError{err: err, dial: ok && op.Op == "dial"}
	if failure.dial {
		r.conn.fail(failure)
	}
	return nil, token, failure
}

// joined derives a context that also ends with the connection.
func (r *remote) joined(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.ctx, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// notify posts what has no answer. The server's complaints go to the log.
func (r *remote) notify(ctx context.Context, msg jsonrpc.Message, data []byte) {
	ctx, cancel := r.joined(ctx)
	defer cancel()
	if !r.access.Asks() {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, noticeTimeout)
		defer stop()
	}
	resp, err := r.post(ctx, r.url, data, r.standardHeaders(ctx, msg))
	if err != nil {
		r.conn.log.Debug("a message wasn't delivered", "error", err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		r.conn.log.Debug("a message wasn't accepted", "error", r.rejected(resp))
		return
	}
	io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
}

// call posts a request and sees to its answer.
func (r *remote) call(ctx context.Context, req *jsonrpc.Request, data []byte) {
	id, ok := req.ID.Raw().(int64)
	if !ok {
		r.conn.log.Error("a request whose id isn't a number", "method", req.Method)
		return
	}
	ctx, cancel := r.joined(ctx)
	defer cancel()
	if req.Method == "tools/call" {
		r.awaitStream(ctx)
	}
	for resumes := 0; ; resumes++ {
		began := time.Now()
		err := r.exchange(ctx, req, id, data)
		if err == nil {
			return
		}
		if access, ok := errors.AsType[*accessError](err); ok {
			r.deny(req.Method, access)
		}
		// A subscription isn't answered before it ends. If its stream breaks,
		// it is made again.
		if req.Method != "subscriptions/listen" || !errors.Is(err, errNoAnswer) || resumes >= maxResumes {
			r.conn.refuse(id, err)
			return
		}
		if time.Since(began) > maxRetryDelay {
			resumes = 0
		}
		if !pause(ctx, time.Second<<resumes) {
			return
		}
		r.missed()
	}
}

// deny takes note that a request of the greeting was denied. Some servers want a
// login for what they don't know, but not for initialize, which comes next. A
// login that has failed isn't tried again for that.
func (r *remote) deny(method string, err *accessError) {
	switch {
	case method != methodDiscover && method != "initialize":
	case !wantsLogin(err):
		r.conn.fail(err)
	case method == methodDiscover:
		r.mu.Lock()
		r.denied = err
		r.mu.Unlock()
	}
}

// refusal returns why server/discover was denied, or nil.
func (r *remote) refusal() *accessError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied
}

// errNoAnswer says that a stream ended without the answer that it was for.
var errNoAnswer = errors.New("the answer broke off")

// exchange posts a request once. It returns nil if there was an answer to it.
func (r *remote) exchange(ctx context.Context, req *jsonrpc.Request, id int64, data []byte) error {
	set := r.standardHeaders(ctx, req)
	r.mu.Lock()
	session := r.session
	r.mu.Unlock()
	resp, err := r.post(ctx, r.url, data, set)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound && session != "" {
		if raw, ok := ctx.Value(captureKey{}).(*capture); ok {
			raw.unseen.Store(true)
		}
		r.conn.fail(errSessionEnded)
		return errSessionEnded
	}
	if resp.StatusCode/100 != 2 {
		return r.rejected(resp)
	}
	if req.Method == "initialize" {
		r.greeted(resp.Header.Get("Mcp-Session-Id"), "")
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		return r.follow(ctx, req, id, resp)
	case "application/json":
	default:
		if kind == "" {
			kind = "no content type"
		}
		return &statusError{code: resp.StatusCode, hint: "but with " + kind + " where JSON or events were expected; is the URL that of an MCP server?"}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(r.limit)+1))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &transferError{err: err}
	case len(body) > r.limit:
		return errTooLarge
	}
	// Version 2025-03-26 has batches.
	batch := []json.RawMessage{body}
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' {
		if err := json.Unmarshal(trimmed, &batch); err != nil {
			return fmt.Errorf("the answer can't be decoded: %w", err)
		}
	}
	answered := false
	for _, text := range batch {
		answered = r.arrived(req, id, text) || answered
	}
	if !answered {
		return errNoAnswer
	}
	return nil
}

// arrived hands on a message. It reports whether the message answers the
// request id.
func (r *remote) arrived(req *jsonrpc.Request, id int64, text []byte) bool {
	if req != nil && req.Method == "initialize" {
		var hello struct {
			Result struct {
				ProtocolVersion string `json:"protocolVersion"`
			} `json:"result"`
		}
		// Before the answer is handed on: what follows it needs the version.
		if json.Unmarshal(text, &hello) == nil {
			r.greeted("", hello.Result.ProtocolVersion)
		}
	}
	return r.conn.accept(text, id) == id && req != nil
}

// greeted takes note of what the answer to initialize says.
func (r *remote) greeted(session, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if session != "" && len(session) <= 4<<10 {
		r.session = session
	}
	if validHeader("v", version) && len(version) < 100 && version != "" {
		r.version = version
	}
}

// rejected returns the error that an answer without success stands for.
func (r *remote) rejected(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	var answer struct {
		Error *jsonrpc.Error `json:"error"`
	}
	err := guarded(func() error { return json.Unmarshal(body, &answer) })
	if err == nil && answer.Error != nil && (answer.Error.Code != 0 || answer.Error.Message != "") {
		return answer.Error
	}
	out := &statusError{code: resp.StatusCode, hint: busyHint(resp)}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/plain" {
		out.body, _, _ = strings.Cut(strings.TrimSpace(printable(string(body[:min(len(body), 200)]))), "\n")
	}
	return out
}

// follow reads the stream that answers a request. If it breaks off and the
// server can resume it, it does.
func (r *remote) follow(ctx context.Context, req *jsonrpc.Request, id int64, resp *http.Response) error {
	at := streamPosition{retry: time.Second}
	for resumes := 0; ; resumes++ {
		before := at.last
		answered, err := r.read(resp.Body, req, id, &at)
		resp.Body.Close()
		switch {
		case answered:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case at.last == "":
			return fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		if at.last != before {
			resumes = 0
		}
		for {
			if resumes >= maxResumes {
				return fmt.Errorf("%w, and it couldn't be resumed", errNoAnswer)
			}
			if !pause(ctx, at.retry) {
				return context.Cause(ctx)
			}
			if resp, err = r.openStream(ctx, at.last); err == nil {
				break
			}
			if _, ok := errors.AsType[*statusError](err); ok || ctx.Err() != nil {
				return err
			}
			resumes++
		}
	}
}

// A streamPosition is where a stream that broke off is to be taken up again.
type streamPosition struct {
	last  string // id of the last event; empty if there is none
	retry time.Duration
}

// read hands on the messages of a stream, until one answers the request or the
// stream ends. Without a request it reads on to the end.
func (r *remote) read(body io.Reader, req *jsonrpc.Request, id int64, at *streamPosition) (answered bool, err error) {
	events := newEventReader(body, r.limit)
	for {
		e, err := events.next()
		if err != nil {
			return false, err
		}
		if e.hasID {
			at.last = e.id
		}
		if e.retry > 0 {
			at.retry = min(e.retry, maxRetryDelay)
		}
		switch {
		case e.name != "" && e.name != "message":
		case e.tooLong:
			r.conn.log.Warn("dropped a message that is too long", "limit", r.limit, "id", e.answers)
			r.conn.refuse(e.answers, errTooLarge)
			if req != nil && e.answers == id {
				return true, nil
			}
		case len(e.data) == 0: // it only has an id
		case r.arrived(req, id, e.data):
			return true, nil
		}
	}
}

// openStream opens a stream of events by GET; last is the id of the last event
// that has arrived, or empty.
func (r *remote) openStream(ctx context.Context, last string) (*http.Response, error) {
	set := map[string]string{"Accept": "text/event-stream"}
	if last != "" {
		if !validHeader("id", last) {
			return nil, &statusError{code: http.StatusBadRequest, hint: "the id of its last event can't be sent back"}
		}
		set["Last-Event-ID"] = last
	}
	resp, err := r.do(ctx, http.MethodGet, nil, set)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode/100 != 2 || kind != "text/event-stream" {
		resp.Body.Close()
		if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
			return nil, &transferError{err: &statusError{code: resp.StatusCode}}
		}
		return nil, &statusError{code: resp.StatusCode}
	}
	return resp, nil
}

// awaitStream waits until the server's own stream is open, or for a moment. Some
// servers ask what they want to know for a call on that stream, and what they
// send before it is open is lost: the call would wait for ever.
func (r *remote) awaitStream(ctx context.Context) {
	r.mu.Lock()
	opening := r.opening
	r.mu.Unlock()
	if opening == nil {
		return
	}
	timer := time.NewTimer(openPatience)
	defer timer.Stop()
	select {
	case <-opening:
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	r.mu.Lock()
	r.opening = nil
	r.mu.Unlock()
}

// listen follows the stream on which the server may send what answers no
// request. Most servers have none. It closes opened when it has been tried to
// open it.
func (r *remote) listen(opened chan<- struct{}) {
	at := streamPosition{retry: time.Second}
	for attempts := 0; attempts < maxResumes; attempts++ {
		began, before := time.Now(), at.last
		resp, err := r.openStream(r.ctx, at.last)
		if opened != nil {
			close(opened)
			opened = nil
		}
		if err == nil {
			if attempts > 0 && at.last == "" {
				r.missed()
			}
			r.read(resp.Body, nil, 0, &at)
			resp.Body.Close()
		}
		var status *statusError
		var transfer *transferError
		if errors.As(err, &status) && !errors.As(err, &transfer) {
			r.conn.log.Debug("it has no stream of its own", "status", status.code)
			return
		}
		if at.last != before || err == nil && time.Since(began) > maxRetryDelay {
			attempts = 0
		}
		if !pause(r.ctx, at.retry<<attempts) {
			return
		}
	}
	r.conn.log.Debug("gave up following the server's own stream")
}

// missed acts on what may have been sent while nobody listened.
func (r *remote) missed() {
	r.conn.deliver(&jsonrpc.Request{Method: "notifications/tools/list_changed"})
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(min(d, maxRetryDelay))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// standardHeaders returns the headers of a POST: what answers are understood,
// and what repeats the message for who routes it without reading it
// (https://modelcontextprotocol.io/specification/draft/basic/transports).
func (r *remote) standardHeaders(ctx context.Context, msg jsonrpc.Message) map[string]string {
	set := map[string]string{"Accept": "application/json, text/event-stream"}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return set
	}
	var params struct {
		Meta      map[string]json.RawMessage `json:"_meta"`
		Name      string                     `json:"name"`
		Arguments json.RawMessage            `json:"arguments"`
	}
	json.Unmarshal(req.Params, &params) // what isn't there isn't set
	var version string
	if json.Unmarshal(params.Meta[mcp.MetaKeyProtocolVersion], &version) == nil && version != "" {
		set["Mcp-Protocol-Version"] = version
	}
	if version < standardHeadersVersion {
		return set
	}
	set["Mcp-Method"] = req.Method
	if req.Method == "tools/call" {
		set["Mcp-Name"] = params.Name // as it is, as servers compare it
		if !validHeader("Mcp-Name", params.Name) {
			set["Mcp-Name"] = headerText(params.Name)
		}
		if schema, ok := ctx.Value(schemaKey{}).(json.RawMessage); ok {
			paramHeaders(set, schema, params.Arguments)
		}
	}
	return set
}
