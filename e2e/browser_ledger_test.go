package e2e

import (
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// TestBrowserLedger: the page of this account's keys, while they live.
func TestBrowserLedger(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	t.Run("FollowsAKeyWithoutAReload", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop)
		w.visit("/ledger")
		w.says("No keys yet.", "Live")
		_, err := w.Evaluate(`() => { window.notReloaded = true }`)
		require.NoError(t, err)

		c := w.customer()
		o := c.place(soldCourse)
		w.says("POST /orders", "completed")
		held := d.stripe.hold(t, stripesim.Execution)
		first := later(func() answer { return c.pay(o, o.PaymentKey, "pm_card_visa") })
		held.reached(t)
		row := w.GetByRole("row").Filter(playwright.LocatorFilterOptions{HasText: "/payments"}).First()
		require.NoError(t, expect.Locator(row).ToContainText("in_progress"))
		require.NoError(t, expect.Locator(row).ToContainText("s left"), "the lease runs down")
		c.pay(o, newKey(), "pm_card_visa").problem(t, 409, "payment_in_progress")

		held.release(t)
		c.paid(<-first)
		require.NoError(t, expect.Locator(row).ToContainText("completed"))
		require.NoError(t, expect.Locator(row).ToContainText("201"))
		require.True(t, c.pay(o, o.PaymentKey, "pm_card_visa").replayed())
		require.NoError(t, expect.Locator(row.GetByRole("cell").Nth(4)).ToHaveText("1"), "replays")
		w.says("Charged once")

		same, err := w.Evaluate(`() => window.notReloaded`)
		require.NoError(t, err)
		require.Equal(t, true, same)
	})

	t.Run("ShowsNobodyElsesKeys", func(t *testing.T) {
		t.Parallel()
		other := d.customer(t, shop)
		o, _ := other.buy(soldCourse)
		w := d.browse(t, shop)
		w.visit("/ledger")
		w.says("No keys yet.")
		w.saysNot(o.PaymentKey, o.ID)
	})

	t.Run("WithoutScriptItIsReadAgain", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop, withoutScript)
		w.visit("/ledger")
		w.says("No keys yet.")
		w.order(soldCourse)
		w.press(w.pay())
		w.says("The course is yours.")
		w.visit("/ledger")
		w.says("completed", "201")
		w.press(w.GetByRole("main").GetByText("POST /orders/").First())
		require.NoError(t, expect.Locator(w.GetByRole("table", playwright.PageGetByRoleOptions{Name: "History of"}).First()).ToBeVisible())
	})
}

// TestBrowserWhatHappened: the receipt draws the life of its key, and the
// drawing is a table.
func TestBrowserWhatHappened(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)
	for _, mode := range modes {
		t.Run("CopiesOfOnePayment"+mode.name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop, mode.option)
			w.copied()
			lane, err := w.lanes().First().GetByRole("img").First().GetAttribute("aria-label")
			require.NoError(t, err)
			require.Contains(t, lane, "Claim")
			require.Contains(t, lane, "charge")
		})
	}
}

// lanes are the rows of the drawing, without its axis.
func (b *tab) lanes() playwright.Locator {
	return b.GetByRole("region", playwright.PageGetByRoleOptions{Name: "What happened"}).
		GetByRole("row").Filter(playwright.LocatorFilterOptions{Has: b.GetByRole("img")})
}
