package checkout_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
	"payonce/idempotency"
)

func TestPay(t *testing.T) {
	t.Parallel()

	t.Run("ChargesOnceAndEnrols", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		require.Equal(t, int64(4900), order.Amount)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		require.Equal(t, checkout.PaymentSucceeded, payment.Status)
		require.NotEmpty(t, payment.Charge)
		s.agree(order.ID, 1)
		require.Equal(t, 1, s.confirms())
	})

	t.Run("SameKeyReplaysTheSameBytes", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		first, err := s.pay(order.ID, order.PaymentKey, visa)
		require.NoError(t, err)
		require.False(t, first.Replayed)
		again, err := s.pay(order.ID, order.PaymentKey, visa)
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.Equal(t, first.Status, again.Status)
		require.Equal(t, string(first.Body), string(again.Body))
		s.agree(order.ID, 1)
		require.Equal(t, 1, s.confirms())
	})

	for _, copies := range []int{8, 64} {
		t.Run("ConcurrentDuplicatesChargeOnce", func(t *testing.T) {
			t.Parallel()
			s := open(t)
			other, _ := s.instance("two")
			order := s.order(course)
			shops := []*checkout.Service{s.Service, other}
			answers, errs := make([]idempotency.Response, copies), make([]error, copies)
			barrier := make(chan struct{})
			var done sync.WaitGroup
			for i := range copies {
				done.Go(func() {
					<-barrier
					answers[i], errs[i] = shops[i%2].Pay(t.Context(), checkout.PaymentRequest{
						Account: account, Key: idempotency.Key(order.PaymentKey), Order: order.ID, PaymentMethod: visa,
					})
				})
			}
			close(barrier)
			done.Wait()
			fresh := 0
			for i := range copies {
				require.NoError(t, errs[i])
				require.Equal(t, 201, answers[i].Status)
				require.Equal(t, string(answers[0].Body), string(answers[i].Body))
				if !answers[i].Replayed {
					fresh++
				}
			}
			require.Equal(t, 1, fresh, "answers that are not replays")
			require.Equal(t, 1, s.confirms())
			s.agree(order.ID, 1)
		})
	}

	t.Run("TwoKeysOneOrderIsOneConfirm", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		hold, err := s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents/*/confirm", Action: stripesim.Hold})
		require.NoError(t, err)
		type result struct {
			answer idempotency.Response
			err    error
		}
		first := make(chan result, 1)
		go func() {
			answer, err := s.pay(order.ID, order.PaymentKey, visa)
			first <- result{answer, err}
		}()
		require.NoError(t, hold.Wait(t.Context(), 1))

		_, err = s.pay(order.ID, "another-tab", "pm_card_mastercard")
		c := conflict(t, err, checkout.ErrPaymentInProgress)
		require.Equal(t, checkout.PaymentPending, c.Payment.Status)
		require.Equal(t, 0, s.count("idempotency_keys WHERE key = 'another-tab'"), "a refused claim leaves no trace")

		hold.Release()
		r := <-first
		require.NoError(t, r.err)
		require.Equal(t, 201, r.answer.Status)
		_, err = s.pay(order.ID, "another-tab", "pm_card_mastercard")
		conflict(t, err, checkout.ErrOrderAlreadyPaid)
		require.Equal(t, 1, s.confirms())
		s.agree(order.ID, 1)
	})

	t.Run("DeclineReplaysAndTheNextKeyPays", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		declined, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		require.Equal(t, 402, declined.Status)
		problem := decode[checkout.Problem](t, declined)
		require.Equal(t, "card_declined", problem.Code)
		require.Equal(t, "generic_decline", problem.DeclineCode)
		require.True(t, problem.SafeNewKey)
		require.NotEqual(t, order.PaymentKey, problem.PaymentKey)
		require.Equal(t, s.now(order.ID).PaymentKey, problem.PaymentKey)

		again, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.Equal(t, string(declined.Body), string(again.Body))
		require.Equal(t, 1, s.confirms(), "a replay asks nobody")

		s.paid(order.ID, problem.PaymentKey, visa)
		s.agree(order.ID, 1)
	})

	t.Run("AccusingDeclinesAreNotTold", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		declined, err := s.pay(order.ID, order.PaymentKey, "pm_card_visa_chargeDeclinedStolenCard")
		require.NoError(t, err)
		require.Equal(t, "generic_decline", decode[checkout.Problem](t, declined).DeclineCode)
		require.NotContains(t, string(declined.Body), "stolen")
	})

	t.Run("SameKeyAnotherCardIsRefused", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		_, err = s.pay(order.ID, order.PaymentKey, visa)
		c := conflict(t, err, idempotency.ErrKeyReused)
		require.Equal(t, s.now(order.ID).PaymentKey, c.PaymentKey, "the first one is declined: a new key is safe")
		s.agree(order.ID, 0)
	})

	t.Run("RateLimitFreesTheSlotForAnotherCard", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_rate_limited")
		c := conflict(t, err, checkout.ErrProviderBusy)
		require.NotEmpty(t, c.PaymentKey)
		require.NotEqual(t, order.PaymentKey, c.PaymentKey)
		s.paid(order.ID, c.PaymentKey, visa)

		// The old key meets the slot, and stays as it was.
		_, err = s.pay(order.ID, order.PaymentKey, "pm_sim_rate_limited")
		conflict(t, err, checkout.ErrOrderAlreadyPaid)
		require.Equal(t, 1, s.count("idempotency_keys WHERE key = $1 AND status = 'failed_retryable'", order.PaymentKey))
		s.agree(order.ID, 1)
	})

	t.Run("RateLimitThenTheOldKeyAgain", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_rate_limited")
		conflict(t, err, checkout.ErrProviderBusy)
		s.paid(order.ID, order.PaymentKey, "pm_sim_rate_limited")
		s.agree(order.ID, 1)
		require.Len(t, s.now(order.ID).Payments, 1, "the same payment, taken again")
	})

	t.Run("ReplyLostIsUnknownThenFoundBySameKey", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost")
		c := conflict(t, err, checkout.ErrOutcomeUnknown)
		require.Equal(t, 2, c.RetryAfter)
		require.Empty(t, c.PaymentKey, "no new key while the outcome is unknown")
		require.Equal(t, order.PaymentKey, s.now(order.ID).PaymentKey)

		_, err = s.pay(order.ID, "another-tab", visa)
		conflict(t, err, checkout.ErrPaymentInProgress)

		s.lapse()
		s.paid(order.ID, order.PaymentKey, "pm_sim_reply_lost")
		s.agree(order.ID, 1)
		counts := s.stripe.Counts().ConfirmsByKey
		require.Len(t, counts, 1, "one downstream key")
		for _, c := range counts {
			require.Equal(t, 1, c.Executed)
		}
	})

	t.Run("NeverArrivedIsSentAgainUnderTheSameDownstreamKey", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_never_arrived")
		conflict(t, err, checkout.ErrOutcomeUnknown)
		s.lapse()
		s.paid(order.ID, order.PaymentKey, "pm_sim_never_arrived")
		s.agree(order.ID, 1)
		require.Len(t, s.stripe.Counts().ConfirmsByKey, 1)
	})

	t.Run("StoredServerErrorEndsByCancelAndTheNextKeyPays", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_server_error")
		conflict(t, err, checkout.ErrOutcomeUnknown)
		s.lapse()
		answer, err := s.pay(order.ID, order.PaymentKey, "pm_sim_server_error")
		require.NoError(t, err)
		problem := decode[checkout.Problem](t, answer)
		require.Equal(t, "payment_not_made", problem.Code)
		require.Equal(t, checkout.PaymentCanceled, s.now(order.ID).Payments[0].Status)
		s.paid(order.ID, problem.PaymentKey, visa) // in the next generation
		s.agree(order.ID, 1)
		require.Equal(t, 1, s.count("orders WHERE id = $1 AND generation = 2", order.ID))
	})

	t.Run("RefusedTwiceIsDefinitive", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_card_not_at_stripe")
		conflict(t, err, checkout.ErrProviderRefused)
		answer, err := s.pay(order.ID, order.PaymentKey, "pm_card_not_at_stripe")
		require.NoError(t, err)
		problem := decode[checkout.Problem](t, answer)
		require.Equal(t, "payment_not_made", problem.Code)
		s.paid(order.ID, problem.PaymentKey, visa)
		s.agree(order.ID, 1)
	})

	t.Run("ThirdTakeoverAsksAndCancels", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.stripe.Add(stripesim.Rule{
			Path: "/v1/payment_intents/*/confirm", Times: -1, Action: stripesim.Drop, At: stripesim.Arrival,
		})
		require.NoError(t, err)
		for range 3 { // the owner and two takeovers send; none arrives
			_, err := s.pay(order.ID, order.PaymentKey, visa)
			conflict(t, err, checkout.ErrOutcomeUnknown)
			s.lapse()
		}
		answer, err := s.pay(order.ID, order.PaymentKey, visa)
		require.NoError(t, err)
		require.Equal(t, "payment_not_made", decode[checkout.Problem](t, answer).Code)
		s.agree(order.ID, 0)
	})

	t.Run("LateConfirmOfADeadOwnerCannotChargeAfterTheAttemptEnded", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		// The owner's confirm is on its way; two more never arrive; the fourth
		// try asks, cancels and ends the attempt.
		late, err := s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents/*/confirm", Action: stripesim.Hold, At: stripesim.Arrival})
		require.NoError(t, err)
		owner := make(chan error, 1)
		go func() {
			_, err := s.pay(order.ID, order.PaymentKey, visa)
			owner <- err
		}()
		require.NoError(t, late.Wait(t.Context(), 1))
		_, err = s.stripe.Add(stripesim.Rule{
			Path: "/v1/payment_intents/*/confirm", Times: 2, Action: stripesim.Drop, At: stripesim.Arrival,
		})
		require.NoError(t, err)
		for range 2 {
			s.lapse()
			_, err := s.pay(order.ID, order.PaymentKey, visa)
			conflict(t, err, checkout.ErrOutcomeUnknown)
		}
		s.lapse()
		answer, err := s.pay(order.ID, order.PaymentKey, visa)
		require.NoError(t, err)
		problem := decode[checkout.Problem](t, answer)
		require.Equal(t, "payment_not_made", problem.Code)

		late.Release() // the zombie's confirm meets a canceled intent
		require.NoError(t, <-owner, "the zombie answers from the row")
		s.agree(order.ID, 0)
		s.paid(order.ID, problem.PaymentKey, "pm_card_mastercard")
		s.agree(order.ID, 1)
	})

	t.Run("HangUpAfterTheClaimChangesNothing", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		hold, err := s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents/*/confirm", Action: stripesim.Hold})
		require.NoError(t, err)
		ctx, hangUp := contextWithCancel(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = s.Pay(ctx, checkout.PaymentRequest{
				Account: account, Key: idempotency.Key(order.PaymentKey), Order: order.ID, PaymentMethod: visa,
			})
		}()
		require.NoError(t, hold.Wait(t.Context(), 1))
		hangUp()
		hold.Release()
		<-done
		s.agree(order.ID, 1)
		require.Equal(t, 1, s.count("idempotency_keys WHERE key = $1 AND status = 'completed'", order.PaymentKey))
	})

	t.Run("YenHaveNoMinorUnits", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(yenBook)
		require.Equal(t, "jpy", order.Currency)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		require.Equal(t, order.Amount, payment.Amount)
		s.agree(order.ID, 1)
	})
}
