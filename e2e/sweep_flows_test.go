package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// flow is one operation of the shop, which is broken at every message.
type flow struct {
	name string
	// prepare does, undisturbed, what comes before the operation.
	prepare func(*stage, *trial)
	// operate runs the operation at a shop, once. It is also what the client
	// does when it got no answer, and must go on from wherever the first try
	// ended. It may be called by any goroutine.
	operate func(*stage, *trial, *shop) answer
	// ends requires what must be true after the answer that the client got in
	// the end, and takes the buyer on to a paid order.
	ends func(testing.TB, *stage, *trial, answer)
	// final is the order's status after ends.
	final string
}

// trial is one operation with a customer and an order of its own.
type trial struct {
	c       *customer
	o       order
	payment payment // for a refund: what is refunded
	key     string
	event   event // for a delivery
	// second is the answer of another shop, where one was asked too.
	second <-chan answer
}

func (tr *trial) at(s *shop) *customer { return tr.c.at(s) }

const sweptCourse = "idempotency-end-to-end"

// prepareOrder is what comes before a payment: an order that can be paid.
func prepareOrder(_ *stage, tr *trial) {
	tr.o = tr.c.place(sweptCourse)
	tr.key = tr.o.PaymentKey
}

// prepareUnknown is a payment that was charged, of which the shop has no answer.
func prepareUnknown(s *stage, tr *trial) {
	prepareOrder(s, tr)
	_, err := s.sim.Add(stripesim.Rule{Method: http.MethodPost, Path: confirmPath, Action: stripesim.Fail, Failure: &stripesim.Failure{
		Status: http.StatusBadGateway, Body: "<html>", Executed: true,
	}})
	require.NoError(tr.c.t, err)
	tr.c.pay(tr.o, tr.key, "pm_card_visa").problem(tr.c.t, http.StatusServiceUnavailable, "outcome_unknown")
}

// payWith pays with a method.
func payWith(method string) func(*stage, *trial, *shop) answer {
	return func(_ *stage, tr *trial, at *shop) answer { return tr.at(at).pay(tr.o, tr.key, method) }
}

// flows are the operations that move money, and the event that tells of it.
var flows = []flow{
	{
		name: "Purchase", prepare: prepareOrder, operate: payWith("pm_card_visa"), final: "paid",
		ends: func(t testing.TB, s *stage, tr *trial, a answer) {
			if !s.notMade(t, tr, a) {
				tr.c.paid(a)
			}
		},
	},
	{
		name: "Decline", prepare: prepareOrder, operate: payWith("pm_card_chargeDeclined"), final: "paid",
		ends: func(t testing.TB, s *stage, tr *trial, a answer) {
			if s.notMade(t, tr, a) {
				return
			}
			declined := a.problem(t, http.StatusPaymentRequired, "card_declined")
			require.Empty(t, s.newestCharges(t, tr.o))
			s.payNext(t, tr, declined.PaymentKey)
		},
	},
	{
		name: "ThreeDSecure", prepare: prepareOrder, operate: payThroughTheBank, final: "paid",
		ends: func(t testing.TB, s *stage, tr *trial, a answer) {
			if s.notMade(t, tr, a) {
				return
			}
			require.Contains(t, []int{http.StatusAccepted, http.StatusCreated}, a.status, a.body)
		},
	},
	{
		name: "Refund", final: "refunded",
		prepare: func(_ *stage, tr *trial) {
			tr.o, tr.payment = tr.c.buy(sweptCourse)
			tr.key = newKey()
		},
		operate: func(_ *stage, tr *trial, at *shop) answer {
			return tr.at(at).post(refundsOf(tr.payment), tr.key, refundBody(tr.o.Amount))
		},
		ends: func(t testing.TB, s *stage, tr *trial, a answer) {
			require.Equal(t, http.StatusCreated, a.status, a.body)
			charges := s.newestCharges(t, tr.o)
			require.Len(t, charges, 1)
			require.Equal(t, tr.o.Amount, charges[0].AmountRefunded)
			require.Equal(t, 1, s.refunds(t, charges[0]), "refunds at Stripe")
		},
	},
	{
		name: "Webhook", final: "paid",
		prepare: func(s *stage, tr *trial) {
			prepareUnknown(s, tr)
			tr.event = s.mailbox.find(tr.c.t, "payment_intent.succeeded", tr.o.ID)
		},
		operate: func(s *stage, tr *trial, at *shop) answer { return s.mailbox.deliver(at, tr.event) },
		ends: func(t testing.TB, s *stage, tr *trial, a answer) {
			require.Equal(t, http.StatusOK, a.status, a.body)
			replay := tr.c.pay(tr.o, tr.key, "pm_card_visa")
			tr.c.paid(replay)
			require.True(t, replay.replayed(), "the event completed the key")
		},
	},
}

// payThroughTheBank pays with a card whose bank asks the buyer, says yes there,
// and comes back.
func payThroughTheBank(s *stage, tr *trial, at *shop) answer {
	c := tr.at(at)
	a := c.pay(tr.o, tr.key, "pm_card_authenticationRequired")
	if a.err != nil || a.status != http.StatusAccepted {
		return a
	}
	var waiting struct {
		PaymentIntent string `json:"payment_intent"`
	}
	if err := json.Unmarshal([]byte(a.body), &waiting); err != nil {
		return answer{err: err}
	}
	_ = s.sim.Finish(waiting.PaymentIntent, stripesim.Succeeded) // or the buyer had said yes before
	back := c.get("/orders/" + tr.o.ID + "/return")
	if back.err == nil && back.status == http.StatusSeeOther {
		back = c.get("/orders/" + tr.o.ID)
	}
	var shown order
	if back.err != nil || back.status != http.StatusOK || json.Unmarshal([]byte(back.body), &shown) != nil || shown.Status != "paid" {
		// The page says that it is not known yet; a buyer comes back to it.
		return answer{err: errNotKnownYet}
	}
	return a
}

// notMade takes a buyer on whose payment ended without a charge because nobody
// could tell in time what became of it. It returns false for any other answer.
func (s *stage) notMade(t testing.TB, tr *trial, a answer) bool {
	var said problem
	if a.status != http.StatusPaymentRequired || json.Unmarshal([]byte(a.body), &said) != nil || said.Code != "payment_not_made" {
		return false
	}
	require.True(t, said.SafeNewKey)
	require.Empty(t, s.newestCharges(t, tr.o))
	s.payNext(t, tr, said.PaymentKey)
	return true
}

// payNext pays with the next key and another card: after a "no" the order is
// never stuck.
func (s *stage) payNext(t testing.TB, tr *trial, key string) {
	require.NotEmpty(t, key)
	require.Equal(t, key, tr.c.order(tr.o.ID).PaymentKey)
	tr.c.paid(tr.c.pay(tr.o, key, "pm_card_mastercard"))
}
