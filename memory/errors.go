package memory

import (
	"errors"
	"fmt"

	"codeexec/memory/filelock"
)

// ErrNotFound means that there is no record for a key.
var ErrNotFound = errors.New("there is no such record")

// ErrConflict means that a record is no longer the one that a change was based on.
var ErrConflict = errors.New("the record has been changed meanwhile")

// A DamagedError reports a record that is there but can't be read.
type DamagedError struct {
	Key    string
	File   string // the file's name in its directory, or what the engine has instead
	Reason string

	// Revision allows a CompareAndSet to replace the damaged record.
	Revision string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the record of memory %q is damaged: %s: %s; save or delete it to go on", abridge(e.Key), e.File, e.Reason)
}

// A KeyError reports what can't be a key.
type KeyError struct {
	Key    string
	Reason string
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("memory key %q is %s: a key has 1 to %d bytes of UTF-8", abridge(e.Key), e.Reason, MaxKey)
}

// A ValueError reports a value or metadata that isn't JSON.
type ValueError struct {
	Key    string
	Part   string // "value" or "metadata"
	Reason string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("the %s of memory %q is not JSON: %s", e.Part, abridge(e.Key), e.Reason)
}

// A LimitError reports what is larger than allowed.
type LimitError struct {
	Key           string // "" where it isn't about one record
	What          string // what is counted, such as "bytes of the value"
	Limit, Actual int
}

func (e *LimitError) Error() string {
	subject := "memory"
	if e.Key != "" {
		subject = fmt.Sprintf("memory %q", abridge(e.Key))
	}
	return fmt.Sprintf("%s: %d %s, the limit is %d", subject, e.Actual, e.What, e.Limit)
}

// A ContentionError reports an update that others came before too many times.
type ContentionError struct {
	Key       string
	Conflicts int
}

func (e *ContentionError) Error() string {
	return fmt.Sprintf("memory %q was changed by others during each of %d attempts to update it; try again later", abridge(e.Key), e.Conflicts)
}

// A LockError reports that another process has been committing for too long.
type LockError = filelock.HeldError

// abridge shortens a key for a message.
func abridge(key string) string {
	const most = 80
	if len(key) <= most {
		return key
	}
	return key[:most] + "…"
}
