package racelab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"payonce/idempotency"
)

// raceLoser is what the duplicate should be told, and what telling it costs.
func raceLoser() *Experiment {
	// patience is how long a duplicate waits that is told 409 in the end. The
	// call lasts until all of them have been told, so its length decides nothing.
	const patience = 20 * time.Millisecond
	// The call takes until every duplicate has been told.
	slow := func(ctx context.Context, w *worker) func() error {
		return func() error {
			if err := w.othersEnded(ctx); err != nil {
				return err
			}
			return w.lookAtCall(ctx)
		}
	}
	return &Experiment{
		Name: "race-loser", Title: "What the loser is told", Chapter: TheRightOne,
		About: "A duplicate may wait for the winner and get its answer, be told 409 at once, or wait a moment and then be told one of the two. Waiting on the index costs a connection for each duplicate, which is fine for a short transaction and ruinous beside a slow call. " +
			"Waiting outside of the database costs none. A 409 is safe if the client sends the same key again, and a second charge if it makes a new one.",
		Barriers:   "The winner goes on when PostgreSQL is seen to make the others wait, or, in the remote shape, when every duplicate has been told or waits outside of the database. Of the two short waits, the call ends within the one; the other, of 20 ms by a timer, ends within the call.",
		HoldsWhen:  "Whatever the duplicate is told, it comes back with the same key.",
		BreaksWhen: "A client takes a 409 for the advice to make a new key.",
		Workers:    manyWorkers, Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "waits-on-the-index", Title: "Wait on the index", Sort: Right, Should: 1, AlwaysHolds: true,
				About: "The local shape: PostgreSQL itself makes the duplicate wait, each on a connection of its own.",
				SQL:   []Line{cure(ledgerClaim), note("the loser waits here, then replays"), plain(ledgerRead)},
				Uses:  usesDo, ledger: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					return w.buyLocal(ctx, theKey, Price, func() error {
						if err := w.hold(ctx); err != nil {
							return err
						}
						return w.lookAtCall(ctx)
					})
				},
				after: all(differentAnswers, commitsMade),
				expect: []expectation{
					charges("1"), outcomes("1 charged, {n-1} replayed"), money("1"),
					figure(heldAtCall, "{n}"), figure(differing, "1"), figure(commitsFigure, "1"),
				},
			},
			{
				Name: "told-409", Title: "409 at once", Sort: Right, Should: 1, AlwaysHolds: true,
				About: "The remote shape: while the owner calls, the key is a committed row, so nobody waits for anything.",
				SQL:   []Line{cure(ledgerClaim), note("committed before the call"), plain(ledgerRead), note("in_progress: 409, Retry-After: 1")},
				Uses:  usesClaim, ledger: true,
				wait: -1,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					return w.buyRemote(ctx, theKey, Price, slow(ctx, w))
				},
				after: all(differentAnswers, commitsMade),
				expect: []expectation{
					charges("1"), outcomes("1 charged, {n-1} × 409"), money("1"),
					figure(heldAtCall, "0"), figure(differing, "1"), figure(commitsFigure, "2"),
				},
			},
			{
				Name: "short-wait", Title: "A short wait, and the answer", Sort: Right, Should: 1, AlwaysHolds: true,
				About: "The remote shape, with a wait outside of the database: one poller looks for all duplicates of a process, and none of them holds a connection. The call ends within the wait.",
				SQL:   []Line{cure(ledgerClaim), note("committed before the call; duplicates wait in memory"), plain(ledgerRead), note("completed: replay")},
				Uses:  usesClaim, ledger: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					return w.buyRemote(ctx, theKey, Price, func() error {
						if err := w.othersRead(ctx); err != nil {
							return err
						}
						return w.lookAtCall(ctx)
					})
				},
				after: differentAnswers,
				expect: []expectation{
					charges("1"), outcomes("1 charged, {n-1} replayed"), money("1"),
					figure(heldAtCall, "0"), figure(differing, "1"),
				},
			},
			{
				Name: "short-wait-over", Title: "A short wait, and 409", Sort: Right, Should: 1, AlwaysHolds: true,
				About: "The same wait, and a call that outlasts it: the duplicates have held no connection meanwhile, and are told to come back with the same key.",
				SQL:   []Line{cure(ledgerClaim), note("committed before the call; duplicates wait in memory, 20 ms"), plain(ledgerRead), note("still in_progress: 409, Retry-After: 1")},
				Uses:  usesClaim, ledger: true,
				wait: patience,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					return w.buyRemote(ctx, theKey, Price, slow(ctx, w))
				},
				after: differentAnswers,
				expect: []expectation{
					charges("1"), outcomes("1 charged, {n-1} × 409"), money("1"),
					figure(heldAtCall, "0"), figure(differing, "1"),
				},
			},
			{
				Name: "new-key-on-409", Title: "409, taken for advice", Sort: Broken, Should: 1, AlwaysHolds: true,
				About:  "The server is right. The client makes a new key for each retry, and so for each 409: every one of them is a purchase of its own.",
				SQL:    []Line{plain(ledgerClaim), note("409: the client tries again with another key"), fault(ledgerClaim)},
				ledger: true, wait: -1,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					a, err := w.buyRemote(ctx, theKey, Price, slow(ctx, w))
					if errors.Is(err, idempotency.ErrInProgress) {
						w.happened(EventAnswer, "409: the client makes a new key")
						return w.buyRemote(ctx, fmt.Sprintf("%s-again-%d", theKey, w.n), Price, nil)
					}
					return a, err
				},
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), money("{n}")},
			},
		},
	}
}
