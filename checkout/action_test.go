package checkout_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
	"payonce/migrations/dbtest"
)

const bank = "pm_card_authenticationRequired"

// asked pays with a card whose bank asks the buyer, and gives the payment.
func (s *shop) asked(order checkout.OrderView) checkout.PaymentView {
	s.t.Helper()
	answer, err := s.pay(order.ID, order.PaymentKey, bank)
	require.NoError(s.t, err)
	require.Equal(s.t, 202, answer.Status, string(answer.Body))
	payment := decode[checkout.PaymentView](s.t, answer)
	require.Equal(s.t, checkout.PaymentRequiresAction, payment.Status)
	require.Equal(s.t, "/orders/"+order.ID, payment.NextAction.URL)
	return payment
}

// intent reads the order's current intent at the local Stripe.
func (s *shop) intent(order string) checkout.Intent {
	s.t.Helper()
	var id string
	require.NoError(s.t, s.pool.QueryRow(s.t.Context(), "SELECT intent FROM orders WHERE id = $1", order).Scan(&id))
	in, err := s.Provider.Intent(s.t.Context(), id)
	require.NoError(s.t, err)
	return in
}

// dashboard does at Stripe what a person does there.
func (s *shop) dashboard(path, form string) map[string]any {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.base+path, strings.NewReader(form))
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("sk_test_local", "")
	answer, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	var object map[string]any
	require.NoError(s.t, json.NewDecoder(answer.Body).Decode(&object))
	require.Equal(s.t, 200, answer.StatusCode, object)
	return object
}

