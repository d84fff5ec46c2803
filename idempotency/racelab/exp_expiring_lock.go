package racelab

import "context"

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
