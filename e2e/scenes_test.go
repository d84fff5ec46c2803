package e2e

import (
	"net/http"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// scene is a page in one of its states.
type scene struct {
	name string
	// open brings a fresh window to it.
	open func(*testing.T, *window)
	// silent is true for a page that is there only while Stripe does not answer.
	silent bool
}

// shopScenes are the pages of the shop that most buyers see.
var shopScenes = []scene{
	{name: "catalogue", open: func(_ *testing.T, w *window) { w.visit("/") }},
	{name: "course", open: func(_ *testing.T, w *window) { w.visit("/courses/" + soldCourse) }},
	{name: "course-free", open: func(_ *testing.T, w *window) { w.visit("/courses/why-select-cannot-answer") }},
	{name: "course-with-an-open-order", open: func(_ *testing.T, w *window) { w.order(soldCourse); w.visit("/courses/" + soldCourse) }},
	{name: "course-owned", open: func(_ *testing.T, w *window) { w.bought(); w.visit("/courses/" + soldCourse) }},

	{name: "checkout", open: func(_ *testing.T, w *window) { w.order(soldCourse); w.counted("0") }},
	{name: "checkout-declined", open: func(_ *testing.T, w *window) {
		o := w.order(soldCourse)
		w.customer().pay(o, o.PaymentKey, "pm_card_chargeDeclinedInsufficientFunds")
		w.visit("/orders/" + o.ID)
		w.says("Your bank declined the card.")
	}},
	{name: "checkout-declined-in-place", open: func(_ *testing.T, w *window) {
		w.order(soldCourse)
		w.choose("Visa ending 0127")
		w.press(w.pay())
		w.says("Your bank declined the card.")
	}},
	{name: "checkout-busy", open: func(_ *testing.T, w *window) {
		o := w.order(soldCourse)
		w.customer().pay(o, o.PaymentKey, "pm_sim_rate_limited")
		w.visit("/orders/" + o.ID)
		w.says("Stripe is busy. Nothing was charged.")
	}},
	{name: "checkout-waiting", silent: true, open: func(_ *testing.T, w *window) {
		w.order(soldCourse)
		w.press(w.pay())
		w.unknown()
	}},
	{name: "checkout-out-of-date", open: func(_ *testing.T, w *window) {
		o := w.order(soldCourse)
		w.customer().pay(o, o.PaymentKey, "pm_card_chargeDeclined")
		w.choose("Mastercard ending 4444")
		w.press(w.pay())
		w.says("This page was out of date.")
	}},
	{name: "checkout-stopped", open: func(t *testing.T, w *window) {
		w.order(soldCourse)
		w.loseSession(true)
		w.press(w.pay())
		w.says("We do not know who you are yet.")
	}},
	{name: "checkout-tried", open: func(t *testing.T, w *window) { w.tried(t) }},

	{name: "checking", silent: true, open: func(_ *testing.T, w *window) { w.inTheDark() }},
	{name: "checking-handed-over", silent: true, open: func(t *testing.T, w *window) {
		require.NoError(t, w.context.Clock().Install())
		w.inTheDark()
		w.forward("02:05")
		w.heading("We could not confirm this payment yet.")
	}},
	{name: "checking-bank", open: func(_ *testing.T, w *window) {
		o := w.order(soldCourse)
		w.customer().pay(o, o.PaymentKey, "pm_card_authenticationRequired")
		w.visit("/orders/" + o.ID)
		w.heading("Your bank asks you to confirm.")
	}},

	{name: "receipt", open: func(_ *testing.T, w *window) { w.bought() }},
	{name: "receipt-of-eight", open: func(_ *testing.T, w *window) { w.copied() }},
	{name: "receipt-replayed", open: func(_ *testing.T, w *window) {
		o := w.bought()
		w.visit("/orders/" + o.ID + "?replayed=1")
		w.says("This was a replay of your first submission.")
	}},
	{name: "receipt-already-paid", open: func(_ *testing.T, w *window) {
		o := w.bought()
		w.visit("/orders/" + o.ID + "?code=order_already_paid")
		w.says("You have already paid for this.")
	}},
	{name: "receipt-refund-offered", open: func(_ *testing.T, w *window) {
		w.bought()
		w.press(w.GetByText("Give the money back"))
		w.says("Give back $49.00")
	}},
	{name: "receipt-refunded", open: func(_ *testing.T, w *window) {
		w.bought()
		w.press(w.GetByText("Give the money back"))
		w.press(w.button("Give back $49.00"))
		w.says("Refunded, $49.00")
	}},
	{name: "receipt-free", open: func(_ *testing.T, w *window) {
		w.visit("/courses/why-select-cannot-answer")
		w.press(w.button("Take the course"))
		w.says("nothing was charged")
	}},
	{name: "order-closed", open: func(t *testing.T, w *window) {
		o := w.order(soldCourse)
		w.d.execute(t, "UPDATE orders SET status = 'expired', expires_at = clock_timestamp() WHERE id = $1", o.ID)
		w.visit("/orders/" + o.ID)
		w.heading("This order is closed.")
	}},

	{name: "orders-none", open: func(_ *testing.T, w *window) { w.visit("/orders") }},
	{name: "orders", open: func(_ *testing.T, w *window) {
		w.bought()
		c := w.customer()
		c.place("stripe-in-production")
		refunded, p := c.buy("proof-by-exhaustion")
		c.post(refundsOf(p), newKey(), refundBody(refunded.Amount))
		w.visit("/orders")
		w.says("Refunded", "Not charged", "Charged once")
	}},
	{name: "lesson", open: func(_ *testing.T, w *window) { w.bought(); w.visit("/courses/" + soldCourse + "/lessons/1") }},

	{name: "ledger-none", open: func(_ *testing.T, w *window) { w.visit("/ledger"); w.says("Live") }},
	{name: "ledger", open: func(_ *testing.T, w *window) {
		w.copied()
		w.customer().place("stripe-in-production")
		w.visit("/ledger")
		w.press(w.GetByText("/payments").First())
		w.says("Live", "byte")
	}},
	{name: "ledger-in-progress", silent: true, open: func(_ *testing.T, w *window) {
		w.inTheDark()
		w.visit("/ledger")
		w.says("in_progress", "Not known yet")
	}},

	{name: "error-not-found", open: func(t *testing.T, w *window) {
		require.Equal(t, http.StatusNotFound, w.visit("/nowhere").Status())
	}},
	{name: "error-key-reused", open: func(t *testing.T, w *window) {
		o := w.order(soldCourse)
		w.customer().pay(o, o.PaymentKey, "pm_card_chargeDeclined")
		w.submitPlain(t)
		w.heading("This page is out of date.")
	}},
	{name: "error-no-session", open: func(t *testing.T, w *window) {
		w.order(soldCourse)
		w.loseSession(true)
		w.submitPlain(t)
		w.heading("We do not know who you are yet.")
	}},
	{name: "policy", open: func(_ *testing.T, w *window) { w.visit("/docs/idempotency") }},
}

// bought buys the course, and shows the receipt.
func (w *window) bought() order {
	w.t.Helper()
	o := w.order(soldCourse)
	c := w.customer()
	c.paid(c.pay(o, o.PaymentKey, "pm_card_visa"))
	w.visit("/orders/" + o.ID)
	w.receipt(o)
	return o
}

// copied buys the course with eight copies of one payment, and shows the receipt
// with all of them.
func (w *window) copied() order {
	w.t.Helper()
	o := w.order(soldCourse)
	c := w.customer()
	for _, a := range atOnce(8, func(int) answer { return c.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_card_visa")) }) {
		c.paid(a)
	}
	eventually(w.t, "the replays are written down", func() bool {
		w.visit("/orders/" + o.ID)
		n, err := w.lanes().Count()
		require.NoError(w.t, err)
		return n >= 8
	})
	w.receipt(o)
	return o
}

// inTheDark pays while Stripe is silent, and shows the page that does not know.
func (w *window) inTheDark() order {
	w.t.Helper()
	o := w.order(soldCourse)
	w.customer().pay(o, o.PaymentKey, "pm_card_visa").problem(w.t, http.StatusServiceUnavailable, "outcome_unknown")
	w.visit("/orders/" + o.ID + "?code=outcome_unknown")
	w.unknown()
	return o
}

// tried presses "Eight at once" and shows the table of the answers.
func (w *window) tried(t *testing.T) order {
	t.Helper()
	o := w.order(soldCourse)
	panel := w.panel()
	w.counted("0")
	w.press(panel.GetByRole("button", playwright.LocatorGetByRoleOptions{Name: "Eight at once"}))
	require.NoError(t, expect.Locator(panel.GetByRole("table").GetByRole("row")).ToHaveCount(9))
	w.counted("1")
	w.says("The course is yours.")
	return o
}

// panel is "Try to break it".
func (b *tab) panel() playwright.Locator {
	return b.GetByRole("region", playwright.PageGetByRoleOptions{Name: "Try to break it"})
}

// counted waits until the panel shows how many charges Stripe counts.
func (b *tab) counted(n string) {
	b.w.t.Helper()
	figure := b.panel().GetByRole("status").GetByText(n, playwright.LocatorGetByTextOptions{Exact: playwright.Bool(true)})
	require.NoError(b.w.t, expect.Locator(figure).ToBeVisible(), "%s charges at Stripe", n)
}

// submitPlain submits the payment with another card, past the script.
func (b *tab) submitPlain(t *testing.T) {
	t.Helper()
	b.choose("Mastercard ending 4444")
	_, err := b.Evaluate(`() => { setTimeout(() => HTMLFormElement.prototype.submit.call(document.querySelector("#pay"))) }`)
	require.NoError(t, err)
}
