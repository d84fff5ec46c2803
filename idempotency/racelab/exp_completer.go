package racelab

import (
	"context"

	"payonce/idempotency"
)

// completer is who finishes what no client comes back for.
func completer() *Experiment {
	lanes := []string{"buyer", "later"}
	crash := func(ctx context.Context, w *worker) (Answer, error) {
		claim, answer, err := w.claim(ctx, theKey, Price)
		if claim == nil {
			return answer, err
		}
		if _, err := w.provider.charge(ctx, w, downstream(theKey), Price, nil); err != nil {
			return Answer{}, err
		}
		return w.killed("the process dies, and the buyer does not come back")
	}
	return &Experiment{
		Name: "completer", Title: "Nobody comes back", Chapter: TheBookkeeping,
		About: "The process dies after the charge, and the buyer closes the tab. Without a retry the key stays in progress for good: money in, nothing delivered. " +
			"A completer looks for lapsed leases, takes over like any client, asks the provider under the same downstream key, and records.",
		Barriers:   "None: one follows the other. The lab moves the lease into the past.",
		HoldsWhen:  "Somebody takes over every key whose lease has lapsed.",
		BreaksWhen: "Only the client's retry ever finishes a key.",
		Workers:    parties(2), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "no-completer", Title: "No completer", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About:  "The card was charged, and no row says so.",
				SQL:    []Line{plain(ledgerClaim), {Text: "call the provider; here the process dies, and nobody retries", Mark: Fault, Comment: true}},
				ledger: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil || w.n == 1 {
						return crash(ctx, w)
					}
					return Answer{Kind: Ignored, Note: "nobody is there"}, w.lapse(ctx)
				},
				after:  all(providerCalls, stateOfTheKey),
				expect: []expectation{charges("1"), outcomes("1 ignored, 1 killed"), figure(stateFigure, "in_progress")},
			},
			{
				Name: "completer", Title: "A completer", Sort: Right, Should: 1, Lanes: []string{"buyer", "completer"}, AlwaysHolds: true,
				About: "It finds the lapsed lease, takes over, repeats the call, and records the charge that the provider knows.",
				SQL:   []Line{plain(ledgerClaim), note("call the provider; here the process dies"), cure(ledgerTakes), note("the same call, under the same downstream key"), plain(ledgerDone)},
				Uses:  usesTakeOver, ledger: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil || w.n == 1 {
						return crash(ctx, w)
					}
					if err := w.lapse(ctx); err != nil {
						return Answer{}, err
					}
					due, err := w.ledger.Due(ctx, idempotency.Schedule{0}, 10)
					if err != nil {
						return Answer{}, err
					}
					answer := Answer{Kind: Ignored}
					for _, abandoned := range due {
						claim, err := w.ledger.TakeOver(ctx, abandoned, func(context.Context, *idempotency.Tx, idempotency.Claim) error { return nil })
						if claim == nil || err != nil {
							return answer, err
						}
						id, err := w.provider.charge(ctx, w, downstream(string(claim.Key)), Price, nil)
						if err != nil {
							return answer, err
						}
						if answer, err = w.record(ctx, claim, created(receipt{id, Price})); err != nil {
							return answer, err
						}
						answer.Kind = Done
					}
					return answer, nil
				},
				after: all(providerCalls, stateOfTheKey),
				expect: []expectation{
					charges("1"), outcomes("1 done, 1 killed"), money("1"),
					figure(callsFigure, "2"), figure(stateFigure, "completed"),
				},
			},
		},
	}
}
