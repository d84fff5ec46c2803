package checkout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
)

// TestLateRefund: money that came for a closed order goes back once, however
// Stripe fails to take the refund.
func TestLateRefund(t *testing.T) {
	t.Parallel()
	pass := func(s *shop, duration string) {
		s.t.Helper()
		_, err := s.pool.Exec(t.Context(), `UPDATE refunds SET ask_at = clock_timestamp() - interval '1 second', sent_at = sent_at - $1::interval`, duration)
		require.NoError(s.t, err)
		_, err = s.CompleteOnce(t.Context())
		require.NoError(s.t, err)
	}
	fail := func(s *shop, failure stripesim.Failure) {
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Method: "POST", Action: stripesim.Fail, Failure: &failure})
		require.NoError(s.t, err)
	}
	now := func(s *shop, order string) checkout.Refund {
		refunds := s.now(order).Refunds
		require.Len(s.t, refunds, 1)
		return refunds[0]
	}

	t.Run("AnsweredByAStoredServerErrorIsSentAgainWhenNothingCanBeOnItsWay", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.lateMoney(visa)
		fail(s, stripesim.Failure{Status: 500, Stored: true})
		pass(s, "0")
		pass(s, "21 hours")
		require.Equal(t, checkout.RefundPending, now(s, order).Status, "it may still be carried out")
		require.Equal(t, 1, s.refunds(), "sent")
		_, err := s.stripe.PruneKeys("")
		require.NoError(t, err)
		pass(s, "24 hours")
		require.Equal(t, checkout.RefundSucceeded, now(s, order).Status)
		require.Equal(t, 2, s.refunds(), "sent")
	})

	t.Run("CarriedOutBehindAServerErrorIsFoundAndNotSentAgain", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.lateMoney(visa)
		_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/refunds", Method: "GET", Action: stripesim.Fail, Times: 2, Failure: &stripesim.Failure{Status: 503}})
		require.NoError(t, err)
		fail(s, stripesim.Failure{Status: 500, Stored: true, Executed: true})
		pass(s, "0")
		_, err = s.stripe.PruneKeys("")
		require.NoError(t, err)
		pass(s, "45 hours")
		require.Equal(t, checkout.RefundPending, now(s, order).Status, "the list could not be read, so nothing was sent")
		pass(s, "0")
		require.Equal(t, checkout.RefundSucceeded, now(s, order).Status)
		require.Equal(t, 1, s.refunds(), "sent")
	})
}
