package checkout_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
)

// token reads the order's token from the address that the bank sends back to.
func (s *shop) token() string {
	s.t.Helper()
	var address string
	require.NoError(s.t, s.pool.QueryRow(s.t.Context(), "SELECT return_url FROM payments").Scan(&address))
	u, err := url.Parse(address)
	require.NoError(s.t, err)
	return u.Query().Get("token")
}

// TestTheShortAnswerIsTrue: whoever comes back with the token alone is told
// where the money is, also when it has gone back since.
func TestTheShortAnswerIsTrue(t *testing.T) {
	t.Parallel()
	says := func(s *shop, order string, want checkout.ReturnState) {
		s.t.Helper()
		state, err := s.Returned(s.t.Context(), order, s.token())
		require.NoError(s.t, err)
		require.Equal(s.t, want, state)
	}

	t.Run("OfAFailedChallenge", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.asked(order)
		says(s, order.ID, checkout.ReturnChecking)
		require.NoError(t, s.stripe.Finish(payment.PaymentIntent, stripesim.Failed))
		says(s, order.ID, checkout.ReturnNotPaid)
	})

	t.Run("OfARefund", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		_, err := s.refund(payment.ID, "a-part", 900)
		require.NoError(t, err)
		says(s, order.ID, checkout.ReturnPaid)
		_, err = s.refund(payment.ID, "the-rest", 4000)
		require.NoError(t, err)
		says(s, order.ID, checkout.ReturnRefunded)
	})

	t.Run("OfMoneyThatCameLate", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.lateMoney(visa)
		says(s, order, checkout.ReturnRefunded)
	})

	t.Run("AndATokenThatNobodyCouldHaveIsRefused", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		s.asked(order)
		for _, wrong := range []string{"\xff", "é", "a\nb", s.token() + " "} {
			_, err := s.Returned(t.Context(), order.ID, wrong)
			require.ErrorIs(t, err, checkout.ErrNotFound)
		}
	})
}

// lateMoney makes an order that is charged after it has closed, as an
// intervention at Stripe would: its refund is to be sent.
func (s *shop) lateMoney(method string) (order string) {
	s.t.Helper()
	placed := s.order(course)
	_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents/*/confirm", Action: stripesim.Drop, At: stripesim.Answer})
	require.NoError(s.t, err)
	_, err = s.pay(placed.ID, placed.PaymentKey, method)
	conflict(s.t, err, checkout.ErrOutcomeUnknown)
	intent := s.intent(placed.ID)
	require.Equal(s.t, checkout.IntentSucceeded, intent.Status)
	_, err = s.pool.Exec(s.t.Context(), `UPDATE payments SET status = 'canceled'`)
	require.NoError(s.t, err)
	_, err = s.pool.Exec(s.t.Context(), `UPDATE orders SET status = 'expired'`)
	require.NoError(s.t, err)
	result, err := s.HandleEvent(s.t.Context(), checkout.Event{
		ID: "evt_late", Type: "payment_intent.succeeded", CreatedAt: time.Now(), Intent: &intent, IntentID: intent.ID,
	})
	require.NoError(s.t, err)
	require.Equal(s.t, checkout.EventApplied, result)
	return placed.ID
}

// TestMoneyThatShouldHaveGoneBackWaitsForAPerson: a refund can fail days after
// Stripe took it. Then nobody else would ever see that the money is still here.
func TestMoneyThatShouldHaveGoneBackWaitsForAPerson(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.listen(s.Service)
	order := s.order(course)
	payment := s.paid(order.ID, order.PaymentKey, "pm_card_refundFail")
	_, err := s.refund(payment.ID, "give-back", 4900)
	require.NoError(t, err)
	s.until("the refund has failed", func() bool {
		refunds := s.now(order.ID).Refunds
		return len(refunds) == 1 && refunds[0].Status == checkout.RefundFailed
	})
	o := s.now(order.ID)
	require.Equal(t, checkout.OrderRefunded, o.Status, "the course is closed, and may have been bought again")
	require.Zero(t, o.Payments[0].Refunded)
	stuck, err := s.Stuck(t.Context())
	require.NoError(t, err)
	require.Len(t, stuck, 1)
	require.Equal(t, o.Refunds[0].ID, stuck[0].ID)
	require.Equal(t, order.ID, stuck[0].Order)
}
