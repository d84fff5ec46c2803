package e2e

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestBrowserLab: an experiment is run from its page. One test follows the other,
// since the lab takes few runs at once.
func TestBrowserLab(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	for _, mode := range modes {
		t.Run("IsRun"+mode.name, func(t *testing.T) {
			w := d.browse(t, shop, mode.option)
			posts := w.posts("/runs")
			w.visit("/lab")
			w.press(w.Locator(".experiments").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "Check, then insert"}))
			w.heading("Check, then insert")
			w.says("Nothing is measured yet.", "Expected: 8 charged, $392.00")
			if mode.script {
				require.NoError(t, w.button("Run it").Dblclick())
			} else {
				w.press(w.button("Run it"))
			}
			w.leaves("/lab/check-then-insert")
			w.results(t, mode.script)
			require.Equal(t, int64(1), posts.Load(), "a double click is one run")
			w.figure(t, "Ask first", "wrong", "$392.00")
			w.figure(t, "Claim it", "right", "$49.00")

			// The address is anybody's.
			browser, err := plainBrowser()
			require.NoError(t, err)
			other := d.browseIn(t, browser, shop.url, mode.option)
			require.Equal(t, http.StatusOK, other.visit(w.path()).Status())
			here, err := w.Locator(".variants").InnerText()
			require.NoError(t, err)
			there, err := other.Locator(".variants").InnerText()
			require.NoError(t, err)
			require.Equal(t, here, there)
		})
	}

	t.Run("SaysHowFarItIs", func(t *testing.T) {
		w := d.browse(t, shop)
		require.NoError(t, w.context.AddInitScript(playwright.Script{Content: playwright.String(heard)}))
		w.visit("/lab/check-then-insert")
		w.takes(t, 200)
		w.press(w.button("Run it"))
		w.leaves("/lab/check-then-insert")
		w.results(t, true)
		w.figure(t, "Claim it", "right", "$49.00")
		most, err := w.Evaluate(`() => Math.max(...Object.values(JSON.parse(sessionStorage.heard)).map((said) => new Set(said).size))`)
		require.NoError(t, err)
		require.Greater(t, most, 2, "one page was told, and not loaded again")
	})

	t.Run("IsLookedAtAgainWithoutScript", func(t *testing.T) {
		w := d.browse(t, shop, withoutScript)
		w.visit("/lab/check-then-insert")
		w.takes(t, 200)
		w.press(w.button("Run it"))
		w.leaves("/lab/check-then-insert")
		w.says("Running", "Look again")
		w.results(t, false)
		w.figure(t, "Claim it", "right", "$49.00")
	})

	for _, mode := range modes {
		// The figures of two runs at once would be each other's noise.
		t.Run("RefusesASecondAtOnce"+mode.name, func(t *testing.T) {
			w := d.browse(t, shop, mode.option)
			second := w.another()
			second.visit("/lab/claim")
			w.visit("/lab/check-then-insert")
			w.takes(t, 1000)
			w.press(w.button("Run it"))
			w.leaves("/lab/check-then-insert")
			second.press(second.button("Run it"))
			second.heading("Your last run has not ended yet.")
			second.says("One run at a time")
			second.press(second.link("See the run under way"))
			second.heading("Check, then insert")
			require.Equal(t, w.path(), second.path())
		})
	}
}

// heard keeps what each load of a page says of how far the run is.
const heard = `new MutationObserver(() => {
	const done = document.getElementById("lab-done")
	if (!done) return
	const heard = JSON.parse(sessionStorage.heard ?? "{}")
	;(heard[performance.timeOrigin] ??= []).push(done.textContent)
	sessionStorage.heard = JSON.stringify(heard)
}).observe(document, { childList: true, subtree: true, characterData: true })`

// results waits until the page has the figures of its run: with script by
// itself, without by looking again.
func (b *tab) results(t *testing.T, script bool) {
	t.Helper()
	address := b.GetByText("Address of this run")
	if script {
		require.NoError(t, expect.Locator(address).ToBeVisible())
		return
	}
	eventually(t, "the run has ended", func() bool {
		if b.has(address) {
			return true
		}
		b.press(b.link("Look again"))
		b.requireReadable()
		return b.has(address)
	})
}

// figure requires what a variant says in large letters, and in which colour.
func (b *tab) figure(t *testing.T, variant, verdict, value string) {
	t.Helper()
	region := b.GetByRole("article", playwright.PageGetByRoleOptions{Name: variant, Exact: playwright.Bool(true)})
	figure := region.Locator(".figure")
	require.NoError(t, expect.Locator(figure).ToContainText(value))
	require.NoError(t, expect.Locator(figure).ToHaveAttribute("data-verdict", verdict))
}

// posts counts the submissions of this window's pages to addresses that end so.
func (w *window) posts(end string) *atomic.Int64 {
	var n atomic.Int64
	w.context.OnRequest(func(r playwright.Request) {
		if r.Method() == http.MethodPost && strings.HasSuffix(r.URL(), end) {
			n.Add(1)
		}
	})
	return &n
}
