package e2e

import (
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestBrowserReplyLost: the reply of Stripe is lost, and nobody knows whether the card
// was charged. The page says so, sends nothing but the same payment again, and
// comes to one of three ends; so do the same page after a reload and a second
// tab.
func TestBrowserReplyLost(t *testing.T) {
	t.Parallel()
	const (
		visa     = "Visa ending 4242"
		declined = "Visa ending 0002"
	)
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			// Nobody but the pages finds out how it ended.
			d := deploy(t, clientsOnly)
			shop := d.open(t)

			// inTheDark pays and returns the two tabs that do not know.
			inTheDark := func(t *testing.T, method string, before func(*window)) (*window, *tab, order, silence) {
				t.Helper()
				w := d.browse(t, shop, mode.option)
				before(w)
				o := w.order(soldCourse)
				quiet := d.stripe.silence(t)
				w.choose(method)
				w.press(w.pay())
				w.unknown()
				second := w.another()
				second.visit("/orders/" + o.ID)
				second.unknown()
				w.reload()
				w.unknown()
				return w, second, o, quiet
			}
			nothing := func(*window) {}

			t.Run("EndsWithTheReceipt", func(t *testing.T) {
				w, second, o, quiet := inTheDark(t, visa, nothing)
				quiet.answers(t)
				if !mode.script {
					w.sendAgainUntil(w.ours())
					second.press(second.link("Check now"))
				}
				ch := w.receipt(o)
				second.receipt(o)
				require.Equal(t, o.PaymentKey, w.requireOneKey())
				require.Equal(t, 1, d.stripe.confirms(t, ch.PaymentIntent).Executed)
			})

			t.Run("EndsWithADeclineAndTheNextKey", func(t *testing.T) {
				w, second, o, quiet := inTheDark(t, declined, nothing)
				quiet.answers(t)
				if !mode.script {
					w.sendAgainUntil(w.pay())
					second.press(second.link("Check now"))
				}
				for _, b := range []*tab{w.tab, second} {
					b.says("othing was charged", "Not charged")
					require.NoError(t, expect.Locator(b.pay()).ToBeVisible())
				}
				require.Equal(t, o.PaymentKey, w.requireOneKey())
				next := w.current().PaymentKey
				require.NotEqual(t, o.PaymentKey, next)
				require.Empty(t, d.stripe.chargesOf(t, o))

				second.choose(visa)
				second.press(second.pay())
				second.receipt(o)
				sent := w.submissions()
				require.Equal(t, next, sent[len(sent)-1].key)
			})

			t.Run("IsHandedOverAndSettledLater", func(t *testing.T) {
				hurry := func(*window) {}
				if mode.script {
					hurry = func(w *window) { require.NoError(t, w.context.Clock().Install()) }
				}
				w, second, o, quiet := inTheDark(t, visa, hurry)
				require.Equal(t, int64(1), d.execute(t, "UPDATE payments SET created_at = created_at - interval '125 s', updated_at = updated_at - interval '125 s' WHERE order_id = $1", o.ID))
				if mode.script {
					w.forward("02:05")
				} else {
					w.reload()
					second.press(second.link("Check now"))
				}
				payment := w.customer().order(o.ID).Payments[0].ID
				handedOver := func(b *tab) {
					b.heading("We could not confirm this payment yet. Do not pay again.")
					b.says("Nobody is charged twice", payment, "Not known yet", "At most, once")
					require.False(t, b.has(b.Locator(".button-pay:not([aria-disabled=true])")), "Pay is off")
				}
				handedOver(w.tab)
				handedOver(second)
				w.reload()
				handedOver(w.tab)
				before := len(w.submissions())

				// Stripe tells the shop by itself, and the pages hear of it.
				quiet.answers(t)
				quiet.tells(t)
				eventually(t, "the event settles it", func() bool { return w.customer().order(o.ID).Status == "paid" })
				if mode.script {
					w.forward("00:30")
				} else {
					w.press(w.link("Check now"))
					second.reload()
				}
				w.receipt(o)
				second.receipt(o)
				require.Equal(t, o.PaymentKey, w.requireOneKey())
				require.Len(t, w.submissions(), before, "after the hand-over it only asks")
			})
		})
	}
}

// unknown waits until the page says that nobody knows yet, and requires that it
// offers no new payment.
func (b *tab) unknown() {
	b.w.t.Helper()
	b.says("Do not pay again.", "Not known yet", "At most, once")
	n, err := b.GetByRole("main").Locator(".button-pay:not([aria-disabled=true])").Count()
	require.NoError(b.w.t, err)
	require.Zero(b.w.t, n, "Pay is off")
	b.requireReadable()
}

// sendAgainUntil presses the one button of a page without script, which sends
// the same payment under the same key, until the page shows how it ended.
func (b *tab) sendAgainUntil(end playwright.Locator) {
	b.w.t.Helper()
	eventually(b.w.t, "the same payment finds its end", func() bool {
		b.press(b.button("Send this same payment again"))
		require.NoError(b.w.t, b.WaitForLoadState())
		b.requireReadable()
		return b.has(end)
	})
}

// forward lets the pages' clock run ahead: what is due then is done.
func (w *window) forward(by string) {
	w.t.Helper()
	require.NoError(w.t, w.context.Clock().FastForward(by))
}
