package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// SQLSTATEs after which a whole transaction may simply run again
// (https://www.postgresql.org/docs/current/mvcc-serialization-failure-handling.html).
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

// lockNotAvailable is the SQLSTATE of a lock_timeout: the wait was given up and
// nothing was written.
const lockNotAvailable = "55P03"

// transactionTries bounds how often a transaction runs again after one of them.
const transactionTries = 5

// rollbackTimeout bounds the ROLLBACK of a transaction whose context is done.
const rollbackTimeout = 2 * time.Second

// commitGrace is how much longer a COMMIT that was sent waits for its answer
// than the caller does.
const commitGrace = 2 * time.Second

// Tx is one short transaction on one connection. Statements can be queued, and
// travel together: BEGIN with the first batch, COMMIT with the last, so that a
// transaction costs as many round trips as it has decisions, plus one.
//
// Exec, Query and QueryRow send what is queued first, and work as those of
// pgx.Tx do. A Tx is valid within the function it was given to.
//
// An error of Flush is final: whatever the function does with it, nothing of
// the transaction is committed.
type Tx struct {
	conn  *pgx.Conn
	batch *pgx.Batch
	begun bool
	// opened is when the connection was there and the transaction could begin.
	opened time.Time
	err    error // of the first Flush that failed
}

// Queue adds a statement to the next batch. Its result is read by the callback
// set on the returned query. An error returned by a callback makes Flush fail
// with it, and so rolls back; but in a batch that is sent together with COMMIT
// it comes too late, so whatever must be able to roll back is flushed.
func (tx *Tx) Queue(sql string, args ...any) *pgx.QueuedQuery {
	return tx.batch.Queue(sql, args...)
}

// Flush sends what is queued and runs the callbacks in order, up to the first
// error, which it returns.
func (tx *Tx) Flush(ctx context.Context) error {
	batch := tx.batch
	if tx.err != nil || batch.Len() == 0 {
		return tx.err
	}
	tx.batch, tx.begun = &pgx.Batch{}, true
	// Kept, because a fence that found no row is no error to the server: if the
	// function swallowed it, COMMIT would go through.
	tx.err = tx.conn.SendBatch(ctx, batch).Close()
	return tx.err
}

// Exec sends what is queued, then runs sql.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := tx.Flush(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return tx.conn.Exec(ctx, sql, args...)
}

// Query sends what is queued, then runs sql.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := tx.Flush(ctx); err != nil {
		return nil, err
	}
	return tx.conn.Query(ctx, sql, args...)
}

// QueryRow sends what is queued, then runs sql.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := tx.Flush(ctx); err != nil {
		return failedRow{err}
	}
	return tx.conn.QueryRow(ctx, sql, args...)
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// commit sends what is queued together with COMMIT. An error of the server
// means that nothing was committed, and so does a ctx that is done before. Any
// other error means that nobody knows: ErrCommitUnknown.
func (tx *Tx) commit(ctx context.Context) error {
	err := tx.err
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		tx.rollback(ctx)
		return err
	}
	// pgx closes a connection whose context ends in mid-statement, and so a
	// hang-up at the wrong moment would put every COMMIT in doubt.
	ctx, cancel := outlive(ctx, commitGrace)
	defer cancel()
	tx.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() == "ROLLBACK" {
			return errRolledBack
		}
		return nil
	})
	err = tx.Flush(ctx)
	if err == nil || errors.Is(err, errRolledBack) {
		return err
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR" || tx.open() {
		tx.rollback(ctx)
		return err
	}
	return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
}

// open is true if the server has said last that the transaction goes on: what
// failed was never sent, such as an argument that cannot be encoded.
func (tx *Tx) open() bool {
	return !tx.conn.IsClosed() && tx.conn.PgConn().TxStatus() != 'I'
}

// errRolledBack: COMMIT of a transaction that had failed before answers
// ROLLBACK, without an error.
var errRolledBack = errors.New("the transaction had failed and was rolled back")

// outlive gives a context that ends grace after ctx does.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return longer, func() { stop(); cancel() }
}

// rollback ends a transaction that failed. If it cannot, the connection is
// closed, which ends the transaction too: a connection with an open transaction
// must never go back to the pool.
func (tx *Tx) rollback(ctx context.Context) {
	if !tx.begun || tx.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if _, err := tx.conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = tx.conn.Close(ctx)
	}
}

// transact runs fn in a transaction and commits it, again from the start after
// a serialization failure or a deadlock; fn must bear being run again. It
// returns fn's error after a rollback, ErrCommitUnknown, or a server's error.
func (l *Ledger) transact(ctx context.Context, wait time.Duration, fn func(tx *Tx) error) error {
	for try := 1; ; try++ {
		err := l.transactOnce(ctx, wait, fn)
		if try == transactionTries || !isCode(err, serializationFailure, deadlockDetected) {
			return err
		}
	}
}

func (l *Ledger) transactOnce(ctx context.Context, wait time.Duration, fn func(tx *Tx) error) error {
	conn, err := l.acquire(ctx, wait)
	if err != nil {
		return err
	}
	// Commit and rollback leave no transaction open, or close the connection;
	// then it is safe to hand it to the next request.
	defer conn.Release()
	tx := &Tx{conn: conn.Conn(), batch: &pgx.Batch{}, opened: time.Now()}
	tx.Queue("BEGIN")
	if err := fn(tx); err != nil {
		err = lost(ctx, conn.Conn(), err)
		tx.rollback(ctx)
		return err
	}
	return tx.commit(ctx)
}

// errLost: the connection broke before COMMIT was sent, so nothing was
// committed.
var errLost = errors.New("the database went away")

// lost adds errLost to an error that closed the connection, and that the
// caller did not cause by going away.
func lost(ctx context.Context, conn *pgx.Conn, err error) error {
	if err == nil || !conn.IsClosed() || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errLost, err)
}

// acquire takes a connection out of the pool, waiting at most wait, or as long
// as ctx allows if wait is 0. It returns ErrOverloaded if there is none: every
// connection is in use, or the database is away.
func (l *Ledger) acquire(ctx context.Context, wait time.Duration) (*pgxpool.Conn, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if wait > 0 {
		limited, cancel = context.WithTimeout(ctx, wait)
	}
	defer cancel()
	conn, err := l.pool.Acquire(limited)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrOverloaded, err)
	}
	return conn, nil
}

// isCode is true if err is an error of the server with one of the SQLSTATEs.
func isCode(err error, codes ...string) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.Code == code {
			return true
		}
	}
	return false
}
