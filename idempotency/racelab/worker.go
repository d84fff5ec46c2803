package racelab

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// worker is one client's request, or one party of a script.
type worker struct {
	*round
	n        int // from 1
	conn     *pgxpool.Conn
	attempts int
	hooks    []*hook
	looked   bool // it has been at the second barrier
	lost     bool // the reply to its next statement is lost
}

// acquire takes the worker's own connection, before the barrier.
func (w *worker) acquire(ctx context.Context) (err error) {
	if w.variant.shared || w.variant.ledger {
		return nil
	}
	w.conn, err = w.pool.Acquire(ctx)
	return err
}

func (w *worker) release() {
	if w.conn != nil {
		w.conn.Release()
		w.conn = nil
	}
}

// statement runs a statement on the worker's connection.
func (w *worker) statement(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	tag, err := w.conn.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// read scans the one row of a query. found is false if there is none.
func (w *worker) read(ctx context.Context, sql string, args []any, into ...any) (found bool, err error) {
	err = w.conn.QueryRow(ctx, sql, args...).Scan(into...)
	if err == pgx.ErrNoRows { //nolint:errorlint // Scan returns it as it is
		return false, nil
	}
	return err == nil, err
}

// The ways to begin a transaction.
const (
	begin             = `BEGIN`
	beginRepeatable   = `BEGIN ISOLATION LEVEL REPEATABLE READ`
	beginSerializable = `BEGIN ISOLATION LEVEL SERIALIZABLE`
)

// transaction runs fn between begin and COMMIT, or ROLLBACK if it fails.
func (w *worker) transaction(ctx context.Context, begin string, fn func() error) error {
	if _, err := w.statement(ctx, begin); err != nil {
		return err
	}
	if err := fn(); err != nil {
		_, _ = w.statement(context.WithoutCancel(ctx), "ROLLBACK")
		return err
	}
	_, err := w.statement(ctx, "COMMIT")
	return err
}

// checked stands between check and act: it is the window. With the second
// barrier nobody acts before everybody has looked; the last to come lets the
// observer look, too, so that what is held meanwhile is measured.
func (w *worker) checked(ctx context.Context) error {
	if w.looked { // on a retry the others have gone on
		return nil
	}
	w.looked = true
	start := time.Now()
	switch w.settings.Window {
	case Handler:
		return w.handle(ctx)
	case None:
		return nil
	}
	if w.second.arrive(w.n) {
		err := w.observer.next(ctx)
		if err == nil && w.variant.held != nil {
			err = w.variant.held(ctx, w.round)
		}
		w.second.release()
		if err != nil {
			return err
		}
	}
	err := w.second.wait(ctx)
	w.events.add(w, EventBarrier, start, time.Now(), "until every worker has looked")
	return err
}

// hold keeps a winner from committing until PostgreSQL is seen to make everyone
// else wait who has not ended. It stands for the time that its work takes.
func (w *worker) hold(ctx context.Context) error {
	start := time.Now()
	switch w.settings.Window {
	case Handler:
		return w.handle(ctx)
	case None:
		return nil
	}
	err := w.observer.await(ctx, func(l look) bool { return len(l.waiting)+int(w.ended.Load()) >= w.round.n-1 })
	w.events.add(w, EventBarrier, start, time.Now(), "until the others are seen to wait")
	return err
}

// othersEnded waits until every other worker has its answer: a call that takes
// that long.
func (w *worker) othersEnded(ctx context.Context) error {
	return w.events.await(ctx, func([]moment) bool { return int(w.ended.Load()) >= w.round.n-1 })
}

// othersRead waits until every other worker has found the key's row in the real
// ledger, or has ended.
func (w *worker) othersRead(ctx context.Context) error {
	return w.events.await(ctx, func(events []moment) bool {
		found := map[int]bool{}
		for _, e := range events {
			if e.Worker != w.n && (e.What == EventAnswer || e.Rows > 0 && strings.HasPrefix(e.SQL, "SELECT operation")) {
				found[e.Worker] = true
			}
		}
		return len(found) >= w.round.n-1
	})
}

// lookAtCall notes how many connections are held by requests that do nothing,
// at this moment of the call.
func (w *worker) lookAtCall(ctx context.Context) error {
	held := 0
	err := w.observer.await(ctx, func(l look) bool { held = l.held(); return true })
	w.figure(heldAtCall, "%d", held)
	return err
}

// heldAtCall is the figure of lookAtCall.
const heldAtCall = "connections held during the call"

// handle is the handler's own time. The timer is the work that it stands for,
// such as a call; nothing is ordered by it.
func (w *worker) handle(ctx context.Context) error {
	if w.settings.Handler == 0 {
		return nil
	}
	start := time.Now()
	select {
	case <-time.After(w.settings.Handler):
	case <-ctx.Done():
		return ctx.Err()
	}
	w.events.add(w, EventHandler, start, time.Now(), "the handler at work")
	return nil
}

// give and await are the cues of a script.
func (w *worker) give(cue string) { w.cues.give(cue) }

func (w *worker) await(ctx context.Context, cue string) error { return w.cues.await(ctx, cue) }

// happened notes a moment on the worker's lane.
func (w *worker) happened(what What, note string) {
	now := time.Now()
	w.events.add(w, what, now, now, note)
}

// hook is what the lab does before the next statement of a worker that begins
// so: the one way to come between two statements of code that is not ours to
// stop, such as the ledger's.
type hook struct {
	prefix string
	do     func(ctx context.Context)
}

// before sets what happens before the worker's next statement that begins with
// prefix. Several of one prefix happen in turn.
func (w *worker) before(prefix string, do func(ctx context.Context)) {
	w.hooks = append(w.hooks, &hook{prefix, do})
}

func (w *worker) beforeStatement(ctx context.Context, sql string) {
	for i, h := range w.hooks {
		if strings.HasPrefix(sql, h.prefix) {
			w.hooks = append(w.hooks[:i:i], w.hooks[i+1:]...)
			h.do(context.WithValue(ctx, workerKey{}, nil))
			return
		}
	}
}

// loseReply loses PostgreSQL's reply to the worker's next statement, and the
// connection with it.
func (w *worker) loseReply() {
	w.lost = true
	w.wire.lose.Store(true)
}
