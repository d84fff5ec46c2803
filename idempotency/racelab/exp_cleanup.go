package racelab

import (
	"context"

	"payonce/idempotency"
)

const (
	statusTable = `
	CREATE TABLE keys (
		key      text PRIMARY KEY,
		status   text NOT NULL CHECK (status IN ('in_progress', 'completed')),
		response text);`
	// agedTable is the same with the time of the claim, for a sweeper.
	agedTable = `
	CREATE TABLE keys (
		key        text PRIMARY KEY,
		status     text NOT NULL,
		response   text,
		created_at timestamptz NOT NULL DEFAULT now());`
	enrolTable = `
	CREATE TABLE enrolments (course text PRIMARY KEY);`
	claimStatus   = `INSERT INTO keys (key, status) VALUES ($1, 'in_progress') ON CONFLICT (key) DO NOTHING RETURNING key`
	sweepAged     = `DELETE FROM keys WHERE status = 'in_progress' AND created_at < now() - interval '10 minutes'`
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
			"The key stays in progress, and every retry is told that somebody is at work. Deleting the claim instead is right where all that was done was rolled back; a sweeper that deletes the claims of the dead, by their age, frees keys whose cards may have been charged.",
		Barriers:   "None: one request follows the other. What made the work fail is gone when the client comes back.",
		HoldsWhen:  "The failure is marked in a transaction of its own, or the claim was part of the one that failed.",
		BreaksWhen: "The error path uses the transaction that brought it there, or a claim is deleted of which nobody knows how it ended.",
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
				Name: "deleted-outside", Title: "Deleted outside", Sort: Costly, Should: 1, Lanes: []string{"first try", "retry"}, AlwaysHolds: true,
				About:  "The claim is deleted on a fresh transaction, so the retry finds a free key. That is right where everything that was done was rolled back, as here. After a call whose outcome nobody knows it would free a key whose card may have been charged.",
				SQL:    []Line{plain(claimStatus), plain(begin), plain(insertEnrol), note("23505: the work failed"), plain("ROLLBACK"), cure(deleteKey), note("the retry:"), plain(claimStatus), plain(insertCharge)},
				tables: statusTable + enrolTable, prepare: inTheWay,
				work: func(ctx context.Context, w *worker) (answer Answer, err error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					if w.n == 2 {
						if err := outOfTheWay(ctx, w); err != nil {
							return Answer{}, err
						}
					}
					var mine string
					if won, err := w.read(ctx, claimStatus, []any{theKey}, &mine); err != nil || !won {
						return Answer{Kind: Conflict, Status: 409}, err
					}
					failure := w.transaction(ctx, begin, func() error {
						if _, err := w.statement(ctx, insertEnrol, theCourse); err != nil {
							return err
						}
						var id int64
						_, err := w.read(ctx, insertCharge, []any{theKey, Price}, &id)
						answer = told(Charged, 201, receipt{id, Price}.body())
						return err
					})
					if failure != nil {
						if _, err := w.statement(ctx, deleteKey, theKey); err != nil {
							return Answer{}, err
						}
					}
					return answer, failure
				},
				expect: []expectation{charges("1"), outcomes("1 charged, 1 × 23505"), money("1")},
			},
			{
				Name: "swept-by-age", Title: "A sweeper for the dead", Sort: Broken, Should: 1, Lanes: []string{"first try", "sweeper", "retry"}, AlwaysHolds: true,
				About:  "The process dies behind the provider's charge, and deletes nothing. A sweeper takes the row for abandoned, by its age, and deletes it; the retry finds a free key, and charges again. A row in progress is all that is known of such a request: the shop's reaper never touches one, and the next owner takes it over.",
				SQL:    []Line{plain(claimStatus), note("call the provider, which charges; here the process dies"), note("an hour later the sweeper comes:"), fault(sweepAged), note("the retry:"), plain(claimStatus)},
				tables: agedTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					if w.n == 2 {
						w.happened(EventLapse, "an hour passes: the lab moves the key into the past")
						if err := w.lab.exec(ctx, `UPDATE keys SET created_at = created_at - interval '1 hour'`); err != nil {
							return Answer{}, err
						}
						swept, err := w.statement(ctx, sweepAged)
						w.figure("keys swept", "%d", swept)
						return Answer{Kind: Done}, err
					}
					var mine string
					if won, err := w.read(ctx, claimStatus, []any{theKey}, &mine); err != nil || !won {
						return Answer{Kind: Conflict, Status: 409}, err
					}
					id, err := w.provider.charge(ctx, w, "", Price, nil)
					if err != nil {
						return Answer{}, err
					}
					if w.n == 1 {
						return w.killed("the process dies between the charge and the record")
					}
					body := receipt{id, Price}.body()
					_, err = w.statement(ctx, `UPDATE keys SET status = 'completed', response = $2 WHERE key = $1`, theKey, string(body))
					return told(Charged, 201, body), err
				},
				after:  providerCalls,
				expect: []expectation{charges("2"), outcomes("1 charged, 1 done, 1 killed"), money("2"), figure("keys swept", "1"), figure(callsFigure, "2")},
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
