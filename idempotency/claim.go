package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// claimTries bounds how often one request runs its INSERT. Losing it and then
// finding no row is a real state, not an impossible one: see ReapOnce, which
// makes rows vanish between the two statements.
const claimTries = 3

// takeoverTries bounds how often one request loses the race for a takeover.
const takeoverTries = 5

// Request is one request under one key.
type Request struct {
	// Scope is whose key it is, usually the account: nobody can collide with,
	// read back or block the key of another scope. 1 to 255 bytes.
	Scope string
	Key   Key
	// Operation is the method, and the path with its parameters.
	Operation   string
	Fingerprint Fingerprint
	// Params are frozen when the key is claimed, given to every later owner as
	// they were, and emptied when the key completes. Optional. No secret and
	// no personal data belong here.
	Params []byte

	// arrived is when the request reached this ledger, for the history.
	arrived time.Time
}

type keyID struct {
	scope string
	key   Key
}

func (r Request) id() keyID { return keyID{r.Scope, r.Key} }

// Claim is the right to run the side effect of a key, for one owner and one
// attempt. Whoever holds it must end it with Record, Release or GiveUp.
type Claim struct {
	Request
	// Origin tells how it was won.
	Origin Origin
	// Owner and Attempt fence every later write: after a takeover they match
	// no row any more.
	Owner   string
	Attempt int
	// Takeovers counts those since the key was last claimed clean.
	Takeovers int
	// Age is how long ago that was, by the database's clock.
	Age time.Duration
	// RecoveryPoint is the last one stored.
	RecoveryPoint string

	// granted is when this process learned that the claim was committed.
	granted time.Time
}

// Clean is true if no earlier owner of this claim can have sent anything whose
// outcome is unknown.
func (c Claim) Clean() bool { return c.Origin != TakenOver }

// Business adds the rows of a claim in the transaction that grants it. It may
// queue its statements: they travel with the ledger's own, which come first in
// the lock order. An error rolls the claim back whole and is returned by Claim.
// It may run more than once, and the run that counts need not be the last: the
// one that follows a COMMIT in doubt finds the key granted to this claim
// already, and none of what it has queued is read. So what a run has read is
// kept until a later one has read it too.
//
// c has its Origin and Owner, but not yet what the row says (Attempt, Takeovers,
// Age, RecoveryPoint, and the frozen Params of an older claim): with everything
// queued, the row is read in the same round trip. Claim returns it whole.
type Business func(ctx context.Context, tx *Tx, c Claim) error

// Claim is the first phase of a remote operation. It returns
//
//   - a claim, if this request may now run the side effect: the key was free,
//     its owner's lease had lapsed, or its last attempt was retryable;
//   - the stored answer, if the request was completed before, or was completed
//     while this call waited for its owner;
//   - *ReusedError if the key belongs to another request, *InProgressError if
//     its owner is still at work, ErrClaimContended, ErrOverloaded, or the
//     error of business. None of these leaves a trace;
//   - ErrCommitUnknown if the database went away during COMMIT and did not come
//     back. The key may be claimed, by nobody who knows: it is free again when
//     its lease lapses.
//
// The fingerprint is compared before the lease, always: another request never
// takes over.
func (l *Ledger) Claim(ctx context.Context, req Request, business Business) (*Claim, *Response, error) {
	owner := newOwner()
	req.arrived = time.Now()
	claims, takeovers, waited := 0, 0, false
	for {
		found, exists, err := l.read(ctx, req.id()) // a fast path; it grants nothing
		if err != nil {
			return nil, nil, unclaimed(fmt.Errorf("reading the key: %w", err))
		}
		if !exists {
			if claims++; claims > claimTries {
				return nil, nil, ErrClaimContended
			}
			claim, err := l.claim(ctx, req, owner, Fresh, business)
			if claim != nil || err != nil {
				return claim, nil, err
			}
			continue // someone else's INSERT was first: read what they are doing
		}
		if !found.sameRequest(req) {
			return nil, nil, found.reused()
		}

		origin := TakenOver
		switch {
		case found.Status == Completed:
			return nil, l.replay(req, found), nil
		case found.Status == FailedRetryable:
			origin = Retaken
		case !found.Lapsed && waited:
			return nil, nil, found.inProgress()
		case !found.Lapsed:
			waited = true
			answer, err := l.wait(ctx, req.id())
			if err != nil {
				return nil, nil, err
			}
			if answer != nil && answer.sameRequest(req) && answer.Status == Completed {
				return nil, l.replay(req, *answer), nil
			}
			continue
		}
		if takeovers++; takeovers > takeoverTries {
			return nil, nil, found.inProgress()
		}
		claim, err := l.claim(ctx, req, owner, origin, business)
		if claim != nil || err != nil {
			return claim, nil, err
		}
		// Someone else took it over first: read what they are doing.
	}
}

