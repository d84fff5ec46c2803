package checkout_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
	"payonce/idempotency"
)

func (s *shop) refund(payment string, key string, amount int64) (idempotency.Response, error) {
	return s.Refund(s.t.Context(), checkout.RefundRequest{Account: account, Key: idempotency.Key(key), Payment: payment, Amount: amount})
}

// refunds counts the refunds at Stripe.
func (s *shop) refunds() int { return s.stripe.Counts().Requests["POST /v1/refunds"] }

func TestRefund(t *testing.T) {
	t.Parallel()
	bought := func(t *testing.T) (*shop, checkout.OrderView, checkout.PaymentView) {
		s := open(t)
		order := s.order(course)
		return s, order, s.paid(order.ID, order.PaymentKey, visa)
	}

	t.Run("FullRefundRevokesAndTheCourseCanBeBoughtAgain", func(t *testing.T) {
		t.Parallel()
		s, order, payment := bought(t)
		answer, err := s.refund(payment.ID, "give-back", 4900)
		require.NoError(t, err)
		require.Equal(t, 201, answer.Status)
		require.Equal(t, checkout.RefundSucceeded, decode[checkout.RefundView](t, answer).Status)
		require.Equal(t, checkout.OrderRefunded, s.now(order.ID).Status)
		require.Equal(t, 0, s.count("enrolments WHERE status = 'active'"))

		again, err := s.refund(payment.ID, "give-back", 4900)
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.Equal(t, string(answer.Body), string(again.Body))
		require.Equal(t, 1, s.refunds())

		second := s.order(course)
		require.NotEqual(t, order.ID, second.ID)
		s.paid(second.ID, second.PaymentKey, visa)
		s.agree(second.ID, 1)
	})

	t.Run("KeyOfThePaymentIsRefused", func(t *testing.T) {
		t.Parallel()
		s, order, payment := bought(t)
		_, err := s.refund(payment.ID, order.PaymentKey, 4900)
		require.ErrorIs(t, err, idempotency.ErrKeyReused)
		require.Equal(t, 0, s.refunds())
		require.Equal(t, checkout.OrderPaid, s.now(order.ID).Status)
	})

	t.Run("TwoAtOnceNeverGiveBackMoreThanWasPaid", func(t *testing.T) {
		t.Parallel()
		s, order, payment := bought(t)
		other, _ := s.instance("two")
		shops := []*checkout.Service{s.Service, other}
		statuses := make([]int, 8)
		barrier := make(chan struct{})
		var done sync.WaitGroup
		for i := range statuses {
			done.Go(func() {
				<-barrier
				answer, err := shops[i%2].Refund(t.Context(), checkout.RefundRequest{
					Account: account, Key: freshKey(), Payment: payment.ID, Amount: 4900,
				})
				if err == nil {
					statuses[i] = answer.Status
				}
			})
		}
		close(barrier)
		done.Wait()
		made := 0
		for _, status := range statuses {
			if status == 201 {
				made++
			} else {
				require.Equal(t, 409, status)
			}
		}
		require.Equal(t, 1, made)
		require.Equal(t, 1, s.refunds())
		require.Equal(t, checkout.OrderRefunded, s.now(order.ID).Status)
	})

	t.Run("PartialRefundsChangeNeitherOrderNorEnrolmentUntilAllIsGivenBack", func(t *testing.T) {
		t.Parallel()
		s, order, payment := bought(t)
		_, err := s.refund(payment.ID, "first", 1900)
		require.NoError(t, err)
		require.Equal(t, checkout.OrderPaid, s.now(order.ID).Status)
		tooMuch, err := s.refund(payment.ID, "too-much", 3001)
		require.NoError(t, err)
		require.Equal(t, "refund_not_possible", decode[checkout.Problem](t, tooMuch).Code)
		_, err = s.refund(payment.ID, "second", 3000)
		require.NoError(t, err)
		require.Equal(t, checkout.OrderRefunded, s.now(order.ID).Status)
		require.Equal(t, int64(4900), s.now(order.ID).Payments[0].Refunded)
		require.Equal(t, 2, s.refunds())
	})

	t.Run("ReplyLostIsFoundBySameKey", func(t *testing.T) {
		t.Parallel()
		s, order, payment := bought(t)
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Action: stripesim.Drop, At: stripesim.Answer})
		require.NoError(t, err)
		_, err = s.refund(payment.ID, "give-back", 4900)
		conflict(t, err, checkout.ErrOutcomeUnknown)
		refused, err := s.refund(payment.ID, "another", 4900)
		require.NoError(t, err)
		require.Equal(t, 409, refused.Status, "the first one may have happened: it is reserved")
		require.Equal(t, "refund_not_possible", decode[checkout.Problem](t, refused).Code)
		require.Len(t, s.now(order.ID).Refunds, 1, "decided here, and not by Stripe")
		s.lapse()
		answer, err := s.refund(payment.ID, "give-back", 4900)
		require.NoError(t, err)
		require.Equal(t, 201, answer.Status)
		require.Equal(t, checkout.OrderRefunded, s.now(order.ID).Status)
		require.Equal(t, 1, s.count("refunds WHERE status = 'succeeded'"))
	})

	t.Run("StoredServerErrorIsLookedUpInTheList", func(t *testing.T) {
		t.Parallel()
		s, order, payment := bought(t)
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Action: stripesim.Fail, Failure: &stripesim.Failure{
			Status: 500, Stored: true, Executed: true,
		}})
		require.NoError(t, err)
		_, err = s.refund(payment.ID, "give-back", 4900)
		conflict(t, err, checkout.ErrOutcomeUnknown)
		s.lapse()
		answer, err := s.refund(payment.ID, "give-back", 4900)
		require.NoError(t, err)
		require.Equal(t, 201, answer.Status, string(answer.Body))
		require.Equal(t, checkout.OrderRefunded, s.now(order.ID).Status)
	})

	t.Run("RateLimitGivesTheReservationBack", func(t *testing.T) {
		t.Parallel()
		s, order, payment := bought(t)
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Action: stripesim.Fail, Failure: &stripesim.Failure{
			Status: 429, Code: "rate_limit",
		}})
		require.NoError(t, err)
		_, err = s.refund(payment.ID, "give-back", 4900)
		conflict(t, err, checkout.ErrProviderBusy)
		_, err = s.refund(payment.ID, "give-back", 4900)
		require.NoError(t, err)
		require.Equal(t, checkout.OrderRefunded, s.now(order.ID).Status)
	})

	t.Run("BadAmountsNameTheField", func(t *testing.T) {
		t.Parallel()
		s, _, payment := bought(t)
		for _, amount := range []int64{0, -1, 100000000} {
			_, err := s.refund(payment.ID, "give-back", amount)
			var invalid *checkout.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, "amount", invalid.Field)
		}
		_, err := s.Refund(t.Context(), checkout.RefundRequest{Account: "acc_other", Key: "give-back", Payment: payment.ID, Amount: 4900})
		require.ErrorIs(t, err, checkout.ErrNotFound)
		require.Equal(t, 0, s.count("idempotency_keys WHERE key = 'give-back'"))
		require.Equal(t, 0, s.refunds())
	})
}
