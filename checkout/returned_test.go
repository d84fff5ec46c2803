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
	// The one that is handled below comes later than Stripe would send it.
	_, err := s.stripe.AddDelivery(stripesim.DeliveryRule{Event: "payment_intent.succeeded", Drop: true})
	require.NoError(s.t, err)
	_, err = s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents/*/confirm", Action: stripesim.Drop, At: stripesim.Answer})
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
// Stripe took it. Then nobody else would ever see that the money is still here,
// and a person can still give it back.
func TestMoneyThatShouldHaveGoneBackWaitsForAPerson(t *testing.T) {
	t.Parallel()
	waits := func(s *shop, order string) checkout.Stuck {
		s.t.Helper()
		stuck, err := s.Stuck(t.Context())
		require.NoError(s.t, err)
		require.Len(s.t, stuck, 1)
		require.Equal(s.t, order, stuck[0].Order)
		return stuck[0]
	}
	failed := func(s *shop, order string, n int) {
		s.t.Helper()
		s.until("the refund has failed", func() bool {
			refunds := s.now(order).Refunds
			return len(refunds) == n && refunds[n-1].Status == checkout.RefundFailed
		})
		require.Zero(s.t, s.now(order).Payments[0].Refunded)
	}
	for name, make := range map[string]struct {
		order  func(s *shop) string
		closed checkout.OrderStatus
	}{
		"OfARefundedOrder": {func(s *shop) string {
			order := s.order(course)
			payment := s.paid(order.ID, order.PaymentKey, "pm_card_refundFail")
			_, err := s.refund(payment.ID, "give-back", 4900)
			require.NoError(s.t, err)
			return order.ID
		}, checkout.OrderRefunded},
		"OfAnExpiredOrder": {func(s *shop) string {
			order := s.lateMoney("pm_card_refundFail")
			s.later("0")
			_, err := s.CompleteOnce(s.t.Context())
			require.NoError(s.t, err)
			return order
		}, checkout.OrderExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.listen(s.Service)
			order := make.order(s)
			failed(s, order, 1)
			o := s.now(order)
			require.Equal(t, make.closed, o.Status)
			row := waits(s, order)
			require.Equal(t, o.Refunds[0].ID, row.ID)
			require.Contains(t, row.Why, "shop refund "+o.Payments[0].ID+" 4900")
			_, err := s.AskAgain(t.Context(), row.ID)
			require.ErrorIs(t, err, checkout.ErrRefundFailed)
			waits(s, order)

			answer, err := s.refund(o.Payments[0].ID, "once-more", 4900)
			require.NoError(t, err)
			require.Equal(t, 201, answer.Status, string(answer.Body))
			require.Equal(t, make.closed, s.now(order).Status)

			failed(s, order, 2) // this card takes none
			row = waits(s, order)
			require.Equal(t, s.now(order).Refunds[1].ID, row.ID, "once for the same money")
			require.NoError(t, s.Dismiss(t.Context(), row.ID))
			stuck, err := s.Stuck(t.Context())
			require.NoError(t, err)
			require.Empty(t, stuck)
		})
	}
}

// TestWhatWaitsIsFoundWhereverItStandsOnTheList: the list has a hundred rows,
// and what waits may be more.
func TestWhatWaitsIsFoundWhereverItStandsOnTheList(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, err := s.pool.Exec(t.Context(), `
		INSERT INTO events (id, type, status, received_at)
		SELECT 'evt_' || n, 'charge.refunded', 'parked', clock_timestamp() + n * interval '1 second' FROM generate_series(1, 130) n`)
	require.NoError(t, err)
	stuck, err := s.Stuck(t.Context())
	require.NoError(t, err)
	require.Len(t, stuck, 100)
	require.NoError(t, s.Dismiss(t.Context(), "evt_130"))
	_, err = s.AskAgain(t.Context(), "evt_129")
	require.NoError(t, err)
	require.Equal(t, 128, s.count("events WHERE status = 'parked'"))
}
