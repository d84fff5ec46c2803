package racelab

import (
	"context"
	"time"

	"payonce/idempotency"
)

// retention is how long a key protects.
func retention() *Experiment {
	lanes := []string{"first try", "reaper", "late retry"}
	// script buys, lets a reaper pass when the key is 25 hours old, and comes
	// again with the same key.
	script := func(keep time.Duration, buy func(context.Context, *worker) (Answer, error)) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			if err := w.inTurn(ctx); err != nil {
				return Answer{}, err
			}
			if w.n != 2 {
				return buy(ctx, w)
			}
			w.happened(EventLapse, "25 hours pass: the lab moves the key into the past, and the provider forgets its own")
			w.provider.forget()
			err := w.lab.exec(ctx, `UPDATE idempotency_keys SET created_at = created_at - interval '25 hours', completed_at = completed_at - interval '25 hours'`)
			if err != nil {
				return Answer{}, err
			}
			reaped, err := w.ledger.ReapOnce(ctx, idempotency.Reap{Retention: keep})
			w.figure("keys reaped", "%d", reaped.Keys)
			return Answer{Kind: Done}, err
		}
	}
	buy := func(ctx context.Context, w *worker) (Answer, error) { return w.buyRemote(ctx, theKey, Price, nil) }
	reap := `WITH old AS (SELECT scope, key FROM idempotency_keys k WHERE completed_at < clock_timestamp() - $1::interval ... FOR UPDATE SKIP LOCKED), gone AS (DELETE FROM idempotency_keys k USING old ...`
	lines := func(decisive Line) []Line {
		return []Line{plain(ledgerClaim), plain(ledgerDone), note("25 hours later the reaper comes:"), decisive, note("and then the client, from a queue that lagged"), plain(ledgerRead)}
	}
	return &Experiment{
		Name: "retention", Title: "How long a key protects", Chapter: TheBookkeeping,
		About: "A key protects only while it exists. Reaped after 24 hours, the retry that a queue delivers in the 25th is a new request, and a second charge: the provider has forgotten its own key as well. Retention must exceed every path that can still retry. " +
			"Behind it stands the order's rule, which does not expire.",
		Barriers:   "None: one follows the other. The lab moves the key 25 hours into the past instead of waiting, and the provider forgets with it.",
		HoldsWhen:  "Keys are kept longer than anything can retry, and a rule of the business stands behind them.",
		BreaksWhen: "Somebody else's 24 hours are taken over without a look at one's own queues.",
		Workers:    parties(3), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "kept-24-hours", Title: "Kept for 24 hours", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The reaper removes the key; the retry finds none, and pays again.",
				SQL:   lines(fault(reap)), ledger: true,
				work: script(24*time.Hour, buy), after: providerCalls,
				expect: []expectation{charges("2"), outcomes("2 charged, 1 done"), money("2"), figure("keys reaped", "1"), figure(callsFigure, "2")},
			},
			{
				Name: "kept-72-hours", Title: "Kept for 72 hours", Sort: Right, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The reaper leaves it, and the late retry is a replay.",
				SQL:   lines(cure(reap)), Uses: usesReap, ledger: true, work: script(72*time.Hour, buy), after: providerCalls,
				expect: []expectation{charges("1"), outcomes("1 charged, 1 done, 1 replayed"), money("1"), figure("keys reaped", "0"), figure(callsFigure, "1")},
			},
			{
				Name: "rule-behind", Title: "Reaped, with the order's rule behind", Sort: Right, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The key is gone and claimed anew, and the order's slot refuses all the same.",
				SQL:   append(lines(plain(reap))[:5:5], plain(ledgerClaim), cure(insertPending), note("no row: the order has been paid")),
				Uses:  usesClaim, ledger: true, tables: paymentsTable + oneSlot,
				work: script(24*time.Hour, func(ctx context.Context, w *worker) (Answer, error) {
					return w.payOrder(ctx, theKey, nil)
				}),
				expect: []expectation{charges("1"), outcomes("1 charged, 1 done, 1 × 409"), money("1"), figure("keys reaped", "1")},
			},
		},
	}
}
