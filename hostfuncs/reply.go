package hostfuncs

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A reply is a response frame in pieces: it is put together only in the guest's memory.
type reply struct {
	prefix      string
	body        []byte // the JSON text between prefix and replySuffix
	attachments [][]byte
}

const (
	valuePrefix = `{"value":`
	errorPrefix = `{"error":`
	replySuffix = `}`
)

func (r reply) size() int64 {
	return frameSize(len(r.prefix)+len(r.body)+len(replySuffix), r.attachments)
}

// append appends the encoded frame to dst.
func (r reply) append(dst []byte) []byte {
	return appendFrame(dst, r.attachments, []byte(r.prefix), r.body, []byte(replySuffix))
}

func responseReply(resp Response) reply {
	body := resp.Value
	if len(body) == 0 {
		body = json.RawMessage("null")
	}
	return reply{prefix: valuePrefix, body: body, attachments: resp.Attachments}
}

// errorReply encodes what a handler returned as its error.
func errorReply(err error) reply {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Message: err.Error()}
	}
	return e.reply()
}

func (e *Error) reply() reply {
	wire := struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
		Data    any    `json:"data"`
	}{e.Kind, e.Message, e.Data}
	if wire.Kind == "" {
		wire.Kind = KindHostError
	}
	body, err := json.Marshal(wire)
	if err != nil {
		// The error itself matters more to the guest than its details.
		wire.Data = nil
		wire.Message = fmt.Sprintf("%s (its data can't be encoded: %v)", e.Message, err)
		body, _ = json.Marshal(wire) // strings and nil always encode
	}
	return reply{prefix: errorPrefix, body: body}
}

// limitReply takes the place of a response of size bytes for which limit leaves no room.
func limitReply(size, limit int64, message string) reply {
	return (&Error{
		Kind:    KindLimitExceeded,
		Message: message,
		Data:    map[string]int64{"size": size, "limit": limit},
	}).reply()
}
