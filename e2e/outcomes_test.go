package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDecline: a bank's no is an answer like any other, and opens the way to
// the next card.
func TestDecline(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)
	for method, code := range map[string]string{
		"pm_card_chargeDeclined":                  "card_declined",
		"pm_card_chargeDeclinedInsufficientFunds": "card_declined",
		"pm_card_chargeDeclinedExpiredCard":       "expired_card",
		"pm_card_chargeDeclinedIncorrectCvc":      "incorrect_cvc",
	} {
		t.Run(method+"ThenAnotherCardChargesOnce", func(t *testing.T) {
			t.Parallel()
			c := d.customer(t, shop)
			o := c.place("idempotency-end-to-end")
			first := c.pay(o, o.PaymentKey, method)
			declined := first.problem(t, http.StatusPaymentRequired, code)
			require.True(t, declined.SafeNewKey)
			require.NotEmpty(t, declined.PaymentKey)
			require.NotEqual(t, o.PaymentKey, declined.PaymentKey)
			require.Equal(t, "failed", declined.Payment.Status)
			require.Equal(t, declined.PaymentKey, c.order(o.ID).PaymentKey)

			again := c.pay(o, o.PaymentKey, method)
			require.Equal(t, http.StatusPaymentRequired, again.status)
			require.True(t, again.replayed())
			require.Equal(t, first.body, again.body)
			require.Empty(t, d.stripe.chargesOf(t, o))

			p := c.paid(c.pay(o, declined.PaymentKey, "pm_card_visa"))
			d.stripe.requireOneCharge(t, o)
			require.Equal(t, 2, d.stripe.confirms(t, p.PaymentIntent).Received, "one for each card, none for the replay")
			require.True(t, c.owns("idempotency-end-to-end"))
		})
	}
}

