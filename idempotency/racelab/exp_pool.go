package racelab

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"payonce/idempotency"
)

const (
	notesTable = `
	CREATE TABLE notes (
		id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		who text NOT NULL);`
	insertNote = `INSERT INTO notes (who) VALUES ($1)`
	stockTable = `
	CREATE TABLE stock (course text PRIMARY KEY, seats integer NOT NULL);
	INSERT INTO stock VALUES ('idempotency', 10);`
	lockStock  = `SELECT seats FROM stock WHERE course = $1 FOR UPDATE`
	lowerStock = `UPDATE stock SET seats = seats - 1 WHERE course = $1`
	theCourse  = "idempotency"
)

// naivePool hands out connections in turn, as they were given back: what a pool
// does that does not look.
type naivePool struct{ free chan *pgxpool.Conn }

func openNaive(ctx context.Context, w *worker) (*naivePool, error) {
	p := &naivePool{make(chan *pgxpool.Conn, w.variant.conns)}
	for range w.variant.conns {
		c, err := w.pool.Acquire(ctx)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.free <- c
	}
	return p, nil
}

func (p *naivePool) exec(ctx context.Context, sql string, args ...any) error {
	c := <-p.free
	defer func() { p.free <- c }()
	_, err := c.Exec(ctx, sql, args...)
	return err
}

// dirty counts the connections that stand in a transaction.
func (p *naivePool) dirty() int {
	n := 0
	for range len(p.free) {
		c := <-p.free
		if c.Conn().PgConn().TxStatus() != 'I' {
			n++
		}
		p.free <- c
	}
	return n
}

func (p *naivePool) close() error {
	for len(p.free) > 0 {
		(<-p.free).Release()
	}
	return nil
}

