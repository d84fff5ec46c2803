package e2e

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"payonce/checkout/stripesim"
)

// letGo ends what the steps before have held up.
func (w *world) letGo() {
	for _, release := range w.held {
		release()
	}
	w.held = nil
}

// restart is a power cut.
func (w *world) restart(t testing.TB, i int) {
	old := w.shop(i)
	old.kill(t)
	opened := w.reopen(t, old)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now[i] = opened
}

// breakSomething makes one thing go wrong.
func (w *world) breakSomething(t testing.TB, r *rand.Rand) {
	w.letGo()
	switch r.IntN(12) {
	case 0, 1:
		w.restart(t, r.IntN(2))
	case 2, 3, 4, 5:
		w.breakTheLine(t, r)
	case 6, 7, 8:
		w.breakTheEvents(t, r)
	case 9:
		w.lapse(t)
	case 10: // an order's time is over
		w.execute(t, `UPDATE orders SET expires_at = clock_timestamp() WHERE (account, id) IN (
			SELECT account, id FROM orders WHERE status = 'open' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)`)
	case 11:
		w.age(t)
	}
}

// breakTheLine puts a rule in force at Stripe.
func (w *world) breakTheLine(t testing.TB, r *rand.Rand) {
	paths := []string{confirmPath, confirmPath, "/v1/payment_intents", "/v1/payment_intents/*/cancel", "/v1/payment_intents/*", refundPath, refundPath}
	points := []stripesim.Point{stripesim.Arrival, stripesim.Execution, stripesim.Answer}
	failures := []stripesim.Failure{
		{Status: 429, Code: "rate_limit"},
		{Status: 500, Stored: true},
		{Status: 500, Stored: true, Executed: true},
		{Status: 500},
		{Status: 502, Body: "<html>"},
		{Status: 502, Body: "<html>", Executed: true},
		{Status: 401},
		{Status: 400},
	}
	rule := stripesim.Rule{Path: paths[r.IntN(len(paths))], At: points[r.IntN(3)], Times: 1 + r.IntN(2)}
	switch r.IntN(4) {
	case 0:
		rule.Action = stripesim.Drop
	case 1:
		rule.Action, rule.DelayMS = stripesim.Delay, 1+r.Int64N(2500)
	case 2:
		rule.Action, rule.At, rule.Failure = stripesim.Fail, "", &failures[r.IntN(len(failures))]
	case 3:
		rule.Action = stripesim.Hold
		held, drops := w.stripe.add(t, rule), r.IntN(2) == 0
		w.held = append(w.held, func() {
			if drops {
				held.drop(t)
			} else {
				held.release(t)
			}
		})
		return
	}
	w.stripe.add(t, rule)
}

// breakTheEvents puts a rule in force for deliveries.
func (w *world) breakTheEvents(t testing.TB, r *rand.Rand) {
	rule := stripesim.DeliveryRule{Times: 1 + r.IntN(4)}
	switch r.IntN(6) {
	case 0:
		rule.Drop = true
	case 1:
		rule.Copies = 1 + r.IntN(3)
	case 2:
		rule.DelayMS, rule.JitterMS = r.Int64N(500), 1000
	case 3:
		rule.BeforeAnswer = true
	case 4:
		rule.Tamper = stripesim.TamperBody
	case 5:
		rule.Hold = true
	}
	added := w.stripe.addDelivery(t, rule)
	if rule.Hold {
		w.held = append(w.held, func() { added.release(t) })
	}
}

// lapse moves every lease to its end, also those of owners that are at work, and
// every schedule to its next try.
func (w *world) lapse(t testing.TB) {
	w.execute(t, `UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '2 days'
		WHERE ctid IN (SELECT ctid FROM idempotency_keys WHERE status = 'in_progress' FOR UPDATE SKIP LOCKED)`)
	for _, table := range []string{"payments", "refunds", "orders"} {
		w.execute(t, `UPDATE `+table+` SET ask_at = clock_timestamp() - interval '1 s'
			WHERE ctid IN (SELECT ctid FROM `+table+` WHERE ask_at > clock_timestamp() FOR UPDATE SKIP LOCKED)`)
	}
}

// age makes finished keys so old that the reaper takes them; it runs when a shop
// is opened. What was answered under them is no longer to be found.
func (w *world) age(t testing.TB) {
	var keys []string
	w.withDatabase(t, func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, _ := pool.Query(ctx, `UPDATE idempotency_keys SET completed_at = completed_at - interval '4 days'
			WHERE ctid IN (SELECT ctid FROM idempotency_keys WHERE completed_at > clock_timestamp() - interval '1 day' ORDER BY completed_at LIMIT 3 FOR UPDATE SKIP LOCKED)
			RETURNING key`)
		var err error
		keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		w.aged[key] = true
	}
}