// TestRateLimited: Stripe turned the payment away before doing anything, so the
// next key and the old one are both safe.
func TestRateLimited(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	busy := func(t *testing.T) (*customer, order, problem) {
		c := d.customer(t, shop)
		o := c.place("idempotency-end-to-end")
		a := c.pay(o, o.PaymentKey, "pm_sim_rate_limited")
		p := a.problem(t, http.StatusServiceUnavailable, "provider_busy")
		require.True(t, p.SafeNewKey)
		require.NotEmpty(t, p.PaymentKey)
		require.NotEqual(t, o.PaymentKey, p.PaymentKey)
		require.Positive(t, a.retryAfter())
		require.Empty(t, d.stripe.chargesOf(t, o))
		return c, o, p
	}
	t.Run("AnotherCardAtOnceWithTheNextKeyChargesOnce", func(t *testing.T) {
		t.Parallel()
		c, o, p := busy(t)
		c.paid(c.pay(o, p.PaymentKey, "pm_card_visa"))
		d.stripe.requireOneCharge(t, o)
		c.pay(o, o.PaymentKey, "pm_sim_rate_limited").problem(t, http.StatusConflict, "order_already_paid")
		d.stripe.requireOneCharge(t, o)
	})
	t.Run("TheOldKeyAgainChargesOnce", func(t *testing.T) {
		t.Parallel()
		c, o, p := busy(t)
		c.paid(c.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_sim_rate_limited")))
		c.pay(o, p.PaymentKey, "pm_card_visa").problem(t, http.StatusConflict, "order_already_paid")
		d.stripe.requireOneCharge(t, o)
	})
	t.Run("BothKeysAtOnceChargeOnce", func(t *testing.T) {
		t.Parallel()
		c, o, p := busy(t)
		answers := atOnce(2, func(i int) answer {
			if i == 0 {
				return c.pay(o, o.PaymentKey, "pm_sim_rate_limited")
			}
			return c.pay(o, p.PaymentKey, "pm_card_visa")
		})
		statuses := []int{answers[0].status, answers[1].status}
		require.ElementsMatch(t, []int{http.StatusCreated, http.StatusConflict}, statuses, "%v", answers)
		d.stripe.requireOneCharge(t, o)
	})
}

// TestReplyLost: the card was charged and nobody said so. The same key finds
// out; nothing is charged by asking.
func TestReplyLost(t *testing.T) {
	t.Parallel()

	t.Run("SameKeyAfterRetryAfterIsAnsweredAndChargedOnce", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, clientsOnly)
		c := d.customer(t, d.open(t))
		d.stripe.keepToItself(t)
		o := c.place("idempotency-end-to-end")
		lost := c.pay(o, o.PaymentKey, "pm_sim_reply_lost")
		unknown := lost.problem(t, http.StatusServiceUnavailable, "outcome_unknown")
		require.False(t, unknown.SafeNewKey)
		require.Empty(t, unknown.PaymentKey)
		require.Equal(t, "2", lost.header.Get("Retry-After"))
		require.Equal(t, "pending", unknown.Payment.Status)
		require.Equal(t, o.PaymentKey, c.order(o.ID).PaymentKey, "no next key while the outcome is unknown")

		refused := c.pay(o, newKey(), "pm_card_visa").problem(t, http.StatusConflict, "payment_in_progress")
		require.Equal(t, unknown.Payment.ID, refused.Payment.ID)

		p := c.paid(c.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_sim_reply_lost")))
		require.Equal(t, unknown.Payment.ID, p.ID)
		d.stripe.requireOneCharge(t, o)
		confirms := d.stripe.confirms(t, p.PaymentIntent)
		require.Equal(t, 1, confirms.Executed)
		require.Equal(t, confirms.Received-1, confirms.Replayed, "whatever else was sent was a replay at Stripe too")
	})

	t.Run("StripesEventSettlesItThoughNobodyAsks", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, clientsOnly)
		c := d.customer(t, d.open(t))
		o := c.place("idempotency-end-to-end")
		c.pay(o, o.PaymentKey, "pm_sim_reply_lost")
		eventually(t, "the order is paid", func() bool { return c.order(o.ID).Status == "paid" })
		a := c.pay(o, o.PaymentKey, "pm_sim_reply_lost")
		p := c.paid(a)
		require.True(t, a.replayed())
		require.Equal(t, p.Charge, d.stripe.requireOneCharge(t, o).ID)
		require.Equal(t, 1, d.stripe.confirms(t, p.PaymentIntent).Received)
	})

	t.Run("TheShopSettlesItThoughNobodyAsksAndNoEventComes", func(t *testing.T) {
		t.Parallel()
		d := deploy(t)
		c := d.customer(t, d.open(t))
		d.stripe.keepToItself(t)
		o := c.place("idempotency-end-to-end")
		c.pay(o, o.PaymentKey, "pm_sim_reply_lost").problem(t, http.StatusServiceUnavailable, "outcome_unknown")
		eventually(t, "the order is paid", func() bool { return c.order(o.ID).Status == "paid" })
		a := c.pay(o, o.PaymentKey, "pm_sim_reply_lost")
		require.Equal(t, c.paid(a).Charge, d.stripe.requireOneCharge(t, o).ID)
		require.True(t, a.replayed())
	})
}

// TestFaults: whatever the line to Stripe does, a client that only ever sends
// the same key again ends with an answer, and the card is charged at most once.
func TestFaults(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)
	for _, method := range []string{"pm_sim_reply_lost", "pm_sim_never_arrived", "pm_sim_rate_limited", "pm_sim_slow"} {
		t.Run(method+"EndsInOneCharge", func(t *testing.T) {
			t.Parallel()
			c := d.customer(t, shop)
			o := c.place("idempotency-end-to-end")
			p := c.paid(c.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody(method)))
			require.Equal(t, p.Charge, d.stripe.requireOneCharge(t, o).ID)
		})
	}
	for _, method := range []string{"pm_sim_server_error", "pm_sim_always_500"} {
		t.Run(method+"EndsWithoutAChargeAndTheNextKeyCharges", func(t *testing.T) {
			t.Parallel()
			c := d.customer(t, shop)
			o := c.place("idempotency-end-to-end")
			ended := c.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody(method)).problem(t, http.StatusPaymentRequired, "payment_not_made")
			require.True(t, ended.SafeNewKey)
			require.Equal(t, "canceled", ended.Payment.Status)
			require.Empty(t, d.stripe.chargesOf(t, o))
			c.paid(c.pay(o, ended.PaymentKey, "pm_card_visa"))
			d.stripe.requireOneCharge(t, o)
		})
	}
}

