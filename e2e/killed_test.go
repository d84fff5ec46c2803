package e2e

import (
	"context"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// brief lets a dead owner's key be free after seconds, so that a test can wait
// for it as a client does.
var brief = []string{"PROVIDER_TIMEOUT=3s", "LEASE=6s", clientsOnly}

// TestKilled: a shop that dies in the middle of a call. The next one takes the
// key over when its lease has lapsed, and finds out from Stripe what happened.
func TestKilled(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		name string
		at   stripesim.Point
		// before the retry, what becomes of the call that the dead shop had sent
		then func(rule, testing.TB)
	}{
		{"BeforeStripeReadTheCallThenRetriedChargesOnce", stripesim.Arrival, rule.drop},
		{"InMidCallThenRetriedChargesOnce", stripesim.Execution, rule.release},
		{"AfterTheChargeThenRetriedChargesOnce", stripesim.Answer, rule.drop},
		{"WhileTheCallIsStillOnItsWayThenRetriedChargesOnce", stripesim.Arrival, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// The dead owner's lease ends when the test says so.
			d := deploy(t, "PROVIDER_TIMEOUT=3s", clientsOnly)
			first := d.open(t)
			customer := d.customer(t, first)
			d.stripe.keepToItself(t)
			o := customer.place("idempotency-end-to-end")
			held := d.stripe.hold(t, c.at)
			cut := later(func() answer { return customer.pay(o, o.PaymentKey, "pm_card_visa") })
			held.reached(t)
			first.kill(t)
			require.Error(t, (<-cut).err)
			if c.then != nil {
				c.then(held, t)
			}

			d.reopen(t, first)
			again := customer.pay(o, o.PaymentKey, "pm_card_visa")
			require.False(t, again.problem(t, http.StatusConflict, "request_in_progress").SafeNewKey)
			require.Positive(t, again.retryAfter(), "the dead owner's lease")
			customer.pay(o, newKey(), "pm_card_mastercard").problem(t, http.StatusConflict, "payment_in_progress")

			d.execute(t, `UPDATE idempotency_keys SET lease_until = clock_timestamp() WHERE status = 'in_progress'`)
			p := customer.paid(customer.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_card_visa")))
			held.release(t) // a call that was still on its way arrives now
			require.Equal(t, p.Charge, d.stripe.requireOneCharge(t, o).ID)
			require.Equal(t, 1, d.stripe.confirms(t, p.PaymentIntent).Executed)
			require.Equal(t, "paid", customer.order(o.ID).Status)
		})
	}

	t.Run("InASlowCallThenRetriedChargesOnce", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, "PROVIDER_TIMEOUT=8s", "LEASE=11s", clientsOnly)
		first := d.open(t)
		customer := d.customer(t, first)
		d.stripe.keepToItself(t)
		o := customer.place("idempotency-end-to-end")
		cut := later(func() answer { return customer.pay(o, o.PaymentKey, "pm_sim_slow") })
		eventually(t, "Stripe has the confirmation", func() bool {
			for _, r := range d.stripe.received(t) {
				if r.Method == http.MethodPost && r.PaymentIntent != "" && !r.Done {
					return true
				}
			}
			return false
		})
		first.kill(t)
		require.Error(t, (<-cut).err)
		d.reopen(t, first)
		customer.paid(customer.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_sim_slow")))
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("InARefundThenRetriedGivesBackOnce", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, brief...)
		first := d.open(t)
		customer := d.customer(t, first)
		o, p := customer.buy("idempotency-end-to-end")
		key := newKey()
		held := d.stripe.add(t, stripesim.Rule{Method: http.MethodPost, Path: refundPath, Action: stripesim.Hold, At: stripesim.Answer})
		cut := later(func() answer { return customer.post(refundsOf(p), key, refundBody(o.Amount)) })
		held.reached(t)
		first.kill(t)
		require.Error(t, (<-cut).err)
		held.drop(t)

		d.reopen(t, first)
		a := customer.postUntilKnown(refundsOf(p), key, refundBody(o.Amount))
		require.Equal(t, http.StatusCreated, a.status, a.body)
		require.Equal(t, o.Amount, d.stripe.requireOneCharge(t, o).AmountRefunded)
		require.Len(t, customer.order(o.ID).Refunds, 1)
	})

	t.Run("AnotherShopTakesOver", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, brief...)
		first, second := d.open(t), d.open(t)
		customer := d.customer(t, first)
		d.stripe.keepToItself(t)
		o := customer.place("idempotency-end-to-end")
		held := d.stripe.hold(t, stripesim.Answer)
		cut := later(func() answer { return customer.pay(o, o.PaymentKey, "pm_card_visa") })
		held.reached(t)
		first.kill(t)
		require.Error(t, (<-cut).err)
		held.drop(t)
		customer = customer.at(second)
		customer.paid(customer.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_card_visa")))
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("AndNobodyRetriesSettlesItself", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, "PROVIDER_TIMEOUT=3s", "LEASE=6s", "COMPLETER_INTERVAL=1s")
		first := d.open(t)
		customer := d.customer(t, first)
		o := customer.place("idempotency-end-to-end")
		held := d.stripe.hold(t, stripesim.Answer)
		cut := later(func() answer { return customer.pay(o, o.PaymentKey, "pm_card_visa") })
		held.reached(t)
		first.kill(t)
		require.Error(t, (<-cut).err)
		held.drop(t)
		d.reopen(t, first)
		eventually(t, "the order is paid", func() bool { return customer.order(o.ID).Status == "paid" })
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("AlongWithStripeThenRetriedChargesOnce", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, brief...)
		first := d.open(t)
		customer := d.customer(t, first)
		d.stripe.keepToItself(t)
		o := customer.place("idempotency-end-to-end")
		held := d.stripe.hold(t, stripesim.Answer)
		cut := later(func() answer { return customer.pay(o, o.PaymentKey, "pm_card_visa") })
		held.reached(t)
		first.kill(t)
		pid := d.stripe.running(t).PID
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		require.Error(t, (<-cut).err)

		// Its journal knows what it had charged.
		d.reopen(t, first)
		require.NotEqual(t, pid, d.stripe.running(t).PID)
		customer.paid(customer.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_card_visa")))
		d.stripe.requireOneCharge(t, o)
	})
}

// TestHungUp: a customer who goes away changes nothing. The payment is carried
// out and recorded, and the same key finds it.
func TestHungUp(t *testing.T) {
	t.Parallel()
	d := deploy(t, clientsOnly)
	c := d.customer(t, d.open(t))
	d.stripe.keepToItself(t)
	o := c.place("idempotency-end-to-end")
	held := d.stripe.hold(t, stripesim.Execution)
	ctx, hangUp := context.WithCancel(t.Context())
	r := c.keyed(paymentsOf(o), o.PaymentKey, paymentBody("pm_card_visa")).WithContext(ctx)
	cut := later(func() answer { return c.send(r) })
	held.reached(t)
	hangUp()
	require.Error(t, (<-cut).err)
	held.release(t)

	eventually(t, "the payment is recorded though nobody waits for it", func() bool { return c.order(o.ID).Status == "paid" })
	replay := c.pay(o, o.PaymentKey, "pm_card_visa")
	c.paid(replay)
	require.True(t, replay.replayed())
	d.stripe.requireOneCharge(t, o)
}
