package idempotency

import (
	"bytes"
	"context"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

// row is what a request that did not claim the key reads of it. The times were
// judged by the database's clock, the only one that counts.
type row struct {
	Operation     string
	Hash          []byte
	Status        Status
	Owner         string
	Attempt       int
	Lapsed        bool
	LeaseLeft     time.Duration
	Response      Response
	RecoveryPoint string
}

const selectRow = `
	SELECT operation, request_hash, status, owner, attempt, recovery_point,
	       coalesce(lease_until < clock_timestamp(), false),
	       coalesce(extract(epoch FROM lease_until - clock_timestamp()), 0)::float8,
	       coalesce(response_status, 0), coalesce(response_type, ''), response_body
	  FROM idempotency_keys
	 WHERE scope = $1 AND key = $2`

func (r *row) scan(from pgx.Row) error {
	var left float64
	err := from.Scan(&r.Operation, &r.Hash, &r.Status, &r.Owner, &r.Attempt, &r.RecoveryPoint,
		&r.Lapsed, &left, &r.Response.Status, &r.Response.Type, &r.Response.Body)
	r.LeaseLeft = time.Duration(left * float64(time.Second))
	return err
}

// read looks the key up, by one statement. It grants nothing: what it saw may
// be gone by the time it returns.
func (l *Ledger) read(ctx context.Context, id keyID) (r row, found bool, err error) {
	conn, err := l.acquire(ctx, l.acquireWait)
	if err != nil {
		return row{}, false, err
	}
	defer conn.Release()
	r, found, err = foundRow(conn.QueryRow(ctx, selectRow, id.scope, id.key))
	return r, found, lost(ctx, conn.Conn(), err)
}

// readLocked looks the key up and waits for whoever has changed it and not
// committed yet. A plain SELECT would see the state before a COMMIT in doubt.
func (l *Ledger) readLocked(ctx context.Context, id keyID) (r row, found bool, err error) {
	err = l.transact(ctx, 0, func(tx *Tx) error {
		r, found, err = foundRow(tx.QueryRow(ctx, selectRow+" FOR UPDATE", id.scope, id.key))
		return err
	})
	if errors.Is(err, ErrCommitUnknown) {
		err = nil // nothing was written; what was read under the lock stands
	}
	return r, found, err
}

func foundRow(from pgx.Row) (r row, found bool, err error) {
	switch err := r.scan(from); {
	case errors.Is(err, pgx.ErrNoRows):
		return row{}, false, nil
	case err != nil:
		return row{}, false, err
	}
	return r, true, nil
}

// sameRequest is true if the key was claimed for this very request.
func (r row) sameRequest(req Request) bool {
	return r.Operation == req.Operation && bytes.Equal(r.Hash, req.Fingerprint[:])
}

// replay gives the stored answer.
func (r row) replay() Response {
	answer := r.Response
	answer.Replayed = true
	return answer
}

// inProgress tells when to come back. A lease with no more left than an owner
// of an unknown outcome leaves is close to its end, so what is left of it is
// the answer; a longer one has a living owner as far as anyone knows.
func (r row) inProgress() error {
	seconds := 1.0
	if r.LeaseLeft <= unknownLease {
		seconds = max(1, math.Ceil(r.LeaseLeft.Seconds()))
	}
	return &InProgressError{RetryAfter: time.Duration(seconds) * time.Second}
}
