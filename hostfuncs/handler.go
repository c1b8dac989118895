package hostfuncs

import (
	"context"
	"encoding/json"
)

// A Request is what a guest asks for.
type Request struct {
	Op          string          // 1 to 128 bytes of valid UTF-8, chosen by the guest
	Params      json.RawMessage // a JSON object, {} if the guest sent none
	Attachments [][]byte        // copies of guest memory; the handler owns them
}

// A Response is the answer to a [Request]. The handler must not change it, or what it refers to, after it has returned.
type Response struct {
	Value       json.RawMessage // one JSON text, which is not checked; empty means null
	Attachments [][]byte        // what Value refers to by index
}

// A Handler answers the requests of guests.
//
// Handle is called in a goroutine of its own for each request, with a context that ends when the guest cancels the call
// or its run ends. It must return soon after that: [Instance.End] waits for it. An [*Error] that it returns, or wraps
// (see [errors.As]), reaches the guest as it is; any other error as one of the kind "HostError" with its text. A panic is
// reported to the guest as a HostError and to [Options.Panicked].
type Handler interface {
	Handle(ctx context.Context, req Request) (Response, error)
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, req Request) (Response, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, req Request) (Response, error) { return f(ctx, req) }

// The kinds of error that this package itself answers with.
const (
	// KindHostError is the kind of a handler's errors that aren't an [*Error], and of its panics.
	KindHostError = "HostError"
	// KindLimitExceeded is the kind for a response above [Options.MaxResponse] or [Options.MaxHeld]. Its data is
	// {"size": bytes, "limit": bytes}.
	KindLimitExceeded = "LimitExceeded"
	// KindUnsupported is the kind of every answer where there is no handler.
	KindUnsupported = "Unsupported"
)

// An Error is an error that the guest raises.
type Error struct {
	Kind    string // which exception; empty means [KindHostError]
	Message string // its text
	Data    any    // details for the guest's code, encoded as JSON; nil means null
}

// Error returns the kind and the message.
func (e *Error) Error() string {
	if e.Kind == "" {
		return e.Message
	}
	return e.Kind + ": " + e.Message
}
