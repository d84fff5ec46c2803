package racelab

import (
	"context"
	"errors"
)

// Statements with SKIP LOCKED.
const (
	selectSkipLocked = selectKey + ` FOR UPDATE SKIP LOCKED`
	jobsTable        = `
	CREATE TABLE jobs (
		id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		done boolean NOT NULL DEFAULT false);`
	takeJob   = `SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`
	finishJob = `UPDATE jobs SET done = true WHERE id = $1`
)

// skipLocked is a good queue and a bad referee.
func skipLocked() *Experiment {
	return &Experiment{
		Name: "skip-locked", Title: "SKIP LOCKED", Chapter: WhatElse,
		About:      "SKIP LOCKED leaves out rows that somebody holds, so nobody waits. For a queue that is what one wants: any job will do. For a key it is a lie: the row that is locked is the answer, and leaving it out looks like no such key.",
		Barriers:   "A second barrier after the SELECT: every transaction is still open when the last one looks.",
		HoldsWhen:  "Any row will do, as in a queue, a completer or a reaper.",
		BreaksWhen: "One certain row is asked for, and its absence means something.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "as-a-referee", Title: "To look for a key", Sort: Broken, Should: 1,
				About:  "The key was completed long ago. One worker locks its row and replays; to all others the key is new.",
				SQL:    []Line{plain(begin), fault(selectSkipLocked), note("no row: locked, or not there? It looks the same"), plain(insertCharge), plain(insertKey), plain("COMMIT")},
				tables: keysTable, prepare: boughtBefore,
				work:   askFirst{begin: begin, look: selectSkipLocked}.work,
				expect: []expectation{charges("{n}"), outcomes("{n-1} charged, 1 replayed"), money("{n}")},
			},
			{
				Name: "as-a-queue", Title: "To take a job", Sort: Right, Should: perWorker, AlwaysHolds: true,
				About: "As many jobs as workers. Each takes another one, and nobody waits. The package's reaper works so.",
				SQL:   []Line{plain(begin), cure(takeJob), plain(insertCharge), plain(finishJob), plain("COMMIT")},
				Uses:  usesReap, tables: jobsTable,
				prepare: func(ctx context.Context, r *round) error {
					return r.lab.exec(ctx, `INSERT INTO jobs (done) SELECT false FROM generate_series(1, $1::int)`, r.n)
				},
				work: func(ctx context.Context, w *worker) (answer Answer, err error) {
					err = w.transaction(ctx, begin, func() error {
						var job, id int64
						found, err := w.read(ctx, takeJob, nil, &job)
						if err != nil {
							return err
						}
						if err := w.checked(ctx); err != nil {
							return err
						}
						if answer = (Answer{Kind: Ignored}); !found {
							return nil
						}
						if _, err := w.read(ctx, insertCharge, []any{theKey, Price}, &id); err != nil {
							return err
						}
						answer = told(Charged, 201, receipt{id, Price}.body())
						_, err = w.statement(ctx, finishJob, job)
						return err
					})
					return answer, err
				},
				after: all(lockWaits, func(ctx context.Context, r *round) error {
					left, err := ask[int](ctx, r.lab, `SELECT count(*) FROM jobs WHERE NOT done`)
					r.figure("jobs left", "%d", left)
					return err
				}),
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), figure("connections waiting for a lock", "0"), figure("jobs left", "0")},
			},
		},
	}
}

// boughtBefore is a purchase that was made before the workers came.
func boughtBefore(ctx context.Context, r *round) error {
	id, err := ask[int64](ctx, r.lab, insertCharge, theKey, Price)
	if err != nil {
		return err
	}
	return r.lab.exec(ctx, insertKey, theKey, string(receipt{id, Price}.body()))
}

// A lock with an expiry, as SET name token NX PX 10000 has it on Redis, and the
// compare-and-delete that gives it back.
const (
	locksTable = `
	CREATE TABLE locks (
		name       text PRIMARY KEY,
		token      text NOT NULL,
		expires_at timestamptz NOT NULL);`
	takeLock = `INSERT INTO locks (name, token, expires_at) VALUES ($1, $2, clock_timestamp() + interval '10 seconds') ON CONFLICT (name) DO UPDATE SET token = EXCLUDED.token, expires_at = EXCLUDED.expires_at WHERE locks.expires_at < clock_timestamp() RETURNING token`
	giveLock = `DELETE FROM locks WHERE name = $1 AND token = $2`
)

