package racelab

import "context"

// keyScope is whose key it is.
func keyScope() *Experiment {
	accounts := []string{"acct_alice", "acct_mallory"}
	bodies := func(_ context.Context, r *round) error {
		r.figure("the second account was told of charge", "%d", r.answers[1].Charge)
		return nil
	}
	return &Experiment{
		Name: "key-scope", Title: "Whose key it is", Chapter: TheBookkeeping,
		About: "Two accounts use the same key, by accident or because one has seen the other's. With the key alone as primary key the second is answered with the first one's receipt: a leak, and a purchase that never happens. " +
			"With the account in the key they do not meet.",
		Barriers:   "None: one request follows the other.",
		HoldsWhen:  "The primary key is account and key.",
		BreaksWhen: "The space of keys is one for all accounts.",
		Workers:    parties(2), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "one-space", Title: "One space of keys", Sort: Broken, Should: 2, Lanes: accounts, AlwaysHolds: true,
				About: "The second account reads the first one's receipt.",
				SQL:   []Line{fault(claimPlain), plain(selectKey)}, tables: plainTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					return w.replayAnything(ctx, theKey, Price)
				},
				after:  bodies,
				expect: []expectation{charges("1"), outcomes("1 charged, 1 replayed"), figure("the second account was told of charge", "1")},
			},
			{
				Name: "scoped", Title: "Scoped by account", Sort: Right, Should: 2, Lanes: accounts, AlwaysHolds: true,
				About: "PRIMARY KEY (scope, key): two accounts, two purchases.",
				SQL:   []Line{cure(ledgerClaim), note("$1 is the account")}, Uses: usesDo, ledger: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					req, err := request(accounts[w.n-1], theKey, payments, fields{Price})
					if err != nil {
						return Answer{}, err
					}
					return w.doCharge(ctx, req, Price, nil)
				},
				after:  bodies,
				expect: []expectation{charges("2"), outcomes("2 charged"), figure("the second account was told of charge", "2")},
			},
		},
	}
}
