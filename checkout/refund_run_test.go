package checkout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
	"payonce/migrations/dbtest"
)

// later moves a refund's run of sends, and what the completer waits for, into
// the past.
func (s *shop) later(hours string) {
	s.t.Helper()
	_, err := s.pool.Exec(s.t.Context(), `
		UPDATE refunds SET sent_at = sent_at - $1::interval, ask_at = clock_timestamp() - interval '1 second'`, hours+" hours")
	require.NoError(s.t, err)
	s.lapse()
}

// TestARefusedRefundEnds: a refund that Stripe refuses for good, because the
// money went back in another way, is not "on its way" for ever; and it ends only
// when nothing that was sent for it can still be carried out.
func TestARefusedRefundEnds(t *testing.T) {
	t.Parallel()
	// lost is a shop whose first send of a refund got no answer.
	lost := func(t *testing.T, amount int64, at stripesim.Point) (s *shop, order string, payment checkout.PaymentView) {
		s = open(t)
		placed := s.order(course)
		payment = s.paid(placed.ID, placed.PaymentKey, visa)
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Method: "POST", Action: stripesim.Drop, At: at})
		require.NoError(t, err)
		_, err = s.refund(payment.ID, "give-back", amount)
		conflict(t, err, checkout.ErrOutcomeUnknown)
		s.lapse()
		return s, placed.ID, payment
	}
	status := func(s *shop, order string) checkout.RefundStatus {
		return s.now(order).Refunds[0].Status
	}

	t.Run("AtOnceIfNothingWasSentBefore", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		s.dashboard("/v1/refunds", "payment_intent="+payment.PaymentIntent)
		answer, err := s.refund(payment.ID, "give-back", 4900)
		require.NoError(t, err)
		require.Equal(t, "refund_not_possible", decode[checkout.Problem](t, answer).Code)
		require.Equal(t, checkout.RefundFailed, status(s, order.ID))
	})

	t.Run("NotWhileAnEarlierSendMayLinger", func(t *testing.T) {
		t.Parallel()
		s, order, payment := lost(t, 1900, stripesim.Arrival)
		s.dashboard("/v1/refunds", "payment_intent="+payment.PaymentIntent)
		for range 2 { // refused afresh, and again
			_, err := s.refund(payment.ID, "give-back", 1900)
			conflict(t, err, checkout.ErrOutcomeUnknown)
			s.lapse()
		}
		sent := s.refunds()
		s.later("21")
		_, err := s.refund(payment.ID, "give-back", 1900)
		conflict(t, err, checkout.ErrOutcomeUnknown)
		require.Equal(t, sent, s.refunds(), "sent when Stripe may have forgotten the key")
		require.Equal(t, checkout.RefundPending, status(s, order), "it still counts")

		s.later("24")
		answer, err := s.refund(payment.ID, "give-back", 1900)
		require.NoError(t, err)
		require.Equal(t, "refund_not_possible", decode[checkout.Problem](t, answer).Code)
		require.Equal(t, checkout.RefundFailed, status(s, order))
		again, err := s.refund(payment.ID, "give-back", 1900)
		require.NoError(t, err)
		require.True(t, again.Replayed)
	})

	t.Run("WithoutAnybodyThere", func(t *testing.T) {
		t.Parallel()
		s, order, payment := lost(t, 1900, stripesim.Arrival)
		s.dashboard("/v1/refunds", "payment_intent="+payment.PaymentIntent)
		_, err := s.pool.Exec(t.Context(), `UPDATE idempotency_keys SET lease_until = lease_until - interval '1 hour' WHERE status = 'in_progress'`)
		require.NoError(t, err)
		s.later("45")
		_, err = s.pool.Exec(t.Context(), `UPDATE idempotency_keys SET lease_until = lease_until - interval '1 hour' WHERE status = 'in_progress'`)
		require.NoError(t, err)
		result, err := s.CompleteOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, result.Keys)
		require.Equal(t, checkout.RefundFailed, status(s, order))
		require.Zero(t, s.count("idempotency_keys WHERE status = 'in_progress'"))
	})

	t.Run("AsMadeIfTheListHasIt", func(t *testing.T) {
		t.Parallel()
		s, order, payment := lost(t, 4900, stripesim.Answer)
		_, err := s.stripe.PruneKeys("")
		require.NoError(t, err)
		answer, err := s.refund(payment.ID, "give-back", 4900) // refused: it has been given back
		require.NoError(t, err)
		require.Equal(t, 201, answer.Status, string(answer.Body))
		require.Equal(t, checkout.RefundSucceeded, status(s, order))
		require.Equal(t, checkout.OrderRefunded, s.now(order).Status)
	})

	t.Run("AndOneWhoseNextRunIsNotAnsweredDoesNot", func(t *testing.T) {
		t.Parallel()
		s, order, payment := lost(t, 1900, stripesim.Arrival)
		s.later("45")
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Method: "POST", Action: stripesim.Drop, At: stripesim.Arrival})
		require.NoError(t, err)
		_, err = s.refund(payment.ID, "give-back", 1900) // the next run's first send
		conflict(t, err, checkout.ErrOutcomeUnknown)
		s.lapse()
		s.dashboard("/v1/refunds", "payment_intent="+payment.PaymentIntent)
		_, err = s.refund(payment.ID, "give-back", 1900)
		conflict(t, err, checkout.ErrOutcomeUnknown)
		require.Equal(t, checkout.RefundPending, status(s, order), "that send may linger")
	})
}

