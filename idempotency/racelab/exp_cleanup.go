package racelab

import (
	"context"
	"strings"

	"payonce/idempotency"
)

const (
	statusTable = `
	CREATE TABLE keys (
		key      text PRIMARY KEY,
		status   text NOT NULL CHECK (status IN ('in_progress', 'completed')),
		response text);`
	enrolTable = `
	CREATE TABLE enrolments (course text PRIMARY KEY);`
	claimStatus   = `INSERT INTO keys (key, status) VALUES ($1, 'in_progress') ON CONFLICT (key) DO NOTHING RETURNING key`
	markFailed    = `UPDATE keys SET status = 'failed' WHERE key = $1`
	markCompleted = `UPDATE keys SET status = 'completed' WHERE key = $1`
	selectStatus  = `SELECT status FROM keys WHERE key = $1`
	insertEnrol   = `INSERT INTO enrolments (course) VALUES ($1)`
)

// inTheWay is a row at which the first try's work fails, and that is gone when
// the client comes back: a transient failure.
func inTheWay(ctx context.Context, r *round) error {
	return r.lab.exec(ctx, `INSERT INTO enrolments VALUES ('idempotency')`)
}

func outOfTheWay(ctx context.Context, w *worker) error {
	return w.lab.exec(ctx, `DELETE FROM enrolments`)
}

