package view_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"payonce/static"
	"payonce/web/view"
)

func tried(outcome view.Outcome) view.Checkout {
	m := checkout(outcome)
	m.Try = &view.Try{Counted: view.CountedLocally, LessonURL: "/courses/idempotency-end-to-end/lessons/1"}
	return m
}

func TestThePanelOffersWhatItsScriptCanDo(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.CheckoutPage(tried(view.NoOutcome))))
	require.Empty(t, elements(root, withClass("try")), "without the script it would not work, so it is not there")

	panel := only(t, template(root, "id", "panel"))
	source, err := static.FS.ReadFile("try.js")
	require.NoError(t, err)
	var known []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+): \(\{`).FindAllStringSubmatch(string(source), -1) {
		known = append(known, m[1])
	}
	var offered, labels []string
	for _, b := range elements(panel, named("button")) {
		require.Equal(t, "button", attr(b, "type"), "it must not submit anything by itself")
		offered, labels = append(offered, attr(b, "data-try")), append(labels, text(b))
	}
	require.Equal(t, []string{"Send it twice", "Eight at once", "Two tabs, two keys", "Same key, another body", "Lose the reply"}, labels)
	require.ElementsMatch(t, known, offered)

	count := only(t, elements(panel, withClass("count")))
	require.Equal(t, "status", attr(count, "role"))
	require.Contains(t, text(count), "charges at Stripe")
	require.Contains(t, text(count), "Counted at the local Stripe, not by the shop.")
	require.Len(t, elements(panel, named("dt")), len(labels), "each is told before it is tried")
}

func TestThePanelsTableIsATable(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.CheckoutPage(tried(view.NoOutcome))))
	table := only(t, elements(only(t, template(root, "id", "answers")), named("table")))
	only(t, elements(table, named("caption")))
	only(t, elements(table, named("tbody")))
	var columns []string
	for _, th := range elements(table, named("th")) {
		require.Equal(t, "col", attr(th, "scope"))
		columns = append(columns, text(th))
	}
	require.Equal(t, []string{"Copy", "Answer", "Replayed", "Charge", "ms"}, columns)
}

func TestAfterAnExperimentThePageOffersAWayOn(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.CheckoutPage(tried(view.Declined))))
	for state, want := range map[string][]string{
		"paid": {"/orders/" + order.ID, "/courses/idempotency-end-to-end/lessons/1"},
		"open": {"/orders/" + order.ID},
	} {
		after := only(t, template(root, "data-tried", state))
		var links []string
		for _, a := range elements(after, named("a")) {
			links = append(links, attr(a, "href"))
		}
		require.Equal(t, want, links)
		require.Len(t, elements(after, func(n *html.Node) bool { return hasClass(n, "button") && !hasClass(n, "button-plain") }), 1)
	}
	why := only(t, elements(only(t, template(root, "id", "panel")), func(n *html.Node) bool { return attr(n, "id") == "try-why" }))
	require.Equal(t, "/", attr(only(t, elements(why, named("a"))), "href"))
}

func TestWithoutThePanelNothingOfItIsThere(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.CheckoutPage(checkout(view.NoOutcome))))
	for _, id := range []string{"panel", "answers"} {
		require.Empty(t, template(root, "id", id))
	}
}
