package racelab

import (
	"context"
	"time"
)

// A ledger with a lease and without an owner: the takeover is safe, the record
// is not.
const (
	leaseTable = `
	CREATE TABLE keys (
		key         text PRIMARY KEY,
		status      text NOT NULL,
		lease_until timestamptz,
		response    text);`
	claimLease  = `INSERT INTO keys (key, status, lease_until) VALUES ($1, 'in_progress', now() + interval '60 seconds') ON CONFLICT (key) DO NOTHING RETURNING key`
	takeLease   = `UPDATE keys SET lease_until = now() + interval '60 seconds' WHERE key = $1 AND status = 'in_progress' AND lease_until < now() RETURNING key`
	recordLease = `UPDATE keys SET status = 'completed', lease_until = NULL, response = $2 WHERE key = $1`
	selectLease = `SELECT response FROM keys WHERE key = $1 AND status = 'completed'`
)

// leaseAndFence is the owner who wakes up when another has finished.
func leaseAndFence() *Experiment {
	lanes := []string{"first owner", "second owner", "later"}
	// unfenced records without saying who it is.
	unfenced := func(key string) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			var mine, response string
			var during func() error
			switch w.n {
			case 1:
				if _, err := w.read(ctx, claimLease, []any{theKey}, &mine); err != nil {
					return Answer{}, err
				}
				during = func() error { w.give("calling"); return w.await(ctx, "recorded") }
			case 2:
				if err := w.await(ctx, "calling"); err != nil {
					return Answer{}, err
				}
				w.happened(EventLapse, "the lease lapses: the lab moves it into the past")
				if err := w.lab.exec(ctx, `UPDATE keys SET lease_until = now() - interval '1 second'`); err != nil {
					return Answer{}, err
				}
				if _, err := w.read(ctx, takeLease, []any{theKey}, &mine); err != nil {
					return Answer{}, err
				}
			case 3:
				if err := w.inTurn(ctx); err != nil {
					return Answer{}, err
				}
				_, err := w.read(ctx, selectLease, []any{theKey}, &response)
				return told(Replayed, 200, []byte(response)), err
			}
			id, err := w.provider.charge(ctx, w, key, Price, during)
			if err != nil {
				return Answer{}, err
			}
			body := receipt{id, Price}.body()
			_, err = w.statement(ctx, recordLease, theKey, string(body))
			w.give([]string{"", "overwritten", "recorded"}[w.n])
			return told(Charged, 201, body), err
		}
	}
	toldFigures := func(_ context.Context, r *round) error {
		r.figure("the second owner told", "charge %d", r.answers[1].Charge)
		r.figure("the replay says", "charge %d", r.answers[2].Charge)
		return nil
	}
	return &Experiment{
		Name: "lease-and-fence", Title: "A lease is not a lock", Chapter: TheBookkeeping,
		About: "A lease that is shorter than the call lets a second owner take over while the first still works. A downstream key keeps that to one charge, at the price of two calls. What it does not stop is the first owner's record: it wakes up and writes over the second one's answer, which a client has already been given. " +
			"A fence does: every later write names its owner and attempt, and finds no row.",
		Barriers:   "A script: the first owner's call ends when the second has recorded. The lab moves the lease into the past.",
		HoldsWhen:  "Each write after the claim names the owner's token and looks at the rows it affected.",
		BreaksWhen: "The lease is taken for mutual exclusion, or is so long that a dead owner keeps everybody out.",
		Workers:    parties(3), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "unfenced", Title: "Short lease, no fence", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About:  "Two charges, and the answer that was given is not the one that is kept.",
				SQL:    []Line{plain(claimLease), note("the call; the lease lapses; another takes over:"), plain(takeLease), note("both record, the slower one last"), fault(recordLease), plain(selectLease)},
				tables: leaseTable, work: unfenced(""), after: all(providerCalls, toldFigures),
				expect: []expectation{
					charges("2"), outcomes("2 charged, 1 replayed"), figure(callsFigure, "2"),
					figure("the second owner told", "charge 2"), figure("the replay says", "charge 1"),
				},
			},
			{
				Name: "unfenced-downstream-key", Title: "Short lease, a downstream key, no fence", Sort: Costly, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About:  "One charge for two calls: the provider knows the key. The overwritten answer happens to be the same.",
				SQL:    []Line{plain(claimLease), plain(takeLease), {Text: "both call, under one downstream key", Mark: Cure, Comment: true}, plain(recordLease), plain(selectLease)},
				tables: leaseTable, work: unfenced(downstream(theKey)), after: all(providerCalls, toldFigures),
				expect: []expectation{charges("1"), outcomes("2 charged, 1 replayed"), figure(callsFigure, "2"), figure("the replay says", "charge 1")},
			},
			{
				Name: "fenced", Title: "Fenced", Sort: Right, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The first owner's record finds the key under another owner. It writes nothing, and answers with what is stored.",
				SQL:   []Line{plain(ledgerClaim), note("the lease lapses; another takes over, calls, records:"), plain(ledgerTakes), plain(ledgerDone), note("the first owner comes back:"), cure(ledgerFence), note("no row: nothing is written")},
				Uses:  usesRecord, ledger: true, wait: -1,
				work:  takenOver,
				after: all(providerCalls, toldFigures, stateOfTheKey),
				expect: []expectation{
					charges("1"), outcomes("1 charged, 2 replayed"), money("1"), figure(callsFigure, "2"),
					figure("the second owner told", "charge 1"), figure("the replay says", "charge 1"), figure(stateFigure, "completed"),
				},
			},
			{
				Name: "longer-lease", Title: "A lease longer than the call", Sort: Right, Should: 1, Lanes: []string{"owner", "retry meanwhile", "later"}, AlwaysHolds: true,
				About: "Nobody takes over a living owner: one call. The price is paid after a crash, when the key waits for the whole lease.",
				SQL:   []Line{cure(ledgerClaim), note("the lease is live: 409"), plain(ledgerRead), plain(ledgerDone)},
				Uses:  usesClaim, ledger: true, wait: -1,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					var during func() error
					switch w.n {
					case 1:
						during = func() error { w.give("calling"); return w.await(ctx, "told") }
					case 2:
						if err := w.await(ctx, "calling"); err != nil {
							return Answer{}, err
						}
						defer w.give("told")
					case 3:
						if err := w.inTurn(ctx); err != nil {
							return Answer{}, err
						}
					}
					return w.buyRemote(ctx, theKey, Price, during)
				},
				after:  providerCalls,
				expect: []expectation{charges("1"), outcomes("1 charged, 1 replayed, 1 × 409"), money("1"), figure(callsFigure, "1")},
			},
			{
				Name: "lease-too-long", Title: "A lease of a day", Sort: Broken, Should: 1, Lanes: []string{"owner", "retry at once", "retry an hour later"}, AlwaysHolds: true,
				About:  "The owner dies before its call. Nobody is at work, nothing was charged, and for the rest of the day each honest retry is told that somebody is.",
				SQL:    []Line{fault(ledgerClaim), note("lease_until: tomorrow. Here the process dies"), plain(ledgerRead), note("the lease is live: 409, and an hour later again")},
				ledger: true, wait: -1, lease: 24 * time.Hour,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					if w.n == 3 {
						w.happened(EventLapse, "an hour passes: the lab moves the key into the past")
						err := w.lab.exec(ctx, `
							UPDATE idempotency_keys SET lease_until = lease_until - interval '1 hour', claimed_at = claimed_at - interval '1 hour', created_at = created_at - interval '1 hour'`)
						if err != nil {
							return Answer{}, err
						}
					}
					claim, answer, err := w.claim(ctx, theKey, Price)
					if claim == nil {
						return answer, err
					}
					return w.killed("the process dies before the call")
				},
				after:  all(providerCalls, stateOfTheKey),
				expect: []expectation{charges("0"), outcomes("2 × 409, 1 killed"), figure(callsFigure, "0"), figure(stateFigure, "in_progress")},
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
