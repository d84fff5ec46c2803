package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Transact runs fn in one transaction, again from the start after a
// serialization failure or a deadlock, so fn must bear being run again. It
// returns fn's error after a rollback, or ErrCommitUnknown. It is for those who
// settle what a key's owner began: they lock the key first, by LockKey.
func (l *Ledger) Transact(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return l.transact(ctx, 0, func(tx *Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return tx.Flush(ctx)
	})
}

// LockKey queues the lock of a key's row for a transaction that is not its
// owner's. It comes before the lock of any business row. The key may be gone:
// then there is nothing to lock and nothing to complete.
func LockKey(tx *Tx, scope string, key Key) {
	tx.Queue(`SELECT 1 FROM idempotency_keys WHERE scope = $1 AND key = $2 FOR UPDATE`, scope, string(key))
}

// Settle queues the completion of a key by somebody who learned the outcome
// from elsewhere, such as a webhook. A client that retries then gets a replay at
// once, and an owner that is still at work finds itself fenced. A completed key
// is left as it is. The caller has locked the key.
func (l *Ledger) Settle(tx *Tx, scope string, key Key, answer Response) {
	tx.Queue(`
		WITH settled AS (
			UPDATE idempotency_keys
			   SET status = 'completed', lease_until = NULL, params = NULL, completed_at = clock_timestamp(),
			       response_status = $3, response_type = $4, response_body = $5
			 WHERE scope = $1 AND key = $2 AND status IN ('in_progress', 'failed_retryable')
			RETURNING scope, key, attempt, owner)
		INSERT INTO key_history (scope, key, attempt, owner, instance, what, detail)
		SELECT scope, key, attempt, owner, $6, 'completed', jsonb_build_object('status', $3::int, 'bytes', octet_length($5::bytea), 'settled', true) FROM settled`,
		scope, string(key), answer.Status, answer.Type, answer.stored(), l.instance)
}

// Schedule says when the completer tries a key: entry n is how long after the
// lease lapsed it tries for the n-th time. After the last one the key waits for
// a person.
type Schedule []time.Duration

func (s Schedule) seconds() []float64 {
	seconds := make([]float64, len(s))
	for i, d := range s {
		seconds[i] = d.Seconds()
	}
	return seconds
}

// Abandoned is a key in progress whose owner has left it.
type Abandoned struct {
	Scope string
	Key   Key
	// Operation is the one it was claimed for.
	Operation string
	// Tries counts the completer's takeovers so far.
	Tries int
	// Lapsed is how long ago the lease lapsed, by the database's clock.
	Lapsed time.Duration
}

// Due lists keys in progress whose lease lapsed so long ago that the schedule
// lets the completer try them now, longest first. It locks nothing: TakeOver
// decides who gets one.
func (l *Ledger) Due(ctx context.Context, schedule Schedule, limit int) ([]Abandoned, error) {
	return l.abandoned(ctx, `
		completer_tries < cardinality($1::float8[])
		AND lease_until < clock_timestamp() - make_interval(secs => ($1::float8[])[completer_tries + 1])`, schedule, limit)
}

// Stuck lists keys in progress that the completer has given up: they wait for a
// person.
func (l *Ledger) Stuck(ctx context.Context, schedule Schedule, limit int) ([]Abandoned, error) {
	return l.abandoned(ctx, `completer_tries >= cardinality($1::float8[]) AND lease_until < clock_timestamp()`, schedule, limit)
}

func (l *Ledger) abandoned(ctx context.Context, condition string, schedule Schedule, limit int) ([]Abandoned, error) {
	rows, _ := l.pool.Query(ctx, `
		SELECT scope, key, operation, completer_tries, extract(epoch FROM clock_timestamp() - lease_until)::float8
		  FROM idempotency_keys
		 WHERE status = 'in_progress' AND `+condition+`
		 ORDER BY lease_until LIMIT $2`, schedule.seconds(), limit)
	list, err := pgx.CollectRows(rows, func(from pgx.CollectableRow) (a Abandoned, err error) {
		var lapsed float64
		err = from.Scan(&a.Scope, &a.Key, &a.Operation, &a.Tries, &lapsed)
		a.Lapsed = time.Duration(lapsed * float64(time.Second))
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing abandoned keys: %w", err)
	}
	return list, nil
}

// TakeOver claims an abandoned key for the completer, by the same conditional
// UPDATE as a client's takeover, and counts the try. It returns nil without an
// error if somebody else was first.
func (l *Ledger) TakeOver(ctx context.Context, a Abandoned, business Business) (*Claim, error) {
	id := keyID{a.Scope, a.Key}
	found, exists, err := l.read(ctx, id)
	if err != nil || !exists || found.Status != InProgress || !found.Lapsed {
		return nil, err
	}
	req := Request{Scope: a.Scope, Key: a.Key, Operation: found.Operation, Fingerprint: Fingerprint(found.Hash)}
	return l.claim(ctx, req, newOwner(), TakenOver, func(ctx context.Context, tx *Tx, c Claim) error {
		tx.Queue(`
			UPDATE idempotency_keys SET completer_tries = completer_tries + 1
			 WHERE scope = $1 AND key = $2 AND owner = $3`, c.Scope, string(c.Key), c.Owner)
		return business(ctx, tx, c)
	})
}

// ErrNotStuck: no key of that name waits for a person. By AskAgain.
var ErrNotStuck = errors.New("no such key waits for a person")

// AskAgain gives a stuck key back to the completer, from the start of its
// schedule.
func (l *Ledger) AskAgain(ctx context.Context, scope string, key Key) error {
	tag, err := l.pool.Exec(ctx, `
		UPDATE idempotency_keys SET completer_tries = 0
		 WHERE scope = $1 AND key = $2 AND status = 'in_progress'`, scope, string(key))
	if err != nil {
		return fmt.Errorf("giving the key back to the completer: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotStuck
	}
	return nil
}
