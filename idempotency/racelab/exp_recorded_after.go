package racelab

import (
	"context"
	"errors"
)

// recordedAfterCharge is the version that looks correct in every test that does
// not kill the process.
func recordedAfterCharge() *Experiment {
	lines := func(end Line) []Line {
		return []Line{plain(selectKey), note("no row: call the provider, which charges"), end, plain(insertKey)}
	}
	// naive looks, charges, and then writes the key down, on ctx.
	naive := func(ctx context.Context, w *worker, between func() (*Answer, error)) (Answer, error) {
		var response string
		found, err := w.read(ctx, selectKey, []any{theKey}, &response)
		if err != nil || found {
			return told(Replayed, 200, []byte(response)), err
		}
		id, err := w.provider.charge(ctx, w, "", Price, nil)
		if err != nil {
			return Answer{}, err
		}
		if between != nil {
			if answer, err := between(); answer != nil {
				return *answer, err
			} else if err != nil {
				return Answer{}, err
			}
		}
		body := receipt{id, Price}.body()
		_, err = w.statement(ctx, insertKey, theKey, string(body))
		return told(Charged, 201, body), err
	}
	// claimFirst kills the first owner after its charge, and lets the client
	// come back at once, and once more when the lease has lapsed.
	claimFirst := func(key string) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			if err := w.inTurn(ctx); err != nil {
				return Answer{}, err
			}
			if w.n == 3 {
				if err := w.lapse(ctx); err != nil {
					return Answer{}, err
				}
			}
			claim, answer, err := w.claim(ctx, theKey, Price)
			if claim == nil {
				return answer, err
			}
			id, err := w.provider.charge(ctx, w, key, Price, nil)
			if err != nil {
				return Answer{}, err
			}
			if w.n == 1 {
				return w.killed("the process dies between the charge and the record")
			}
			return w.record(ctx, claim, created(receipt{id, Price}))
		}
	}
	// askProvider is the other safe answer: the second owner asks whether there
	// is a charge, and records it.
	askProvider := func(ctx context.Context, w *worker) (Answer, error) {
		if err := w.inTurn(ctx); err != nil {
			return Answer{}, err
		}
		if w.n == 3 {
			if err := w.lapse(ctx); err != nil {
				return Answer{}, err
			}
		}
		claim, answer, err := w.claim(ctx, theKey, Price)
		if claim == nil {
			return answer, err
		}
		id, charged := int64(0), false
		if claim.Attempt > 1 { // somebody was here
			if id, charged, err = w.provider.find(ctx, w); err != nil {
				return Answer{}, err
			}
		}
		if !charged {
			if id, err = w.provider.charge(ctx, w, "", Price, nil); err != nil {
				return Answer{}, err
			}
		}
		if w.n == 1 {
			return w.killed("the process dies between the charge and the record")
		}
		return w.record(ctx, claim, created(receipt{id, Price}))
	}
	asked := func(_ context.Context, r *round) error {
		r.figure("times the provider was asked", "%d", r.provider.asked)
		return nil
	}
	lanes := []string{"first try", "retry"}
	return &Experiment{
		Name: "recorded-after-the-charge", Title: "Recorded after the charge", Chapter: TheBookkeeping,
		About: "The key is written down once the charge has succeeded. Whatever happens in between, a crash, a deploy, an error of the database, a client that hangs up and takes the handler along, leaves no trace, and the retry charges again. " +
			"Claimed first, the key stays in progress; the retry takes over when the lease has lapsed, and the provider, asked under the same downstream key, gives back the charge it knows.",
		Barriers:   "None: one request follows the other. A lease is not waited for: the lab moves it into the past.",
		HoldsWhen:  "The claim is committed before the call, and the call carries a key of its own.",
		BreaksWhen: "Nothing is written before the money moves, or the provider gets no key.",
		Workers:    parties(3), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "crash", Title: "The process dies", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The charge was made and nobody knows. The retry finds no key.",
				SQL:   lines(Line{Text: "here the process dies", Mark: Fault, Comment: true}), tables: keysWithPrimaryKey,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					return naive(ctx, w, func() (*Answer, error) {
						if w.n == 2 {
							return nil, nil
						}
						answer, err := w.killed("the process dies between the charge and the record")
						return &answer, err
					})
				},
				after:  providerCalls,
				expect: []expectation{charges("2"), outcomes("1 charged, 1 killed"), money("2"), figure(callsFigure, "2")},
			},
			{
				Name: "database-error", Title: "The INSERT fails", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "A deploy is moving the table when the key is to be written down: 42P01. By the time of the retry it is back, without the key.",
				SQL:   lines(Line{Text: "here the table is away: 42P01", Mark: Fault, Comment: true}), tables: keysWithPrimaryKey,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					if w.n == 2 {
						if err := w.lab.exec(ctx, `ALTER TABLE keys_moving RENAME TO keys`); err != nil {
							return Answer{}, err
						}
					}
					return naive(ctx, w, func() (*Answer, error) {
						if w.n == 2 {
							return nil, nil
						}
						err := w.lab.exec(ctx, `ALTER TABLE keys RENAME TO keys_moving`)
						return nil, err
					})
				},
				after:  providerCalls,
				expect: []expectation{charges("2"), outcomes("1 charged, 1 × 42P01"), money("2"), figure(callsFigure, "2")},
			},
			{
				Name: "client-timeout", Title: "The client hangs up", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The client's timeout ends the request's context, and with it the statement that would have written the key.",
				SQL:   lines(Line{Text: "here the client hangs up, and the request's context ends", Mark: Fault, Comment: true}), tables: keysWithPrimaryKey,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					request, hangUp := context.WithCancel(ctx)
					defer hangUp()
					answer, err := naive(request, w, func() (*Answer, error) {
						if w.n == 1 {
							w.happened(EventHungUp, "the client hangs up")
							hangUp()
						}
						return nil, nil
					})
					if errors.Is(err, context.Canceled) && ctx.Err() == nil {
						return Answer{Kind: HungUp, Note: "the key was not written: " + err.Error()}, nil
					}
					return answer, err
				},
				after:  providerCalls,
				expect: []expectation{charges("2"), outcomes("1 charged, 1 hung up"), money("2"), figure(callsFigure, "2")},
			},
			{
				Name: "no-downstream-key", Title: "Claimed first, but no key for the provider", Sort: Broken, Should: 1, AlwaysHolds: true,
				Lanes:  []string{"first try", "retry at once", "retry later"},
				About:  "The second owner knows that somebody was here. Whether the card was charged it can only ask, and it calls again instead.",
				SQL:    []Line{plain(ledgerClaim), note("call the provider, without a key; here the process dies"), fault(ledgerTakes), note("call the provider again"), plain(ledgerDone)},
				ledger: true, wait: -1, work: claimFirst(""), after: providerCalls,
				expect: []expectation{charges("2"), outcomes("1 charged, 1 × 409, 1 killed"), money("2"), figure(callsFigure, "2")},
			},
			{
				Name: "ask-the-provider", Title: "Claimed first, and the provider is asked", Sort: Right, Should: 1, AlwaysHolds: true,
				Lanes: []string{"first try", "retry at once", "retry later"},
				About: "The other safe answer: the second owner asks what was charged for the order, finds the first one's charge, and calls no more. It is safe if nothing can still be on its way, which the dead owner's call here is not.",
				SQL:   []Line{cure(ledgerClaim), note("call the provider, without a key; here the process dies"), plain(ledgerTakes), {Text: "ask the provider which charges the order has", Mark: Cure, Comment: true}, plain(ledgerDone)},
				Uses:  usesClaim, ledger: true, wait: -1, work: askProvider, after: all(providerCalls, asked, stateOfTheKey),
				expect: []expectation{
					charges("1"), outcomes("1 charged, 1 × 409, 1 killed"), money("1"),
					figure(callsFigure, "1"), figure("times the provider was asked", "1"), figure(stateFigure, "completed"),
				},
			},
			{
				Name: "claim-first", Title: "Claimed first", Sort: Right, Should: 1, AlwaysHolds: true,
				Lanes: []string{"first try", "retry at once", "retry later"},
				About: "Two calls, one charge. Who retries while the lease holds is told 409; who retries later takes over and resends the same call under the same downstream key.",
				SQL:   []Line{cure(ledgerClaim), note("call the provider, under a downstream key; here the process dies"), cure(ledgerTakes), note("the same call under the same key: the same charge"), plain(ledgerDone)},
				Uses:  usesClaim, ledger: true, wait: -1, work: claimFirst(downstream(theKey)), after: all(providerCalls, stateOfTheKey),
				expect: []expectation{
					charges("1"), outcomes("1 charged, 1 × 409, 1 killed"), money("1"),
					figure(callsFigure, "2"), figure(stateFigure, "completed"),
				},
			},
			{
				Name: "hang-up-ignored", Title: "Claimed first, and the client hangs up", Sort: Right, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "Call and record run on a context of their own, so a hang-up changes nothing, and the retry is a replay.",
				SQL:   []Line{cure(ledgerClaim), note("the client hangs up; call and record go on"), plain(ledgerDone), note("the retry replays"), plain(ledgerRead)},
				Uses:  usesRecord, ledger: true, wait: -1,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					request, hangUp := context.WithCancel(ctx)
					defer hangUp()
					claim, answer, err := w.claim(request, theKey, Price)
					if claim == nil {
						return answer, err
					}
					w.happened(EventHungUp, "the client hangs up")
					hangUp()
					own := context.WithoutCancel(request)
					id, err := w.provider.charge(own, w, downstream(theKey), Price, nil)
					if err != nil {
						return Answer{}, err
					}
					if _, err := w.record(own, claim, created(receipt{id, Price})); err != nil {
						return Answer{}, err
					}
					return Answer{Kind: HungUp, Note: "recorded all the same"}, nil
				},
				after:  all(providerCalls, stateOfTheKey),
				expect: []expectation{charges("1"), outcomes("1 replayed, 1 hung up"), money("1"), figure(callsFigure, "1"), figure(stateFigure, "completed")},
			},
		},
	}
}
