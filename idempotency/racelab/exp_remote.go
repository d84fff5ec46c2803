package racelab

import (
	"context"
	"errors"
	"time"

	"payonce/idempotency"
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
			if answer, err := between(); answer != nil || err != nil {
				return *answer, err
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
	lanes := []string{"first try", "retry"}
	return &Experiment{
		Name: "recorded-after-the-charge", Title: "Recorded after the charge", Chapter: TheBookkeeping,
		About: "The key is written down once the charge has succeeded. Whatever happens in between, a crash, a deploy, a client that hangs up and takes the handler along, leaves no trace, and the retry charges again. " +
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

// impatience is how long a buyer waits for a connection that is not there. The
// pool stays drained until all of them have given up, so its length decides
// nothing.
const impatience = 50 * time.Millisecond

// acrossTheCall keeps a transaction open while the provider works.
func acrossTheCall() *Experiment {
	const pool = 4
	// oneTransaction is the local shape with a call inside. Worker 1 owns the
	// key, the last worker is another buyer, and the rest are duplicates: the
	// first three of them drain the pool.
	oneTransaction := func(ctx context.Context, w *worker) (Answer, error) {
		ledger, key, cue := w.ledger, theKey, ""
		switch {
		case w.n == 1:
		case w.n <= pool:
			cue = "calling"
		default:
			cue = "drained"
			impatient, err := idempotency.New(idempotency.Config{Pool: w.pool, AcquireWait: impatience})
			if err != nil {
				return Answer{}, err
			}
			defer func() { _ = impatient.Close(context.WithoutCancel(ctx)) }()
			ledger = impatient
		}
		if w.n == w.round.n {
			key = "order-of-another-buyer"
		}
		if cue != "" {
			if err := w.await(ctx, cue); err != nil {
				return Answer{}, err
			}
		}
		req, err := request(theAccount, key, payments, fields{Price})
		if err != nil {
			return Answer{}, err
		}
		response, err := ledger.Do(ctx, req, func(ctx context.Context, _ *idempotency.Tx) (idempotency.Response, error) {
			id, err := w.provider.charge(ctx, w, "", Price, func() error {
				w.give("calling")
				if err := w.observer.await(ctx, func(l look) bool { return len(l.waiting) == pool-1 }); err != nil {
					return err
				}
				if err := w.lookAtCall(ctx); err != nil {
					return err
				}
				w.give("drained")
				return w.events.await(ctx, func([]moment) bool { return int(w.ended.Load()) >= w.round.n-pool })
			})
			return created(receipt{id, Price}), err
		})
		if err != nil {
			return Answer{}, err
		}
		return answered(response), nil
	}
	another := func(_ context.Context, r *round) error {
		r.figure("another buyer was told", "%d", r.answers[r.n-1].Status)
		return nil
	}
	return &Experiment{
		Name: "across-the-call", Title: "A transaction across the call", Chapter: TheBookkeeping,
		About: "The single-transaction shape with a provider's call inside it. Every duplicate waits on the unique index for as long as the call takes, and holds a connection meanwhile: with a pool of four, the owner and three duplicates are all it takes, and somebody else's purchase finds no connection. " +
			"In three phases nobody holds one during the call.",
		Barriers:   "The call takes until everyone else has been told, or is seen to wait. Buyers who find no connection give up after 50 ms, a timer that stands for their patience: the pool stays drained until they have.",
		HoldsWhen:  "Nothing slower than the database happens inside the transaction.",
		BreaksWhen: "The transaction is open while another machine works.",
		Workers:    Bounds{pool + 2, 8, MaxWorkers}, Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "one-transaction", Title: "One transaction", Sort: Broken, Should: 2, AlwaysHolds: true,
				About:  "Four connections do nothing, and everyone else is told 503: the last worker, too, who buys something else.",
				SQL:    []Line{plain(ledgerClaim), {Text: "the call, with the transaction open", Mark: Fault, Comment: true}, plain(ledgerDone), plain("COMMIT")},
				ledger: true, conns: pool, work: oneTransaction, after: another,
				expect: []expectation{
					charges("1"), outcomes("1 charged, 3 replayed, {n-4} × 503"),
					figure(heldAtCall, "4"), figure("another buyer was told", "503"),
				},
			},
			{
				Name: "lock-timeout", Title: "One transaction, and a lock_timeout", Sort: Costly, Should: 2, AlwaysHolds: true,
				About:  "A lock_timeout bounds the damage: duplicates give up with 55P03 and give their connections back. They are told 503 for a purchase that is under way.",
				SQL:    []Line{note("lock_timeout = 50ms"), fault(ledgerClaim), note("55P03: lock not available"), note("the call, with the transaction open"), plain(ledgerDone), plain("COMMIT")},
				ledger: true, conns: pool, lockTimeout: impatience,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					key := theKey
					if w.n > 1 {
						if err := w.await(ctx, "calling"); err != nil {
							return Answer{}, err
						}
					}
					if w.n == w.round.n {
						key = "order-of-another-buyer"
					}
					req, err := request(theAccount, key, payments, fields{Price})
					if err != nil {
						return Answer{}, err
					}
					response, err := w.ledger.Do(ctx, req, func(ctx context.Context, _ *idempotency.Tx) (idempotency.Response, error) {
						id, err := w.provider.charge(ctx, w, "", Price, func() error {
							if w.n > 1 {
								return nil
							}
							w.give("calling")
							return w.othersEnded(ctx)
						})
						return created(receipt{id, Price}), err
					})
					if err != nil {
						return Answer{}, err
					}
					return answered(response), nil
				},
				after: all(another, func(_ context.Context, r *round) error {
					r.figure("the first duplicate's SQLSTATE", "%s", r.answers[1].SQLSTATE)
					return nil
				}),
				expect: []expectation{
					charges("2"), outcomes("2 charged, {n-2} × 503"),
					figure("another buyer was told", "201"), figure("the first duplicate's SQLSTATE", "55P03"),
				},
			},
			{
				Name: "three-phases", Title: "Three phases", Sort: Right, Should: 2, AlwaysHolds: true,
				About: "Claim, call, record: during the call no transaction is open and no connection is held. Duplicates wait in memory, and the other buyer buys.",
				SQL:   []Line{cure(ledgerClaim), plain("COMMIT"), note("the call: no transaction, no connection"), plain(ledgerFence), plain(ledgerDone), plain("COMMIT")},
				Uses:  usesRecord, ledger: true, conns: pool,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if w.n == 1 {
						return w.buyRemote(ctx, theKey, Price, func() error {
							w.give("calling")
							if err := w.othersRead(ctx); err != nil {
								return err
							}
							return w.lookAtCall(ctx)
						})
					}
					if err := w.await(ctx, "calling"); err != nil {
						return Answer{}, err
					}
					if w.n == w.round.n {
						return w.buyRemote(ctx, "order-of-another-buyer", Price, nil)
					}
					return w.buyRemote(ctx, theKey, Price, nil)
				},
				after: another,
				expect: []expectation{
					charges("2"), outcomes("2 charged, {n-2} replayed"),
					figure(heldAtCall, "0"), figure("another buyer was told", "201"),
				},
			},
		},
	}
}
