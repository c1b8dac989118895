package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// A Store is an engine that keeps records. Its operations may be called by any number of goroutines
// and take effect one after another, also between processes that share what is stored: an operation
// that begins after another has returned sees its effect. None of them outlives its context, except
// that a commit which has begun to write is finished.
//
// The interface is what a NATS JetStream key/value bucket and etcd offer, so that such an engine is
// a thin layer; package storetest has the test that it must pass.
type Store interface {
	// Get returns the record of a key. The error is ErrNotFound if there is none, and a
	// *DamagedError if there is one that can't be read.
	Get(ctx context.Context, key string) (Record, error)

	// CompareAndSet stores a record if the one stored for its key still has rec.Revision: "" means
	// that there must be none, and the revision of a *DamagedError that it must still be damaged in
	// the same way. It returns the record with its new revision. The error is ErrConflict if the
	// condition doesn't hold. Whatever the error, either nothing has changed, or rec is stored and
	// may not survive a crash of the machine.
	CompareAndSet(ctx context.Context, rec Record) (Record, error)

	// Delete removes the record of a key, damaged or not. The error is ErrNotFound if there is none.
	Delete(ctx context.Context, key string) error

	// List describes the records whose keys begin with a prefix, in the byte order of their keys.
	// What is damaged is in the list, with Err set.
	List(ctx context.Context, prefix string) ([]Info, error)
}

// A Record is what is stored for a key.
type Record struct {
	// Key is 1 to MaxKey bytes of UTF-8.
	Key string

	// Value and Metadata are JSON texts without white space between the tokens, their numbers and
	// strings spelled as they were saved. Nil metadata is saved as {}.
	Value, Metadata json.RawMessage

	// Created and Updated are the times of the first and the latest save.
	Created, Updated time.Time

	// Revision stands for this state of the record. Any change gives it another. It is never "" for
	// a record that is stored.
	Revision string
}

// An Info describes a record without its value.
type Info struct {
	Key              string
	Metadata         json.RawMessage
	Created, Updated time.Time
	Size             int // length of Record.Value, in bytes
	Revision         string

	// Err says why the record can't be read; but for Key the other fields are then zero. It is a
	// *DamagedError or an error of the operating system.
	Err error
}

const (
	// MaxKey is the length in bytes of the longest key.
	MaxKey = 1024

	// MaxMetadata is the length in bytes of the longest metadata.
	MaxMetadata = 1 << 20

	// DefaultKeys and DefaultValue are the limits where none are set.
	DefaultKeys  = 10_000
	DefaultValue = 16 << 20
)

// Limits bound what a store keeps.
type Limits struct {
	// Keys is the number of records, DefaultKeys if it is 0.
	Keys int

	// Value is the length in bytes of one value, DefaultValue if it is 0.
	Value int
}

// WithDefaults returns the limits with the defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	if l.Keys == 0 {
		l.Keys = DefaultKeys
	}
	if l.Value == 0 {
		l.Value = DefaultValue
	}
	return l
}

// Check returns a record as a store is to keep it: its JSON without white space, its times as precise
// as a float64 of seconds, the present where they are zero or not in the years 1970 to 9999. Or it
// returns a *KeyError, *ValueError or *LimitError. Every Store calls it for each record that it is
// given.
func (l Limits) Check(rec Record) (Record, error) {
	if err := CheckKey(rec.Key); err != nil {
		return Record{}, err
	}
	if rec.Metadata == nil {
		rec.Metadata = json.RawMessage("{}")
	}
	var err error
	if rec.Value, err = checkJSON(rec.Key, "value", rec.Value, l.WithDefaults().Value); err != nil {
		return Record{}, err
	}
	if rec.Metadata, err = checkJSON(rec.Key, "metadata", rec.Metadata, MaxMetadata); err != nil {
		return Record{}, err
	}
	rec.Updated = storable(rec.Updated, time.Now())
	rec.Created = storable(rec.Created, rec.Updated)
	return rec, nil
}

// checkJSON returns a JSON text without white space.
func checkJSON(key, part string, text json.RawMessage, limit int) (json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, &ValueError{Key: key, Part: part, Reason: "not UTF-8"}
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, text); err != nil {
		return nil, &ValueError{Key: key, Part: part, Reason: err.Error()}
	}
	if buf.Len() > limit {
		return nil, &LimitError{Key: key, What: "bytes of the " + part, Limit: limit, Actual: buf.Len()}
	}
	return buf.Bytes(), nil
}

// CheckKey returns a *KeyError for what can't be a key.
func CheckKey(key string) error {
	switch {
	case key == "":
		return &KeyError{Key: key, Reason: "empty"}
	case len(key) > MaxKey:
		return &KeyError{Key: key, Reason: "too long"}
	case !utf8.ValidString(key):
		return &KeyError{Key: key, Reason: "not UTF-8"}
	}
	return nil
}
