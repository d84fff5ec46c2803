package checkout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
	"payonce/idempotency"
)

// TestProtocol holds rules of which each was a counterexample when it was left
// out: money moves while a decline is shown, one attempt's answer is written on
// another, or a key can never pay.
func TestProtocol(t *testing.T) {
	t.Parallel()
	const confirm = "/v1/payment_intents/*/confirm"

	t.Run("NobodyConfirmsAnIntentWhoseIDIsNotStored", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		hold, err := s.stripe.Add(stripesim.Rule{Path: confirm, Action: stripesim.Hold, At: stripesim.Arrival})
		require.NoError(t, err)
		paid := make(chan error, 1)
		go func() {
			_, err := s.pay(order.ID, order.PaymentKey, visa)
			paid <- err
		}()
		require.NoError(t, hold.Wait(t.Context(), 1))
		require.Equal(t, 1, s.count("orders WHERE intent IS NOT NULL"))
		require.Equal(t, 1, s.count("idempotency_keys WHERE recovery_point = 'intent_created'"))
		hold.Release()
		require.NoError(t, <-paid)
		s.agree(order.ID, 1)
	})

	t.Run("ARefusalAfterATakeoverProvesNothing", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		// The owner's confirm is on its way while the taker is told "429".
		late, err := s.stripe.Add(stripesim.Rule{Path: confirm, Action: stripesim.Hold, At: stripesim.Arrival})
		require.NoError(t, err)
		owner := make(chan error, 1)
		go func() {
			_, err := s.pay(order.ID, order.PaymentKey, visa)
			owner <- err
		}()
		require.NoError(t, late.Wait(t.Context(), 1))
		_, err = s.stripe.Add(stripesim.Rule{Path: confirm, Action: stripesim.Fail, Failure: &stripesim.Failure{Status: 429, Code: "rate_limit"}})
		require.NoError(t, err)
		s.lapse()
		_, err = s.pay(order.ID, order.PaymentKey, visa)
		c := conflict(t, err, checkout.ErrOutcomeUnknown)
		require.Empty(t, c.PaymentKey)
		_, err = s.pay(order.ID, "another-card", "pm_card_chargeDeclined")
		conflict(t, err, checkout.ErrPaymentInProgress)
		late.Release()
		<-owner
		s.lapse()
		s.paid(order.ID, order.PaymentKey, visa)
		s.agree(order.ID, 1)
	})

	t.Run("AKeyThatWasReapedIsANewPayment", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		reap(s)
		require.Equal(t, 0, s.count("idempotency_keys"))
		// Were the downstream key made from the client's, Stripe would answer
		// from its memory of the declined card.
		s.paid(order.ID, order.PaymentKey, visa)
		s.agree(order.ID, 1)
		reap(s)
		_, err = s.pay(order.ID, order.PaymentKey, visa)
		conflict(t, err, checkout.ErrOrderAlreadyPaid)
		other := s.order(yenBook)
		_, err = s.pay(other.ID, order.PaymentKey, visa)
		require.ErrorIs(t, err, idempotency.ErrKeyReused, "the key has paid, and its payment says so")
		require.Equal(t, 1, s.confirmsExecuted())
	})

	t.Run("ReaperKeepsAKeyWhosePaymentIsNotFinal", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		s.asked(order)
		reap(s)
		require.Equal(t, 1, s.count("idempotency_keys WHERE key = $1", order.PaymentKey))
	})

	t.Run("TwoTakersOneContinues", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost")
		require.Error(t, err)
		s.lapse()
		answers := make(chan idempotency.Response, 8)
		for range 8 {
			go func() {
				answer, err := s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost")
				if err != nil {
					t.Error(err)
				}
				answers <- answer
			}()
		}
		fresh := 0
		for range 8 {
			if answer := <-answers; !answer.Replayed {
				fresh++
			}
		}
		require.Equal(t, 1, fresh)
		require.Equal(t, 1, s.count("key_history WHERE what = 'taken_over'"))
		s.agree(order.ID, 1)
	})

	t.Run("MismatchSettlesNothing", func(t *testing.T) {
		t.Parallel()
		s := open(t, func(c *checkout.Config, _ *idempotency.Config) { c.Live = true })
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, visa)
		conflict(t, err, checkout.ErrOutcomeUnknown) // a test-mode answer, in a shop that takes real money
		require.Equal(t, checkout.OrderOpen, s.now(order.ID).Status)
		require.Equal(t, 0, s.count("enrolments"))
	})

	t.Run("AFreshCheckoutCostsThreeCommitsAndSixRoundTrips", func(t *testing.T) {
		t.Parallel()
		tracer := &trips{}
		s := openTraced(t, tracer)
		for range 2 { // warm: every statement prepared on every connection
			for _, slug := range []string{course, yenBook} {
				order := s.order(slug)
				payment := s.paid(order.ID, order.PaymentKey, visa)
				_, err := s.refund(payment.ID, string(freshKey()), payment.Amount)
				require.NoError(t, err)
			}
		}
		order := s.order(course)
		tracer.start()
		s.paid(order.ID, order.PaymentKey, visa)
		sent, commits := tracer.stop()
		require.Equal(t, 3, commits, "commits")
		require.LessOrEqual(t, sent, 6, "round trips")
	})
}

// reap makes every finished key old and runs the reaper.
func reap(s *shop) {
	s.t.Helper()
	_, err := s.pool.Exec(s.t.Context(), "UPDATE idempotency_keys SET completed_at = completed_at - interval '100 hours' WHERE completed_at IS NOT NULL")
	require.NoError(s.t, err)
	_, err = s.ledger.ReapOnce(s.t.Context(), idempotency.Reap{Retention: 72 * time.Hour, Keep: checkout.KeepKeys})
	require.NoError(s.t, err)
}

// confirmsExecuted counts successful charges over all orders.
func (s *shop) confirmsExecuted() int { return s.stripe.Counts().Charges }