// TestRefund: money goes back once, and the course can be bought again.
func TestRefund(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	t.Run("InFullGivesTheMoneyBackOnceAndTheCourseCanBeBoughtAgain", func(t *testing.T) {
		t.Parallel()
		c := d.customer(t, shop)
		o, p := c.buy("payments-platform-team")
		c.post("/orders", newKey(), orderBody("payments-platform-team")).problem(t, http.StatusConflict, "already_enrolled")
		key := newKey()
		a := c.post(refundsOf(p), key, refundBody(o.Amount))
		require.Equal(t, http.StatusCreated, a.status, a.body)
		r := decoded[refund](t, a)
		require.Equal(t, refund{ID: r.ID, Payment: p.ID, Order: o.ID, Status: "succeeded", Amount: o.Amount, Currency: o.Currency, Refund: r.Refund}, r)
		require.Equal(t, o.Amount, d.stripe.requireOneCharge(t, o).AmountRefunded)
		require.Equal(t, "refunded", c.order(o.ID).Status)
		require.False(t, c.owns("payments-platform-team"))

		again := c.post(refundsOf(p), key, refundBody(o.Amount))
		require.True(t, again.replayed())
		require.Equal(t, a.body, again.body)
		c.post(refundsOf(p), newKey(), refundBody(1)).problem(t, http.StatusConflict, "refund_not_possible")
		require.Equal(t, o.Amount, d.stripe.requireOneCharge(t, o).AmountRefunded)

		second, _ := c.buy("payments-platform-team")
		require.NotEqual(t, o.ID, second.ID)
		require.True(t, c.owns("payments-platform-team"))
		d.stripe.requireOneCharge(t, second)
	})

	t.Run("WithThePaymentsKeyIsRefused", func(t *testing.T) {
		t.Parallel()
		c := d.customer(t, shop)
		o, p := c.buy("postgresql-under-concurrency")
		c.post(refundsOf(p), o.PaymentKey, refundBody(o.Amount)).problem(t, http.StatusUnprocessableEntity, "key_reused")
		require.Zero(t, d.stripe.requireOneCharge(t, o).AmountRefunded)
		require.Equal(t, "paid", c.order(o.ID).Status)
	})

	t.Run("OfMoreThanWasPaidIsRefused", func(t *testing.T) {
		t.Parallel()
		c := d.customer(t, shop)
		o, p := c.buy("webhooks-are-a-different-ledger")
		c.post(refundsOf(p), newKey(), refundBody(o.Amount+1)).problem(t, http.StatusConflict, "refund_not_possible")
		require.Zero(t, d.stripe.requireOneCharge(t, o).AmountRefunded)
	})

	t.Run("OfAnotherCustomersPaymentIsNotFound", func(t *testing.T) {
		t.Parallel()
		o, p := d.customer(t, shop).buy("idempotency-end-to-end")
		d.customer(t, shop).post(refundsOf(p), newKey(), refundBody(o.Amount)).problem(t, http.StatusNotFound, "not_found")
		require.Zero(t, d.stripe.requireOneCharge(t, o).AmountRefunded)
	})
}

// TestFreeCourse: a course that costs nothing is had at once, and Stripe never
// hears of it.
func TestFreeCourse(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	c := d.customer(t, d.open(t))
	key := newKey()
	a := c.post("/orders", key, orderBody("why-select-cannot-answer"))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	o := decoded[order](t, a)
	require.Equal(t, "paid", o.Status)
	require.Zero(t, o.Amount)
	require.True(t, c.owns("why-select-cannot-answer"))
	require.Equal(t, http.StatusOK, c.raw(http.MethodGet, "/courses/why-select-cannot-answer/lessons/1", "", "Accept", "text/html").status)

	again := c.post("/orders", key, orderBody("why-select-cannot-answer"))
	require.True(t, again.replayed())
	require.Equal(t, a.body, again.body)
	c.post("/orders", newKey(), orderBody("why-select-cannot-answer")).problem(t, http.StatusConflict, "already_enrolled")
	c.pay(o, newKey(), "pm_card_visa").problem(t, http.StatusConflict, "order_already_paid")
	require.Zero(t, d.stripe.changes(t))
}