// errNotGranted rolls back a claim whose statement won no row.
var errNotGranted = errors.New("not granted")

// claim runs the transaction that grants a claim: the key, then the business
// rows. It returns nil without an error if another request was first.
func (l *Ledger) claim(ctx context.Context, req Request, owner string, origin Origin, business Business) (*Claim, error) {
	inDoubt := false
	for try := 1; ; try++ {
		c := Claim{Request: req, Owner: owner, Origin: origin}
		err := l.transact(ctx, l.acquireWait, func(tx *Tx) error {
			l.queueGrant(tx, &c)
			if business != nil {
				if err := business(ctx, tx, c); err != nil {
					return err
				}
			}
			return tx.Flush(ctx) // nothing is committed before every row count was looked at
		})
		switch {
		case err == nil:
			c.granted = time.Now()
			return &c, nil
		case errors.Is(err, ErrCommitUnknown) && try < claimTries:
			// Repeat the claim with the same owner token: the INSERT waits for
			// the transaction in doubt, as no SELECT does, and so does the
			// UPDATE. If it did commit, the row is found to be ours.
			inDoubt = true
		case errors.Is(err, ErrCommitUnknown):
			return nil, err
		case errors.Is(err, errNotGranted) && inDoubt:
			return l.ours(ctx, c)
		case errors.Is(err, errNotGranted):
			return nil, nil
		case inDoubt && c.Attempt == 0:
			return nil, unresolved(err)
		default: // also after a COMMIT in doubt: the row was granted again, so it did not happen
			return nil, unclaimed(err)
		}
	}
}

// unclaimed is ErrOverloaded for an error that says no more than that the
// database has no time, or went away, before anything was claimed.
func unclaimed(err error) error {
	if isCode(err, lockNotAvailable) || errors.Is(err, errLost) {
		return fmt.Errorf("%w: %w", ErrOverloaded, err)
	}
	return err
}

// ours finds the claim of a COMMIT in doubt by its owner token.
func (l *Ledger) ours(ctx context.Context, c Claim) (*Claim, error) {
	found, exists, err := l.readLocked(ctx, c.id())
	if err != nil {
		return nil, unresolved(err)
	}
	if !exists || found.Owner != c.Owner || found.Status != InProgress {
		return nil, nil
	}
	return l.reload(ctx, c)
}

// reload reads a claim that is known to be held.
func (l *Ledger) reload(ctx context.Context, c Claim) (*Claim, error) {
	conn, err := l.acquire(ctx, 0)
	if err != nil {
		return nil, unresolved(err)
	}
	defer conn.Release()
	err = c.scan(conn.QueryRow(ctx, `
		SELECT attempt, takeovers, extract(epoch FROM clock_timestamp() - claimed_at)::float8, recovery_point, params
		  FROM idempotency_keys WHERE scope = $1 AND key = $2 AND owner = $3 AND status = 'in_progress'`,
		c.Scope, c.Key, c.Owner))
	switch {
	case errors.Is(err, pgx.ErrNoRows): // taken over meanwhile
		return nil, nil
	case err != nil:
		return nil, unresolved(err)
	}
	return &c, nil
}

