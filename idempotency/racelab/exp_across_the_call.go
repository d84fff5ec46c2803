package racelab

import (
	"context"
	"time"

	"payonce/idempotency"
)

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
