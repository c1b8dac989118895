package hostfuncs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// maxOp bounds the name of an operation, since it is repeated in messages and logs.
const maxOp = 128

// parseRequest decodes a request frame, whose parts the result aliases.
//
// It takes the header apart by hand. encoding/json would need several times as long, a large part of the time of a call,
// would copy the parameters, which may be megabytes, and would take "OP" for "op".
func parseRequest(p []byte) (Request, error) {
	f, err := ParseFrame(p)
	if err != nil {
		return Request{}, err
	}
	req := Request{Attachments: f.Attachments}
	err = eachMember(f.Header, func(key, value []byte) error {
		switch string(key) {
		case `"op"`:
			if req.Op != "" {
				return errors.New("op is there twice")
			}
			return unquote(value, &req.Op)
		case `"params"`:
			if req.Params != nil {
				return errors.New("params is there twice")
			}
			req.Params = value
		}
		return nil
	})
	switch {
	case err != nil:
		return Request{}, fmt.Errorf("request header: %w", err)
	case req.Op == "" || len(req.Op) > maxOp:
		return Request{}, fmt.Errorf("request header: op has %d bytes, not 1 to %d", len(req.Op), maxOp)
	case req.Params == nil || string(req.Params) == "null":
		req.Params = json.RawMessage("{}")
	case req.Params[0] != '{':
		return Request{}, errors.New("request header: params is not an object")
	}
	return req, nil
}

// unquote decodes a JSON string.
func unquote(value []byte, s *string) error {
	if value[0] == '"' && !bytes.ContainsRune(value, '\\') {
		*s = string(value[1 : len(value)-1]) // what has no escapes stands for itself
		return nil
	}
	return json.Unmarshal(value, s)
}

// eachMember calls fn with each member of the JSON object text, until fn fails. The key comes in its quotes and with its
// escapes. The text must be valid JSON, of any kind: a text that isn't an object is an error.
func eachMember(text []byte, fn func(key, value []byte) error) error {
	text = bytes.TrimLeft(text, jsonSpace)
	if text[0] != '{' {
		return errors.New("not an object")
	}
	for {
		text = bytes.TrimLeft(text[1:], jsonSpace) // past '{' or ','
		if text[0] == '}' {
			return nil // only an empty object gets here
		}
		key := text[:valueLen(text)]
		text = bytes.TrimLeft(text[len(key):], jsonSpace)
		text = bytes.TrimLeft(text[1:], jsonSpace) // past ':'
		value := text[:valueLen(text)]
		if err := fn(key, value); err != nil {
			return err
		}
		text = bytes.TrimLeft(text[len(value):], jsonSpace)
		if text[0] == '}' {
			return nil
		}
	}
}

const jsonSpace = " \t\r\n"

// valueLen is the length of the value at the start of text, which is the rest of a valid JSON object.
func valueLen(text []byte) int {
	switch text[0] {
	case '"':
		return stringLen(text)
	case '{', '[':
		depth := 0
		for i := 0; ; i++ {
			switch text[i] {
			case '"':
				i += stringLen(text[i:]) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	default: // a number or a literal
		return bytes.IndexAny(text, ",}"+jsonSpace)
	}
}

// stringLen is the length of the string at the start of text, the rest of valid JSON, with its quotes.
func stringLen(text []byte) int {
	for i := 1; ; i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
}