// TestALateRefundEnds: the same for money that came for a closed order.
func TestALateRefundEnds(t *testing.T) {
	t.Parallel()
	complete := func(s *shop, hours string) checkout.Refund {
		s.t.Helper()
		s.later(hours)
		_, err := s.CompleteOnce(t.Context())
		require.NoError(s.t, err)
		var late checkout.Refund
		for _, order := range s.orders() {
			for _, r := range s.now(order).Refunds {
				if r.Origin == checkout.RefundLate {
					late = r
				}
			}
		}
		return late
	}
	behind := func(t *testing.T, s *shop) string {
		order := s.lateMoney(visa)
		s.dashboard("/v1/refunds", "payment_intent="+s.intent(order).ID)
		return order
	}

	t.Run("BehindARefundOfTheDashboard", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := behind(t, s)
		require.Equal(t, checkout.RefundFailed, complete(s, "0").Status)
		o := s.now(order)
		require.Equal(t, int64(4900), o.Payments[0].Refunded)
		stuck, err := s.Stuck(t.Context())
		require.NoError(t, err)
		require.Empty(t, stuck, "no money is left here")
	})

	t.Run("NotWhileAnEarlierSendMayLinger", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Method: "POST", Action: stripesim.Drop, At: stripesim.Arrival, Skip: 1})
		require.NoError(t, err)
		behind(t, s)
		require.Equal(t, checkout.RefundPending, complete(s, "0").Status)
		require.Equal(t, checkout.RefundPending, complete(s, "1").Status, "refused, after a send that was not answered")
		require.Equal(t, checkout.RefundPending, complete(s, "21").Status)
		require.Equal(t, checkout.RefundFailed, complete(s, "24").Status)
	})

	t.Run("OnlyByWhoeverHasTheTurn", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.lateMoney(visa)
		sending, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Method: "POST", Action: stripesim.Hold, At: stripesim.Arrival})
		require.NoError(t, err)
		first := make(chan error, 1)
		go func() {
			_, err := s.CompleteOnce(t.Context())
			first <- err
		}()
		require.NoError(t, sending.Wait(t.Context(), 1))
		// The next turn sends it too: refused or not, it is not the first's to end.
		_, err = s.pool.Exec(t.Context(), `UPDATE refunds SET ask_at = clock_timestamp() + interval '1 minute'`)
		require.NoError(t, err)
		s.dashboard("/v1/refunds", "payment_intent="+s.intent(order).ID)
		sending.Release()
		require.NoError(t, <-first)
		for _, r := range s.now(order).Refunds {
			if r.Origin == checkout.RefundLate {
				require.Equal(t, checkout.RefundPending, r.Status)
			}
		}
	})
}

