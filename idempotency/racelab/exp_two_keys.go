package racelab

import (
	"context"
	"fmt"

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