// cleanupInside is the error path that never runs.
func cleanupInside() *Experiment {
	inside := func(ctx context.Context, w *worker) (Answer, error) {
		if err := w.inTurn(ctx); err != nil {
			return Answer{}, err
		}
		var mine, status string
		won, err := w.read(ctx, claimStatus, []any{theKey}, &mine)
		if err != nil {
			return Answer{}, err
		}
		if !won {
			if err := outOfTheWay(ctx, w); err != nil {
				return Answer{}, err
			}
			_, err := w.read(ctx, selectStatus, []any{theKey}, &status)
			return Answer{Kind: Conflict, Status: 409, Note: status}, err
		}
		var failure error
		_ = w.transaction(ctx, begin, func() error {
			if _, failure = w.statement(ctx, insertEnrol, theCourse); failure == nil {
				return nil
			}
			// The cleanup of the error path, on the transaction that failed.
			_, cleanup := w.statement(ctx, markFailed, theKey)
			w.figure("the work failed with", "%s", sqlState(failure))
			w.figure("the cleanup failed with", "%s", sqlState(cleanup))
			return failure
		})
		if _, err := w.read(ctx, selectStatus, []any{theKey}, &status); err != nil {
			return Answer{}, err
		}
		w.figure("state after the cleanup", "%s", status)
		// The same cleanup, had the transaction been healthy, and one that the
		// CHECK allows, before the ROLLBACK that follows it.
		_, healthy := w.statement(ctx, markFailed, theKey)
		w.figure("the cleanup on a healthy transaction", "%s", sqlState(healthy))
		_ = w.transaction(ctx, begin, func() error {
			_, _ = w.statement(ctx, markCompleted, theKey)
			return errUndone
		})
		if _, err := w.read(ctx, selectStatus, []any{theKey}, &status); err != nil {
			return Answer{}, err
		}
		w.figure("state after a write that landed, and the ROLLBACK", "%s", status)
		return Answer{}, failure
	}
	return &Experiment{
		Name: "cleanup-inside", Title: "The cleanup that never runs", Chapter: TheBookkeeping,
		About: "The work fails, and the error path marks the key as failed: on the transaction that has just failed. PostgreSQL refuses every statement of it (25P02); on a healthy one the CHECK would (23514); and if the write had landed, the ROLLBACK on the next line would have undone it. " +
			"The key stays in progress, and every retry is told that somebody is at work.",
		Barriers:   "None: one request follows the other. What made the work fail is gone when the client comes back.",
		HoldsWhen:  "The failure is marked in a transaction of its own, or the claim was part of the one that failed.",
		BreaksWhen: "The error path uses the transaction that brought it there.",
		Workers:    parties(2), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "inside", Title: "Marked inside", Sort: Broken, Should: 1, Lanes: []string{"first try", "retry"}, AlwaysHolds: true, Headline: "state after the cleanup",
				About: "Three reasons why one line does nothing, and a key that is dead.",
				SQL: []Line{
					plain(claimStatus), plain(begin), plain(insertEnrol), note("23505: the work failed"),
					fault(markFailed), note("25P02: the transaction is aborted"), plain("ROLLBACK"), note("a retry:"), plain(selectStatus),
				},
				tables: statusTable + enrolTable, prepare: inTheWay, work: inside,
				expect: []expectation{
					charges("0"), outcomes("1 × 409, 1 × 23505"),
					figure("the work failed with", "23505"), figure("the cleanup failed with", "25P02"),
					figure("state after the cleanup", "in_progress"), figure("the cleanup on a healthy transaction", "23514"),
					figure("state after a write that landed, and the ROLLBACK", "in_progress"),
				},
			},
			{
				Name: "outside", Title: "Marked outside", Sort: Right, Should: 1, Lanes: []string{"first try", "retry"}, AlwaysHolds: true,
				About: "The claim was committed before; the failure is written in a transaction of its own, and the retry takes the key again.",
				SQL:   []Line{plain(ledgerClaim), plain(begin), plain(insertEnrol), note("23505"), plain("ROLLBACK"), cure(releaseLedger), note("the retry:"), plain(ledgerRetry), plain(ledgerDone)},
				Uses:  usesRelease, tables: enrolTable, ledger: true, wait: -1, prepare: inTheWay,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					if w.n == 2 {
						if err := outOfTheWay(ctx, w); err != nil {
							return Answer{}, err
						}
					}
					claim, answer, err := w.claim(ctx, theKey, Price)
					if claim == nil {
						return answer, err
					}
					err = w.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {
						_, err := tx.Exec(ctx, insertEnrol, theCourse)
						return err
					})
					if err != nil {
						_, released := w.ledger.Release(ctx, *claim, func(context.Context, *idempotency.Tx) error { return nil })
						w.figure("the mark failed with", "%s", orNothing(sqlState(released)))
						return Answer{}, err
					}
					id, err := w.provider.charge(ctx, w, downstream(theKey), Price, nil)
					if err != nil {
						return Answer{}, err
					}
					return w.record(ctx, claim, created(receipt{id, Price}))
				},
				after:  stateOfTheKey,
				expect: []expectation{charges("1"), outcomes("1 charged, 1 × 23505"), money("1"), figure("the mark failed with", "nothing"), figure(stateFigure, "completed")},
			},
			{
				Name: "gone-with-it", Title: "The claim goes with it", Sort: Right, Should: 1, Lanes: []string{"first try", "retry"}, AlwaysHolds: true,
				About: "The local shape: claim and work are one transaction, so the failure leaves no trace of the key, and the retry claims it afresh.",
				SQL:   []Line{cure(ledgerClaim), plain(insertEnrol), note("23505: ROLLBACK, and the claim is gone"), note("the retry:"), plain(ledgerClaim), plain(insertCharge), plain(ledgerDone)},
				Uses:  usesDo, tables: enrolTable, ledger: true, prepare: inTheWay,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					if w.n == 2 {
						if err := outOfTheWay(ctx, w); err != nil {
							return Answer{}, err
						}
					}
					req, err := request(theAccount, theKey, payments, fields{Price})
					if err != nil {
						return Answer{}, err
					}
					response, err := w.ledger.Do(ctx, req, func(ctx context.Context, tx *idempotency.Tx) (idempotency.Response, error) {
						if _, err := tx.Exec(ctx, insertEnrol, theCourse); err != nil {
							return idempotency.Response{}, err
						}
						var id int64
						err := tx.QueryRow(ctx, insertCharge, theKey, Price).Scan(&id)
						return created(receipt{id, Price}), err
					})
					if err != nil {
						return Answer{}, err
					}
					return answered(response), nil
				},
				after:  stateOfTheKey,
				expect: []expectation{charges("1"), outcomes("1 charged, 1 × 23505"), money("1"), figure(stateFigure, "completed")},
			},
		},
	}
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// sweptBetween is the row that is gone by the time the loser reads it.
func sweptBetween() *Experiment {
	// unguarded loses the INSERT to a claim that the sweeper then removes.
	unguarded := func(look func(ctx context.Context, w *worker) (Answer, error)) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			if err := w.lab.exec(ctx, `INSERT INTO keys (key, hash, response) VALUES ($1, 'ours', '')`, theKey); err != nil {
				return Answer{}, err
			}
			w.before("SELECT hash", func(ctx context.Context) {
				w.happened(EventSwept, "the sweeper deletes the key")
				_ = w.lab.exec(ctx, `DELETE FROM keys`)
			})
			var mine string
			won, err := w.read(ctx, claimHashed, []any{theKey, "ours"}, &mine)
			if err != nil || won {
				return Answer{Kind: Charged}, err
			}
			return look(ctx, w)
		}
	}
	// contended lets somebody else's claim come before each of the ledger's
	// INSERTs, and the sweeper after it, so many times.
	contended := func(times int) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			for range times {
				w.before("INSERT INTO idempotency_keys", func(ctx context.Context) {
					_ = w.lab.exec(ctx, `
						INSERT INTO idempotency_keys (scope, key, operation, request_hash, status, owner, lease_until)
						VALUES ($1, $2, $3, sha256('other'), 'in_progress', 'other', clock_timestamp() + interval '60 seconds')`,
						theAccount, theKey, payments)
					w.before("SELECT operation", func(ctx context.Context) {
						w.happened(EventSwept, "the sweeper deletes the key")
						_ = w.lab.exec(ctx, `DELETE FROM idempotency_keys`)
					})
				})
			}
			return w.buyLocal(ctx, theKey, Price, nil)
		}
	}
	tried := func(_ context.Context, r *round) error {
		n := 0
		for _, e := range r.events.events {
			if strings.Contains(e.SQL, "INSERT INTO idempotency_keys") {
				n++
			}
		}
		r.figure("claims tried", "%d", n)
		return nil
	}
	lanes := []string{"request"}
	return &Experiment{
		Name: "swept-between", Title: "Swept between INSERT and SELECT", Chapter: TheBookkeeping,
		About: "The loser reads a row that it did not write, and a sweeper may have removed it meanwhile. In Node the handler dies on a property of undefined. In Go it is pgx.ErrNoRows if it is looked at, and if it is not, something quieter: a zero value, whose empty hash looks like another request's. " +
			"The guard is to claim again, a few times, and then to say 409.",
		Barriers:   "The lab comes between the two statements of the one worker: another's claim before the INSERT, the sweeper before the SELECT.",
		HoldsWhen:  "No row after a lost INSERT means: claim again.",
		BreaksWhen: "The row is taken for granted.",
		Workers:    parties(1), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "unguarded", Title: "Unguarded", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "No rows in result set: a 500 for a key that is free.",
				SQL:   []Line{plain(claimHashed), note("no row: somebody else has it. The sweeper comes by"), fault(selectHashed), note("no row either")}, tables: hashedTable,
				work: unguarded(func(ctx context.Context, w *worker) (Answer, error) {
					var hash, response string
					err := w.conn.QueryRow(ctx, selectHashed, theKey).Scan(&hash, &response)
					if err == nil {
						return Answer{Kind: Replayed}, nil
					}
					return Answer{Kind: Failed, Status: 500, Note: err.Error()}, nil
				}),
				after: func(_ context.Context, r *round) error {
					r.figure("the error", "%s", r.answers[0].Note)
					return nil
				},
				expect: []expectation{charges("0"), outcomes("1 error"), figure("the error", "no rows in result set")},
			},
			{
				Name: "zero-value", Title: "Unguarded, and not looked at", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The handler ignores that there was no row. Its zero value has an empty hash, so the client is told 422 for an honest request.",
				SQL:   []Line{plain(claimHashed), note("no row: somebody else has it. The sweeper comes by"), fault(selectHashed), note("hash is '', which is not ours")}, tables: hashedTable,
				work: unguarded(func(ctx context.Context, w *worker) (Answer, error) {
					var hash, response string
					if _, err := w.read(ctx, selectHashed, []any{theKey}, &hash, &response); err != nil {
						return Answer{}, err
					}
					if hash != "ours" {
						return Answer{Kind: Mismatch, Status: 422}, nil
					}
					return told(Replayed, 200, []byte(response)), nil
				}),
				expect: []expectation{charges("0"), outcomes("1 × 422")},
			},
			{
				Name: "guarded", Title: "Guarded", Sort: Right, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The package claims again.",
				SQL:   []Line{plain(ledgerClaim), note("no row. The sweeper comes by"), plain(ledgerRead), note("no row either: claim again"), cure(ledgerClaim)},
				Uses:  usesDo, ledger: true, work: contended(1), after: tried,
				expect: []expectation{charges("1"), outcomes("1 charged"), money("1"), figure("claims tried", "2")},
			},
			{
				Name: "contended", Title: "Again and again", Sort: Right, Should: 0, Lanes: lanes, AlwaysHolds: true,
				About: "Three times in a row, and the package says 409: nobody is charged, and the client comes back.",
				SQL:   []Line{plain(ledgerClaim), plain(ledgerRead), plain(ledgerClaim), plain(ledgerRead), cure(ledgerClaim), plain(ledgerRead), note("no row for the third time: 409")},
				Uses:  usesDo, ledger: true, work: contended(3), after: tried,
				expect: []expectation{charges("0"), outcomes("1 × 409"), figure("claims tried", "3")},
			},
		},
	}
}
