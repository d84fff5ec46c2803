package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBrowserBank: the bank asks the buyer first, on a page of its own.
func TestBrowserBank(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	for _, mode := range modes {
		// asked pays with a card whose bank asks.
		asked := func(t *testing.T) (*window, order) {
			t.Helper()
			w := d.browse(t, shop, mode.option)
			o := w.order(soldCourse)
			w.choose("Visa ending 3184")
			w.press(w.pay())
			w.heading("Your bank asks you to confirm.")
			w.says("Nothing is charged until you do.", "Not charged. Your bank is asking you.")
			require.Empty(t, d.stripe.chargesOf(t, o))
			return w, o
		}

		t.Run("ConfirmedChargesOnce"+mode.name, func(t *testing.T) {
			t.Parallel()
			w, o := asked(t)
			second := w.another()
			second.visit("/orders/" + o.ID)
			w.press(w.link("Go to your bank"))
			w.press(w.button("Yes, it is me"))
			w.receipt(o)
			if !mode.script {
				second.press(second.link("Check now"))
			}
			second.receipt(o) // the tab that stayed hears of it
			require.Equal(t, o.PaymentKey, w.requireOneKey())
		})

		t.Run("RefusedChargesNothingAndAnotherCardPays"+mode.name, func(t *testing.T) {
			t.Parallel()
			w, o := asked(t)
			w.press(w.link("Go to your bank"))
			w.press(w.button("Fail authentication"))
			w.says("Not charged", "Nothing was charged")
			w.requireReadable()
			require.Empty(t, d.stripe.chargesOf(t, o))
			w.choose("Mastercard ending 4444")
			w.press(w.pay())
			w.receipt(o)
		})

		t.Run("GivenUpForAnotherCard"+mode.name, func(t *testing.T) {
			t.Parallel()
			w, o := asked(t)
			bank := w.another()
			bank.visit("/orders/" + o.ID)
			bank.press(bank.link("Go to your bank"))
			require.NoError(t, expect.Locator(bank.button("Yes, it is me")).ToBeVisible())

			w.press(w.button("Use another card"))
			require.NoError(t, expect.Locator(w.pay()).ToBeVisible())
			w.says("Not charged")
			w.requireReadable()

			// The bank's page was left open, and answers too late.
			bank.press(bank.button("Yes, it is me"))
			bank.at("/orders/" + o.ID)
			bank.requireReadable()
			require.Empty(t, d.stripe.chargesOf(t, o))

			w.choose("Mastercard ending 4444")
			w.press(w.pay())
			w.receipt(o)
		})

		t.Run("LeftAndComeBackTo"+mode.name, func(t *testing.T) {
			t.Parallel()
			w, o := asked(t)
			w.press(w.link("Go to your bank"))
			require.NoError(t, expect.Locator(w.button("Yes, it is me")).ToBeVisible())
			w.back()
			w.heading("Your bank asks you to confirm.")
			w.press(w.link("Check now"))
			w.heading("Your bank asks you to confirm.")
			w.press(w.link("Go to your bank"))
			w.press(w.button("Yes, it is me"))
			w.receipt(o)
		})
	}
}