func TestAction(t *testing.T) {
	t.Parallel()

	t.Run("PassedChallengeIsSettledOnTheWayBack", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.asked(order)
		require.NotEmpty(t, s.now(order.ID).Payments[0].NextAction, "the order's page links to the bank")
		require.NotContains(t, s.now(order.ID).View().Payments[0].NextAction.URL, "http", "the answer does not")
		require.NoError(t, s.stripe.Finish(payment.PaymentIntent, stripesim.Succeeded))
		require.NoError(t, s.Ask(t.Context(), account, order.ID))
		s.agree(order.ID, 1)
		again, err := s.pay(order.ID, order.PaymentKey, bank)
		require.NoError(t, err)
		require.Equal(t, 202, again.Status, "the key keeps its receipt")
		require.True(t, again.Replayed)
	})

	t.Run("FailedChallengeMintsTheNextKey", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.asked(order)
		require.NoError(t, s.stripe.Finish(payment.PaymentIntent, stripesim.Failed))
		require.NoError(t, s.Ask(t.Context(), account, order.ID))
		o := s.now(order.ID)
		require.Equal(t, checkout.PaymentFailed, o.Payments[0].Status)
		require.NotEqual(t, order.PaymentKey, o.PaymentKey)
		s.paid(order.ID, o.PaymentKey, visa)
		s.agree(order.ID, 1)
	})

	t.Run("AnotherCardIsRefusedUntilCanceledAndThenChargesOnce", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.asked(order)
		_, err := s.pay(order.ID, "another-card", visa)
		require.Zero(t, conflict(t, err, checkout.ErrPaymentInProgress).RetryAfter, "the bank may take its time")

		view, err := s.Cancel(t.Context(), checkout.CancelRequest{Account: account, Payment: payment.ID})
		require.NoError(t, err)
		require.Equal(t, checkout.PaymentCanceled, view.Status)
		require.NotEmpty(t, view.PaymentKey)
		again, err := s.Cancel(t.Context(), checkout.CancelRequest{Account: account, Payment: payment.ID})
		require.NoError(t, err)
		require.Equal(t, view, again, "idempotent by nature")

		s.paid(order.ID, view.PaymentKey, visa)
		require.ErrorIs(t, s.stripe.Finish(payment.PaymentIntent, stripesim.Succeeded), stripesim.ErrState, "the challenge is gone")
		s.agree(order.ID, 1)
	})

	t.Run("CancelThatIsLateSettlesTheSuccess", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.asked(order)
		require.NoError(t, s.stripe.Finish(payment.PaymentIntent, stripesim.Succeeded))
		view, err := s.Cancel(t.Context(), checkout.CancelRequest{Account: account, Payment: payment.ID})
		require.NoError(t, err)
		require.Equal(t, checkout.PaymentSucceeded, view.Status)
		require.Empty(t, view.PaymentKey)
		s.agree(order.ID, 1)
		_, err = s.Cancel(t.Context(), checkout.CancelRequest{Account: "acc_other", Payment: payment.ID})
		require.ErrorIs(t, err, checkout.ErrNotFound)
	})

	t.Run("CancelRacesTheChallengeAndExactlyOneWins", func(t *testing.T) {
		t.Parallel()
		for range 10 {
			s := open(t)
			order := s.order(course)
			payment := s.asked(order)
			barrier, passed := make(chan struct{}), make(chan error, 1)
			go func() {
				<-barrier
				passed <- s.stripe.Finish(payment.PaymentIntent, stripesim.Succeeded)
			}()
			close(barrier)
			view, err := s.Cancel(t.Context(), checkout.CancelRequest{Account: account, Payment: payment.ID})
			require.NoError(t, err)
			charged := 0
			if <-passed == nil {
				charged = 1
			}
			require.Equal(t, charged == 1, view.Status == checkout.PaymentSucceeded)
			s.agree(order.ID, charged)
		}
	})

	t.Run("TheWayBackWithoutASessionShowsTheShortAnswerOnly", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.asked(order)
		var returnURL string
		require.NoError(t, s.pool.QueryRow(t.Context(), "SELECT return_url FROM payments").Scan(&returnURL))
		u, err := url.Parse(returnURL)
		require.NoError(t, err)
		require.Equal(t, "/orders/"+order.ID+"/return", u.Path)
		token := u.Query().Get("token")

		state, err := s.Returned(t.Context(), order.ID, token)
		require.NoError(t, err)
		require.Equal(t, checkout.ReturnChecking, state)
		require.NoError(t, s.stripe.Finish(payment.PaymentIntent, stripesim.Succeeded))
		state, err = s.Returned(t.Context(), order.ID, token)
		require.NoError(t, err)
		require.Equal(t, checkout.ReturnPaid, state)
		for _, wrong := range []string{"", "x", token + "x", "\x00", strings.Repeat("a", 100)} {
			_, err = s.Returned(t.Context(), order.ID, wrong)
			require.ErrorIs(t, err, checkout.ErrNotFound)
		}
	})

	t.Run("ProcessingIsSettledByItsEvent", func(t *testing.T) {
		t.Parallel()
		// Not by itself, which could be before the answer is recorded.
		s := openLater(t, dbtest.New(t), time.Hour)
		s.listen(s.Service)
		order := s.order(course)
		answer, err := s.pay(order.ID, order.PaymentKey, "pm_sim_processing")
		require.NoError(t, err)
		require.Equal(t, 202, answer.Status)
		require.NoError(t, s.stripe.Finish(s.intent(order.ID).ID, stripesim.Succeeded))
		s.until("settled", func() bool { return s.now(order.ID).Status == checkout.OrderPaid })
		s.agree(order.ID, 1)
	})

	t.Run("ReplayedChallengeOfALostAnswerIsAskedAbout", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents/*/confirm", Action: stripesim.Drop, At: stripesim.Answer})
		require.NoError(t, err)
		_, err = s.pay(order.ID, order.PaymentKey, bank)
		conflict(t, err, checkout.ErrOutcomeUnknown)
		require.NoError(t, s.stripe.Finish(s.intent(order.ID).ID, stripesim.Succeeded))
		s.lapse()
		s.paid(order.ID, order.PaymentKey, bank)
		s.agree(order.ID, 1)
	})
}

func TestCompleter(t *testing.T) {
	t.Parallel()
	// ago moves what the completer waits for into the past.
	ago := func(s *shop, table, column string) {
		_, err := s.pool.Exec(t.Context(), "UPDATE "+table+" SET "+column+" = "+column+" - interval '30 hours' WHERE "+column+" IS NOT NULL")
		require.NoError(s.t, err)
	}
	complete := func(s *shop) checkout.CompleteResult {
		result, err := s.CompleteOnce(s.t.Context())
		require.NoError(s.t, err)
		return result
	}

	t.Run("FinishesALostReplyWithoutTheBuyer", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost")
		require.Error(t, err)
		require.Zero(t, complete(s).Keys, "the buyer's own retry goes first")
		ago(s, "idempotency_keys", "lease_until")
		require.Equal(t, 1, complete(s).Keys)
		s.agree(order.ID, 1)
		require.Equal(t, 1, s.confirms(), "it asks, and never confirms")
		require.Equal(t, 1, s.count("key_history WHERE what = 'taken_over'"))
	})

	t.Run("CancelsWhatNeverArrived", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_never_arrived")
		require.Error(t, err)
		ago(s, "idempotency_keys", "lease_until")
		require.Equal(t, 1, complete(s).Keys)
		o := s.now(order.ID)
		require.Equal(t, checkout.PaymentCanceled, o.Payments[0].Status)
		require.NotEqual(t, order.PaymentKey, o.PaymentKey)
		s.agree(order.ID, 0)
		s.paid(order.ID, o.PaymentKey, visa)
		s.agree(order.ID, 1)
	})

	t.Run("FreesTheSlotOfAnOwnerThatDiedBeforeItsIntent", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents", Method: "POST", Action: stripesim.Drop, At: stripesim.Arrival})
		require.NoError(t, err)
		_, err = s.pay(order.ID, order.PaymentKey, visa)
		conflict(t, err, checkout.ErrOutcomeUnknown)
		ago(s, "idempotency_keys", "lease_until")
		require.Equal(t, 1, complete(s).Keys)
		require.Equal(t, 1, s.count("idempotency_keys WHERE status = 'failed_retryable'"))
		s.paid(order.ID, s.now(order.ID).PaymentKey, visa)
		s.agree(order.ID, 1)
	})

	t.Run("ManyAtOnceFinishEachKeyOnce", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost")
		require.Error(t, err)
		ago(s, "idempotency_keys", "lease_until")
		done := make(chan int, 4)
		for i := range 4 {
			other, _ := s.instance(string(rune('a' + i)))
			go func() {
				result, err := other.CompleteOnce(t.Context())
				if err != nil {
					t.Error(err)
				}
				done <- result.Keys
			}()
		}
		sum := 0
		for range 4 {
			sum += <-done
		}
		require.Equal(t, 1, sum)
		s.agree(order.ID, 1)
	})

	t.Run("BacksOffAndThenWaitsForAPerson", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.stripe.Add(stripesim.Rule{Action: stripesim.Drop, At: stripesim.Arrival, Times: -1})
		require.NoError(t, err)
		_, err = s.pay(order.ID, order.PaymentKey, visa)
		require.Error(t, err)
		// With an id stored, so that the completer has something to ask about.
		_, err = s.pool.Exec(t.Context(), "UPDATE orders SET intent = 'pi_somewhere'")
		require.NoError(t, err)
		tries := 0
		for ; tries < 20; tries++ {
			ago(s, "idempotency_keys", "lease_until")
			if complete(s).Unknown == 0 {
				break
			}
		}
		require.Equal(t, 9, tries)
		stuck, err := s.Stuck(t.Context())
		require.NoError(t, err)
		require.Len(t, stuck, 1)
		require.Equal(t, order.ID, stuck[0].Order)
		_, err = s.AskAgain(t.Context(), stuck[0].ID)
		require.NoError(t, err)
		ago(s, "idempotency_keys", "lease_until")
		require.Equal(t, 1, complete(s).Unknown)
	})

	t.Run("CancelsAnAbandonedChallengeAndAnotherCardChargesOnce", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		s.asked(order)
		require.Zero(t, complete(s).Payments, "not before the action timeout")
		ago(s, "payments", "ask_at")
		require.Equal(t, 1, complete(s).Payments)
		o := s.now(order.ID)
		require.Equal(t, checkout.PaymentCanceled, o.Payments[0].Status)
		s.paid(order.ID, o.PaymentKey, visa)
		s.agree(order.ID, 1)
	})

	t.Run("AsksAboutAPaymentInProcessing", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_processing")
		require.NoError(t, err)
		s.until("Stripe has settled it", func() bool { return s.charges(order.ID) == 1 })
		ago(s, "payments", "ask_at")
		require.Equal(t, 1, complete(s).Payments)
		s.agree(order.ID, 1)
	})

	t.Run("FinishesALostRefund", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Action: stripesim.Drop, At: stripesim.Answer})
		require.NoError(t, err)
		_, err = s.refund(payment.ID, "give-back", 4900)
		conflict(t, err, checkout.ErrOutcomeUnknown)
		ago(s, "idempotency_keys", "lease_until")
		require.Equal(t, 1, complete(s).Keys)
		require.Equal(t, checkout.OrderRefunded, s.now(order.ID).Status)
	})

	t.Run("AsksAboutAPendingRefund", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, "pm_card_pendingRefund")
		answer, err := s.refund(payment.ID, "give-back", 4900)
		require.NoError(t, err)
		require.Equal(t, checkout.RefundPending, decode[checkout.RefundView](t, answer).Status)
		require.Equal(t, checkout.OrderPaid, s.now(order.ID).Status)
		s.until("settled at Stripe and here", func() bool {
			ago(s, "refunds", "ask_at")
			complete(s)
			return s.now(order.ID).Status == checkout.OrderRefunded
		})
	})
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	late := func(s *shop) {
		_, err := s.pool.Exec(s.t.Context(), "UPDATE orders SET expires_at = clock_timestamp() - interval '1 second', ask_at = clock_timestamp()")
		require.NoError(s.t, err)
	}
	complete := func(s *shop) checkout.CompleteResult {
		result, err := s.CompleteOnce(s.t.Context())
		require.NoError(s.t, err)
		return result
	}

	t.Run("UntouchedOrderExpiresAndTheCourseCanBeOrderedAgain", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		late(s)
		require.Equal(t, 1, complete(s).Orders)
		require.Equal(t, checkout.OrderExpired, s.now(order.ID).Status)
		_, err := s.pay(order.ID, order.PaymentKey, visa)
		conflict(t, err, checkout.ErrOrderClosed)
		require.NotEqual(t, order.ID, s.order(course).ID)
	})

	// A released key may be retried for as long as it is kept, and its order may
	// have expired with no intent that could be canceled.
	t.Run("AReleasedKeyCannotPayAnExpiredOrder", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.stripe.Add(stripesim.Rule{Method: http.MethodPost, Path: "/v1/payment_intents", Action: stripesim.Fail, Failure: &stripesim.Failure{Status: http.StatusTooManyRequests, Code: "rate_limit"}})
		require.NoError(t, err)
		_, err = s.pay(order.ID, order.PaymentKey, visa)
		conflict(t, err, checkout.ErrProviderBusy)
		require.Empty(t, s.now(order.ID).Payments[0].Intent, "no intent was made")
		late(s)
		require.Equal(t, 1, complete(s).Orders)

		again := s.order(course)
		_, err = s.pay(order.ID, order.PaymentKey, visa)
		conflict(t, err, checkout.ErrOrderClosed)
		require.Equal(t, 1, s.count("idempotency_keys WHERE key = $1 AND status = 'failed_retryable'", order.PaymentKey))
		require.Equal(t, checkout.PaymentReleased, s.now(order.ID).Payments[0].Status)
		s.paid(again.ID, again.PaymentKey, visa)
		s.agree(order.ID, 0)
		s.agree(again.ID, 1)
	})

	t.Run("AfterADeclineTheIntentIsCanceledFirst", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		intent := s.intent(order.ID)
		late(s)
		require.Equal(t, 1, complete(s).Orders)
		require.Equal(t, checkout.OrderExpired, s.now(order.ID).Status)
		after, err := s.Provider.Intent(t.Context(), intent.ID)
		require.NoError(t, err)
		require.Equal(t, checkout.IntentCanceled, after.Status)
	})

	t.Run("AChallengeThatWasPassedIsPaid", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.asked(order)
		require.NoError(t, s.stripe.Finish(payment.PaymentIntent, stripesim.Succeeded))
		late(s)
		complete(s)
		s.agree(order.ID, 1)
	})

	t.Run("AnOpenChallengeIsCanceled", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		s.asked(order)
		late(s)
		require.Equal(t, 1, complete(s).Orders)
		o := s.now(order.ID)
		require.Equal(t, checkout.OrderExpired, o.Status)
		require.Equal(t, checkout.PaymentCanceled, o.Payments[0].Status)
		s.agree(order.ID, 0)
	})

	t.Run("NeverBesideAPaymentOnItsWay", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		hold, err := s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents/*/confirm", Action: stripesim.Hold})
		require.NoError(t, err)
		paid := make(chan error, 1)
		go func() {
			_, err := s.pay(order.ID, order.PaymentKey, visa)
			paid <- err
		}()
		require.NoError(t, hold.Wait(t.Context(), 1))
		late(s)
		require.Zero(t, complete(s).Orders)
		hold.Release()
		require.NoError(t, <-paid)
		s.agree(order.ID, 1)
	})

	t.Run("LateMoneyEndsInOneRefund", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		intent := s.intent(order.ID)
		// A shop that lost the database it wrote its expiry to: the order is
		// closed here, and the intent is not at Stripe.
		_, err = s.pool.Exec(t.Context(), "UPDATE orders SET status = 'expired'")
		require.NoError(t, err)
		s.dashboard("/v1/payment_intents/"+intent.ID+"/confirm", "payment_method=pm_card_visa")
		paid := s.intent(order.ID)
		for i := range 2 {
			_, err = s.HandleEvent(t.Context(), checkout.Event{
				ID: "evt_late_" + string(rune('a'+i)), Type: "payment_intent.succeeded", CreatedAt: time.Now(), Intent: &paid, IntentID: paid.ID,
			})
			require.NoError(t, err)
		}
		for range 3 {
			_, err := s.pool.Exec(t.Context(), "UPDATE refunds SET ask_at = clock_timestamp() - interval '1 second'")
			require.NoError(t, err)
			complete(s)
		}
		require.Equal(t, 1, s.refunds())
		o := s.now(order.ID)
		require.Len(t, o.Refunds, 1)
		require.Equal(t, checkout.RefundSucceeded, o.Refunds[0].Status)
		require.Equal(t, checkout.OrderExpired, o.Status)
		require.Equal(t, 0, s.count("enrolments"))
	})
}
