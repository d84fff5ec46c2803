package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// recordTries bounds how often a transaction whose COMMIT was in doubt, and
// which is then found not to have happened, runs again.
const recordTries = 3

// Record is the last phase of an operation with a definitive outcome. In one
// transaction it locks the key's row under the claim's owner and attempt, runs
// write, which adds the business rows and gives the answer, and completes the
// key with it.
//
// If the claim was lost (taken over, or completed by someone else) nothing is
// written, and the answer in the row is returned, as a replay; or
// *InProgressError, if there is none yet. A late owner whom nobody took over
// may still record, however long ago its lease lapsed: a paid result is never
// thrown away.
//
// What write has queued when it returns travels with COMMIT: a statement whose
// row count must be able to fail the whole is flushed by write itself. write may
// run more than once. Its error rolls back and is returned.
func (l *Ledger) Record(ctx context.Context, c Claim, write func(ctx context.Context, tx *Tx) (Response, error)) (Response, error) {
	var answer Response
	committed := func(r row) bool { return r.Status == Completed && r.Response.equal(answer) }
	found, err := l.finish(ctx, c, committed, func(tx *Tx) error {
		var err error
		if answer, err = write(ctx, tx); err != nil {
			return err
		}
		if err := tx.flushFence(ctx); err != nil {
			return err
		}
		queueComplete(tx, c, answer)
		l.queueHistory(tx, c, "completed", answer, 0)
		return nil
	})
	switch {
	case err != nil:
		return Response{}, fmt.Errorf("recording: %w", err)
	case found != nil:
		return l.fenced(c, *found)
	}
	l.watches.wake(c.id(), row{
		Operation: c.Operation, Hash: c.Fingerprint[:], Status: Completed, Owner: c.Owner, Attempt: c.Attempt, Response: answer,
	})
	return answer, nil
}

// Release ends a clean claim whose side effect surely did not happen: the key
// becomes failed_retryable, and the next request with it may try again. write
// frees the business rows in the same transaction.
//
// If the claim was lost, nothing is written and Release answers like Record;
// otherwise it returns nil without an error.
func (l *Ledger) Release(ctx context.Context, c Claim, write func(ctx context.Context, tx *Tx) error) (*Response, error) {
	committed := func(r row) bool { return r.Status == FailedRetryable }
	found, err := l.finish(ctx, c, committed, func(tx *Tx) error {
		if err := write(ctx, tx); err != nil {
			return err
		}
		if err := tx.flushFence(ctx); err != nil {
			return err
		}
		tx.Queue(`
			UPDATE idempotency_keys
			   SET status = 'failed_retryable', lease_until = NULL, completed_at = clock_timestamp()
			 WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress'`,
			c.fence()...)
		l.queueHistory(tx, c, "released", Response{}, 0)
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("releasing: %w", err)
	case found != nil:
		return answered(l.fenced(c, *found))
	}
	l.watches.wake(c.id(), row{Operation: c.Operation, Hash: c.Fingerprint[:], Status: FailedRetryable})
	return nil, nil
}

// GiveUp ends a claim whose outcome is unknown. The key stays in progress, so
// that only a request which asks what became of it can go on, and its lease is
// shortened to two seconds, so that only a dead owner's key waits for the whole
// lease. point is the recovery point to resume from.
//
// If the claim was lost, nothing is written and GiveUp answers like Release.
func (l *Ledger) GiveUp(ctx context.Context, c Claim, point string) (*Response, error) {
	err := l.transact(ctx, 0, func(tx *Tx) error {
		queueFence(tx, c)
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		tx.Queue(`
			UPDATE idempotency_keys
			   SET lease_until = least(lease_until, clock_timestamp() + $5::interval), recovery_point = $6
			 WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress'`,
			append(c.fence(), unknownLease, point)...)
		l.queueHistory(tx, c, "unknown", Response{}, unknownLease)
		return nil
	})
	if errors.Is(err, ErrCommitUnknown) {
		return nil, nil // at worst the key waits for the whole lease
	}
	if errors.Is(err, ErrFenced) {
		switch found, exists, err := l.readLocked(ctx, c.id()); {
		case err != nil:
			return nil, fmt.Errorf("giving up: %w", err)
		case !exists:
			return nil, ErrFenced
		default:
			return answered(l.fenced(c, found))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("giving up: %w", err)
	}
	return nil, nil
}

// answered gives a pointer to answer, or nil with an error.
func answered(answer Response, err error) (*Response, error) {
	if err != nil {
		return nil, err
	}
	return &answer, nil
}

// Checkpoint stores a recovery point, together with the business statements
// that queue adds, in one round trip. Since COMMIT travels with them, no
// statement may rely on the ones before it having found their rows: each must
// begin with Fence and take its first four arguments from Claim.Fenced, and its
// callback must report its row count to the caller instead of failing.
//
// It returns ErrFenced if the claim was lost, in which case no fenced statement
// wrote anything, or ErrCommitUnknown, after which the row decides.
func (l *Ledger) Checkpoint(ctx context.Context, c Claim, point string, queue func(tx *Tx)) error {
	held := false
	err := l.transact(ctx, 0, func(tx *Tx) error {
		held = false
		tx.Queue(`
			UPDATE idempotency_keys SET recovery_point = $5
			 WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress'`,
			append(c.fence(), point)...).Exec(func(tag pgconn.CommandTag) error {
			held = tag.RowsAffected() == 1
			return nil
		})
		tx.Queue(Fence+`
			INSERT INTO key_history (scope, key, attempt, owner, instance, what, detail)
			SELECT $1, $2, $4, $3, $5, 'checkpoint', jsonb_strip_nulls(jsonb_build_object(
				'point', $6::text, 'held', nullif($7::float8, 0), 'took', `+sinceBegin+`)) FROM fence`,
			append(c.fence(), l.instance, point, between(c.granted, tx.opened))...)
		queue(tx)
		return nil
	})
	if err == nil && !held {
		return ErrFenced
	}
	return err
}

// Hold runs fn in a transaction that holds the key's row under the claim: an
// owner's look at, or change of, its business rows between two calls. It
// returns ErrFenced if the claim was lost, fn's error after a rollback, or
// ErrCommitUnknown.
func (l *Ledger) Hold(ctx context.Context, c Claim, fn func(ctx context.Context, tx *Tx) error) error {
	return l.transact(ctx, 0, func(tx *Tx) error {
		queueFence(tx, c)
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return tx.Flush(ctx)
	})
}

// Fence begins a statement that writes only while its claim is held: a WITH
// clause named fence, with one row then and none after a takeover. The first
// four arguments are those of Claim.Fenced.
//
// The lock is what makes it a fence. A statement that only tests the key's row,
// by EXISTS or a join, may wait for a lock on its own row while the claim is
// taken over, and PostgreSQL then looks again at its own row only.
const Fence = `
	WITH fence AS (
		SELECT 1 FROM idempotency_keys
		 WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress'
		   FOR UPDATE)`

// Fenced gives the first four arguments of a statement that begins with Fence,
// and args behind them.
func (c Claim) Fenced(args ...any) []any { return append(c.fence(), args...) }

func (c Claim) fence() []any { return []any{c.Scope, c.Key, c.Owner, c.Attempt} }

// queueFence locks the key's row for the owner, first of all locks. Without the
// status an owner who paused could write its answer over one that a webhook
// completed meanwhile, since nobody took over.
func queueFence(tx *Tx, c Claim) {
	tx.Queue(`
		SELECT 1 FROM idempotency_keys
		 WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress'
		   FOR UPDATE`, c.fence()...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			return ErrFenced
		}
		return nil
	})
}

