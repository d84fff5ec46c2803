package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// TestCrowd: forty checkouts wait for Stripe in a shop with four connections.
// None of them holds one, so the shop goes on for everybody else.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const crowd = 40
	// Their calls outlast the arrival of the last of them, also on a slow machine.
	d := deploy(t, "DB_MAX_CONNS=4", "PROVIDER_TIMEOUT=50s", "LEASE=2m", clientsOnly)
	s := d.open(t)
	d.stripe.add(t, stripesim.Rule{Method: http.MethodPost, Path: confirmPath, Action: stripesim.Drop, At: stripesim.Answer})
	lost := d.customer(t, s)
	held := lost.place("stripe-in-production")
	lost.pay(held, held.PaymentKey, "pm_card_visa").problem(t, http.StatusServiceUnavailable, "outcome_unknown")

	waiting := d.stripe.add(t, stripesim.Rule{Method: http.MethodPost, Path: confirmPath, Action: stripesim.Hold, Times: -1})
	var customers []*customer
	var orders []order
	for range crowd {
		c := d.customer(t, s)
		customers, orders = append(customers, c), append(orders, c.place(sweptCourse))
	}
	answers := later(func() []answer {
		return atOnce(crowd, func(i int) answer { return customers[i].pay(orders[i], orders[i].PaymentKey, "pm_card_visa") })
	})
	d.stripe.call(t, http.MethodPost, fmt.Sprintf("/_sim/rules/%s/wait?count=%d&timeout=%s", waiting.id, crowd, patience), nil, nil)

	ready, err := plainClient.Get(s.url + "/readyz")
	require.NoError(t, err)
	require.NoError(t, ready.Body.Close())
	require.Equal(t, http.StatusOK, ready.StatusCode)
	other := d.customer(t, s)
	free := other.post("/orders", newKey(), orderBody("why-select-cannot-answer"))
	require.Equal(t, http.StatusCreated, free.status, free.body)
	eventually(t, "an event is heard and settles a payment", func() bool { return lost.order(held.ID).Status == "paid" })
	require.Empty(t, answers, "all of them still wait")

	waiting.release(t)
	for i, a := range <-answers {
		customers[i].paid(a)
		d.stripe.requireOneCharge(t, orders[i])
	}
	require.Zero(t, sql[int](t, d, `
		SELECT count(*) FROM pg_stat_activity
		 WHERE datname = current_database() AND application_name = 'payonce' AND state LIKE 'idle in transaction%'`))
}

// TestWayBackMeetsTheEvent: the buyer comes back from the bank in the moment in
// which Stripe's event arrives, at two shops. Whoever is first settles it, and
// nobody is told that it failed.
func TestWayBackMeetsTheEvent(t *testing.T) {
	t.Parallel()
	d := deploy(t, clientsOnly)
	shops := []*shop{d.open(t), d.open(t)}
	for range 8 {
		c := d.customer(t, shops[0])
		o := c.place(sweptCourse)
		a := c.pay(o, o.PaymentKey, "pm_card_authenticationRequired")
		require.Equal(t, http.StatusAccepted, a.status, a.body)
		intent := c.order(o.ID).Payments[0].PaymentIntent
		event := d.stripe.holdEvents(t, "payment_intent.succeeded")
		d.stripe.call(t, http.MethodPost, "/_sim/payment_intents/"+intent+"/finish?outcome=succeeded", nil, nil)
		for i, back := range atOnce(5, func(i int) answer {
			if i == 2 {
				event.release(t)
				return answer{}
			}
			return c.at(shops[i%2]).get("/orders/" + o.ID + "/return")
		}) {
			if i != 2 {
				require.NoError(t, back.err)
				require.Equal(t, http.StatusSeeOther, back.status, back.body)
			}
		}
		for _, s := range shops {
			require.Equal(t, "paid", c.at(s).order(o.ID).Status)
		}
		d.stripe.requireOneCharge(t, o)
	}
	eventually(t, "every event is taken", func() bool {
		return sql[int](t, d, `SELECT count(*) FROM events WHERE type = 'payment_intent.succeeded' AND status = 'applied'`) == 8
	})
	require.Equal(t, 8, sql[int](t, d, `SELECT count(*) FROM enrolments`))
}

// TestRefundMeetsItsEvent: Stripe tells of a refund before it answers the call
// that made it. It is one refund.
func TestRefundMeetsItsEvent(t *testing.T) {
	t.Parallel()
	d := deploy(t, clientsOnly)
	c := d.customer(t, d.open(t))
	o, p := c.buy(sweptCourse)
	d.stripe.addDelivery(t, stripesim.DeliveryRule{Event: "charge.refunded", BeforeAnswer: true, Times: -1})
	a := c.post(refundsOf(p), newKey(), refundBody(o.Amount))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	r := decoded[refund](t, a)
	shown := c.order(o.ID)
	require.Equal(t, "refunded", shown.Status)
	require.Len(t, shown.Refunds, 1)
	require.Equal(t, r, shown.Refunds[0])
	require.Equal(t, o.Amount, d.stripe.requireOneCharge(t, o).AmountRefunded)
}
