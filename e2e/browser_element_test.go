package e2e

import (
	"net/http"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestBrowserElement: cards are typed into Stripe's form, and the shop is given a
// confirmation token. For the token holds what holds for a method: one press, one
// key, one charge.
func TestBrowserElement(t *testing.T) {
	t.Parallel()
	d, shop := elementShop(t)

	// open is somebody at the checkout, with a card typed in.
	open := func(t *testing.T, number string) (*cardholder, order) {
		t.Helper()
		c := d.cardholder(t, shop)
		o := c.order(soldCourse)
		c.enter(number)
		return c, o
	}

	t.Run("PaysOnce", func(t *testing.T) {
		t.Parallel()
		c, o := open(t, goodCard)
		c.press(c.pay())
		c.receipt(o)
		c.requireSent(tokenPayment{o.PaymentKey, c.made()[0]})
		require.Len(t, c.made(), 1)
	})

	t.Run("PressedTwiceMakesOneToken", func(t *testing.T) {
		t.Parallel()
		c, o := open(t, goodCard)
		c.holdTokens()
		//lint:ignore SA1019 this driver still waits for a navigation, which the test holds up
		require.NoError(t, c.pay().Dblclick(playwright.LocatorDblclickOptions{NoWaitAfter: playwright.Bool(true)}))
		require.NoError(t, expect.Locator(c.pay()).ToHaveText("Reading your card"))
		c.says("Not charged")
		require.NoError(t, c.Keyboard().Press("Enter"))
		_, err := c.Evaluate(`() => { for (let i = 0; i < 8; i++) document.querySelector("#pay").requestSubmit() }`)
		require.NoError(t, err)
		require.Empty(t, c.sent(), "nothing is sent before there is a token")
		c.release()
		c.receipt(o)
		require.Len(t, c.made(), 1)
		c.requireSent(tokenPayment{o.PaymentKey, c.made()[0]})
	})

	t.Run("DeclinedThenAnotherCardUsesANewTokenOnTheSameIntent", func(t *testing.T) {
		t.Parallel()
		c, o := open(t, declinedCard)
		c.press(c.pay())
		c.says("Your bank declined the card. Nothing was charged.")
		next := c.current()
		require.NotEqual(t, o.PaymentKey, next.PaymentKey)
		c.enter(otherCard)
		c.press(c.pay())
		c.receipt(o)
		made := c.made()
		require.Len(t, made, 2)
		require.NotEqual(t, made[0], made[1])
		c.requireSent(tokenPayment{o.PaymentKey, made[0]}, tokenPayment{next.PaymentKey, made[1]})
		payments := c.current().Payments
		require.Len(t, payments, 2)
		require.Equal(t, payments[0].PaymentIntent, payments[1].PaymentIntent)
	})

	t.Run("ReplyLostIsSentAgainWithTheSameToken", func(t *testing.T) {
		t.Parallel()
		c, o := open(t, goodCard)
		lost := make(chan error, 1)
		var first sync.Once
		c.intercept("**/payments", func(r playwright.Route) {
			again := true
			first.Do(func() {
				again = false
				_, err := r.Fetch() // the shop hears of it
				_ = r.Abort()       // and its answer does not arrive
				lost <- err
			})
			if again {
				_ = r.Continue()
			}
		})
		c.press(c.pay())
		require.NoError(t, <-lost)
		ch := c.receipt(o)
		require.Len(t, c.made(), 1)
		eventually(t, "the page sends it again", func() bool { return len(c.sent()) > 1 })
		for _, s := range c.sent() {
			require.Equal(t, tokenPayment{o.PaymentKey, c.made()[0]}, s)
		}
		require.Equal(t, 1, d.stripe.confirms(t, ch.PaymentIntent).Executed)
	})

	t.Run("ReloadedInMidFlight", func(t *testing.T) {
		t.Parallel()
		t.Run("BeforeTheShopHeardOfIt", func(t *testing.T) {
			c, o := open(t, goodCard)
			c.intercept("**/payments", func(playwright.Route) {}) // it stays on its way
			c.press(c.pay())
			eventually(t, "the payment is sent", func() bool { return len(c.sent()) == 1 })
			c.keepAway(stripeJSAddress) // what goes on does not need it
			c.letThrough("**/payments")
			c.reload()
			c.receipt(o)
			require.Len(t, c.made(), 1)
			first := tokenPayment{o.PaymentKey, c.made()[0]}
			c.requireSent(first, first)
		})
		t.Run("WhileStripeCharges", func(t *testing.T) {
			d, shop := elementShop(t, "WAIT=20ms")
			c := d.cardholder(t, shop)
			o := c.order(soldCourse)
			c.enter(goodCard)
			held := d.stripe.hold(t, "execution")
			c.press(c.pay())
			held.reached(t)
			before := len(c.sent())
			c.keepAway(stripeJSAddress)
			c.reload()
			c.says("Do not pay again.", "Not known yet")
			eventually(t, "the page sends the same payment again", func() bool { return len(c.sent()) > before })
			held.release(t)
			c.receipt(o)
			require.Len(t, c.made(), 1)
			for _, s := range c.sent() {
				require.Equal(t, tokenPayment{o.PaymentKey, c.made()[0]}, s)
			}
		})
	})

	t.Run("StripeJSDoesNotLoad", func(t *testing.T) {
		t.Parallel()
		c := d.cardholder(t, shop)
		c.keepAway(stripeJSAddress)
		o := c.order(soldCourse)
		c.says("The form for your card did not load. Nothing was charged.", "js.stripe.com", "Not charged")
		require.NoError(t, expect.Locator(c.pay()).ToHaveAttribute("aria-disabled", "true"))
		c.requireSound(t)
		_, err := c.Evaluate(`() => document.querySelector("#pay").requestSubmit()`)
		require.NoError(t, err)
		require.Empty(t, c.sent())
		require.Empty(t, d.stripe.chargesOf(t, o))

		c.letIn(stripeJSAddress)
		c.press(c.link("Load this page again"))
		c.enter(goodCard)
		c.press(c.pay())
		c.receipt(o)
		c.requireSent(tokenPayment{o.PaymentKey, c.made()[0]})
	})

	t.Run("WithoutATokenNothingIsSent", func(t *testing.T) {
		t.Parallel()
		c, o := open(t, "")
		c.press(c.pay())
		c.says("Stripe could not take this card as it is. Nothing was charged.", "Your card number is incomplete.")
		c.enter(goodCard)
		c.keepAway(tokensAddress)
		c.press(c.pay())
		c.says("Stripe did not answer. Nothing was charged.", "Not charged")
		require.Empty(t, c.sent())
		c.letIn(tokensAddress)
		c.press(c.pay())
		c.receipt(o)
		c.requireSent(tokenPayment{o.PaymentKey, c.made()[0]})
	})

	t.Run("WithoutScript", func(t *testing.T) {
		t.Parallel()
		c := d.cardholder(t, shop, withoutScript)
		c.visit("/courses/" + soldCourse)
		c.press(c.button("Go to checkout"))
		c.says("Not charged")
		why := c.Locator("noscript .notice") // Playwright reads no text through a noscript
		require.NoError(t, expect.Locator(why).ToBeVisible())
		require.NoError(t, expect.Locator(why).ToContainText("Paying by card needs script here. Nothing was charged."))
		require.NoError(t, expect.Locator(c.button("Pay $49.00")).ToHaveCount(0))
		require.NoError(t, expect.Locator(c.Locator(".button-pay")).ToBeHidden())
		o := c.current()
		// A form that somebody makes up is refused, and claims nothing.
		c.customer().pay(o, o.PaymentKey, "pm_card_visa").problem(t, http.StatusBadRequest, "invalid_request")
		require.Empty(t, c.customer().order(o.ID).Payments)
		require.Empty(t, d.stripe.chargesOf(t, o))
	})

	t.Run("BankAsks", func(t *testing.T) {
		t.Parallel()
		c, o := open(t, askedCard)
		c.press(c.pay())
		c.heading("Your bank asks you to confirm.")
		c.says("Nothing is charged until you do.", "Not charged. Your bank is asking you.")
		require.Empty(t, d.stripe.chargesOf(t, o))
		c.press(c.link("Go to your bank"))
		c.press(c.button("Yes, it is me"))
		c.receipt(o)
		c.requireSent(tokenPayment{o.PaymentKey, c.made()[0]})
	})

	// Stripe has no page of the bank's to link to, and leaves the question to Stripe.js.
	t.Run("BankAsksOnThePage", func(t *testing.T) {
		t.Parallel()
		d, _ := elementShop(t)
		shop := d.open(t, "STRIPE_API_BASE="+d.stripe.sdkStripe(t))
		c := d.cardholder(t, shop)
		o := c.order(soldCourse)
		c.enter(askedCard)
		c.press(c.pay())
		c.heading("Your bank asks you to confirm.")
		require.False(t, c.has(c.link("Go to your bank")))
		c.requireSound(t)
		require.Empty(t, d.stripe.chargesOf(t, o))

		path := "/orders/" + o.ID + "/challenge"
		require.Equal(t, http.StatusOK, c.customer().get(path).status)
		d.customer(t, shop).get(path).problem(t, http.StatusNotFound, "not_found")

		c.keepAway(stripeJSAddress)
		c.press(c.button("Answer your bank"))
		why := c.GetByRole("alert").Filter(playwright.LocatorFilterOptions{HasText: "Your bank’s question could not be shown"})
		require.NoError(t, expect.Locator(why).ToBeVisible())
		c.letIn(stripeJSAddress)
		c.press(c.button("Answer your bank"))
		c.receipt(o)
		require.Len(t, c.made(), 1)
		require.NotContains(t, shop.err.String(), "_secret_", "the client secret is not logged")
	})

	t.Run("IsToldWhatIsBoughtAndHowThePageLooks", func(t *testing.T) {
		t.Parallel()
		c := d.cardholder(t, shop)
		c.order(soldCourse)
		saw := func() map[string]any {
			v, err := c.Evaluate(`() => ({ ...window.stripeSaw, variables: window.stripeSaw.options.appearance.variables, theme: window.stripeSaw.options.appearance.theme, latest: window.stripeSaw.updates.at(-1)?.appearance })`)
			require.NoError(t, err)
			return v.(map[string]any)
		}
		eventually(t, "the form is there", func() bool { return c.has(c.Locator("#element iframe")) })
		now := saw()
		require.Equal(t, "pk_test_local", now["key"])
		require.Equal(t, "payment", now["kind"])
		options := now["options"].(map[string]any)
		require.Equal(t, []any{"payment", 4900, "usd", []any{"card"}}, []any{options["mode"], options["amount"], options["currency"], options["paymentMethodTypes"]})
		require.Equal(t, "stripe", now["theme"])
		require.Equal(t, "#ffffff", now["variables"].(map[string]any)["colorBackground"])
		require.NoError(t, c.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: playwright.ColorSchemeDark}))
		eventually(t, "the form follows the page into the dark", func() bool { return saw()["latest"] != nil })
		dark := saw()["latest"].(map[string]any)
		require.Equal(t, "night", dark["theme"])
		require.Equal(t, "#0f1311", dark["variables"].(map[string]any)["colorBackground"])
		c.requireSound(t)
	})
}
