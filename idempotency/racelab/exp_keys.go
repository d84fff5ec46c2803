package racelab

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"payonce/idempotency"
)

// The order's payments, with and without rules.
const (
	paymentsTable = `
	CREATE TABLE payments (
		id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		order_id text NOT NULL,
		key      text NOT NULL,
		status   text NOT NULL);`
	onePaid       = `CREATE UNIQUE INDEX payments_one_succeeded ON payments (order_id) WHERE status = 'succeeded';`
	oneSlot       = `CREATE UNIQUE INDEX payments_slot ON payments (order_id) WHERE status IN ('pending', 'requires_action', 'processing', 'succeeded');`
	selectPaid    = `SELECT count(*) FROM payments WHERE order_id = $1 AND status = 'succeeded'`
	insertPaid    = `INSERT INTO payments (order_id, key, status) VALUES ($1, $2, 'succeeded')`
	insertPending = `INSERT INTO payments (order_id, key, status) VALUES ($1, $2, 'pending') ON CONFLICT DO NOTHING`
	updatePaid    = `UPDATE payments SET status = 'succeeded' WHERE order_id = $1 AND key = $2`
	theOrder      = "1042"
)

// slot takes the order's slot in the transaction that claims the key.
func slot(_ context.Context, tx *idempotency.Tx, c idempotency.Claim) error {
	tx.Queue(insertPending, theOrder, string(c.Key)).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			return errSlotTaken
		}
		return nil
	})
	return nil
}

// payOrder pays the order under a key, with the slot taken at the claim.
func (w *worker) payOrder(ctx context.Context, key string, during func() error) (Answer, error) {
	req, err := request(theAccount, key, payments, fields{Price})
	if err != nil {
		return Answer{}, err
	}
	claim, response, err := w.ledger.Claim(ctx, req, slot)
	if err != nil {
		return Answer{}, err
	}
	if response != nil {
		return answered(*response), nil
	}
	id, err := w.provider.charge(ctx, w, downstream(key), Price, during)
	if err != nil {
		return Answer{}, err
	}
	recorded, err := w.ledger.Record(ctx, *claim, func(_ context.Context, tx *idempotency.Tx) (idempotency.Response, error) {
		tx.Queue(updatePaid, theOrder, key)
		return created(receipt{id, Price}), nil
	})
	if err != nil {
		return Answer{}, err
	}
	return answered(recorded), nil
}

// twoKeysOneOrder is what no key can see: that two of them mean one thing.
func twoKeysOneOrder() *Experiment {
	// late looks whether the order is paid, charges, and then writes it down.
	late := func(ctx context.Context, w *worker) (Answer, error) {
		var paid int
		if _, err := w.read(ctx, selectPaid, []any{theOrder}, &paid); err != nil {
			return Answer{}, err
		}
		if err := w.checked(ctx); err != nil {
			return Answer{}, err
		}
		if paid > 0 {
			return Answer{Kind: Conflict, Status: 409}, nil
		}
		key := fmt.Sprintf("click-%d", w.n)
		id, err := w.provider.charge(ctx, w, downstream(key), Price, nil)
		if err != nil {
			return Answer{}, err
		}
		_, err = w.statement(ctx, insertPaid, theOrder, key)
		return told(Charged, 201, receipt{id, Price}.body()), err
	}
	return &Experiment{
		Name: "two-keys-one-order", Title: "Two keys, one order", Chapter: TheBookkeeping,
		About: "A double click that makes two intents has two keys, and both are honest. Only a rule of the business can stand behind them: one payment per order. An index on paid orders is asked when the money has moved. " +
			"The slot is taken in the claim, by an index over everything that could still become money, so the second key is refused before the provider hears of it.",
		Barriers:   "In the broken variants a second barrier stands between the look at the order and the charge. In the right one the first owner's call ends when every other has been told.",
		HoldsWhen:  "The row that the index refuses is written before the call.",
		BreaksWhen: "The rule is about success, and success is known too late.",
		Workers:    Bounds{2, 2, MaxWorkers}, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "no-rule", Title: "Keys alone", Sort: Broken, Should: 1,
				About: "Each key is new, so each is a purchase.",
				SQL:   []Line{fault(selectPaid), note("not paid: call the provider, which charges"), plain(insertPaid)}, tables: paymentsTable,
				work: late, expect: []expectation{charges("{n}"), outcomes("{n} charged"), money("{n}")},
			},
			{
				Name: "index-on-succeeded", Title: "One succeeded payment per order", Sort: Broken, Should: 1,
				About: "The index refuses the second payment, after the card was charged for it.",
				SQL:   []Line{plain(selectPaid), note("not paid: call the provider, which charges"), fault(insertPaid), note("23505, after the money has moved")}, tables: paymentsTable + onePaid,
				work: late, expect: []expectation{charges("{n}"), outcomes("1 charged, {n-1} × 23505"), money("{n}")},
			},
			{
				Name: "slot-at-the-claim", Title: "A slot, taken at the claim", Sort: Right, Should: 1, AlwaysHolds: true,
				About: "One transaction claims the key and the order's slot. The loser's key is not even stored.",
				SQL:   []Line{plain(ledgerClaim), cure(insertPending), note("no row: the slot is taken, so ROLLBACK and 409"), plain("COMMIT"), note("call the provider"), plain(updatePaid), plain(ledgerDone)},
				Uses:  usesClaim, ledger: true, wait: -1, tables: paymentsTable + oneSlot,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					return w.payOrder(ctx, fmt.Sprintf("click-%d", w.n), func() error { return w.othersEnded(ctx) })
				},
				after: func(ctx context.Context, r *round) error {
					keys, err := ask[int](ctx, r.lab, `SELECT count(*) FROM idempotency_keys`)
					r.figure("keys stored", "%d", keys)
					return err
				},
				expect: []expectation{charges("1"), outcomes("1 charged, {n-1} × 409"), money("1"), figure("keys stored", "1")},
			},
		},
	}
}

