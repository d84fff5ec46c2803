package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestBrowserBack: the browser shows an old page again, from the server or, with the
// back/forward cache, from its memory with all that was typed in it.
func TestBrowserBack(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	for _, cache := range []struct {
		name   string
		launch func() (playwright.Browser, error)
		on     bool
	}{{"WithTheCache", cacheBrowser, true}, {"WithoutTheCache", plainBrowser, false}} {
		for _, mode := range modes {
			open := func(t *testing.T) *window {
				t.Helper()
				takeTable(t)
				browser, err := cache.launch()
				require.NoError(t, err)
				return d.browseIn(t, browser, shop.url, mode.option)
			}

			t.Run("AfterSuccess"+cache.name+mode.name, func(t *testing.T) {
				t.Parallel()
				w := open(t)
				o := w.order(soldCourse)
				w.press(w.pay())
				w.receipt(o)
				w.reload()
				w.receipt(o)

				// Back, to whatever the browser shows then, and on from there.
				w.back()
				w.requireReadable()
				if pressed := w.pressIfThere(w.pay()); pressed {
					w.says("This was a replay of your first submission.")
				}
				w.visit("/orders/" + o.ID)
				w.receipt(o)
				require.Equal(t, o.PaymentKey, w.requireOneKey())
			})

			t.Run("ToACheckoutThatWasPaidInAnotherTab"+cache.name+mode.name, func(t *testing.T) {
				t.Parallel()
				w := open(t)
				w.keepPages()
				o := w.order(soldCourse)
				w.visit("/orders/" + o.ID)
				require.NoError(t, w.WaitForLoadState(playwright.PageWaitForLoadStateOptions{State: playwright.LoadStateNetworkidle}))
				w.press(w.link("How"))
				w.at("/docs/idempotency")
				w.requireReadable()
				c := w.customer()
				c.paid(c.pay(o, o.PaymentKey, "pm_card_visa"))

				w.back()
				if cache.on && !mode.script {
					// The old page knows nothing. Its button sends the same key.
					w.press(w.pay())
					w.says("This was a replay of your first submission.")
				}
				// By itself: an old page asks, and a new one is told.
				w.receipt(o)
				require.Equal(t, cache.on && mode.script, len(w.kept()) > 0, "pages out of the cache")
			})

			t.Run("ToAnOldCoursePage"+cache.name+mode.name, func(t *testing.T) {
				t.Parallel()
				w := open(t)
				o := w.order(soldCourse)
				w.back()
				w.at("/courses/" + soldCourse)
				c := w.customer()
				c.paid(c.pay(o, o.PaymentKey, "pm_card_visa"))
				// Its button may still be there. It leads to what is true.
				if !w.pressIfThere(w.button("Go to checkout")) {
					w.pressIfThere(w.link("Continue to checkout"))
				}
				w.says("yours")
				w.requireReadable()
				d.stripe.requireOneCharge(t, o)
			})
		}
	}
}

// keepPages lets the browser keep pages that it is told not to store, as some
// browsers do, and notes which pages it shows out of its memory.
func (w *window) keepPages() {
	w.t.Helper()
	w.intercept("**/orders/*", func(r playwright.Route) {
		if !r.Request().IsNavigationRequest() || r.Request().Method() != http.MethodGet {
			_ = r.Continue()
			return
		}
		answer, err := r.Fetch()
		if err != nil {
			_ = r.Abort()
			return
		}
		headers := answer.Headers()
		delete(headers, "cache-control")
		_ = r.Fulfill(playwright.RouteFulfillOptions{Response: answer, Headers: headers})
	})
	w.context.OnConsole(func(m playwright.ConsoleMessage) {
		if url, found := strings.CutPrefix(m.Text(), "kept: "); found {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.memories = append(w.memories, url)
		}
	})
	require.NoError(w.t, w.context.AddInitScript(playwright.Script{Content: playwright.String(
		`addEventListener("pageshow", (e) => { if (e.persisted) console.info("kept: " + location.href) })`)}))
}

func (w *window) kept() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.memories)
}

// back is the browser's button.
func (b *tab) back() {
	b.w.t.Helper()
	_, err := b.GoBack(playwright.PageGoBackOptions{WaitUntil: playwright.WaitUntilStateCommit})
	require.NoError(b.w.t, err)
}

// pressIfThere presses what an old page may still offer, and tells whether it did.
func (b *tab) pressIfThere(what playwright.Locator) bool {
	b.w.t.Helper()
	b.requireReadable()
	if n, err := what.Count(); err != nil || n == 0 {
		return false
	}
	b.press(what)
	return true
}
