package checkout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
	"payonce/migrations/dbtest"
)

// handled hands an event to the shop and demands what becomes of it.
func (s *shop) handled(e checkout.Event, want checkout.EventResult) {
	s.t.Helper()
	result, err := s.HandleEvent(s.t.Context(), e)
	require.NoError(s.t, err)
	require.Equal(s.t, want, result)
}

// charged charges an order's card, and nobody tells the shop.
func (s *shop) charged(order checkout.OrderView) checkout.Intent {
	s.t.Helper()
	_, err := s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents/*/confirm", Action: stripesim.Drop, At: stripesim.Answer})
	require.NoError(s.t, err)
	_, err = s.pay(order.ID, order.PaymentKey, visa)
	conflict(s.t, err, checkout.ErrOutcomeUnknown)
	intent := s.intent(order.ID)
	require.Equal(s.t, checkout.IntentSucceeded, intent.Status)
	return intent
}

// TestEventsInAnyOrder: after an outage every event is old when it comes, and
// none waits for the one that explains it.
func TestEventsInAnyOrder(t *testing.T) {
	t.Parallel()
	outage := time.Now().Add(-5 * time.Hour)

	t.Run("ARefundBeforeItsPaymentsSuccessSettlesBoth", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		intent := s.charged(order)
		s.dashboard("/v1/refunds", "payment_intent="+intent.ID)
		s.handled(checkout.Event{
			ID: "evt_refunded", Type: "charge.refunded", CreatedAt: outage, Charge: intent.Charge, IntentID: intent.ID,
		}, checkout.EventApplied)
		o := s.now(order.ID)
		require.Equal(t, checkout.OrderRefunded, o.Status)
		require.Equal(t, int64(4900), o.Payments[0].Refunded)
		require.Zero(t, s.count("enrolments WHERE status = 'active'"))
		s.handled(checkout.Event{
			ID: "evt_paid", Type: "payment_intent.succeeded", CreatedAt: outage, Intent: &intent, IntentID: intent.ID,
		}, checkout.EventApplied)
		require.Equal(t, checkout.OrderRefunded, s.now(order.ID).Status)
		s.agree(order.ID, 1)
	})

	t.Run("AnEventThatWaitedIsAppliedByItsNextDelivery", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		intent := s.charged(order)
		event := checkout.Event{ID: "evt_paid", Type: "payment_intent.succeeded", CreatedAt: outage, Intent: &intent, IntentID: intent.ID}
		early := intent
		early.Order = "ord_aaaaaaaaaaaaaaaaaaaaaaaa"
		event.Intent = &early
		result, err := s.HandleEvent(t.Context(), event)
		require.Error(t, err)
		require.Equal(t, checkout.EventNotYet, result)
		event.Intent = &intent
		s.handled(event, checkout.EventApplied)
		s.handled(event, checkout.EventDuplicate)
		s.agree(order.ID, 1)
	})
}

// TestAParkedEventIsNotLost: it can be applied later, when what was in its way
// is gone.
func TestAParkedEventIsNotLost(t *testing.T) {
	t.Parallel()
	parked := func(t *testing.T) (s *shop, order checkout.OrderView, event checkout.Event) {
		s = open(t)
		order = s.order(course)
		intent := s.charged(order)
		wrong := intent
		wrong.Money.Amount--
		event = checkout.Event{ID: "evt_paid", Type: "payment_intent.succeeded", CreatedAt: time.Now(), Intent: &wrong, IntentID: intent.ID}
		s.handled(event, checkout.EventParked)
		require.Equal(t, checkout.OrderOpen, s.now(order.ID).Status)
		event.Intent = &intent
		return s, order, event
	}

	t.Run("ByAskingAgain", func(t *testing.T) {
		t.Parallel()
		s, order, event := parked(t)
		result, err := s.AskAgain(t.Context(), event.ID)
		require.NoError(t, err)
		require.Equal(t, checkout.EventApplied, result)
		s.agree(order.ID, 1)
		s.handled(event, checkout.EventDuplicate)
		_, err = s.AskAgain(t.Context(), event.ID)
		require.ErrorIs(t, err, checkout.ErrNotStuck)
	})

	t.Run("ByBeingSentAgain", func(t *testing.T) {
		t.Parallel()
		s, order, event := parked(t)
		s.handled(event, checkout.EventApplied)
		s.agree(order.ID, 1)
	})

	t.Run("AndLeavesTheListOnlyWhenItIsDismissed", func(t *testing.T) {
		t.Parallel()
		s, _, event := parked(t)
		_, err := s.pool.Exec(t.Context(), `UPDATE orders SET amount = 4800; UPDATE payments SET amount = 4800`)
		require.NoError(t, err)
		result, err := s.AskAgain(t.Context(), event.ID)
		require.NoError(t, err)
		require.Equal(t, checkout.EventParked, result)
		stuck, err := s.Stuck(t.Context())
		require.NoError(t, err)
		require.Len(t, stuck, 1)
		require.NoError(t, s.Dismiss(t.Context(), event.ID))
		stuck, err = s.Stuck(t.Context())
		require.NoError(t, err)
		require.Empty(t, stuck)
		s.handled(event, checkout.EventDuplicate)
	})
}

// TestAnotherApplicationsChargesAreIgnored: an account at Stripe may have more
// than one user, and what this shop never makes is not its business.
func TestAnotherApplicationsChargesAreIgnored(t *testing.T) {
	t.Parallel()
	s := open(t)
	for kind, event := range map[string]checkout.Event{
		"charge.refunded":        {Charge: "ch_foreign"},
		"charge.refund.updated":  {Charge: "ch_foreign"},
		"refund.failed":          {Charge: "ch_foreign", IntentID: "pi_foreign"},
		"charge.dispute.created": {DisputeID: "du_foreign"},
	} {
		event.ID, event.Type = "evt_foreign", kind
		s.handled(event, checkout.EventIgnored)
	}
	require.Zero(t, s.count("events"))
}

// TestProcessingThatFailsFreesTheOrder: a payment that the bank turns down days
// after its 202 is failed, and the next key pays.
func TestProcessingThatFailsFreesTheOrder(t *testing.T) {
	t.Parallel()
	processing := func(t *testing.T, s *shop) (checkout.OrderView, checkout.PaymentView) {
		order := s.order(course)
		answer, err := s.pay(order.ID, order.PaymentKey, "pm_sim_processing")
		require.NoError(t, err)
		require.Equal(t, 202, answer.Status)
		return order, decode[checkout.PaymentView](t, answer)
	}
	failed := func(t *testing.T, s *shop, order checkout.OrderView) {
		o := s.now(order.ID)
		require.Equal(t, checkout.PaymentFailed, o.Payments[0].Status)
		require.Equal(t, checkout.OrderOpen, o.Status)
		require.NotEqual(t, order.PaymentKey, o.PaymentKey)
		require.Zero(t, s.count("enrolments"))
		s.paid(order.ID, o.PaymentKey, visa)
		s.agree(order.ID, 1)
	}

	t.Run("ByItsEvent", func(t *testing.T) {
		t.Parallel()
		s := openLater(t, dbtest.New(t), time.Hour)
		s.listen(s.Service)
		order, payment := processing(t, s)
		require.NoError(t, s.stripe.Finish(payment.PaymentIntent, stripesim.Failed))
		s.until("the event", func() bool { return s.now(order.ID).Payments[0].Status == checkout.PaymentFailed })
		failed(t, s, order)
	})

	t.Run("ByTheCompleter", func(t *testing.T) {
		t.Parallel()
		s := openLater(t, dbtest.New(t), time.Hour)
		order, payment := processing(t, s)
		require.NoError(t, s.stripe.Finish(payment.PaymentIntent, stripesim.Failed))
		_, err := s.pool.Exec(t.Context(), `UPDATE payments SET ask_at = clock_timestamp() - interval '1 second'`)
		require.NoError(t, err)
		result, err := s.CompleteOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, result.Payments)
		failed(t, s, order)
	})
}
