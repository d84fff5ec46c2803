package e2e

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTwoShops: two shops that share a data folder and nothing else. Whichever
// of them a copy of a request reaches, one of all copies charges.
func TestTwoShops(t *testing.T) {
	t.Parallel()
	d := deployAlone(t)
	// Both at once: they also find out together who starts PostgreSQL.
	shops := []*shop{d.begin(t, freeAddress(t)), d.begin(t, freeAddress(t))}
	for _, s := range shops {
		s.waitReady(t)
	}
	d.stripe.keepToItself(t) // an event that is faster than its answer makes all of them replays

	for name, copies := range map[string]int{"EightCopiesOfOneKeyChargeOnce": 8, "SixtyFourCopiesOfOneKeyChargeOnce": 64} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := d.customer(t, shops[0])
			o := c.place("idempotency-end-to-end")
			answers := atOnce(copies, func(i int) answer {
				return c.at(shops[i%2]).postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_card_visa"))
			})
			first := 0
			for _, a := range answers {
				c.paid(a)
				require.Equal(t, answers[0].body, a.body)
				if !a.replayed() {
					first++
				}
			}
			require.Equal(t, 1, first, "answers that were no replay")
			ch := d.stripe.requireOneCharge(t, o)
			require.Equal(t, 1, d.stripe.confirms(t, ch.PaymentIntent).Received)
			require.Equal(t, "paid", c.at(shops[1]).order(o.ID).Status)
		})
	}

	t.Run("EightOrdersOfOneKeyAreOneOrder", func(t *testing.T) {
		t.Parallel()
		c, key := d.customer(t, shops[0]), newKey()
		answers := atOnce(8, func(i int) answer {
			return c.at(shops[i%2]).postUntilKnown("/orders", key, orderBody("proof-by-exhaustion"))
		})
		first := 0
		for _, a := range answers {
			require.Equal(t, http.StatusCreated, a.status, a.body)
			require.Equal(t, answers[0].body, a.body)
			if !a.replayed() {
				first++
			}
		}
		require.Equal(t, 1, first, "answers that were no replay")
	})

	t.Run("EightRefundsOfOneKeyGiveTheMoneyBackOnce", func(t *testing.T) {
		t.Parallel()
		c, key := d.customer(t, shops[0]), newKey()
		o, p := c.buy("stripe-in-production")
		for _, a := range atOnce(8, func(i int) answer {
			return c.at(shops[i%2]).postUntilKnown(refundsOf(p), key, refundBody(o.Amount))
		}) {
			require.Equal(t, http.StatusCreated, a.status, a.body)
		}
		require.Equal(t, o.Amount, d.stripe.requireOneCharge(t, o).AmountRefunded)
		require.Len(t, c.order(o.ID).Refunds, 1)
	})
}

// TestTwoKeysOneOrder: the slot. Two tabs with keys of their own pay the same
// order, and one of them is refused before Stripe hears of it.
func TestTwoKeysOneOrder(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shops := []*shop{d.open(t), d.open(t)}
	for i := range 4 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			c := d.customer(t, shops[0])
			o := c.place("idempotency-end-to-end")
			answers := atOnce(2, func(i int) answer {
				return c.at(shops[i]).pay(o, newKey(), "pm_card_visa")
			})
			winner, loser := answers[0], answers[1]
			if winner.status != http.StatusCreated {
				winner, loser = loser, winner
			}
			p := c.paid(winner)
			require.Equal(t, http.StatusConflict, loser.status, loser.body)
			refused := decoded[problem](t, loser)
			require.Contains(t, []string{"payment_in_progress", "order_already_paid"}, refused.Code)
			require.False(t, refused.SafeNewKey)
			require.Empty(t, refused.PaymentKey)
			require.Equal(t, o.ID, refused.Order)
			d.stripe.requireOneCharge(t, o)
			require.Equal(t, 1, d.stripe.confirms(t, p.PaymentIntent).Received)
		})
	}

	t.Run("WhileTheFirstIsWithStripe", func(t *testing.T) {
		t.Parallel()
		d := deploy(t)
		shop := d.open(t)
		c := d.customer(t, shop)
		o := c.place("idempotency-end-to-end")
		held := d.stripe.hold(t, "execution")
		first := later(func() answer { return c.pay(o, o.PaymentKey, "pm_card_visa") })
		held.reached(t)

		refused := c.pay(o, newKey(), "pm_card_mastercard").problem(t, http.StatusConflict, "payment_in_progress")
		require.NotNil(t, refused.Payment)
		require.Equal(t, "pending", refused.Payment.Status)

		held.release(t)
		p := c.paid(<-first)
		require.Equal(t, refused.Payment.ID, p.ID)
		c.pay(o, newKey(), "pm_card_mastercard").problem(t, http.StatusConflict, "order_already_paid")
		require.Equal(t, 1, d.stripe.confirms(t, p.PaymentIntent).Received)
		d.stripe.requireOneCharge(t, o)
	})
}

