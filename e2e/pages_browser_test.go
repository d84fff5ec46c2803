package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestBrowserPages: what holds on every page in every state: one heading, one
// thing to do first, room for a finger, nothing that sticks out on a small
// screen, nothing that axe complains about in either colour scheme. That a page
// asks no other host and keeps to its Content-Security-Policy is required of
// every window, see listen.
func TestBrowserPages(t *testing.T) {
	t.Parallel()

	// Each in its own window, and side by side.
	t.Run("Each", func(t *testing.T) {
		t.Parallel()
		d := deploy(t)
		shop := d.open(t)
		for _, s := range scenes {
			if s.silent {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				w := d.browse(t, shop)
				s.open(t, w)
				w.requireSound(t)
			})
		}
	})

	// Stripe is silent for one at a time.
	t.Run("WhileStripeIsSilent", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, clientsOnly)
		shop := d.open(t)
		for _, s := range scenes {
			if !s.silent {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				w := d.browse(t, shop)
				s.openInSilence(t, w)
				w.requireSound(t)
			})
		}
	})
}

// TestBrowserLessons: what holds on every page holds on every lesson of every
// course, whatever tables, code and drawings it has. They are looked at on a
// small phone, where these do not fit; all else about them is in the scenes.
func TestBrowserLessons(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)
	courses := decoded[struct{ Courses []course }](t, d.customer(t, shop).get("/")).Courses
	require.NotEmpty(t, courses)
	for _, course := range courses {
		t.Run(course.Slug, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop)
			w.visit("/courses/" + course.Slug)
			w.requireSoundIn(t, "dark")
			c := w.customer()
			if o := c.place(course.Slug); o.Amount > 0 {
				c.paid(c.pay(o, o.PaymentKey, "pm_card_visa"))
			}
			lessons := 0
			for w.visit(fmt.Sprintf("/courses/%s/lessons/%d", course.Slug, lessons+1)).Ok() {
				w.requireSoundIn(t, "dark")
				lessons++
			}
			require.Greater(t, lessons, 1)
		})
	}
}

// openInSilence opens a scene while Stripe is silent, and lets the payment come
// to its end when the test has ended.
func (s scene) openInSilence(t *testing.T, w *window) {
	t.Helper()
	quiet := w.d.stripe.silence(t)
	t.Cleanup(func() {
		// The keys first: a page that still asks may finish a payment as soon as
		// Stripe answers, and a paid order has no key. The same key then replays.
		c := w.customer()
		orders := decoded[struct{ Orders []order }](t, c.get("/orders")).Orders
		for i, o := range orders {
			orders[i].PaymentKey = c.order(o.ID).PaymentKey
		}
		quiet.answers(t)
		for _, o := range orders {
			c.paid(c.postUntilKnown(paymentsOf(o), o.PaymentKey, paymentBody("pm_card_visa")))
		}
	})
	s.open(t, w)
}

// sizes are a small phone and a desk.
var sizes = map[string]playwright.Size{"light": {Width: 1280, Height: 900}, "dark": {Width: 320, Height: 640}}

// requireSound requires what holds on every page. Each colour scheme is looked
// at in another size: colours do not depend on it.
func (b *tab) requireSound(t *testing.T) {
	t.Helper()
	for scheme := range sizes {
		b.requireSoundIn(t, scheme)
	}
}

func (b *tab) requireSoundIn(t *testing.T, scheme string) {
	t.Helper()
	size := sizes[scheme]
	require.NoError(t, b.SetViewportSize(size.Width, size.Height))
	require.NoError(t, b.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: (*playwright.ColorScheme)(&scheme)}))
	b.requireReadable()
	faults := b.list(t, soundness)
	require.Empty(t, faults, "%s at %d px: %s", b.URL(), size.Width, strings.Join(faults, "\n"))
	violations := b.axe(t)
	require.Empty(t, violations, "%s at %d px, %s: %s", b.URL(), size.Width, scheme, strings.Join(violations, "\n"))
}

// soundness lists what is not sound about a page.
const soundness = `() => {
	const faults = []
	const seen = (e) => { const r = e.getBoundingClientRect(); return e.checkVisibility({ visibilityProperty: true }) && r.width > 1 && r.height > 1 }
	const named = (e) => e.localName + " \"" + (e.textContent.trim() || e.getAttribute("name") || "").slice(0, 40) + "\""
	const all = (selector) => [...document.querySelectorAll(selector)].filter(seen)

	if (all("h1").length !== 1) faults.push(all("h1").length + " headings of the first level")

	const first = all("main :is(a, button).button:not(.button-plain), main .button-pay").filter((e) => !e.disabled && e.getAttribute("aria-disabled") !== "true")
	if (first.length > 1) faults.push("several primary actions: " + first.map(named).join(", "))

	const page = document.documentElement
	if (page.scrollWidth > page.clientWidth) {
		const wide = [...document.body.querySelectorAll("*")].filter((e) => seen(e) && e.getBoundingClientRect().right > page.clientWidth + 0.5)
		faults.push("scrolls sideways, " + page.scrollWidth + " px: " + wide.slice(0, 3).map(named).join(", "))
	}

	for (const e of all("button, .button, select, textarea, summary, input:not([type=hidden], [type=radio], [type=checkbox]), label:has([type=radio], [type=checkbox])")) {
		const { height } = e.getBoundingClientRect()
		if (height < 43.9) faults.push("a control of " + height.toFixed(1) + " px: " + named(e))
	}
	for (const e of all("a[href]:not(.button)")) {
		const { height } = e.getBoundingClientRect()
		if (height < 23.9 && getComputedStyle(e).display !== "inline") faults.push("a link of " + height.toFixed(1) + " px: " + named(e))
	}
	return faults
}`

var axeSource = sync.OnceValues(func() (string, error) {
	dir, err := axePackage.installed()
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(dir, "package", "axe.min.js"))
	return string(source), err
})

// axe lists what axe finds. It goes in by Evaluate, since the page's policy lets
// no script in.
func (b *tab) axe(t *testing.T) []string {
	t.Helper()
	source, err := axeSource()
	require.NoError(t, err)
	there, err := b.Evaluate(`() => "axe" in window`)
	require.NoError(t, err)
	if there != true {
		_, err = b.Evaluate(`() => { ` + source + ` }`)
		require.NoError(t, err)
	}
	return b.list(t, `async () => {
		const { violations } = await axe.run(document, { resultTypes: ["violations"], preload: false })
		return violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html.slice(0, 160) + " " + n.failureSummary.replace(/\s+/g, " ")))
	}`)
}

// list runs a script that returns texts.
func (b *tab) list(t *testing.T, script string) (texts []string) {
	t.Helper()
	value, err := b.Evaluate(script)
	require.NoError(t, err)
	items, ok := value.([]any)
	require.True(t, ok, "%v", value)
	for _, item := range items {
		texts = append(texts, fmt.Sprint(item))
	}
	return texts
}

// TestBrowserSchemes: a scheme that the visitor's machine asks for is the one
// that the page has, without a flash and without script.
func TestBrowserSchemes(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)
	for scheme, paper := range map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(15, 19, 17)"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop, withoutScript, func(o *playwright.BrowserNewContextOptions) {
				o.ColorScheme = (*playwright.ColorScheme)(&scheme)
			})
			require.Equal(t, http.StatusOK, w.visit("/").Status())
			require.NoError(t, expect.Locator(w.Locator("body")).ToHaveCSS("background-color", paper))
		})
	}
}