func queueComplete(tx *Tx, c Claim, answer Response) {
	tx.Queue(`
		UPDATE idempotency_keys
		   SET status = 'completed', lease_until = NULL, params = NULL, completed_at = clock_timestamp(),
		       response_status = $5, response_type = $6, response_body = $7
		 WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress'`,
		append(c.fence(), answer.Status, answer.Type, answer.stored())...)
}

// flushFence sends the fence, unless write has done so: nothing is committed
// before it is known to hold.
func (tx *Tx) flushFence(ctx context.Context) error {
	if tx.begun {
		return nil
	}
	return tx.Flush(ctx)
}

// queueHistory tells how a claim ended: the status and length of the answer, or
// the lease that is left, if there is one.
func (l *Ledger) queueHistory(tx *Tx, c Claim, what string, answer Response, lease time.Duration) {
	tx.Queue(`
		INSERT INTO key_history (scope, key, attempt, owner, instance, what, detail)
		VALUES ($1, $2, $3, $4, $5, $6, jsonb_strip_nulls(jsonb_build_object(
			'status', nullif($7::int, 0), 'bytes', nullif($8::int, 0), 'lease', nullif($9::float8, 0),
			'held', nullif($10::float8, 0), 'took', `+sinceBegin+`)))`,
		c.Scope, c.Key, c.Attempt, c.Owner, l.instance, what, answer.Status, len(answer.Body), milliseconds(lease), between(c.granted, tx.opened))
}

// finish runs the transaction that ends a claim. It returns the row instead if
// the claim was lost. committed tells whether a row that is still the claim's
// is what this transaction makes of it; after a COMMIT in doubt it may also
// have been completed by someone else, whose answer then counts.
func (l *Ledger) finish(ctx context.Context, c Claim, committed func(row) bool, write func(tx *Tx) error) (lost *row, err error) {
	for try := 1; ; try++ {
		err := l.transact(ctx, 0, func(tx *Tx) error {
			queueFence(tx, c)
			return write(tx)
		})
		unknown := errors.Is(err, ErrCommitUnknown)
		if !unknown && !errors.Is(err, ErrFenced) {
			return nil, err
		}
		// Locked: a plain read would see "in progress, mine" while the COMMIT
		// in doubt still runs, and the owner would go on as if nothing was
		// written.
		found, exists, lookErr := l.readLocked(ctx, c.id())
		switch mine := exists && found.Owner == c.Owner && found.Attempt == c.Attempt; {
		case lookErr != nil && unknown:
			return nil, unresolved(lookErr)
		case lookErr != nil:
			return nil, fmt.Errorf("reading who has the key: %w", lookErr)
		case !exists:
			return nil, ErrFenced // the reaper was here: long after any answer of ours
		case unknown && mine && committed(found):
			return nil, nil
		case unknown && mine && found.Status == InProgress && try < recordTries:
			continue // it did not happen
		case unknown && mine && found.Status == InProgress:
			return nil, err
		default:
			return &found, nil
		}
	}
}

// fenced answers from the row in place of an owner who lost the claim.
func (l *Ledger) fenced(c Claim, found row) (Response, error) {
	if found.Status == Completed && found.sameRequest(c.Request) {
		return *l.replay(c.Request, found), nil
	}
	return Response{}, found.inProgress()
}