// expiringLock is the lock that people build on Redis.
func expiringLock() *Experiment {
	holders := []string{"first holder", "second holder"}
	take := func(ctx context.Context, w *worker) (token string, won bool, err error) {
		token = holders[w.n-1]
		won, err = w.read(ctx, takeLock, []any{theKey, token}, &token)
		return token, won, err
	}
	giveBack := func(ctx context.Context, w *worker, token string) error {
		rows, err := w.statement(ctx, giveLock, theKey, token)
		if w.n == 1 {
			w.figure("locks that the first holder gave back", "%d", rows)
		}
		return err
	}
	return &Experiment{
		Name: "expiring-lock", Title: "A lock with an expiry", Chapter: WhatElse,
		About: "SET NX PX, modelled as a row: take the lock if it is free or has expired, give it back if the token is still ours. It is exclusion for as long as nobody is slow: a holder that pauses beyond the expiry goes on beside the next one, and the token on the way out comes too late. " +
			"Nor is it memory: whoever comes after it was given back finds it free. Redis is no worse at this than PostgreSQL, and the cure is not in the lock.",
		Barriers:   "A script: the first holder pauses until the second has finished. The lab moves the expiry into the past instead of waiting.",
		HoldsWhen:  "The lock only saves work, and a claim that is fenced decides.",
		BreaksWhen: "A pause, a full disk or a garbage collector outlasts the expiry.",
		Workers:    parties(2), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "expires", Title: "The holder is slow", Sort: Broken, Should: 1, Lanes: holders, AlwaysHolds: true,
				About:  "Both looked, both had the lock, both charged.",
				SQL:    []Line{plain(takeLock), plain(selectKey), note("a pause; the lock expires; the next one takes it"), fault(takeLock), note("call the provider, which charges"), plain(insertKey), plain(giveLock), note("the first holder: no row, and too late")},
				tables: locksTable + keysTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if w.n == 2 {
						if err := w.await(ctx, "looked"); err != nil {
							return Answer{}, err
						}
						w.happened(EventLapse, "the lock expires: the lab moves it into the past")
						if err := w.lab.exec(ctx, `UPDATE locks SET expires_at = clock_timestamp() - interval '1 second'`); err != nil {
							return Answer{}, err
						}
					}
					token, won, err := take(ctx, w)
					if err != nil || !won {
						return Answer{Kind: Conflict, Status: 409}, err
					}
					var response string
					found, err := w.read(ctx, selectKey, []any{theKey}, &response)
					if err != nil || found {
						return told(Replayed, 200, []byte(response)), err
					}
					if w.n == 1 {
						w.give("looked")
						if err := w.othersEnded(ctx); err != nil {
							return Answer{}, err
						}
					}
					id, err := w.provider.charge(ctx, w, "", Price, nil)
					if err != nil {
						return Answer{}, err
					}
					body := receipt{id, Price}.body()
					if _, err := w.statement(ctx, insertKey, theKey, string(body)); err != nil {
						return Answer{}, err
					}
					return told(Charged, 201, body), giveBack(ctx, w, token)
				},
				expect: []expectation{charges("2"), outcomes("2 charged"), money("2"), figure("locks that the first holder gave back", "0")},
			},
			{
				Name: "no-memory", Title: "Exclusion without memory", Sort: Broken, Should: 1, Lanes: []string{"first try", "retry"}, AlwaysHolds: true,
				About: "Nobody is slow. The first is done and gives the lock back; the retry finds it free.",
				SQL:   []Line{fault(takeLock), note("call the provider, which charges"), plain(giveLock), note("the retry:"), plain(takeLock)}, tables: locksTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					token, won, err := take(ctx, w)
					if err != nil || !won {
						return Answer{Kind: Conflict, Status: 409}, err
					}
					id, err := w.provider.charge(ctx, w, "", Price, nil)
					if err != nil {
						return Answer{}, err
					}
					return told(Charged, 201, receipt{id, Price}.body()), giveBack(ctx, w, token)
				},
				expect: []expectation{charges("2"), outcomes("2 charged"), money("2"), figure("locks that the first holder gave back", "1")},
			},
			{
				Name: "claimed-and-fenced", Title: "A claim, fenced", Sort: Right, Should: 1, Lanes: []string{"first owner", "second owner", "later"}, AlwaysHolds: true,
				About: "The same pause. The second owner repeats the call under the same downstream key, and the first one's record finds the key under another owner.",
				SQL:   []Line{plain(ledgerClaim), note("the lease lapses; another takes over"), plain(ledgerTakes), plain(ledgerDone), note("the first owner comes back:"), cure(ledgerFence)},
				Uses:  usesRecord, ledger: true, wait: -1, work: takenOver, after: all(providerCalls, stateOfTheKey),
				expect: []expectation{charges("1"), outcomes("1 charged, 2 replayed"), money("1"), figure(callsFigure, "2"), figure(stateFigure, "completed")},
			},
		},
	}
}

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
						if sqlState(err) != "40001" || w.attempts == retries {
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

// takenOver is the first owner who comes back when another has finished.
func takenOver(ctx context.Context, w *worker) (Answer, error) {
	var during func() error
	switch w.n {
	case 1:
		during = func() error { w.give("calling"); return w.await(ctx, "recorded") }
	case 2:
		if err := w.await(ctx, "calling"); err != nil {
			return Answer{}, err
		}
		if err := w.lapse(ctx); err != nil {
			return Answer{}, err
		}
		defer w.give("recorded")
	case 3:
		if err := w.inTurn(ctx); err != nil {
			return Answer{}, err
		}
	}
	return w.buyRemote(ctx, theKey, Price, during)
}
