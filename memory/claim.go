package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

const (
	// claimAfter is the number of conflicts after which an update claims the next turn.
	claimAfter = 3

	// A claim holds for claimTime times the number of conflicts.
	claimTime = 25 * time.Millisecond

	// maxClaim is how long a claim can hold; one that seems to hold longer is from another clock.
	maxClaim = MaxConflicts * claimTime

	// claimPatience is how long an attempt steps back for claims at most.
	claimPatience = 2 * maxClaim

	// claimPoll is how often it looks whether it still has to.
	claimPoll = 3 * time.Millisecond
)

// A claim is what an update asks for that has lost several times: that those which have lost less
// often don't read the record before its attempt is over, or its time. It is a courtesy and no lock.
// Any commit is taken at any time, loads never wait, and who makes a claim and then hangs delays the
// other updates of that key once, for no longer than maxClaim.
//
// There is one claim at a time, in a file beside that of the lock. Who reads it while it is written
// may find none, and then isn't as courteous as it could be.
type claim struct {
	key       string // a hash
	conflicts int
	until     time.Time
}

func hashed(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// live reports whether the claim's time isn't over.
func (c claim) live() bool {
	left := time.Until(c.until)
	return 0 < left && left <= maxClaim
}

// holds reports whether an attempt after a number of conflicts steps back for the claim.
func (c claim) holds(key string, conflicts int) bool {
	return c.live() && conflicts <= c.conflicts && c.key == hashed(key)
}

func (l *commitLock) claimPath() string { return l.Path() + ".claim" }

// claimed returns the latest claim.
func (l *commitLock) claimed() claim {
	data, err := os.ReadFile(l.claimPath())
	if err != nil {
		return claim{}
	}
	var c claim
	var until int64
	if _, err := fmt.Sscanf(string(data), "%64s %d %d\n", &c.key, &c.conflicts, &until); err != nil {
		return claim{}
	}
	c.until = time.Unix(0, until)
	return c
}

// claim makes a claim for an attempt. The caller holds the lock.
func (l *commitLock) claim(key string, conflicts int) {
	if old := l.claimed(); old.live() && old.conflicts > conflicts {
		return // another key's
	}
	until := time.Now().Add(time.Duration(conflicts) * claimTime)
	os.WriteFile(l.claimPath(), fmt.Appendf(nil, "%s %d %d\n", hashed(key), conflicts, until.UnixNano()), 0o600)
}

// getInTurn is Get for an attempt after a number of conflicts.
func (d *Dir) getInTurn(ctx context.Context, key string, conflicts int) (Record, error) {
	if conflicts < claimAfter {
		if err := backOff(ctx, conflicts); err != nil {
			return Record{}, err
		}
	}
	patience := time.Now().Add(claimPatience)
	for {
		stepBack := func() bool { return d.lock.claimed().holds(key, conflicts) && time.Now().Before(patience) }
		if stepBack() {
			if err := sleep(ctx, claimPoll+rand.N(claimPoll)); err != nil {
				return Record{}, err
			}
			continue
		}
		if conflicts <= 0 {
			return d.Get(ctx, key)
		}
		// Under the lock: during a commit one would read what is about to be replaced.
		release, err := d.lock.Acquire(ctx)
		if err != nil {
			return Record{}, err
		}
		if stepBack() {
			release()
			continue
		}
		defer release()
		if conflicts >= claimAfter {
			d.lock.claim(key, conflicts)
		}
		return d.Get(ctx, key)
	}
}

// endTurn takes back the claim of an attempt.
func (d *Dir) endTurn(key string, conflicts int) {
	if c := d.lock.claimed(); c.key == hashed(key) && c.conflicts == conflicts {
		os.Remove(d.lock.claimPath())
	}
}