// beginOnThePool sends BEGIN to a pool instead of a connection.
func beginOnThePool() *Experiment {
	type runner func(ctx context.Context, sql string, args ...any) error
	// script is A's transaction on the pool, which is rolled back, with B's
	// unrelated statement in the middle of it.
	script := func(ctx context.Context, w *worker, exec runner) (Answer, error) {
		if w.n == 2 {
			if err := w.await(ctx, "begun"); err != nil {
				return Answer{}, err
			}
			defer w.give("inserted")
			return Answer{Kind: Done}, exec(ctx, insertNote, "B")
		}
		if err := exec(ctx, begin); err != nil {
			return Answer{}, err
		}
		w.give("begun")
		if err := w.await(ctx, "inserted"); err != nil {
			return Answer{}, err
		}
		if err := exec(ctx, insertNote, "A"); err != nil {
			return Answer{}, err
		}
		return Answer{Kind: Undone}, exec(ctx, "ROLLBACK")
	}
	onPgx := func(ctx context.Context, w *worker) (Answer, error) {
		return script(ctx, w, func(ctx context.Context, sql string, args ...any) error {
			_, err := w.pool.Exec(ctx, sql, args...)
			return err
		})
	}
	onNaive := func(ctx context.Context, w *worker) (answer Answer, err error) {
		if w.n == 1 {
			if w.naive, err = openNaive(ctx, w); err != nil {
				return Answer{}, err
			}
			defer func() { err = errors.Join(err, w.naive.close()) }()
			defer func() { w.figure("connections left in a transaction", "%d", w.naive.dirty()) }()
		}
		return script(ctx, w, func(ctx context.Context, sql string, args ...any) error {
			return w.naive.exec(ctx, sql, args...)
		})
	}
	survivors := func(ctx context.Context, r *round) error {
		who, err := ask[string](ctx, r.lab, `SELECT coalesce(string_agg(who, ', ' ORDER BY id), 'none') FROM notes`)
		r.figure(survivingRows, "%s", who)
		return err
	}
	lines := []Line{fault(begin), note("B, on the same pool:"), plain(insertNote), note("A goes on:"), plain(insertNote), plain("ROLLBACK")}
	lanes := []string{"A", "B"}
	pgx := func(name, title string, conns int) Variant {
		return Variant{
			Name: name, Title: title, Sort: Broken, Lanes: lanes, AlwaysHolds: true, Headline: survivingRows,
			About: "pgx looks at each connection that comes back, finds it in a transaction, and closes it. B is safe, and nobody is told: A's INSERT commits by itself, and survives its own ROLLBACK.",
			SQL:   lines, tables: notesTable, conns: conns, shared: true, work: onPgx, after: survivors,
			expect: []expectation{outcomes("1 done, 1 undone"), figure(survivingRows, "B, A")},
		}
	}
	return &Experiment{
		Name: "begin-on-the-pool", Title: "BEGIN on the pool", Chapter: TheBookkeeping,
		About: "BEGIN sent to a pool opens a transaction on some connection, and gives it back. What comes next depends on the pool. Node's hands the open transaction to somebody else, whose row is then rolled back by a stranger. " +
			"pgx closes such a connection, which hides the mistake: the statements after it commit one by one, the ROLLBACK undoes nothing, and a FOR UPDATE holds nothing.",
		Barriers:   "A script: A begins, B inserts, A inserts, A rolls back. The naive pool hands its connections out in turn.",
		HoldsWhen:  "A connection is checked out, the whole transaction runs on it, and it is given back at the end.",
		BreaksWhen: "The pool is used as if it were a connection.",
		Workers:    parties(2), Trials: fewTrials,
		Variants: []Variant{
			pgx("pgx-pool-of-1", "pgx, a pool of 1", 1),
			pgx("pgx-pool-of-4", "pgx, a pool of 4", 4),
			{
				Name: "naive-pool-of-1", Title: "A pool that does not look, of 1", Sort: Broken, Lanes: lanes, AlwaysHolds: true, Headline: survivingRows,
				About: "As in Node: B's statement runs within A's transaction, and A's ROLLBACK takes it along.",
				SQL:   lines, tables: notesTable, conns: 1, shared: true, work: onNaive, after: survivors,
				expect: []expectation{outcomes("1 done, 1 undone"), figure(survivingRows, "none"), figure("connections left in a transaction", "0")},
			},
			{
				Name: "naive-pool-of-4", Title: "A pool that does not look, of 4", Sort: Broken, Lanes: lanes, AlwaysHolds: true, Headline: survivingRows,
				About: "Each statement runs on another connection. A's row survives its own ROLLBACK, and one connection stays in a transaction for whoever gets it next.",
				SQL:   lines, tables: notesTable, conns: 4, shared: true, work: onNaive, after: survivors,
				expect: []expectation{outcomes("1 done, 1 undone"), figure(survivingRows, "B, A"), figure("connections left in a transaction", "1")},
			},
			{
				Name: "lock-on-the-pool", Title: "FOR UPDATE on the pool", Sort: Broken, Lanes: lanes, AlwaysHolds: true, Headline: hadToWait,
				About:  "The lock is gone when the statement ends: B changes the row that A believes it holds.",
				SQL:    []Line{plain(begin), fault(lockStock), note("B, meanwhile, does not wait:"), plain(lowerStock), plain("COMMIT")},
				tables: stockTable, conns: 4, shared: true,
				prepare: restock,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if w.n == 2 {
						if err := w.await(ctx, "locked"); err != nil {
							return Answer{}, err
						}
						_, err := w.pool.Exec(ctx, lowerStock, theCourse)
						return Answer{Kind: Done}, err
					}
					for _, sql := range []string{begin, lockStock} {
						args := []any{theCourse}[:len(sql)/len(lockStock)]
						if _, err := w.pool.Exec(ctx, sql, args...); err != nil {
							return Answer{}, err
						}
					}
					w.give("locked")
					if err := w.othersEnded(ctx); err != nil {
						return Answer{}, err
					}
					_, err := w.pool.Exec(ctx, "COMMIT")
					return Answer{Kind: Done}, err
				},
				after:  waitedFor,
				expect: []expectation{outcomes("2 done"), figure(hadToWait, "no")},
			},
			{
				Name: "checked-out", Title: "A connection, checked out", Sort: Right, Lanes: lanes, AlwaysHolds: true, Headline: survivingRows,
				About: "The package runs every transaction on one connection, and closes it rather than give it back dirty.",
				SQL:   []Line{cure(begin), note("B, on another connection:"), plain(insertNote), note("A goes on:"), plain(insertNote), cure("ROLLBACK")},
				Uses:  &Code{"idempotency/others.go", "Ledger.Transact"}, tables: notesTable, ledger: true, conns: 4,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if w.n == 2 {
						if err := w.await(ctx, "begun"); err != nil {
							return Answer{}, err
						}
						defer w.give("inserted")
						_, err := w.pool.Exec(ctx, insertNote, "B")
						return Answer{Kind: Done}, err
					}
					return Answer{}, w.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {
						if err := tx.Flush(ctx); err != nil {
							return err
						}
						w.give("begun")
						if err := w.await(ctx, "inserted"); err != nil {
							return err
						}
						if _, err := tx.Exec(ctx, insertNote, "A"); err != nil {
							return err
						}
						return errUndone
					})
				},
				after:  survivors,
				expect: []expectation{outcomes("1 done, 1 undone"), figure(survivingRows, "B")},
			},
			{
				Name: "lock-checked-out", Title: "FOR UPDATE, checked out", Sort: Right, Lanes: lanes, AlwaysHolds: true, Headline: hadToWait,
				About: "The lock holds until A commits.",
				SQL:   []Line{plain(begin), cure(lockStock), note("B, meanwhile, waits:"), plain(lowerStock), plain("COMMIT")},
				Uses:  &Code{"idempotency/others.go", "Ledger.Transact"}, tables: stockTable, ledger: true, conns: 4, prepare: restock,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if w.n == 2 {
						if err := w.await(ctx, "locked"); err != nil {
							return Answer{}, err
						}
						_, err := w.pool.Exec(ctx, lowerStock, theCourse)
						return Answer{Kind: Done}, err
					}
					return Answer{Kind: Done}, w.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {
						if _, err := tx.Exec(ctx, lockStock, theCourse); err != nil {
							return err
						}
						w.give("locked")
						return w.hold(ctx)
					})
				},
				after:  waitedFor,
				expect: []expectation{outcomes("2 done"), figure(hadToWait, "yes")},
			},
		},
	}
}

// restock fills the stock again: a trial before may have emptied the table.
func restock(ctx context.Context, r *round) error {
	return r.lab.exec(ctx, `INSERT INTO stock VALUES ('idempotency', 10) ON CONFLICT (course) DO UPDATE SET seats = 10`)
}

// waitedFor notes whether PostgreSQL made B wait.
func waitedFor(_ context.Context, r *round) error {
	for _, l := range r.observer.taken() {
		if len(l.waiting) > 0 {
			r.figure(hadToWait, "yes")
			return nil
		}
	}
	r.figure(hadToWait, "no")
	return nil
}
