package e2e

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// tab is one tab of a window.
type tab struct {
	w *window
	playwright.Page
}

// another opens another tab of the same person.
func (w *window) another() *tab {
	w.t.Helper()
	var page playwright.Page
	require.NoError(w.t, answered("a tab", func() (err error) {
		page, err = w.context.NewPage()
		return err
	}))
	return &tab{w, page}
}

// visit opens a page, which must be one that a person can read. Where the tab is
// just going somewhere else by itself, it is asked for again.
func (b *tab) visit(path string) (answer playwright.Response) {
	b.w.t.Helper()
	eventually(b.w.t, "a page is opened", func() bool {
		var err error
		answer, err = b.Goto(path, playwright.PageGotoOptions{WaitUntil: playwright.WaitUntilStateDomcontentloaded})
		if err != nil && (strings.Contains(err.Error(), "ERR_ABORTED") || strings.Contains(err.Error(), "is interrupted by another navigation")) {
			return false
		}
		require.NoError(b.w.t, err, "%s", path)
		return answer != nil // the other page, at the same address, came instead
	})
	require.Less(b.w.t, answer.Status(), http.StatusInternalServerError, "%s", path)
	b.requireReadable()
	return answer
}

// reload loads the page again, as a visitor does at any moment: also while a
// form is on its way, when the browser is between two pages.
func (b *tab) reload() {
	b.w.t.Helper()
	eventually(b.w.t, "a page is loaded again", func() bool {
		_, err := b.Reload(playwright.PageReloadOptions{WaitUntil: playwright.WaitUntilStateDomcontentloaded})
		is := func(text string) bool { return err != nil && strings.Contains(err.Error(), text) }
		switch {
		case is("ERR_ABORTED"): // it ended the form, and itself with it
			return false
		case is("Not attached to an active page"):
			// There is no page to load again; the address can still be opened.
			_, err = b.Goto(b.URL(), playwright.PageGotoOptions{WaitUntil: playwright.WaitUntilStateDomcontentloaded})
		}
		if is("is interrupted by another navigation") {
			err = nil // a reload that was asked for before gets there after all
		}
		require.NoError(b.w.t, err)
		return true
	})
	b.requireReadable()
}

// requireReadable requires a page of the shop with one heading: no JSON, no
// error of the browser, no empty answer.
func (b *tab) requireReadable() {
	b.w.t.Helper()
	require.NoError(b.w.t, expect.Locator(b.GetByRole("heading", playwright.PageGetByRoleOptions{Level: playwright.Int(1)})).ToHaveCount(1), b.URL())
}

// at waits until the tab is at a path, whatever its query.
func (b *tab) at(path string) {
	b.w.t.Helper()
	pattern := regexp.MustCompile(`^` + regexp.QuoteMeta(b.w.url+path) + `(\?.*)?$`)
	require.NoError(b.w.t, expect.Page(b.Page).ToHaveURL(pattern), "at %s", path)
}

// path is where the tab is, with its query.
func (b *tab) path() string {
	b.w.t.Helper()
	u, err := url.Parse(b.URL())
	require.NoError(b.w.t, err)
	return u.RequestURI()
}

func (b *tab) button(name string) playwright.Locator {
	return b.GetByRole("button", playwright.PageGetByRoleOptions{Name: name})
}

func (b *tab) link(name string) playwright.Locator {
	return b.GetByRole("link", playwright.PageGetByRoleOptions{Name: name})
}

// press clicks what is there once, and does not wait for where it leads: what
// must be seen then is asked for.
func (b *tab) press(what playwright.Locator) {
	b.w.t.Helper()
	//lint:ignore SA1019 this driver still waits for a navigation, which the test holds up
	require.NoError(b.w.t, what.Click(playwright.LocatorClickOptions{NoWaitAfter: playwright.Bool(true)}))
}

// choose takes a payment method by its name.
func (b *tab) choose(method string) {
	b.w.t.Helper()
	require.NoError(b.w.t, b.GetByRole("radio", playwright.PageGetByRoleOptions{Name: method}).Check())
}

// says waits until the page says all of this.
func (b *tab) says(words ...string) {
	b.w.t.Helper()
	for _, text := range words {
		require.NoError(b.w.t, expect.Locator(b.GetByRole("main")).ToContainText(text), "the page says %q", text)
	}
}

// saysNot requires that the page, as it is now, does not say this.
func (b *tab) saysNot(words ...string) {
	b.w.t.Helper()
	now, err := b.GetByRole("main").TextContent()
	require.NoError(b.w.t, err)
	for _, text := range words {
		require.NotContains(b.w.t, now, text)
	}
}

// heading waits until this is the page's heading.
func (b *tab) heading(text string) {
	b.w.t.Helper()
	require.NoError(b.w.t, expect.Locator(b.GetByRole("heading", playwright.PageGetByRoleOptions{Level: playwright.Int(1)})).ToContainText(text))
}

// soldCourse is what most tests buy, for $49.00.
const soldCourse = "idempotency-end-to-end"

// order goes to a course's page, and from there to its checkout.
func (b *tab) order(slug string) order {
	b.w.t.Helper()
	b.visit("/courses/" + slug)
	b.press(b.button("Go to checkout"))
	b.says("Not charged")
	require.NoError(b.w.t, expect.Locator(b.pay()).ToBeVisible())
	return b.current()
}

// pay is the button that charges.
func (b *tab) pay() playwright.Locator {
	return b.GetByRole("form", playwright.PageGetByRoleOptions{Name: "Payment"}).GetByRole("button")
}

// current is the order whose page is shown, as the shop tells it to a program.
func (b *tab) current() order {
	b.w.t.Helper()
	id, _, _ := strings.Cut(strings.TrimPrefix(b.path(), "/orders/"), "?")
	id, _, _ = strings.Cut(id, "/")
	a := b.w.customer().get("/orders/" + id)
	require.Equal(b.w.t, http.StatusOK, a.status, "%s: %s", b.URL(), a.body)
	return decoded[order](b.w.t, a)
}

// ours is the heading of a receipt.
func (b *tab) ours() playwright.Locator {
	return b.GetByRole("heading", playwright.PageGetByRoleOptions{Level: playwright.Int(1), Name: "The course is yours."})
}

// has is true if the page shows it now.
func (b *tab) has(what playwright.Locator) bool {
	b.w.t.Helper()
	n, err := what.Count()
	for err != nil && strings.Contains(err.Error(), "Execution context was destroyed") {
		n, err = what.Count() // the page it was asked of has just gone
	}
	require.NoError(b.w.t, err)
	return n > 0
}

// receipt waits for the receipt of an order, and requires that it is true.
func (b *tab) receipt(o order) charge {
	b.w.t.Helper()
	require.NoError(b.w.t, expect.Locator(b.ours()).ToBeVisible())
	b.says("Charged once", "$49.00")
	b.at("/orders/" + o.ID)
	ch := b.w.d.stripe.requireOneCharge(b.w.t, o)
	b.says(ch.ID)
	return ch
}
