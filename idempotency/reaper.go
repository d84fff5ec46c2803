package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MinRetention is the least that keys must be kept: Stripe keeps its own for 24
// hours, and a key that we forget first would be a new request to us and a
// replay to Stripe.
const MinRetention = 24 * time.Hour

// Reap are the settings of one batch of the reaper.
type Reap struct {
	// Retention is how long a finished key is kept after its last change, at
	// least MinRetention. It must exceed every path that can still retry.
	Retention time.Duration
	// Limit bounds the batch. Optional. Default 500.
	Limit int
	// Keep is an SQL condition on the row k of idempotency_keys that saves the
	// key, such as a business row that is not final. Optional.
	Keep string
}

// ReapResult counts what one batch removed.
type ReapResult struct{ Keys, History int }

// ReapOnce removes one batch of completed and retryable keys, and their
// history, whose last change is older than the retention. It never touches a
// key in progress, waits for nobody (SKIP LOCKED), and may run in any number of
// processes. A key used again afterwards is a new request.
//
// It is why a request that lost its INSERT may find no row: see claimTries.
func (l *Ledger) ReapOnce(ctx context.Context, r Reap) (ReapResult, error) {
	if r.Retention < MinRetention {
		return ReapResult{}, errors.New("idempotency: Reap.Retention is under 24 h")
	}
	if r.Limit <= 0 {
		r.Limit = 500
	}
	keep := "false"
	if r.Keep != "" {
		keep = r.Keep
	}
	var result ReapResult
	err := l.pool.QueryRow(ctx, `
		WITH old AS (
			SELECT scope, key FROM idempotency_keys k
			 WHERE completed_at < clock_timestamp() - $1::interval
			   AND status IN ('completed', 'failed_retryable') AND NOT (`+keep+`)
			 ORDER BY completed_at LIMIT $2
			   FOR UPDATE SKIP LOCKED),
		gone AS (
			DELETE FROM idempotency_keys k USING old
			 WHERE k.scope = old.scope AND k.key = old.key RETURNING k.scope, k.key),
		forgotten AS (
			DELETE FROM key_history h USING gone
			 WHERE h.scope = gone.scope AND h.key = gone.key RETURNING 1)
		SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM forgotten)`,
		r.Retention, r.Limit).Scan(&result.Keys, &result.History)
	if err != nil {
		return ReapResult{}, fmt.Errorf("reaping: %w", err)
	}
	return result, nil
}
