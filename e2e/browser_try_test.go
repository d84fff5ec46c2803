package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestBrowserTryToBreakIt: the panel on the checkout page. Every control sends
// the live order's payment by the public routes, and Stripe counts one charge.
func TestBrowserTryToBreakIt(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)
	d.stripe.keepToItself(t) // an event that is faster than its answer makes all answers replays

	for _, control := range []struct {
		name, button string
		copies       []string // what each copy may be told
	}{
		{"Twice", "Send it twice", []string{"201|409", "201|409"}},
		{"EightAtOnce", "Eight at once", []string{"201|409", "201|409", "201|409", "201|409", "201|409", "201|409", "201|409", "201|409"}},
		{"TwoKeysFromTwoTabs", "Two tabs, two keys", []string{"201|409", "201|409"}},
		{"AnotherBodyUnderTheSameKey", "Same key, another body", []string{"201", "422"}},
		{"TheReplyLost", "Lose the reply", []string{"no answer", "201"}},
	} {
		t.Run(control.name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop)
			o := w.order(soldCourse)
			panel := w.panel()
			w.counted("0")
			require.NoError(t, expect.Locator(panel.GetByRole("status")).ToContainText("Counted at the local Stripe, not by the shop"))

			w.press(panel.GetByRole("button", playwright.LocatorGetByRoleOptions{Name: control.button}))
			table := panel.GetByRole("table", playwright.LocatorGetByRoleOptions{Name: control.button})
			require.NoError(t, expect.Locator(table.GetByRole("row")).ToHaveCount(1+len(control.copies)))
			w.counted("1")
			w.says("The course is yours.")

			fresh := 0
			for i, may := range control.copies {
				row, err := table.GetByRole("row").Nth(i + 1).InnerText()
				require.NoError(t, err)
				told := false
				for _, status := range strings.Split(may, "|") {
					told = told || strings.Contains(row, status)
				}
				require.True(t, told, "copy %d was told %q", i+1, row)
				if strings.Contains(row, "201") && strings.Contains(row, "no") {
					fresh++
				}
			}
			if control.name != "TheReplyLost" {
				require.Equal(t, 1, fresh, "one 201 that is no replay")
			}

			ch := d.stripe.requireOneCharge(t, o)
			require.Equal(t, 1, d.stripe.confirms(t, ch.PaymentIntent).Executed)
			require.NoError(t, expect.Locator(w.pay()).ToHaveCount(0), "Pay is gone")
			w.press(w.link("See the receipt"))
			w.receipt(o)
		})
	}

	t.Run("OfADeclinedCardChargesNothingAndPayComesBack", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop)
		o := w.order(soldCourse)
		panel := w.panel()
		w.choose("Visa ending 0002")
		for range 2 { // the panel can be used again, with the next key
			w.press(panel.GetByRole("button", playwright.LocatorGetByRoleOptions{Name: "Send it twice"}))
			require.NoError(t, expect.Locator(panel.GetByRole("row").Nth(1)).ToContainText("402"))
			w.counted("0")
			require.NoError(t, expect.Locator(w.button("Pay $49.00")).Not().ToHaveAttribute("aria-disabled", "true"))
		}
		w.choose("Mastercard ending 4444")
		w.press(w.pay())
		w.receipt(o)
	})

	// A declined payment is not the one whose reply is lost: the retry waits for
	// that one to arrive.
	t.Run("TheReplyLostAfterADeclineIsRetriedOnceItArrived", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop)
		o := w.order(soldCourse)
		w.customer().pay(o, o.PaymentKey, "pm_card_chargeDeclined").problem(t, 402, "card_declined")
		w.visit("/orders/" + o.ID)
		w.choose("Mastercard ending 4444")

		arrive, asked := make(chan struct{}), make(chan struct{}, 1000)
		w.intercept("**/payments", func(r playwright.Route) {
			if strings.HasPrefix(r.Request().Headers()["content-type"], "application/json") {
				select {
				case <-arrive:
				default:
					t.Error("the retry was sent before the payment that it repeats")
				}
			} else {
				go func() { <-arrive; _ = r.Continue() }()
				return
			}
			require.NoError(t, r.Continue())
		})
		w.OnRequest(func(r playwright.Request) {
			if r.Method() == http.MethodGet && strings.HasSuffix(r.URL(), "/orders/"+o.ID) {
				asked <- struct{}{}
			}
		})
		w.press(w.panel().GetByRole("button", playwright.LocatorGetByRoleOptions{Name: "Lose the reply"}))
		for range 4 { // before, and again and again after
			select {
			case <-asked:
			case <-time.After(patience):
				require.Fail(t, "the page does not ask")
			}
		}
		close(arrive)
		w.counted("1")
		require.NoError(t, expect.Locator(w.panel().GetByRole("row").Nth(2)).ToContainText("201"))
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("ACountThatIsNotKnownIsNotWrong", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop)
		o := w.order(soldCourse)
		w.counted("0")
		w.intercept("**/charges", func(r playwright.Route) {
			require.NoError(t, r.Abort())
		})
		w.press(w.panel().GetByRole("button", playwright.LocatorGetByRoleOptions{Name: "Send it twice"}))
		w.says("The course is yours.")
		w.counted("?")
		require.NoError(t, expect.Locator(w.panel().GetByRole("status")).ToHaveAttribute("data-charges", ""))
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("IsNotThereWithoutScript", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop, withoutScript)
		w.order(soldCourse)
		w.saysNot("Try to break it")
	})

	t.Run("IsNotThereWithoutDemo", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, "DEMO=off")
		w := d.browse(t, d.open(t))
		o := w.order(soldCourse)
		w.saysNot("Try to break it", "Or let the network misbehave")
		w.press(w.pay())
		w.receipt(o)
	})
}
