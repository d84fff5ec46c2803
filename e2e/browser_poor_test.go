package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestBrowserPoor: a browser that keeps nothing, knows no cryptography, or puts
// old values into a page.
func TestBrowserPoor(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	// Where a browser blocks what a site may keep, the mere mention throws.
	const blocked = `for (const name of ["localStorage", "sessionStorage", "indexedDB"])
		Object.defineProperty(window, name, { get() { throw new DOMException("blocked", "SecurityError") } })`

	t.Run("StorageIsBlocked", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop)
		require.NoError(t, w.context.AddInitScript(playwright.Script{Content: playwright.String(blocked)}))
		o := w.order(soldCourse)
		_, err := w.Evaluate(`() => localStorage`)
		require.ErrorContains(t, err, "blocked")
		w.choose("Visa ending 0002")
		w.press(w.pay())
		w.says("Your bank declined the card. Nothing was charged.")
		w.choose("Never arrived") // an outcome that the page has to find out
		w.press(w.pay())
		w.receipt(o)
		sent := w.submissions()
		require.Equal(t, o.PaymentKey, sent[0].key)
		for _, s := range sent[2:] {
			require.Equal(t, sent[1], s)
		}
	})

	t.Run("NoSecureContext", func(t *testing.T) {
		t.Parallel()
		takeTable(t)
		browser, err := plainBrowser()
		require.NoError(t, err)
		here, err := url.Parse(shop.url)
		require.NoError(t, err)
		w := d.browseIn(t, browser, "http://"+elsewhere+":"+here.Port())
		o := w.order(soldCourse)
		poor, err := w.Evaluate(`() => !isSecureContext && !crypto.randomUUID && !crypto.subtle`)
		require.NoError(t, err)
		require.Equal(t, true, poor)
		w.choose("Visa ending 0002")
		w.press(w.pay())
		w.says("Your bank declined the card. Nothing was charged.")
		w.choose("Mastercard ending 4444")
		w.press(w.pay())
		w.receipt(o)
	})

	t.Run("OldValuesInHiddenFields", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop)
		o := w.order(soldCourse)
		w.choose("Visa ending 0002")
		w.press(w.pay())
		w.says("Your bank declined the card.")
		next := w.current().PaymentKey
		// What a browser does that restores a form: the fields have the values of an
		// older page before any script of this one has run.
		const restore = `new MutationObserver(() => {
			const field = document.querySelector("#pay [name=idempotency_key]")
			if (field && !window.restored) window.restored = field.value = "%s"
		}).observe(document, { childList: true, subtree: true })`
		require.NoError(t, w.context.AddInitScript(playwright.Script{Content: playwright.String(fmt.Sprintf(restore, o.PaymentKey))}))
		w.visit("/orders/" + o.ID)
		restored, err := w.Evaluate(`() => window.restored`)
		require.NoError(t, err)
		require.Equal(t, o.PaymentKey, restored)
		w.choose("Mastercard ending 4444")
		w.press(w.pay())
		w.receipt(o)
		sent := w.submissions()
		require.Equal(t, next, sent[len(sent)-1].key)
	})

	for _, mode := range modes {
		t.Run("AReloadBringsTheServersKey"+mode.name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop, mode.option)
			o := w.order(soldCourse)
			c := w.customer()
			c.pay(o, o.PaymentKey, "pm_card_chargeDeclined").problem(t, 402, "card_declined") // in another tab
			w.reload()
			next := c.order(o.ID).PaymentKey
			require.NotEqual(t, o.PaymentKey, next)
			require.NoError(t, expect.Locator(w.Locator("#pay [name=idempotency_key]")).ToHaveValue(next))
			w.choose("Mastercard ending 4444")
			w.press(w.pay())
			w.receipt(o)
			require.Equal(t, next, w.requireOneKey())
		})
	}

	t.Run("FieldsOfAnExtension", func(t *testing.T) {
		t.Parallel()
		w := d.browse(t, shop, withoutScript)
		o := w.order(soldCourse)
		_, err := w.Evaluate(`() => {
			const form = document.querySelector("#pay")
			for (const name of ["extension_id", "amount"]) form.append(Object.assign(document.createElement("input"), { name, value: "1" }))
		}`)
		require.NoError(t, err)
		w.press(w.pay())
		require.True(t, strings.HasPrefix(w.receipt(o).ID, "ch_"))
	})
}
