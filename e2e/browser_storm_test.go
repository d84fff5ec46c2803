package e2e

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestBrowserStorm: answers that say nothing about the payment, or that nothing
// happened yet. The page sends the same payment again, as often as it takes.
func TestBrowserStorm(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	const (
		problemType = "application/problem+json"
		overloaded  = `{"type":"about:blank","title":"The shop is busy","status":503,"detail":"Send it again.","code":"overloaded","safe_new_key":true}`
	)
	busy := func(status int, contentType, body string) func(playwright.Route) {
		return func(r playwright.Route) {
			_ = r.Fulfill(playwright.RouteFulfillOptions{
				Status: &status, ContentType: &contentType, Body: body, Headers: map[string]string{"Retry-After": "1"},
			})
		}
	}
	lose := func(r playwright.Route) { _ = r.Abort("connectionreset") }

	for _, storm := range []struct {
		name string
		say  string
		how  func(playwright.Route)
	}{
		{"OfTheShop", "The shop is busy. We send this same payment again", busy(http.StatusServiceUnavailable, problemType, overloaded)},
		{"OfAProxy", "We are checking. Do not pay again.", busy(http.StatusServiceUnavailable, "text/html", "<h1>503 Service Unavailable</h1>")},
		{"OfAProxyThatSaysOK", "We are checking. Do not pay again.", busy(http.StatusOK, "text/html", "<h1>Welcome to our network</h1>")},
		{"OfTheLine", "We are checking. Do not pay again.", lose},
		{"OfTheLineAfterThePaymentArrived", "We are checking. Do not pay again.", func(r playwright.Route) {
			_, _ = r.Fetch() // carried out and answered, and nobody hears it
			lose(r)
		}},
	} {
		t.Run(storm.name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop)
			o := w.order(soldCourse)
			const times = 3
			var arrived atomic.Int32
			over := make(chan struct{}) // so that the words are seen, however fast it is
			w.intercept("**/payments", func(r playwright.Route) {
				switch n := arrived.Add(1); {
				case n > times:
					<-over
					_ = r.Continue()
				default:
					storm.how(r)
				}
			})
			w.press(w.pay())
			w.says(storm.say)
			require.NoError(t, expect.Locator(w.pay()).ToHaveAttribute("aria-disabled", "true"))
			close(over)
			ch := w.receipt(o)
			require.Equal(t, o.PaymentKey, w.requireOneKey())
			require.Greater(t, len(w.submissions()), times)
			require.Equal(t, 1, d.stripe.confirms(t, ch.PaymentIntent).Executed)
		})
	}

	t.Run("OfTwoMinutesGivesPayBack", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop)
		require.NoError(t, w.context.Clock().Install())
		o := w.order(soldCourse)
		w.intercept("**/payments", busy(http.StatusServiceUnavailable, problemType, overloaded))
		w.press(w.pay())
		w.says("The shop is busy.")
		w.forward("02:05")
		w.says("It could not take this payment for two minutes.", "Not charged")
		w.letThrough("**/payments")
		w.press(w.pay())
		w.receipt(o)
		require.Equal(t, o.PaymentKey, w.requireOneKey())
	})

	t.Run("Offline", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop)
		o := w.order(soldCourse)
		require.NoError(t, w.context.SetOffline(true))
		w.press(w.pay())
		w.says("We are checking. Do not pay again.", "Not known yet")
		require.NoError(t, w.context.SetOffline(false))
		w.receipt(o)
		require.Equal(t, o.PaymentKey, w.requireOneKey())
	})

	for _, mode := range modes {
		t.Run("OfStripe"+mode.name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop, mode.option)
			o := w.order(soldCourse)
			w.choose("Rate limited")
			w.press(w.pay())
			if !mode.script {
				w.says("Stripe is busy. Nothing was charged.", "Not charged")
				w.press(w.pay())
			}
			w.receipt(o)
		})

		// Every other thing that the line between the shop and Stripe can do.
		for name, method := range map[string]string{"NeverArrived": "Never arrived", "Processing": "Processing", "Slow": "Slow"} {
			t.Run(name+mode.name, func(t *testing.T) {
				t.Parallel()
				w := d.browse(t, shop, mode.option)
				o := w.order(soldCourse)
				w.choose(method)
				w.press(w.pay())
				if !mode.script {
					w.untilSettled(o)
				}
				w.receipt(o)
				require.Equal(t, o.PaymentKey, w.requireOneKey())
			})
		}
	}
}

// untilSettled reads the order's page again, as a person without script does,
// and sends the same payment again where that is the way to find out.
func (b *tab) untilSettled(o order) {
	b.w.t.Helper()
	eventually(b.w.t, "the order's page is the receipt", func() bool {
		require.NoError(b.w.t, b.WaitForLoadState())
		b.requireReadable()
		if b.has(b.ours()) {
			return true
		}
		if again := b.button("Send this same payment again"); b.has(again) {
			b.press(again)
		} else if b.at("/orders/" + o.ID); b.has(b.link("Check now")) {
			b.press(b.link("Check now"))
		}
		return false
	})
}