// returning is read back by every statement that grants a claim.
const returning = ` RETURNING attempt, takeovers, extract(epoch FROM clock_timestamp() - claimed_at)::float8, recovery_point, params`

func (c *Claim) scan(from pgx.Row) error {
	var age float64
	if err := from.Scan(&c.Attempt, &c.Takeovers, &age, &c.RecoveryPoint, &c.Params); err != nil {
		return err
	}
	c.Age = time.Duration(age * float64(time.Second))
	return nil
}

// The three statements that grant a claim. The row count is the answer.
const (
	// The unique index is the referee: the statement waits for a claim that is
	// not committed yet, and then adds no row, or takes its place if it rolled
	// back.
	insertClaim = `
	INSERT INTO idempotency_keys (scope, key, owner, lease_until, operation, request_hash, status, params)
	VALUES ($1, $2, $3, clock_timestamp() + $4::interval, $5, $6, 'in_progress', $7)
	    ON CONFLICT DO NOTHING` + returning

	// Of two that saw the lease lapse, the second finds another lease_until.
	takeOver = `
	UPDATE idempotency_keys
	   SET owner = $3, lease_until = clock_timestamp() + $4::interval, attempt = attempt + 1, takeovers = takeovers + 1
	 WHERE scope = $1 AND key = $2 AND operation = $5 AND request_hash = $6
	   AND status = 'in_progress' AND lease_until < clock_timestamp()` + returning

	retake = `
	UPDATE idempotency_keys
	   SET owner = $3, lease_until = clock_timestamp() + $4::interval, attempt = attempt + 1, takeovers = 0,
	       status = 'in_progress', claimed_at = clock_timestamp(), completed_at = NULL, recovery_point = 'claimed',
	       completer_tries = 0
	 WHERE scope = $1 AND key = $2 AND operation = $5 AND request_hash = $6
	   AND status = 'failed_retryable'` + returning
)

// queueGrant queues the statement of the claim's origin and its history. The
// callback fails with errNotGranted where it won no row.
func (l *Ledger) queueGrant(tx *Tx, c *Claim) {
	args := []any{c.Scope, c.Key, c.Owner, l.lease, c.Operation, c.Fingerprint[:]}
	sql := map[Origin]string{Fresh: insertClaim, TakenOver: takeOver, Retaken: retake}[c.Origin]
	if c.Origin == Fresh {
		args = append(args, c.Params)
	}
	tx.Queue(sql, args...).QueryRow(func(from pgx.Row) error {
		err := c.scan(from)
		if errors.Is(err, pgx.ErrNoRows) {
			return errNotGranted
		}
		return err
	})
	// The attempt is not known before the statement has run, so the history
	// reads it from the row. It writes nothing if the claim was not granted.
	tx.Queue(`
		INSERT INTO key_history (scope, key, attempt, owner, instance, what, detail)
		SELECT scope, key, attempt, owner, $4, $5, jsonb_strip_nulls(jsonb_build_object(
			'waited', nullif($6::float8, 0), 'took', `+sinceBegin+`, 'lease', $7::float8))
		  FROM idempotency_keys
		 WHERE scope = $1 AND key = $2 AND owner = $3`,
		c.Scope, c.Key, c.Owner, l.instance, string(c.Origin), between(c.arrived, tx.opened), milliseconds(l.lease))
}

// reused tells what became of the request that has the key.
func (r row) reused() error {
	return &ReusedError{Status: r.Status, Operation: r.Operation, ResponseStatus: r.Response.Status}
}

// replay gives the stored answer and notes that it was given.
func (l *Ledger) replay(req Request, found row) *Response {
	l.replays.add(req, found)
	answer := found.replay()
	return &answer
}
