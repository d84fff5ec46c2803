package e2e

import (
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestBrowserPressedOften: whatever a hand does to the button, one payment leaves.
func TestBrowserPressedOften(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	for _, mode := range modes {
		for _, press := range []struct {
			name string
			how  func(*testing.T, *window)
		}{
			{"DoubleClick", func(t *testing.T, w *window) {
				//lint:ignore SA1019 this driver still waits for a navigation, which the test holds up
				require.NoError(t, w.pay().Dblclick(playwright.LocatorDblclickOptions{NoWaitAfter: playwright.Bool(true)}))
			}},
			{"EnterTwice", func(t *testing.T, w *window) {
				require.NoError(t, w.GetByRole("radio").First().Focus())
				require.NoError(t, w.Keyboard().Press("Enter"))
				require.NoError(t, w.Keyboard().Press("Enter"))
			}},
			{"EightClicks", func(t *testing.T, w *window) {
				//lint:ignore SA1019 this driver still waits for a navigation, which the test holds up
				require.NoError(t, w.pay().Click(playwright.LocatorClickOptions{ClickCount: playwright.Int(8), NoWaitAfter: playwright.Bool(true)}))
			}},
		} {
			t.Run(press.name+mode.name, func(t *testing.T) {
				t.Parallel()
				w := d.browse(t, shop, mode.option)
				o := w.order(soldCourse)
				press.how(t, w)
				w.paid(o)
				require.Equal(t, o.PaymentKey, w.requireOneKey())
				if mode.script {
					require.Len(t, w.submissions(), 1, "the page sends one")
				}
			})
		}
	}

	// No hand can do this; an extension or a script can.
	t.Run("EightSubmitsOfTheForm", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop)
		o := w.order(soldCourse)
		_, err := w.Evaluate(`() => { for (let i = 0; i < 8; i++) document.querySelector("#pay").requestSubmit() }`)
		require.NoError(t, err)
		w.receipt(o)
		require.Len(t, w.submissions(), 1)
	})

	for _, mode := range modes {
		t.Run("TwoTabsOfOneOrder"+mode.name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop, mode.option)
			o := w.order(soldCourse)
			other := w.another()
			other.visit("/courses/" + soldCourse)
			other.press(other.link("Continue to checkout"))
			other.at("/orders/" + o.ID)
			require.NoError(t, expect.Locator(other.pay()).ToBeVisible())

			w.press(w.pay())
			if !mode.script {
				// The other tab does not know; its button sends the same key.
				w.paid(o)
				other.press(other.pay())
				other.says("This was a replay of your first submission.")
			}
			w.receipt(o)
			other.receipt(o)
			require.Equal(t, o.PaymentKey, w.requireOneKey())
		})
	}

	t.Run("TwoTabsAtOnce", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop)
		o := w.order(soldCourse)
		other := w.another()
		other.visit("/orders/" + o.ID)
		// Without the patience of a locator: a tab that has just heard of the
		// other one has no button any more, which is as good.
		for _, err := range atOnce(2, func(i int) error {
			_, err := []*tab{w.tab, other}[i].Evaluate(`() => { document.querySelector("#pay button")?.click() }`)
			return err
		}) {
			require.NoError(t, err)
		}
		w.receipt(o)
		other.receipt(o)
		require.Equal(t, o.PaymentKey, w.requireOneKey())
	})
}

// paid waits until the order is paid and its receipt shown. A page without
// script shows it when it is loaded again.
func (w *window) paid(o order) charge {
	w.t.Helper()
	c := w.customer()
	eventually(w.t, "the order is paid", func() bool { return c.order(o.ID).Status == "paid" })
	return w.receiptOrReload(o)
}

func (b *tab) receiptOrReload(o order) charge {
	b.w.t.Helper()
	b.at("/orders/" + o.ID)
	if !b.has(b.ours()) {
		b.visit("/orders/" + o.ID)
	}
	return b.receipt(o)
}

// TestBrowserInMidFlight: a page that goes away while its payment is with Stripe.
func TestBrowserInMidFlight(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)
	for _, mode := range modes {
		for _, away := range []struct {
			name string
			how  func(*window, order)
		}{
			{"Reloaded", func(w *window, _ order) { w.reload() }},
			{"ClosedAndOpenedAgain", func(w *window, o order) {
				require.NoError(w.t, w.Close())
				w.tab = w.another()
				w.visit("/orders/" + o.ID)
			}},
			{"LeftAndComeBackTo", func(w *window, o order) {
				w.visit("/")
				w.visit("/orders")
				w.says("Not known yet")
				w.press(w.link("Idempotency, end to end").First())
			}},
		} {
			// One after the other: a rule takes the next confirmation, whoever sends it.
			t.Run(away.name+mode.name, func(t *testing.T) {
				w := d.browse(t, shop, mode.option)
				o := w.order(soldCourse)
				held := d.stripe.hold(t, "execution")
				w.press(w.pay())
				held.reached(t)

				away.how(w, o)
				w.heading("Do not pay again.")
				w.says("Not known yet")
				require.NoError(t, expect.Locator(w.button("Pay is off while we check")).ToBeDisabled())
				require.Empty(t, d.stripe.chargesOf(t, o))

				held.release(t)
				if !mode.script {
					eventually(t, "the payment is recorded", func() bool { return w.customer().order(o.ID).Status == "paid" })
					w.press(w.link("Check now"))
				}
				ch := w.receipt(o)
				require.Equal(t, o.PaymentKey, w.requireOneKey())
				require.Equal(t, 1, d.stripe.confirms(t, ch.PaymentIntent).Executed)
			})
		}
	}
}

// TestBrowserDeclined: the card is refused, and another one pays.
func TestBrowserDeclined(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)
	for _, mode := range modes {
		t.Run("ThenAnotherCard"+mode.name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop, mode.option)
			o := w.order(soldCourse)
			w.choose("Visa ending 9995")
			w.press(w.pay())
			w.says("Your bank declined the card. Nothing was charged.", "It reports insufficient funds.", "Not charged")
			w.requireReadable()
			require.NoError(t, expect.Locator(w.GetByRole("radio", playwright.PageGetByRoleOptions{Name: "Visa ending 9995"})).ToBeChecked())
			next := w.current().PaymentKey
			require.NotEqual(t, o.PaymentKey, next)

			w.choose("Mastercard ending 4444")
			w.press(w.pay())
			w.receipt(o)
			require.Equal(t, []submission{
				{paymentsOf(o), o.PaymentKey, "pm_card_chargeDeclinedInsufficientFunds"},
				{paymentsOf(o), next, "pm_card_mastercard"},
			}, w.submissions())
		})

		t.Run("ThenTheSameCardAgainIsAskedAgain"+mode.name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop, mode.option)
			o := w.order(soldCourse)
			w.choose("Visa ending 0069")
			for range 2 {
				w.press(w.pay())
				w.says("It reports that the card has expired.")
			}
			eventually(t, "two attempts", func() bool { return len(w.customer().order(o.ID).Payments) == 2 })
			w.visit("/orders/" + o.ID)
			w.says("Nothing was charged.")
			require.Empty(t, d.stripe.chargesOf(t, o))
		})
	}
}
