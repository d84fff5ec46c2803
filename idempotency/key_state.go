package idempotency

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// KeyState is a key as it stands, for whoever shows it. It grants nothing: by
// the time it is shown it may be old.
type KeyState struct {
	Scope         string
	Key           Key
	Operation     string
	Fingerprint   Fingerprint
	Status        Status
	RecoveryPoint string
	// Owner is the token of the last claim, and Instance the process that made
	// it.
	Owner    string
	Instance string
	// Attempt counts the claims, Takeovers those since the last clean one, and
	// CompleterTries those by the completer.
	Attempt        int
	Takeovers      int
	CompleterTries int
	// LeaseLeft is what is left of the lease, by the database's clock: negative
	// once it has lapsed. Zero unless in progress.
	LeaseLeft time.Duration
	// Response is the stored answer. Its Status is 0 unless completed.
	Response Response
	// Replays counts those in the history, 64 at most.
	Replays int
	// CreatedAt is when the key was first claimed, CompletedAt its last end,
	// zero while in progress, ReadAt when it was read: the database's clock.
	CreatedAt   time.Time
	CompletedAt time.Time
	ReadAt      time.Time
}

// MaxReplays is how many replays of a key its history keeps.
const MaxReplays = replaysPerKey

// Keys lists a scope's newest keys, newest first, at most limit. It returns an
// error of the database only.
func (l *Ledger) Keys(ctx context.Context, scope string, limit int) ([]KeyState, error) {
	return l.KeysOf(ctx, limit, scope)
}

// KeysOf is Keys for several scopes in one statement, at most limit of each.
func (l *Ledger) KeysOf(ctx context.Context, limit int, scopes ...string) ([]KeyState, error) {
	if len(scopes) == 0 {
		return nil, nil
	}
	rows, _ := l.pool.Query(ctx, `
		SELECT k.scope, k.key, k.operation, k.request_hash, k.status, k.recovery_point, k.owner, coalesce(h.instance, ''),
		       k.attempt, k.takeovers, k.completer_tries,
		       coalesce(extract(epoch FROM k.lease_until - clock_timestamp()), 0)::float8,
		       coalesce(k.response_status, 0), coalesce(k.response_type, ''), k.response_body,
		       h.replays, k.created_at, k.completed_at, clock_timestamp()
		  FROM unnest($1::text[]) WITH ORDINALITY AS wanted (scope, nth)
		 CROSS JOIN LATERAL (
			SELECT * FROM idempotency_keys WHERE scope = wanted.scope ORDER BY created_at DESC, key LIMIT $2) AS k
		 CROSS JOIN LATERAL (
			SELECT count(*) FILTER (WHERE what = 'replayed') AS replays,
			       max(instance) FILTER (WHERE owner = k.owner AND what IN ('claimed', 'retaken', 'taken_over')) AS instance
			  FROM key_history WHERE scope = k.scope AND key = k.key) AS h
		 ORDER BY wanted.nth, k.created_at DESC, k.key`, scopes, limit)
	list, err := pgx.CollectRows(rows, scanKeyState)
	if err != nil {
		return nil, fmt.Errorf("listing keys: %w", err)
	}
	return list, nil
}

func scanKeyState(from pgx.CollectableRow) (k KeyState, err error) {
	var (
		hash        []byte
		left        float64
		completedAt *time.Time
	)
	err = from.Scan(&k.Scope, &k.Key, &k.Operation, &hash, &k.Status, &k.RecoveryPoint, &k.Owner, &k.Instance,
		&k.Attempt, &k.Takeovers, &k.CompleterTries, &left,
		&k.Response.Status, &k.Response.Type, &k.Response.Body, &k.Replays, &k.CreatedAt, &completedAt, &k.ReadAt)
	if err != nil {
		return KeyState{}, err
	}
	copy(k.Fingerprint[:], hash) // 32 bytes, by a CHECK
	k.LeaseLeft = time.Duration(left * float64(time.Second))
	if completedAt != nil {
		k.CompletedAt = *completedAt
	}
	return k, nil
}

// Marks gives for each scope a text that is another one once something has
// happened to a key of it: what a poller asks again and again, in one
// statement, before it reads anything. A lease that runs down is no event. It
// returns an error of the database only.
func (l *Ledger) Marks(ctx context.Context, scopes ...string) (map[string]string, error) {
	if len(scopes) == 0 {
		return nil, nil
	}
	rows, _ := l.pool.Query(ctx, `
		SELECT scope, concat_ws('-',
			(SELECT coalesce(max(id), 0) FROM key_history h WHERE h.scope = wanted.scope),
			(SELECT count(*) FROM idempotency_keys k WHERE k.scope = wanted.scope),
			(SELECT coalesce(sum(completer_tries), 0) FROM idempotency_keys k WHERE k.scope = wanted.scope))
		  FROM unnest($1::text[]) AS wanted (scope)`, scopes)
	marks := make(map[string]string, len(scopes))
	var scope, mark string
	if _, err := pgx.ForEachRow(rows, []any{&scope, &mark}, func() error { marks[scope] = mark; return nil }); err != nil {
		return nil, fmt.Errorf("looking for changes: %w", err)
	}
	return marks, nil
}
