package memory

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"
)

// MaxConflicts is the number of conflicts after which an update gives up.
const MaxConflicts = 100

// After its n-th conflict an update waits for a random time below firstWait × 2ⁿ, or maxWait.
const (
	firstWait = 2 * time.Millisecond
	maxWait   = 512 * time.Millisecond
)

// Save stores a value, whatever is stored for its key now. The time of creation is kept, and the
// metadata, too, if metadata is nil. A damaged record is replaced. It returns the new record.
func Save(ctx context.Context, s Store, key string, value, metadata json.RawMessage) (Record, error) {
	return retry(func(conflicts int) (Record, error) {
		base, err := replaceable(key)(attempt(ctx, s, key, conflicts))
		if err != nil {
			return Record{}, err
		}
		return finish(ctx, s, successor(base, value, metadata), conflicts)
	})
}

// Update replaces the value of a record by what fn makes of it, and returns the new record. Where
// there is no record, fn gets one that has only a key. No update is lost: if others commit one while
// fn computes, fn is called again with theirs, until that has happened MaxConflicts times, which is a
// *ContentionError. Nothing is locked while fn runs. An error of fn's is returned as it is.
func Update(ctx context.Context, s Store, key string, fn func(Record) (json.RawMessage, error)) (Record, error) {
	var failure error
	rec, err := retry(func(conflicts int) (Record, error) {
		base, err := Attempt(ctx, s, key, conflicts)
		if err != nil {
			return Record{}, err
		}
		var value json.RawMessage
		if value, failure = fn(base); failure != nil {
			return Record{}, nil
		}
		return finish(ctx, s, successor(base, value, nil), conflicts)
	})
	if failure != nil {
		return Record{}, failure
	}
	return rec, err
}

// retry calls a function with the number of conflicts so far, until it returns something else.
func retry(do func(conflicts int) (Record, error)) (Record, error) {
	for conflicts := 0; ; conflicts++ {
		rec, err := do(conflicts)
		if !errors.Is(err, ErrConflict) {
			return rec, err
		}
	}
}

// Attempt returns the record on which an update, of which a number of attempts have ended with
// ErrConflict, is to base the next, at the first with 0 conflicts; where there is no record, one that
// has only a key. After a conflict it first waits, for as long as it takes to be likely to succeed.
// The error is a *ContentionError if there have been MaxConflicts, a *DamagedError as of Store.Get.
func Attempt(ctx context.Context, s Store, key string, conflicts int) (Record, error) {
	rec, err := attempt(ctx, s, key, conflicts)
	if errors.Is(err, ErrNotFound) {
		return Record{Key: key}, nil
	}
	return rec, err
}

// A store with turns knows what other updates are under way, and lets one that has lost several times
// go before the others.
type turns interface {
	getInTurn(ctx context.Context, key string, conflicts int) (Record, error)
	endTurn(key string, conflicts int)
}

func attempt(ctx context.Context, s Store, key string, conflicts int) (Record, error) {
	if conflicts >= MaxConflicts {
		return Record{}, &ContentionError{Key: key, Conflicts: conflicts}
	}
	if s, ok := s.(turns); ok {
		return s.getInTurn(ctx, key, conflicts)
	}
	if err := backOff(ctx, conflicts); err != nil {
		return Record{}, err
	}
	return s.Get(ctx, key)
}

// finish commits what an attempt has come to.
func finish(ctx context.Context, s Store, rec Record, conflicts int) (Record, error) {
	stored, err := s.CompareAndSet(ctx, rec)
	if s, ok := s.(turns); ok && !errors.Is(err, ErrConflict) {
		s.endTurn(rec.Key, conflicts)
	}
	return stored, err
}

// backOff waits after a number of conflicts.
func backOff(ctx context.Context, conflicts int) error {
	if conflicts <= 0 {
		return nil
	}
	bound := maxWait
	if conflicts < 8 {
		bound = firstWait << conflicts
	}
	return sleep(ctx, rand.N(bound))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Commit ends an attempt of an update that is computed elsewhere: it replaces the value of a record
// that still has a revision ("" where there was none), and returns the new record. The metadata are
// kept. The error is ErrConflict if the record has changed; the update then goes on with another
// Attempt, with one conflict more.
func Commit(ctx context.Context, s Store, key, revision string, conflicts int, value json.RawMessage) (Record, error) {
	base, err := replaceable(key)(s.Get(ctx, key))
	if err != nil {
		return Record{}, err
	}
	if base.Revision != revision {
		return Record{}, ErrConflict
	}
	return finish(ctx, s, successor(base, value, nil), conflicts)
}

// successor returns what is to replace a record, or a first one where base has only a key.
func successor(base Record, value, metadata json.RawMessage) Record {
	rec := base
	rec.Value = value
	rec.Updated = time.Now()
	if rec.Created.IsZero() {
		rec.Created = rec.Updated
	}
	if metadata != nil {
		rec.Metadata = metadata
	}
	return rec
}

// replaceable returns a function that turns the absence or the damage of a record into a base for a
// new one.
func replaceable(key string) func(Record, error) (Record, error) {
	return func(rec Record, err error) (Record, error) {
		var damaged *DamagedError
		switch {
		case errors.Is(err, ErrNotFound):
			return Record{Key: key}, nil
		case errors.As(err, &damaged):
			return Record{Key: key, Revision: damaged.Revision}, nil
		}
		return rec, err
	}
}