// clientKeys is the client's half: one key for one intent.
func clientKeys() *Experiment {
	under := func(keys ...string) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			if err := w.inTurn(ctx); err != nil {
				return Answer{}, err
			}
			return w.buyLocal(ctx, keys[w.n-1], []int64{Price, Price, 7900}[w.n-1], nil)
		}
	}
	courses := []string{"course 1", "course 2"}
	return &Experiment{
		Name: "client-keys", Title: "Where the key comes from", Chapter: TheBookkeeping,
		About: "A key that is made within the retry loop is new each time, and so is the purchase. A key made of the user's id is old for the second course, which is answered with the first one's receipt, or, with a fingerprint, can never be bought. " +
			"The client makes one key per intent, before the first send, and keeps it.",
		Barriers:   "None: one request follows the other.",
		HoldsWhen:  "The key is made once per intent and stored before it is sent.",
		BreaksWhen: "It is made per request, or per user, or per session.",
		Workers:    parties(3), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "new-key-per-retry", Title: "A new key per retry", Sort: Broken, Should: 1, Lanes: []string{"first try", "retry"}, AlwaysHolds: true,
				About: "The server is right both times.",
				SQL:   []Line{plain(ledgerClaim), note("the answer is lost; the client tries again with a new key"), fault(ledgerClaim)}, ledger: true,
				work:   under("try-1", "try-2"),
				expect: []expectation{charges("2"), outcomes("2 charged"), money("2")},
			},
			{
				Name: "key-of-the-user", Title: "A key made of the user", Sort: Broken, Should: 2, Lanes: courses, AlwaysHolds: true,
				About: "The second course replays the first. Nobody is charged for it, and nobody gets it.",
				SQL:   []Line{fault(claimPlain), note("$1 is the user's id"), plain(selectKey)}, tables: plainTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					return w.replayAnything(ctx, "user-7", []int64{Price, 7900}[w.n-1])
				},
				expect: []expectation{charges("1"), outcomes("1 charged, 1 replayed"), money("1")},
			},
			{
				Name: "key-of-the-user-fingerprint", Title: "The same, with a fingerprint", Sort: Broken, Should: 2, Lanes: courses, AlwaysHolds: true,
				About: "Loud at least: 422 for as long as the key is kept.",
				SQL:   []Line{fault(ledgerClaim), note("$2 is the user's id"), plain(ledgerRead)}, ledger: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					return w.buyLocal(ctx, "user-7", []int64{Price, 7900}[w.n-1], nil)
				},
				expect: []expectation{charges("1"), outcomes("1 charged, 1 × 422"), money("1")},
			},
			{
				Name: "one-key-per-intent", Title: "One key per intent", Sort: Right, Should: 1, Lanes: []string{"first try", "retry"}, AlwaysHolds: true,
				About: "The retry sends the same key, so it is a replay.",
				SQL:   []Line{cure(ledgerClaim), note("the answer is lost; the client sends the same request again"), plain(ledgerRead)}, Uses: usesDo, ledger: true,
				work:   under("intent-1", "intent-1"),
				expect: []expectation{charges("1"), outcomes("1 charged, 1 replayed"), money("1")},
			},
			{
				Name: "another-intent", Title: "Another intent, another key", Sort: Right, Should: 2, Lanes: []string{"course 1", "retry", "course 2"}, AlwaysHolds: true,
				About: "And the second course is a purchase of its own.",
				SQL:   []Line{cure(ledgerClaim), plain(ledgerRead), plain(ledgerClaim)}, Uses: usesDo, ledger: true,
				work:   under("intent-1", "intent-1", "intent-2"),
				expect: []expectation{charges("2"), outcomes("2 charged, 1 replayed")},
			},
		},
	}
}

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
			w.happened(EventLapse, "25 hours pass: the lab moves the key into the past")
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
				work: script(24*time.Hour, func(ctx context.Context, w *worker) (Answer, error) {
					claim, answer, err := w.claim(ctx, theKey, Price)
					if claim == nil {
						return answer, err
					}
					id, err := w.provider.charge(ctx, w, fmt.Sprintf("%s:day-%d", downstream(theKey), w.n), Price, nil)
					if err != nil {
						return Answer{}, err
					}
					return w.record(ctx, claim, created(receipt{id, Price}))
				}),
				expect: []expectation{charges("2"), outcomes("2 charged, 1 done"), money("2"), figure("keys reaped", "1")},
			},
			{
				Name: "kept-72-hours", Title: "Kept for 72 hours", Sort: Right, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The reaper leaves it, and the late retry is a replay.",
				SQL:   lines(cure(reap)), Uses: usesReap, ledger: true, work: script(72*time.Hour, buy),
				expect: []expectation{charges("1"), outcomes("1 charged, 1 done, 1 replayed"), money("1"), figure("keys reaped", "0")},
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
