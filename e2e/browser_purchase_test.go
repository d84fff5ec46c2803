package e2e

import (
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestBrowserPurchase: a course is bought in a browser.
func TestBrowserPurchase(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	for _, mode := range modes {
		t.Run("FromTheCatalogueToTheLesson"+mode.name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop, mode.option)
			w.visit("/")
			w.press(w.link("Idempotency, end to end"))
			w.says("$49.00", "Nothing is charged until you press Pay on the next page.")
			w.press(w.button("Go to checkout"))
			w.says("Not charged")
			o := w.current()
			require.Equal(t, "open", o.Status)

			w.choose("Mastercard ending 4444")
			w.press(w.button("Pay $49.00"))
			ch := w.receipt(o)
			require.Equal(t, o.PaymentKey, w.requireOneKey(), "the key that the order was placed with")
			require.Equal(t, 1, d.stripe.confirms(t, ch.PaymentIntent).Received)

			w.press(w.link("Start lesson 1"))
			w.at("/courses/" + soldCourse + "/lessons/1")
			w.requireReadable()
			w.press(w.link("Orders"))
			w.heading("Your orders")
			w.says("Charged once")
			w.visit("/courses/" + soldCourse)
			w.says("This course is yours.")
		})
	}

	t.Run("OnAPhone", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop, func(o *playwright.BrowserNewContextOptions) {
			o.Viewport = &playwright.Size{Width: 360, Height: 740}
			o.DeviceScaleFactor, o.IsMobile, o.HasTouch = playwright.Float(3), playwright.Bool(true), playwright.Bool(true)
		})
		tap := func(what playwright.Locator) {
			t.Helper()
			require.NoError(t, what.Tap())
		}
		w.visit("/courses/" + soldCourse)
		tap(w.button("Go to checkout"))
		w.says("Not charged")
		o := w.current()
		tap(w.GetByText("Mastercard ending 4444")) // the whole row is its control
		require.NoError(t, expect.Locator(w.GetByLabel("Mastercard ending 4444")).ToBeChecked())
		tap(w.pay())
		w.receipt(o)
		w.requireOneKey()
	})
}
