package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"codeexec/hostfuncs"
	"codeexec/memory"
)

// The kinds of error that only operations on memory have, beside [kindLimitExceeded] and [kindMCPError].
const (
	kindMemoryCorrupted = "MemoryCorrupted"
	kindValueError      = "ValueError" // the exception of Python's own
)

// memoryParams are the parameters of the operations memory.*; each uses some of them. Values stay JSON texts,
// so that a number keeps its digits.
type memoryParams struct {
	Key       string          `json:"key"`
	Prefix    string          `json:"prefix"`
	Value     json.RawMessage `json:"value"`
	Metadata  json.RawMessage `json:"metadata"` // absent: as they are
	Revision  string          `json:"revision"`
	Conflicts int             `json:"conflicts"`
}

// memoryRecord is the answer to memory.get.
type memoryRecord struct {
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value"`
	Metadata json.RawMessage `json:"metadata"`
	Created  float64         `json:"created_at"` // seconds since 1970
	Updated  float64         `json:"updated_at"`
}

// memoryInfo is an item of the answer to memory.list: of a record without its value.
type memoryInfo struct {
	Key      string          `json:"key"`
	Metadata json.RawMessage `json:"metadata"`
	Created  float64         `json:"created_at"` // seconds since 1970
	Updated  float64         `json:"updated_at"`
	Size     int             `json:"size"` // of the value, in bytes
}

// damagedInfo is an item of the answer to memory.list: of a record that can't be read.
type damagedInfo struct {
	Key   string `json:"key"`
	Error string `json:"error"`
}

// memoryBase is the answer to memory.attempt: what an update begins with. Where there is no record, it has no
// value, and its revision is empty.
type memoryBase struct {
	Value    json.RawMessage `json:"value,omitempty"`
	Revision string          `json:"revision"`
}

// useMemory answers the operations memory.*, see package [memory] for the protocol of an update.
func (h *guestHandler) useMemory(ctx context.Context, op string, params json.RawMessage) (hostfuncs.Response, error) {
	if h.memory == nil {
		return hostfuncs.Response{}, &hostfuncs.Error{
			Kind:    kindMCPError,
			Message: "nothing can be kept in memory: codeexec has no state directory; set CODEEXEC_STATE_DIR to a directory that can be written",
		}
	}
	var p memoryParams
	if err := json.Unmarshal(params, &p); err != nil {
		return hostfuncs.Response{}, fmt.Errorf("%s: %w", op, err)
	}
	p.Value, p.Metadata = unescaped(p.Value), unescaped(p.Metadata)
	answer, err := h.memoryAnswer(ctx, op, p)
	if err != nil {
		return hostfuncs.Response{}, memoryError(ctx, err)
	}
	return respond(answer)
}

func (h *guestHandler) memoryAnswer(ctx context.Context, op string, p memoryParams) (any, error) {
	switch op {
	case "memory.get":
		rec, err := h.memory.Get(ctx, p.Key)
		if errors.Is(err, memory.ErrNotFound) {
			return nil, nil
		}
		return memoryRecord{rec.Key, rec.Value, rec.Metadata, epoch(rec.Created), epoch(rec.Updated)}, err
	case "memory.exists":
		_, err := h.memory.Get(ctx, p.Key)
		if _, damaged := errors.AsType[*memory.DamagedError](err); damaged {
			return true, nil
		}
		if errors.Is(err, memory.ErrNotFound) {
			return false, nil
		}
		return true, err
	case "memory.attempt":
		rec, err := memory.Attempt(ctx, h.memory, p.Key, p.Conflicts)
		return memoryBase{rec.Value, rec.Revision}, err
	case "memory.commit":
		_, err := memory.Commit(ctx, h.memory, p.Key, p.Revision, p.Conflicts, p.Value)
		if errors.Is(err, memory.ErrConflict) {
			return false, nil
		}
		return true, err
	case "memory.save":
		_, err := memory.Save(ctx, h.memory, p.Key, p.Value, p.Metadata)
		return nil, err
	case "memory.delete":
		err := h.memory.Delete(ctx, p.Key)
		if errors.Is(err, memory.ErrNotFound) {
			return false, nil
		}
		return true, err
	case "memory.list":
		return h.listMemory(ctx, p.Prefix)
	}
	return nil, unsupported(op)
}

func (h *guestHandler) listMemory(ctx context.Context, prefix string) ([]any, error) {
	found, err := h.memory.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	list := make([]any, 0, len(found))
	for _, info := range found {
		if info.Err != nil {
			list = append(list, damagedInfo{info.Key, info.Err.Error()})
			continue
		}
		list = append(list, memoryInfo{info.Key, info.Metadata, epoch(info.Created), epoch(info.Updated), info.Size})
	}
	return list, nil
}

// unescaped returns a JSON text with the characters themselves in place of escapes such as \u00fc. The guest sends
// ASCII, and people read the files. Control characters and halves of surrogate pairs stay escaped.
func unescaped(text json.RawMessage) json.RawMessage {
	if !bytes.Contains(text, []byte(`\u`)) {
		return text
	}
	out := make(json.RawMessage, 0, len(text))
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			out = append(out, text[i])
			i++
			continue
		}
		r, size := escapedRune(text[i:]), 6
		if utf16.IsSurrogate(r) {
			r, size = utf16.DecodeRune(r, escapedRune(text[i+6:])), 12 // U+FFFD where that is no pair
			if r == utf8.RuneError {
				out = append(out, text[i:i+6]...)
				i += 6
				continue
			}
		}
		if r < 0xa0 { // also where it isn't such an escape, such as \\ and \n
			size = min(2, len(text)-i)
			out = append(out, text[i:i+size]...)
		} else {
			out = utf8.AppendRune(out, r)
		}
		i += size
	}
	return out
}

// escapedRune returns the code unit that an escape at the start of a text stands for, -1 if none is there.
func escapedRune(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// epoch returns a time in seconds since 1970, as it is in the record's file.
func epoch(t time.Time) float64 { return float64(t.Unix()) + float64(t.Nanosecond())/1e9 }

// memoryError turns an error of package memory into what the guest raises.
func memoryError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if own, ok := errors.AsType[*hostfuncs.Error](err); ok {
		return own
	}
	out := &hostfuncs.Error{Kind: kindMCPError, Message: withoutPath(err)}
	if damaged, ok := errors.AsType[*memory.DamagedError](err); ok {
		// The message of the innermost error says everything.
		out.Kind, out.Message = kindMemoryCorrupted, damaged.Error()
	}
	if key, ok := errors.AsType[*memory.KeyError](err); ok {
		out.Kind, out.Message = kindValueError, key.Error()
	}
	if value, ok := errors.AsType[*memory.ValueError](err); ok {
		out.Kind, out.Message = kindValueError, value.Error()
	}
	if limit, ok := errors.AsType[*memory.LimitError](err); ok {
		out.Kind, out.Message = kindLimitExceeded, limit.Error()
	}
	return out
}
