package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// daysPass moves everything that the shop remembers into the past, and lets
// Stripe forget its idempotency keys, as it does after a day.
func (d *deployment) daysPass(t testing.TB) {
	t.Helper()
	// Every time there is: a column that is forgotten here would stand still.
	d.execute(t, `
		DO $$ DECLARE c record; BEGIN
			FOR c IN SELECT table_name AS name, string_agg(format('%1$I = %1$I - interval ''2 days''', column_name), ', ') AS sets
			           FROM information_schema.columns
			          WHERE table_schema = current_schema() AND data_type = 'timestamp with time zone' GROUP BY table_name
			LOOP EXECUTE format('UPDATE %I SET %s', c.name, c.sets); END LOOP;
		END $$`)
	d.stripe.call(t, http.MethodPost, "/_sim/prune", nil, nil)
}

// TestLongAfter: what is found out days later, when Stripe has forgotten its
// keys and a resend would charge afresh. Then the shop asks, and sends nothing.
func TestLongAfter(t *testing.T) {
	t.Parallel()

	t.Run("ACardThatWasChargedIsFoundChargedByTheSameKey", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, clientsOnly)
		c := d.customer(t, d.open(t))
		d.stripe.keepToItself(t)
		o := c.place(sweptCourse)
		c.pay(o, o.PaymentKey, "pm_sim_reply_lost").problem(t, http.StatusServiceUnavailable, "outcome_unknown")
		d.daysPass(t)
		p := c.paid(c.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_sim_reply_lost")))
		require.Equal(t, 1, d.stripe.confirms(t, p.PaymentIntent).Received, "nothing was sent again")
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("ACardThatWasChargedIsFoundChargedWithoutTheBuyer", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, "COMPLETER_INTERVAL=100ms")
		shop := d.open(t, clientsOnly)
		c := d.customer(t, shop)
		d.stripe.keepToItself(t)
		o := c.place(sweptCourse)
		c.pay(o, o.PaymentKey, "pm_sim_reply_lost").problem(t, http.StatusServiceUnavailable, "outcome_unknown")
		d.daysPass(t)
		d.open(t)
		eventually(t, "the order is paid", func() bool { return c.order(o.ID).Status == "paid" })
		require.Equal(t, 1, d.stripe.confirms(t, d.stripe.requireOneCharge(t, o).PaymentIntent).Received)
	})

	t.Run("ACardThatWasNotChargedIsNeverCharged", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, clientsOnly)
		c := d.customer(t, d.open(t))
		d.stripe.keepToItself(t)
		o := c.place(sweptCourse)
		c.pay(o, o.PaymentKey, "pm_sim_never_arrived").problem(t, http.StatusServiceUnavailable, "outcome_unknown")
		d.daysPass(t)
		a := c.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_sim_never_arrived"))
		a.problem(t, http.StatusPaymentRequired, "payment_not_made")
		require.Empty(t, d.stripe.chargesOf(t, o), "the buyer left days ago, and is asked afresh")
	})

	t.Run("MoneyThatWasGivenBackIsNotGivenBackAgain", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, clientsOnly)
		c := d.customer(t, d.open(t))
		o, p := c.buy(sweptCourse)
		d.stripe.keepToItself(t)
		key := newKey()
		d.stripe.add(t, stripesim.Rule{Method: http.MethodPost, Path: refundPath, Action: stripesim.Drop, At: stripesim.Answer})
		// A part of it: giving it twice would not be refused by Stripe.
		part := o.Amount / 3
		lost := c.post(refundsOf(p), key, refundBody(part))
		lost.problem(t, http.StatusServiceUnavailable, "outcome_unknown")
		d.daysPass(t)
		a := c.postUntilKnown(refundsOf(p), key, refundBody(part))
		require.Equal(t, http.StatusCreated, a.status, a.body)
		require.Equal(t, part, d.stripe.requireOneCharge(t, o).AmountRefunded)
		require.Len(t, c.order(o.ID).Refunds, 1)
	})
}

