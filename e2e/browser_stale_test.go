package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBrowserStalePage: a page that stopped being true while it was open. It
// ends on a page that a person can read, that keeps what there was, and that
// leads on; never on JSON or a bare status.
func TestBrowserStalePage(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	for _, mode := range modes {
		open := func(t *testing.T) (*window, order) {
			t.Helper()
			w := d.browse(t, shop, mode.option)
			return w, w.order(soldCourse)
		}

		t.Run("OldKey"+mode.name, func(t *testing.T) {
			t.Parallel()
			w, o := open(t)
			w.customer().pay(o, o.PaymentKey, "pm_card_chargeDeclined").problem(t, 402, "card_declined")
			w.choose("Mastercard ending 4444")
			w.press(w.pay())
			if mode.script {
				w.says("This page was out of date. Nothing was sent.", "Not charged")
				require.NoError(t, expect.Locator(w.GetByLabel("Mastercard ending 4444")).ToBeChecked())
			} else {
				w.heading("This page is out of date. Nothing was sent.")
				w.says("Not charged by this request")
				w.press(w.link("See the order"))
			}
			w.requireReadable()
			w.choose("Mastercard ending 4444")
			w.press(w.pay())
			w.receipt(o)
			require.Len(t, w.submissions(), 2)
		})

		t.Run("PaidUnderTheSameKeyWithAnotherCard"+mode.name, func(t *testing.T) {
			t.Parallel()
			w, o := open(t)
			c := w.customer()
			c.paid(c.pay(o, o.PaymentKey, "pm_card_visa"))
			w.choose("Mastercard ending 4444")
			w.press(w.pay())
			if !mode.script {
				w.heading("This page is out of date. Nothing was sent.")
				w.says("Not charged by this request")
				w.press(w.link("See the order"))
				w.receipt(o)
			} else {
				w.says("You have already paid for this.", "Charged once, earlier. Not charged again.")
				require.Len(t, w.submissions(), 1)
			}
			w.requireReadable()
			d.stripe.requireOneCharge(t, o)
		})

		t.Run("PaidUnderAnotherKey"+mode.name, func(t *testing.T) {
			t.Parallel()
			w, o := open(t)
			c := w.customer()
			c.paid(c.pay(o, newKey(), "pm_card_visa"))
			w.press(w.pay())
			w.says("You have already paid for this.", "Charged once, earlier. Not charged again.")
			w.requireReadable()
			d.stripe.requireOneCharge(t, o)
			w.press(w.link("Start lesson 1"))
			w.requireReadable()
		})

		t.Run("LostSession"+mode.name, func(t *testing.T) {
			t.Parallel()
			w, o := open(t)
			w.loseSession(mode.script)
			w.press(w.pay())
			w.says("We do not know who you are yet.")
			w.requireReadable()
			require.Empty(t, d.stripe.chargesOf(t, o))
			if mode.script {
				w.press(w.link("Load the order again"))
				w.heading("There is no such page.")
			}
			w.press(w.link("All courses"))
			w.at("/")
			w.requireReadable()
		})

		t.Run("StartedOverAsAnotherCustomerInASecondTab"+mode.name, func(t *testing.T) {
			t.Parallel()
			w, o := open(t)
			second := w.another()
			second.visit("/orders")
			second.press(second.button("Start over as a new customer"))
			second.at("/")
			second.visit("/orders")
			second.says("None yet. Nothing has been charged.")

			w.press(w.pay())
			w.says("There is no such page.", "before you started over")
			w.requireReadable()
			require.Empty(t, d.stripe.chargesOf(t, o))

			// And the new customer buys the same course.
			n := second.order(soldCourse)
			require.NotEqual(t, o.ID, n.ID)
			second.press(second.pay())
			second.receipt(n)
		})

		t.Run("ExpiredOrder"+mode.name, func(t *testing.T) {
			t.Parallel()
			w, o := open(t)
			require.Equal(t, int64(1), d.execute(t, "UPDATE orders SET status = 'expired', expires_at = clock_timestamp() WHERE id = $1", o.ID))
			w.press(w.pay())
			w.heading("This order is closed.")
			w.press(w.link("Back to the course"))
			w.requireReadable()
			n := w.order(soldCourse)
			w.press(w.pay())
			w.receipt(n)
			require.Empty(t, d.stripe.chargesOf(t, o))
		})

		t.Run("CoursePageOfAnOwnedCourse"+mode.name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop, mode.option)
			w.visit("/courses/" + soldCourse)
			c := w.customer()
			o, _ := c.buy(soldCourse)
			w.press(w.button("Go to checkout"))
			w.at("/courses/" + soldCourse + "/lessons/1") // which is what it was for
			w.requireReadable()
			d.stripe.requireOneCharge(t, o)
		})
	}
}
