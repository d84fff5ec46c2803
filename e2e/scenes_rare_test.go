package e2e

import (
	"net/http"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// rareScenes are the states of an order that most buyers never see.
var rareScenes = []scene{
	{name: "checkout-replayed", open: func(_ *testing.T, w *window) {
		o := w.order(soldCourse)
		w.visit("/orders/" + o.ID + "?replayed=1")
		w.says("This was a replay of your first submission.")
	}},
	{name: "checkout-sending", open: func(t *testing.T, w *window) {
		w.order(soldCourse)
		w.intercept("**/payments", func(playwright.Route) {}) // it stays on its way
		w.press(w.pay())
		w.says("Sending, once", "Not known yet", "At most, once")
	}},
	{name: "checkout-not-arrived", open: func(t *testing.T, w *window) {
		require.NoError(t, w.context.Clock().Install())
		w.order(soldCourse)
		w.intercept("**/payments", func(r playwright.Route) { _ = r.Abort() })
		w.press(w.pay())
		w.unknown()
		w.forward("02:05")
		w.says("We could not confirm this payment yet.")
		w.forward("00:30")
		w.says("This payment did not reach us. Nothing was charged.")
	}},
	{name: "checkout-not-made", open: func(t *testing.T, w *window) {
		o := w.order(soldCourse)
		c := w.customer()
		c.pay(o, o.PaymentKey, "pm_card_authenticationRequired")
		a := c.raw(http.MethodPost, "/payments/"+c.order(o.ID).Payments[0].ID+"/cancel", "", "Accept", "application/json")
		require.Equal(t, http.StatusOK, a.status, a.body)
		w.visit("/orders/" + o.ID)
		w.says("The payment was not made.")
	}},
	{name: "checkout-provider-refused", open: func(_ *testing.T, w *window) {
		o := w.order(soldCourse)
		w.customer().pay(o, o.PaymentKey, "pm_sim_rate_limited")
		w.visit("/orders/" + o.ID + "?code=provider_refused")
		w.says("Stripe did not accept our request.")
	}},
	{name: "checkout-tried-unsettled", open: func(_ *testing.T, w *window) {
		w.order(soldCourse)
		w.counted("0")
		w.choose("Visa ending 3184")
		w.press(w.panel().GetByRole("button", playwright.LocatorGetByRoleOptions{Name: "Send it twice"}))
		w.says("This payment is not settled yet.")
	}},

	{name: "checking-in-progress", silent: true, open: func(_ *testing.T, w *window) {
		o := w.inTheDark()
		w.visit("/orders/" + o.ID + "?code=request_in_progress")
		w.heading("This payment is already on its way.")
	}},
	{name: "checking-processing", open: func(t *testing.T, w *window) {
		w.processing(t)
		w.heading("Your payment is on its way.")
	}},
	{name: "checking-closing", open: func(t *testing.T, w *window) {
		o := w.order(soldCourse)
		w.becomes(t, o, "UPDATE orders SET closing_at = clock_timestamp() WHERE id = $1")
		w.visit("/orders/" + o.ID)
		w.heading("This order is being closed.")
	}},
	{name: "checking-needs-a-person", silent: true, open: func(t *testing.T, w *window) {
		o := w.givenUp(t)
		w.visit("/orders/" + o.ID)
		w.says("A person looks at it now")
	}},
	{name: "ledger-needs-a-person", silent: true, open: func(t *testing.T, w *window) {
		w.givenUp(t)
		w.visit("/ledger")
		w.says("needs a person", "Not known yet")
	}},

	{name: "receipt-partly-refunded", open: func(t *testing.T, w *window) {
		o := w.givenBack(t, 1900)
		w.visit("/orders/" + o.ID)
		w.says("Charged once, $19.00 refunded")
	}},
	{name: "receipt-refund-in-progress", open: func(t *testing.T, w *window) {
		o := w.givenBack(t, 1900)
		w.becomes(t, o, "UPDATE refunds SET status = 'pending', refund = NULL, ask_at = 'infinity' WHERE order_id = $1",
			"UPDATE payments SET refunded = 0 WHERE order_id = $1")
		w.visit("/orders/" + o.ID)
		w.says("Your refund is not confirmed yet.", "Send this same refund again")
	}},
	{name: "receipt-refund-failed", open: func(t *testing.T, w *window) {
		o := w.givenBack(t, 1900)
		w.becomes(t, o, "UPDATE refunds SET status = 'failed' WHERE order_id = $1", "UPDATE payments SET refunded = 0 WHERE order_id = $1")
		w.visit("/orders/" + o.ID)
		w.says("The refund did not go through.", "$19.00 is still with us")
	}},
	{name: "receipt-refund-undone", open: func(t *testing.T, w *window) {
		o := w.givenBack(t, 4900)
		w.becomes(t, o, "UPDATE refunds SET status = 'failed' WHERE order_id = $1", "UPDATE payments SET refunded = 0 WHERE order_id = $1")
		w.visit("/orders/" + o.ID)
		w.says("Charged once. The refund did not go through")
	}},
	{name: "receipt-refund-refused", open: func(_ *testing.T, w *window) {
		o := w.bought()
		w.visit("/orders/" + o.ID + "?code=refund_not_possible")
		w.says("This amount cannot be given back.")
	}},
	{name: "receipt-disputed", open: func(t *testing.T, w *window) {
		o := w.bought()
		n := w.d.execute(t, `
			INSERT INTO disputes (account, id, payment_id, charge, status, reason, amount, currency)
			SELECT account, 'dp_of_' || id, id, charge, 'needs_response', 'fraudulent', amount, currency FROM payments WHERE order_id = $1`, o.ID)
		require.Equal(t, int64(1), n)
		w.visit("/orders/" + o.ID)
		w.says("Your bank questions this charge of $49.00.")
	}},

	{name: "order-closed-after-a-decline", open: func(t *testing.T, w *window) {
		o := w.order(soldCourse)
		w.customer().pay(o, o.PaymentKey, "pm_card_chargeDeclined")
		w.becomes(t, o, "UPDATE orders SET status = 'expired', expires_at = clock_timestamp() WHERE id = $1")
		w.visit("/orders/" + o.ID)
		w.says("the payment was canceled at Stripe")
	}},
	{name: "order-closed-charged-late", open: func(t *testing.T, w *window) {
		o := w.givenBack(t, 4900)
		w.becomes(t, o, "UPDATE orders SET status = 'expired', paid_at = NULL, expires_at = clock_timestamp() WHERE id = $1")
		w.visit("/orders/" + o.ID)
		w.says("Refunded, $49.00", "This order is closed.")
	}},
	{name: "order-closed-charged-late-and-kept", open: func(t *testing.T, w *window) {
		o := w.givenBack(t, 4900)
		w.becomes(t, o, "UPDATE orders SET status = 'expired', paid_at = NULL, expires_at = clock_timestamp() WHERE id = $1",
			"UPDATE refunds SET status = 'failed' WHERE order_id = $1", "UPDATE payments SET refunded = 0 WHERE order_id = $1")
		w.visit("/orders/" + o.ID)
		w.says("Charged once. The refund did not go through")
	}},

	{name: "return-paid", open: func(t *testing.T, w *window) { w.returnsElsewhere(t, w.bought()); w.heading("It is paid.") }},
	{name: "return-not-paid", open: func(t *testing.T, w *window) {
		w.returnsElsewhere(t, w.order(soldCourse))
		w.heading("It is not paid.")
	}},
	{name: "return-checking", open: func(t *testing.T, w *window) {
		w.returnsElsewhere(t, w.processing(t))
		w.heading("We are checking. Do not pay again.")
	}},
}

// becomes changes rows of an order, as only time or Stripe can, and puts them
// back when the test has ended: what it shows did not happen.
func (w *window) becomes(t *testing.T, o order, changes ...string) {
	t.Helper()
	eventually(t, "the shop has heard of all that happened", func() bool { return w.d.stripe.hasTold(t, o) })
	rows := []struct{ table, id, columns string }{
		{"orders", "id", "status, closing_at, paid_at, expires_at"},
		{"payments", "order_id", "status, refunded, next_action, ask_at, created_at, updated_at"},
		{"refunds", "order_id", "status, refund, ask_at"},
	}
	var before []string
	for _, r := range rows {
		before = append(before, sql[string](t, w.d, "SELECT coalesce(jsonb_agg(to_jsonb(r)), '[]')::text FROM "+r.table+" r WHERE "+r.id+" = $1", o.ID))
	}
	t.Cleanup(func() {
		for i, r := range rows {
			w.d.execute(t, `
				UPDATE `+r.table+` now SET (`+r.columns+`) = (
					SELECT `+r.columns+` FROM jsonb_populate_recordset(NULL::`+r.table+`, $1::jsonb) old WHERE old.id = now.id)
				 WHERE `+r.id+` = $2`, before[i], o.ID)
		}
	})
	for _, change := range changes {
		require.Equal(t, int64(1), w.d.execute(t, change, o.ID), change)
	}
}

// hasTold is true once every event about an order is delivered: one that comes
// later would put the truth back.
func (s *stripe) hasTold(t testing.TB, o order) bool {
	t.Helper()
	var events struct {
		Data []struct {
			PendingWebhooks int `json:"pending_webhooks"`
			Data            struct {
				Object struct{ Metadata struct{ Order string } }
			}
		}
	}
	s.call(t, http.MethodGet, "/v1/events?limit=100", nil, &events)
	for _, e := range events.Data {
		if e.Data.Object.Metadata.Order == o.ID && e.PendingWebhooks > 0 {
			return false
		}
	}
	return true
}

// processing shows an order whose payment Stripe settles later.
func (w *window) processing(t *testing.T) order {
	t.Helper()
	o := w.order(soldCourse)
	w.customer().pay(o, o.PaymentKey, "pm_card_authenticationRequired")
	w.becomes(t, o, "UPDATE payments SET status = 'processing', next_action = NULL, ask_at = 'infinity' WHERE order_id = $1")
	w.visit("/orders/" + o.ID)
	return o
}

// givenBack buys the course and gives money back.
func (w *window) givenBack(t *testing.T, amount int64) order {
	t.Helper()
	o := w.bought()
	c := w.customer()
	a := c.post(refundsOf(c.order(o.ID).Payments[0]), newKey(), refundBody(amount))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	return o
}

// givenUp pays while Stripe is silent, until nobody asks any more.
func (w *window) givenUp(t *testing.T) order {
	t.Helper()
	w.visit("/")
	c := w.customer()
	o := c.place(soldCourse)
	c.pay(o, o.PaymentKey, "pm_card_visa").problem(t, http.StatusServiceUnavailable, "outcome_unknown")
	for _, change := range []string{
		"UPDATE orders SET created_at = created_at - interval '3 minutes' WHERE id = $1",
		"UPDATE payments SET created_at = created_at - interval '3 minutes', updated_at = updated_at - interval '3 minutes' WHERE order_id = $1",
		"UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '1 minute', completer_tries = 1000 WHERE key = (SELECT key FROM payments WHERE order_id = $1)",
	} {
		require.Equal(t, int64(1), w.d.execute(t, change, o.ID))
	}
	return o
}

// returnsElsewhere comes back from the bank in a browser that has no session.
func (w *window) returnsElsewhere(t *testing.T, o order) {
	t.Helper()
	token := sql[string](t, w.d, "SELECT token FROM orders WHERE id = $1", o.ID)
	require.NoError(t, w.context.ClearCookies())
	w.visit("/orders/" + o.ID + "/return?token=" + token)
}
