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

	t.Run("AConfirmIsNotRepeatedAfterItsWindow", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_never_arrived")
		conflict(t, err, checkout.ErrOutcomeUnknown)
		before := s.stripe.Counts().Requests["POST /v1/payment_intents/{id}/confirm"]
		// Stripe may have forgotten the downstream key by now, and would charge
		// afresh, beside whatever it did then.
		_, err = s.pool.Exec(t.Context(), "UPDATE idempotency_keys SET claimed_at = claimed_at - interval '1 hour'")
		require.NoError(t, err)
		s.lapse()
		answer, err := s.pay(order.ID, order.PaymentKey, "pm_sim_never_arrived")
		require.NoError(t, err)
		require.Equal(t, "payment_not_made", decode[checkout.Problem](t, answer).Code)
		require.Equal(t, before, s.stripe.Counts().Requests["POST /v1/payment_intents/{id}/confirm"], "it asks, and cancels")
		s.agree(order.ID, 0)
	})

	t.Run("ARefundIsNotSentAgainWhenStripeHasForgottenIt", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		_, err := s.stripe.Add(stripesim.Rule{Method: "POST", Path: "/v1/refunds", Action: stripesim.Drop, At: stripesim.Answer})
		require.NoError(t, err)
		_, err = s.refund(payment.ID, "a-part", 900)
		conflict(t, err, checkout.ErrOutcomeUnknown)
		_, err = s.stripe.PruneKeys("")
		require.NoError(t, err)
		_, err = s.pool.Exec(t.Context(), "UPDATE refunds SET sent_at = sent_at - interval '21 hours'")
		require.NoError(t, err)
		s.lapse()
		answer, err := s.refund(payment.ID, "a-part", 900)
		require.NoError(t, err)
		require.Equal(t, 201, answer.Status, string(answer.Body))
		require.Equal(t, 1, s.refunds(), "found in the list, and not made twice")
		require.Equal(t, int64(900), s.now(order.ID).Payments[0].Refunded)
	})

	t.Run("ARefusedRepeatOfARefundProvesNothing", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		for _, rule := range []stripesim.Rule{
			{Action: stripesim.Drop, At: stripesim.Answer},
			{Action: stripesim.Fail, Failure: &stripesim.Failure{Status: 429, Code: "rate_limit"}},
		} {
			rule.Method, rule.Path = "POST", "/v1/refunds"
			_, err := s.stripe.Add(rule)
			require.NoError(t, err)
			_, err = s.refund(payment.ID, "give-back", 4900)
			conflict(t, err, checkout.ErrOutcomeUnknown)
			s.lapse()
		}
		refused, err := s.refund(payment.ID, "another", 4900)
		require.NoError(t, err)
		require.Equal(t, 409, refused.Status, "the first one may have been made")
		answer, err := s.refund(payment.ID, "give-back", 4900)
		require.NoError(t, err)
		require.Equal(t, 201, answer.Status, string(answer.Body))
		require.Equal(t, 1, s.count("refunds WHERE status = 'succeeded'"))
	})

	t.Run("AReleasedKeyIsRefusedBesideAnotherPayment", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_rate_limited")
		next := conflict(t, err, checkout.ErrProviderBusy).PaymentKey
		hold, err := s.stripe.Add(stripesim.Rule{Path: confirm, Action: stripesim.Hold})
		require.NoError(t, err)
		other := s.start(order.ID, next, "pm_card_chargeDeclined")
		require.NoError(t, hold.Wait(t.Context(), 1))
		_, err = s.pay(order.ID, order.PaymentKey, "pm_sim_rate_limited")
		conflict(t, err, checkout.ErrPaymentInProgress)
		require.Equal(t, 1, s.count("idempotency_keys WHERE key = $1 AND status = 'failed_retryable'", order.PaymentKey), "it stays as it was")
		hold.Release()
		require.NoError(t, <-other)
		s.paid(order.ID, order.PaymentKey, "pm_sim_rate_limited")
		s.agree(order.ID, 1)
	})

	t.Run("AConflictIsNotStoredUnderTheKeyThatMetIt", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		hold, err := s.stripe.Add(stripesim.Rule{Path: confirm, Action: stripesim.Hold})
		require.NoError(t, err)
		other := s.start(order.ID, "another-tab", "pm_card_chargeDeclined")
		require.NoError(t, hold.Wait(t.Context(), 1))
		_, err = s.pay(order.ID, order.PaymentKey, visa)
		conflict(t, err, checkout.ErrPaymentInProgress)
		hold.Release()
		require.NoError(t, <-other)
		s.paid(order.ID, order.PaymentKey, visa) // the page's key is no worse for it
		s.agree(order.ID, 1)
	})

	t.Run("ExpiryDoesNotCloseBesideAPaymentOnItsWay", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		hold, err := s.stripe.Add(stripesim.Rule{Path: confirm, Action: stripesim.Hold, At: stripesim.Arrival})
		require.NoError(t, err)
		owner := s.start(order.ID, order.PaymentKey, visa)
		require.NoError(t, hold.Wait(t.Context(), 1))
		_, err = s.pool.Exec(t.Context(), "UPDATE orders SET expires_at = clock_timestamp() - interval '1 second', ask_at = clock_timestamp() - interval '1 second'")
		require.NoError(t, err)
		_, err = s.CompleteOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 0, s.count("orders WHERE closing_at IS NOT NULL OR intent_canceled"))
		require.Equal(t, checkout.IntentRequiresPaymentMethod, s.intent(order.ID).Status, "its intent is left alone")
		hold.Release()
		require.NoError(t, <-owner)
		s.agree(order.ID, 1)
	})

	t.Run("MoneyIsRecordedWhateverWasBelieved", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		// The payment has failed, and then somebody takes the money at Stripe.
		s.dashboard("/v1/payment_intents/"+s.intent(order.ID).ID+"/confirm", "payment_method=pm_card_visa")
		paid := s.intent(order.ID)
		result, err := s.HandleEvent(t.Context(), checkout.Event{
			ID: "evt_paid", Type: "payment_intent.succeeded", CreatedAt: time.Now(), Intent: &paid, IntentID: paid.ID,
		})
		require.NoError(t, err)
		require.Equal(t, checkout.EventApplied, result)
		s.agree(order.ID, 1)
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
