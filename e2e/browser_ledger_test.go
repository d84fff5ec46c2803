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

// TestBrowserWhatHappenedOutlivesAKill: the shop is killed after Stripe charged
// and before it could write that down. The page comes to the receipt by itself,
// or by its one button, and the receipt draws both processes: the one that died
// with the claim, and the one that took over when the lease had lapsed.
func TestBrowserWhatHappenedOutlivesAKill(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t, brief...)
			first := d.open(t)
			w := d.browse(t, first, mode.option)
			d.stripe.keepToItself(t)
			o := w.order(soldCourse)
			held := d.stripe.hold(t, stripesim.Answer)
			w.press(w.pay())
			held.reached(t)
			first.kill(t)
			held.drop(t)
			d.reopen(t, first)
			b := w.tab
			if !mode.script { // that tab shows an error of the browser
				b = w.another()
				b.visit("/orders/" + o.ID)
				b.sendAgainUntil(b.ours())
			}
			ch := b.receipt(o)
			require.Equal(t, o.PaymentKey, w.requireOneKey())
			require.Equal(t, 1, d.stripe.confirms(t, ch.PaymentIntent).Executed)

			b.says("When its lease had lapsed, a second owner in another process took over", "it was killed, or cut off", "recorded the one charge")
			require.NoError(t, expect.Locator(b.lanes()).ToHaveCount(2), "an owner that died, and one that took over")
			for i, want := range []string{"lapse", "charge"} {
				lane, err := b.lanes().Nth(i).GetByRole("img").First().GetAttribute("aria-label")
				require.NoError(t, err)
				require.Contains(t, lane, want)
			}
			if mode.script {
				b.requireSound(t)
			}

			// And the ledger names the two processes.
			processes := sql[[]string](t, d, `
				SELECT array_agg(instance ORDER BY attempt) FROM key_history WHERE key = $1 AND what IN ('claimed', 'taken_over')`, o.PaymentKey)
			require.Len(t, processes, 2)
			require.NotEqual(t, processes[0], processes[1])
		})
	}
}

// lanes are the rows of the drawing, without its axis.
func (b *tab) lanes() playwright.Locator {
	return b.GetByRole("region", playwright.PageGetByRoleOptions{Name: "What happened"}).
		GetByRole("row").Filter(playwright.LocatorFilterOptions{Has: b.GetByRole("img")})
}
