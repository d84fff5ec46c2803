package e2e

import (
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// scenes are all pages, in every state that looks different.
var scenes = slices.Concat(shopScenes, rareScenes, labScenes)

// labScenes are the pages of the race lab.
var labScenes = []scene{
	{name: "lab", open: func(_ *testing.T, w *window) { w.visit("/lab") }},
	{name: "lab-measuring", open: func(t *testing.T, w *window) {
		w.hearNothing(t)
		w.measures("/lab", "Measure all")
		w.says("Running")
	}},
	{name: "lab-measured", open: func(t *testing.T, w *window) {
		w.measured(t, "/lab/check-then-insert/runs", nil)
		w.measured(t, "/lab/same-key-another-body/runs", nil)
		w.visit("/lab")
		w.says("8 charges; $392.00")
	}},
	{name: "experiment", open: func(_ *testing.T, w *window) {
		w.visit("/lab/check-then-insert")
		w.says("Nothing is measured yet.")
	}},
	{name: "experiment-running", open: func(t *testing.T, w *window) {
		w.hearNothing(t)
		w.visit("/lab/check-then-insert")
		w.takes(t, 200)
		w.measures(w.path(), "Run it")
		w.says("Running")
	}},
	{name: "experiment-measured", open: func(t *testing.T, w *window) {
		w.visit(w.measured(t, "/lab/check-then-insert/runs", nil))
		w.says("Address of this run")
	}},
	{name: "experiment-measured-with-32", open: func(t *testing.T, w *window) {
		w.visit(w.measured(t, "/lab/claim/runs", map[string]any{"workers": 32, "trials": 1}))
		w.says("Address of this run")
	}},
	{name: "experiment-measured-named", open: func(t *testing.T, w *window) {
		w.visit(w.measured(t, "/lab/what-sticks/runs", nil))
		w.says("Address of this run")
	}},
	{name: "experiment-opened", open: func(t *testing.T, w *window) {
		w.visit(w.measured(t, "/lab/webhooks/runs", map[string]any{"trials": 1}))
		w.says("Address of this run")
		_, err := w.Evaluate(`() => document.querySelectorAll("details").forEach((d) => d.open = true)`)
		require.NoError(t, err)
		w.says("func queueEvent(")
	}},
}

// measures presses the button that starts a run. The lab takes a few runs at
// once, whoever asks, so it may have to be asked again.
func (w *window) measures(path, button string) {
	w.t.Helper()
	eventually(w.t, "the lab has room", func() bool {
		if w.path() != path {
			w.visit(path)
		}
		w.press(w.button(button))
		w.leaves(path)
		return !w.has(w.GetByText("The lab is busy."))
	})
}

// leaves waits until a tab is at another page, whose heading is there.
func (w *window) leaves(path string) {
	w.t.Helper()
	require.NoError(w.t, w.WaitForURL(func(url string) bool { return url != w.url+path }, playwright.PageWaitForURLOptions{WaitUntil: playwright.WaitUntilStateDomcontentloaded}))
	w.requireReadable()
}

// measured runs an experiment to its end as a program does, and gives the
// address of the run.
func (w *window) measured(t *testing.T, path string, settings map[string]any) (address string) {
	t.Helper()
	if settings == nil {
		settings = map[string]any{}
	}
	w.visit("/lab") // for a session
	c := w.customer()
	eventually(t, "the lab has room", func() bool {
		a := c.send(c.keyed(path, newKey(), settings))
		require.NoError(t, a.err)
		address = a.header.Get("Location")
		require.Contains(t, []int{http.StatusCreated, http.StatusServiceUnavailable}, a.status, a.body)
		return a.status == http.StatusCreated
	})
	return address
}

// hearNothing keeps the news of a run from its page, which then stays as it was
// when the run was under way.
func (w *window) hearNothing(t *testing.T) {
	t.Helper()
	w.intercept("**/lab/runs/*/events", func(playwright.Route) {})
}

// takes chooses settings with which a run has 20 trials, and in each of them a
// handler that takes so many milliseconds.
func (b *tab) takes(t *testing.T, handler int) {
	t.Helper()
	// More than the page offers, and no more than the lab allows.
	_, err := b.GetByLabel("Handler takes").Evaluate(`(select, takes) => select.add(new Option(takes + " ms", takes))`, strconv.Itoa(handler))
	require.NoError(t, err)
	for name, value := range map[string]string{"Workers": "2", "Trials": "20", "Between check and act": "handler", "Handler takes": strconv.Itoa(handler)} {
		_, err := b.GetByLabel(name).SelectOption(playwright.SelectOptionValues{Values: &[]string{value}})
		require.NoError(t, err, "%s: %s", name, value)
	}
}
