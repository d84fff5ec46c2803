package idempotency

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

// What names what happened to a key.
type What string

// What can happen to a key.
const (
	WhatClaimed    What = "claimed"    // by the INSERT
	WhatRetaken    What = "retaken"    // from failed_retryable
	WhatTakenOver  What = "taken_over" // from an owner whose lease had lapsed
	WhatCheckpoint What = "checkpoint" // a recovery point was stored
	WhatUnknown    What = "unknown"    // the owner ended its call without knowing the outcome
	WhatCompleted  What = "completed"  // the answer was stored
	WhatReleased   What = "released"   // nothing happened, the key may be tried again
	WhatReplayed   What = "replayed"   // the stored answer was given
)

// Grants is true for what made its owner the key's owner.
func (w What) Grants() bool { return w == WhatClaimed || w == WhatRetaken || w == WhatTakenOver }

// Ends is true for what an owner writes last.
func (w What) Ends() bool { return w == WhatUnknown || w == WhatCompleted || w == WhatReleased }

// Entry is one thing that happened to a key, as it was written in the
// transaction in which it happened. An owner that was killed has written no end.
type Entry struct {
	Scope    string
	Key      Key
	Attempt  int
	Owner    string // the token of the claim; of a replay, the one that recorded the answer
	Instance string // the process that wrote it
	What     What
	// At is the database's clock when the entry was written: within its
	// transaction, before the COMMIT. Of a replay, when the answer was read.
	At time.Time
	// Status is the HTTP status of the recorded answer and Bytes its length,
	// else 0.
	Status int
	Bytes  int
	// Point is the recovery point of a checkpoint.
	Point string
	// Settled is true if the outcome was learned from elsewhere, such as a
	// webhook, and not by the owner.
	Settled bool

	// The spans that lead to At, the last one first, and the lease that begins
	// there. Zero means not known; a span that is known is at least a
	// microsecond.

	// Took is how long the transaction had run, by the database's clock.
	Took time.Duration
	// Waited is how long the request had waited: of a grant, when its
	// transaction began; of a replay, at At. The process measured it.
	Waited time.Duration
	// Held is how long the owner had known that its claim was committed, when
	// its transaction began: the length of its call. The process measured it.
	Held time.Duration
	// Lease is what a grant gave, or what an unknown outcome left.
	Lease time.Duration
}

// historyLimit bounds what History reads of one key, which can have been taken
// over any number of times. The newest entries are left out.
const historyLimit = 500

// History gives what happened to some keys of a scope, in the order of keys,
// and of each what happened in the order of time. A key that does not exist has
// no history. It is one statement, and returns an error of the database only.
//
// Replays come up to half a second late, and at most 64 of each key are kept.
func (l *Ledger) History(ctx context.Context, scope string, keys ...Key) ([]Entry, error) {
	scopes, names := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		scopes[i], names[i] = scope, string(k)
	}
	return l.history(ctx, scopes, names)
}

// HistoryOf is History for keys of several scopes, in one statement.
func (l *Ledger) HistoryOf(ctx context.Context, keys []KeyState) ([]Entry, error) {
	scopes, names := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		scopes[i], names[i] = k.Scope, string(k.Key)
	}
	return l.history(ctx, scopes, names)
}

func (l *Ledger) history(ctx context.Context, scopes, keys []string) ([]Entry, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	rows, _ := l.pool.Query(ctx, `
		SELECT h.scope, h.key, h.attempt, h.owner, h.instance, h.what, h.at, h.detail
		  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted (scope, key, nth)
		 CROSS JOIN LATERAL (
			SELECT * FROM key_history WHERE scope = wanted.scope AND key = wanted.key ORDER BY id LIMIT $3) AS h
		 ORDER BY wanted.nth, h.at, h.id`, scopes, keys, historyLimit)
	list, err := pgx.CollectRows(rows, scanEntry)
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	return list, nil
}

func scanEntry(from pgx.CollectableRow) (e Entry, err error) {
	var detail []byte
	if err := from.Scan(&e.Scope, &e.Key, &e.Attempt, &e.Owner, &e.Instance, &e.What, &e.At, &detail); err != nil {
		return Entry{}, err
	}
	var d struct {
		Status, Bytes             int
		Point                     string
		Settled                   bool
		Waited, Took, Held, Lease float64 // milliseconds
	}
	if err := json.Unmarshal(detail, &d); err != nil {
		return Entry{}, err
	}
	e.Status, e.Bytes, e.Point, e.Settled = d.Status, d.Bytes, d.Point, d.Settled
	e.Waited, e.Took, e.Held, e.Lease = duration(d.Waited), duration(d.Took), duration(d.Held), duration(d.Lease)
	return e, nil
}

// sinceBegin is how many milliseconds the transaction has run. At least a
// microsecond, since zero means not known.
const sinceBegin = `greatest(extract(epoch FROM clock_timestamp() - transaction_timestamp())::float8 * 1000, 0.001)`

// between gives the milliseconds between two moments for the history, at least a
// microsecond, or 0 if one of them is not known.
func between(from, to time.Time) float64 {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return max(milliseconds(to.Sub(from)), 0.001)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func duration(milliseconds float64) time.Duration {
	if !(milliseconds > 0) || milliseconds > 1e12 {
		return 0
	}
	return time.Duration(math.Round(milliseconds*1000)) * time.Microsecond
}