// TestOneKey: what the same key is answered while the first request runs, and
// when it carries something else.
func TestOneKey(t *testing.T) {
	t.Parallel()
	d := deploy(t, "WAIT=100ms")
	shop := d.open(t)

	t.Run("WhileTheFirstRunsIsToldToComeBack", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, "WAIT=100ms")
		c := d.customer(t, d.open(t))
		o := c.place("idempotency-end-to-end")
		held := d.stripe.hold(t, "answer")
		first := later(func() answer { return c.pay(o, o.PaymentKey, "pm_card_visa") })
		held.reached(t)

		again := c.pay(o, o.PaymentKey, "pm_card_visa")
		require.False(t, again.problem(t, http.StatusConflict, "request_in_progress").SafeNewKey)
		require.Equal(t, "1", again.header.Get("Retry-After"), "its owner lives and calls")
		// Another request under the key is not the first one's business to wait for.
		other := c.pay(o, o.PaymentKey, "pm_card_mastercard").problem(t, http.StatusUnprocessableEntity, "key_reused")
		require.False(t, other.SafeNewKey, "the first one still runs")

		held.release(t)
		paid := <-first
		p := c.paid(paid)
		replay := c.pay(o, o.PaymentKey, "pm_card_visa")
		require.True(t, replay.replayed())
		require.Equal(t, paid.body, replay.body)
		require.Equal(t, 1, d.stripe.confirms(t, p.PaymentIntent).Received)
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("CarriesOneRequestOnly", func(t *testing.T) {
		t.Parallel()
		c := d.customer(t, shop)
		o, p := c.buy("idempotency-end-to-end")
		other := c.place("stripe-in-production")
		for what, a := range map[string]answer{
			"another card":  c.pay(o, o.PaymentKey, "pm_card_mastercard"),
			"another order": c.pay(other, o.PaymentKey, "pm_card_visa"),
			"an order":      c.post("/orders", o.PaymentKey, orderBody("proof-by-exhaustion")),
			"a refund":      c.post(refundsOf(p), o.PaymentKey, refundBody(o.Amount)),
		} {
			require.True(t, a.problem(t, http.StatusUnprocessableEntity, "key_reused").SafeNewKey, what)
		}
		require.Zero(t, d.stripe.requireOneCharge(t, o).AmountRefunded)
		require.Empty(t, d.stripe.chargesOf(t, other))
	})

	t.Run("IsTheSameQuotedAndBareInJSONAndInAForm", func(t *testing.T) {
		t.Parallel()
		c := d.customer(t, shop)
		o := c.place("idempotency-end-to-end")
		first := c.pay(o, o.PaymentKey, "pm_card_visa")
		c.paid(first)
		for _, again := range []answer{
			c.raw(http.MethodPost, paymentsOf(o), `{ "payment_method" : "pm_card_visa" }`, "Content-Type", "application/json", "Idempotency-Key", o.PaymentKey),
			c.raw(http.MethodPost, paymentsOf(o), "idempotency_key="+o.PaymentKey+"&payment_method=pm_card_visa&from_an_extension=1", "Content-Type", "application/x-www-form-urlencoded"),
		} {
			require.Equal(t, http.StatusCreated, again.status, again.body)
			require.True(t, again.replayed())
			require.Equal(t, first.body, again.body)
		}
	})

	t.Run("OfAnotherAccountIsAnotherKey", func(t *testing.T) {
		t.Parallel()
		key := newKey()
		var orders []order
		for range 2 {
			a := d.customer(t, shop).post("/orders", key, orderBody("idempotency-end-to-end"))
			require.Equal(t, http.StatusCreated, a.status, a.body)
			require.False(t, a.replayed())
			orders = append(orders, decoded[order](t, a))
		}
		require.NotEqual(t, orders[0].ID, orders[1].ID)
	})
}