// orders lists the account's orders.
func (s *shop) orders() (list []string) {
	s.t.Helper()
	orders, err := s.Orders(s.t.Context(), account)
	require.NoError(s.t, err)
	for _, o := range orders {
		list = append(list, o.ID)
	}
	return list
}

// TestRefundsOfAListAreWrittenOnce: whatever the order in which lists of a
// charge's refunds are read and written.
func TestRefundsOfAListAreWrittenOnce(t *testing.T) {
	t.Parallel()
	refunded := func(id string, payment checkout.PaymentView) checkout.Event {
		return checkout.Event{ID: id, Type: "charge.refunded", Charge: payment.Charge, IntentID: payment.PaymentIntent}
	}

	t.Run("AnOlderListTakesNothingBack", func(t *testing.T) {
		t.Parallel()
		s := openLater(t, dbtest.New(t), time.Second)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, "pm_card_pendingRefund")
		_, err := s.refund(payment.ID, "give-back", 4900)
		require.NoError(t, err)
		slow, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Method: "GET", Action: stripesim.Hold, At: stripesim.Answer})
		require.NoError(t, err)
		older := make(chan error, 1)
		go func() {
			_, err := s.HandleEvent(t.Context(), refunded("evt_pending", payment))
			older <- err
		}()
		require.NoError(t, slow.Wait(t.Context(), 1)) // it has its list: pending
		provider := s.Provider
		s.until("Stripe has settled it", func() bool {
			list, err := provider.Refunds(t.Context(), payment.Charge)
			return err == nil && list[0].Status == "succeeded"
		})
		s.handled(refunded("evt_settled", payment), checkout.EventApplied)
		require.Equal(t, checkout.OrderRefunded, s.now(order.ID).Status)
		slow.Release()
		require.NoError(t, <-older)
		o := s.now(order.ID)
		require.Equal(t, checkout.RefundSucceeded, o.Refunds[0].Status)
		require.Equal(t, int64(4900), o.Payments[0].Refunded)
	})

	t.Run("TwoThatCarryTheNameOfOneAreTwo", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		_, err := s.refund(payment.ID, "give-back", 1900)
		require.NoError(t, err)
		name := s.now(order.ID).Refunds[0].ID
		s.dashboard("/v1/refunds", "amount=1000&metadata[refund]="+name+"&payment_intent="+payment.PaymentIntent)
		for _, id := range []string{"evt_1", "evt_2"} {
			s.handled(refunded(id, payment), checkout.EventApplied)
			o := s.now(order.ID)
			require.Len(t, o.Refunds, 2)
			require.Equal(t, int64(2900), o.Payments[0].Refunded)
		}
	})

	t.Run("OneThatWasHeldForNotMadeCounts", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Action: stripesim.Fail, Failure: &stripesim.Failure{Status: 429, Code: "rate_limit"}})
		require.NoError(t, err)
		_, err = s.refund(payment.ID, "give-back", 1900)
		conflict(t, err, checkout.ErrProviderBusy)
		name := s.now(order.ID).Refunds[0].ID
		s.dashboard("/v1/refunds", "amount=1900&metadata[refund]="+name+"&payment_intent="+payment.PaymentIntent)
		s.handled(refunded("evt_1", payment), checkout.EventApplied)
		o := s.now(order.ID)
		require.Len(t, o.Refunds, 1)
		require.Equal(t, checkout.RefundSucceeded, o.Refunds[0].Status)
		require.Equal(t, int64(1900), o.Payments[0].Refunded)
		answer, err := s.refund(payment.ID, "give-back", 1900)
		require.NoError(t, err)
		require.Equal(t, 201, answer.Status)
		require.Len(t, s.now(order.ID).Refunds, 1)
	})
}
