package racelab

import "context"

// claimByIndex is the answer, and what becomes of it if the winner fails.
func claimByIndex() *Experiment {
	fails := Variant{
		Name: "winner-rolls-back", Title: "The winner fails", Sort: Right, Should: 1, AlwaysHolds: true,
		About: "The first owner's handler fails and rolls back, and its claim with it. One of those who waited becomes the owner: its INSERT goes through after all.",
		SQL: []Line{
			cure(ledgerClaim), note("the winner's handler fails: ROLLBACK"),
			note("one waiting INSERT now adds its row"), plain(insertCharge), plain(ledgerDone), plain("COMMIT"),
		},
		Uses: usesDo, ledger: true,
		work: func(ctx context.Context, w *worker) (Answer, error) {
			return w.buyLocal(ctx, theKey, Price, func() error {
				first := w.count("owners", 1) == 1
				if err := w.hold(ctx); err != nil || !first {
					return err
				}
				return errUndone
			})
		},
		expect: []expectation{charges("1"), outcomes("1 charged, {n-2} replayed, 1 undone"), money("1"), figure("owners", "2")},
		after:  counted("owners"),
	}
	return &Experiment{
		Name: "claim", Title: "Let the unique index be the referee", Chapter: TheRightOne,
		About: "INSERT ... ON CONFLICT DO NOTHING RETURNING decides and claims in one statement. Whoever gets a row owns the request. " +
			"Whoever gets none has waited for the winner to commit or roll back, which is just the wait one wanted from a lock, and reads the stored answer. This is the package that the shop uses.",
		Barriers:   "The winner commits, or fails, once PostgreSQL is seen to make the others wait. Nothing else is arranged, and without it the figures are the same.",
		HoldsWhen:  "The claim, the work and the answer commit together, and losers replay what is stored.",
		BreaksWhen: "The work does not fit into the transaction: a call to a provider needs three phases instead.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{claimVariant(), fails},
	}
}