// TestFrozen: a payment is sent again as it was sent first, whatever the shop
// would send by now. Otherwise Stripe refuses its own key, and nobody knows.
func TestFrozen(t *testing.T) {
	t.Parallel()
	d := deploy(t, clientsOnly)
	c := d.customer(t, d.open(t))
	d.stripe.keepToItself(t)
	o := c.place(sweptCourse)
	c.pay(o, o.PaymentKey, "pm_sim_reply_lost").problem(t, http.StatusServiceUnavailable, "outcome_unknown")

	d.execute(t, `UPDATE courses SET amount = amount + 1000, title = title || ', second edition', currency = 'eur' WHERE slug = $1`, o.Course)
	next := d.open(t, "PUBLIC_URL=http://another.example")

	p := c.paid(c.at(next).postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_sim_reply_lost")))
	d.stripe.requireOneCharge(t, o) // of the old amount, in the old currency
	confirms := d.stripe.confirms(t, p.PaymentIntent)
	require.Equal(t, 2, confirms.Received)
	require.Equal(t, 1, confirms.Replayed, "Stripe knew the second one for the first")
}

// TestRedelivered: an event that comes once more when the shop has forgotten
// that it came.
func TestRedelivered(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	first := d.open(t)
	c := d.customer(t, first)
	kept, _ := c.buy("stripe-in-production")
	returned, p := c.buy(sweptCourse)
	paid := c.post(refundsOf(p), newKey(), refundBody(returned.Amount))
	require.Equal(t, http.StatusCreated, paid.status, paid.body)

	var list struct {
		Data []struct {
			ID   string `json:"id"`
			Type string `json:"type"`
		} `json:"data"`
	}
	d.stripe.call(t, http.MethodGet, "/v1/events?limit=100", nil, &list)
	require.NotEmpty(t, list.Data)
	handled := func() bool {
		return sql[bool](t, d, `SELECT count(*) FILTER (WHERE type = 'payment_intent.succeeded') = 2 AND count(*) FILTER (WHERE type = 'charge.refunded') = 1 FROM events`)
	}
	eventually(t, "the events have come", handled)

	d.execute(t, `UPDATE events SET received_at = received_at - interval '46 days'`)
	first.close(t)
	d.reopen(t, first)
	eventually(t, "the reaper has been", func() bool { return sql[int](t, d, `SELECT count(*) FROM events`) == 0 })
	for _, e := range list.Data {
		d.stripe.call(t, http.MethodPost, "/_sim/events/"+e.ID+"/resend", nil, nil)
	}
	eventually(t, "they have come again", handled)

	require.Equal(t, "paid", c.order(kept.ID).Status)
	require.Equal(t, "refunded", c.order(returned.ID).Status, "an event of the past does not make it paid")
	require.True(t, c.owns("stripe-in-production"))
	require.False(t, c.owns(sweptCourse))
	require.Equal(t, 2, sql[int](t, d, `SELECT count(*) FROM enrolments`))
}

// TestReplayIsOfItsTime: a replay tells what was answered then, the order's page
// what is so now.
func TestReplayIsOfItsTime(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	c := d.customer(t, d.open(t))
	o := c.place(sweptCourse)
	first := c.pay(o, o.PaymentKey, "pm_card_visa")
	a := c.post(refundsOf(c.paid(first)), newKey(), refundBody(o.Amount))
	require.Equal(t, http.StatusCreated, a.status, a.body)

	replay := c.pay(o, o.PaymentKey, "pm_card_visa")
	require.True(t, replay.replayed())
	require.Equal(t, first.status, replay.status)
	require.Equal(t, first.body, replay.body)
	require.Equal(t, first.header.Get("Content-Type"), replay.header.Get("Content-Type"))
	require.Equal(t, "refunded", c.order(o.ID).Status)
}
