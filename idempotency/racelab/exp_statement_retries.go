package racelab

import (
	"context"
	"errors"
)

// statementRetries are retries below the transaction.
func statementRetries() *Experiment {
	lanes := []string{"request"}
	// conflict runs fn in a transaction whose snapshot the lab makes stale, so
	// that its UPDATE fails with 40001 the first time.
	conflict := func(ctx context.Context, w *worker, first bool) error {
		var seats int
		if _, err := w.read(ctx, `SELECT seats FROM stock WHERE course = $1`, []any{theCourse}, &seats); err != nil {
			return err
		}
		if first {
			if err := w.lab.exec(ctx, lowerStock, theCourse); err != nil {
				return err
			}
		}
		return nil
	}
	return &Experiment{
		Name: "statement-retries", Title: "Retrying a statement", Chapter: WhatElse,
		About: "A layer that repeats failed statements does nothing within a transaction, since PostgreSQL refuses all that follows an error, and does too much outside of one: if only the answer was lost, the statement has run. " +
			"What may be repeated is the whole transaction, and what makes that safe is a claim in it.",
		Barriers:   "The lab changes a row between two statements, and loses one reply of PostgreSQL after the server has done what it was told.",
		HoldsWhen:  "The unit that is repeated begins with BEGIN, and with a claim.",
		BreaksWhen: "The unit is a statement, or an answer that is lost is taken for work that is not done.",
		Workers:    parties(1), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "within-a-transaction", Title: "Within a transaction", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About:  "40001, and then 25P02 as often as one likes.",
				SQL:    []Line{plain(beginRepeatable), plain(`SELECT seats FROM stock WHERE course = $1`), plain(lowerStock), note("40001: the layer sends the statement again"), fault(lowerStock), note("25P02"), plain("ROLLBACK")},
				tables: stockTable, prepare: restock,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					return Answer{}, w.transaction(ctx, beginRepeatable, func() error {
						if err := conflict(ctx, w, true); err != nil {
							return err
						}
						_, first := w.statement(ctx, lowerStock, theCourse)
						w.figure("the statement", "%s", sqlState(first))
						_, second := w.statement(ctx, lowerStock, theCourse)
						return second
					})
				},
				expect: []expectation{charges("0"), outcomes("1 × 25P02"), figure("the statement", "40001")},
			},
			{
				Name: "reply-lost", Title: "Outside of one", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The INSERT was committed and its answer lost. The layer takes another connection and sends it again.",
				SQL:   []Line{plain(insertCharge), note("the reply is lost; the layer sends it again"), fault(insertCharge)}, shared: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					var id int64
					w.loseReply()
					lost := w.pool.QueryRow(ctx, insertCharge, theKey, Price).Scan(&id)
					if lost == nil || sqlState(lost) != "" {
						return Answer{}, errors.Join(errors.New("the reply was not lost"), lost)
					}
					err := w.pool.QueryRow(ctx, insertCharge, theKey, Price).Scan(&id)
					return told(Charged, 201, receipt{id, Price}.body()), err
				},
				expect: []expectation{charges("2"), outcomes("1 charged"), money("2")},
			},
			{
				Name: "whole-transaction", Title: "The whole transaction", Sort: Costly, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About:  "After 40001 everything from BEGIN runs again, and works.",
				SQL:    []Line{cure(beginRepeatable), plain(`SELECT seats FROM stock WHERE course = $1`), plain(lowerStock), note("40001: ROLLBACK, and again from BEGIN"), plain("ROLLBACK"), plain(insertCharge), plain("COMMIT")},
				tables: stockTable, prepare: restock,
				work: func(ctx context.Context, w *worker) (answer Answer, err error) {
					for {
						w.attempts++
						err = w.transaction(ctx, beginRepeatable, func() error {
							if err := conflict(ctx, w, w.attempts == 1); err != nil {
								return err
							}
							if _, err := w.statement(ctx, lowerStock, theCourse); err != nil {
								return err
							}
							var id int64
							_, err := w.read(ctx, insertCharge, []any{theKey, Price}, &id)
							answer = told(Charged, 201, receipt{id, Price}.body())
							return err
						})
						if sqlState(err) != serializationFailure || w.attempts == retries {
							w.figure("attempts", "%d", w.attempts)
							return answer, err
						}
					}
				},
				expect: []expectation{charges("1"), outcomes("1 charged"), money("1"), figure("attempts", "2")},
			},
			{
				Name: "commit-in-doubt", Title: "A COMMIT in doubt, with a claim", Sort: Right, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The reply to COMMIT is lost. The package looks for its own claim on another connection, in a way that waits for that COMMIT, and gives the answer that was stored.",
				SQL:   []Line{plain(ledgerClaim), plain(insertCharge), plain(ledgerDone), plain("COMMIT"), note("the reply is lost: is the key ours?"), cure(ledgerRead)},
				Uses:  usesDo, ledger: true, conns: 2,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					w.before("UPDATE idempotency_keys SET status = 'completed'", func(context.Context) { w.loseReply() })
					return w.buyLocal(ctx, theKey, Price, nil)
				},
				after:  stateOfTheKey,
				expect: []expectation{charges("1"), outcomes("1 charged"), money("1"), figure(stateFigure, "completed")},
			},
		},
	}
}
