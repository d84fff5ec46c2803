package view_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"payonce/static"
	"payonce/web/view"
)

// said are the templates that the scripts ask for by name: says in submission.js, and page.js.
func said(t *testing.T) []string {
	t.Helper()
	source, err := static.FS.ReadFile("submission.js")
	require.NoError(t, err)
	body := string(source)
	names := []string{"sending"} // page.js, where a notice goes that held the h1
	for _, part := range []string{between(t, body, "function refused(", "\n}"), between(t, body, "export function says(", "\n}")} {
		for _, m := range regexp.MustCompile(`(?:return|says:|\?\?|\?|:) "([a-z_]+)"`).FindAllStringSubmatch(part, -1) {
			names = append(names, m[1])
		}
	}
	for _, m := range regexp.MustCompile(`says: [^\n]*? "([a-z_]+)" : "([a-z_]+)"|says: "([a-z_]+)"`).FindAllStringSubmatch(body, -1) {
		names = append(names, m[1:]...)
	}
	return names
}

func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, from)
	require.True(t, ok, from)
	inside, _, ok := strings.Cut(after, to)
	require.True(t, ok, to)
	return inside
}

func template(root *html.Node, attribute, value string) []*html.Node {
	return elements(root, func(n *html.Node) bool { return n.Data == "template" && attr(n, attribute) == value })
}

func TestEveryNoticeThatTheScriptSaysIsOnThePage(t *testing.T) {
	t.Parallel()
	m := checkout(view.NoOutcome)
	root := parse(t, renderPage(t, view.CheckoutPage(m)))
	m.Element = element()
	withElement := parse(t, renderPage(t, view.CheckoutPage(m)))
	names := append(said(t), "card_reading") // page.js, where a notice goes that held the h1
	for _, want := range []string{"declined", "busy", "shop_busy", "checking", "on_its_way", "handed_over", "stopped", "still_busy", "out_of_date", "card_refused", "card_lost", "card_blocked"} {
		require.Contains(t, names, want, "the names are not read from the script")
	}
	for _, name := range names {
		if name == "" || name == "resumed" {
			continue
		}
		page := root
		if strings.HasPrefix(name, "card_") {
			require.Empty(t, template(root, "data-says", name), "there is no form for a card")
			page = withElement
		}
		notice := only(t, elements(only(t, template(page, "data-says", name)), withClass("notice")))
		require.NotEmpty(t, text(only(t, elements(notice, withClass("notice-title")))), name)
		require.Equal(t, "-1", attr(notice, "tabindex"), "it can be given the focus")
	}
	for _, charged := range []string{"no", "unknown", "processing", "yes"} {
		line := only(t, elements(only(t, template(root, "data-charged", charged)), withClass("money-line")))
		require.Equal(t, charged, attr(line, "data-charged"))
	}
	problems := only(t, template(root, "id", "problems"))
	for _, code := range codes {
		for _, words := range elements(problems, func(n *html.Node) bool { return attr(n, "data-code") == code }) {
			require.Contains(t, text(words), view.ProblemWords(code, true).Title)
		}
	}
	require.Len(t, elements(problems, named("div")), 10)
	reasons := only(t, template(root, "id", "reasons"))
	require.Equal(t, view.DeclineWords("insufficient_funds"), text(only(t, elements(reasons, func(n *html.Node) bool { return attr(n, "data-decline") == "insufficient_funds" }))))
	other := elements(reasons, func(n *html.Node) bool { v, ok := lookup(n, "data-decline"); return ok && v == "" })
	require.Equal(t, view.DeclineWords("what nobody knows"), text(only(t, other)))
}

func TestTheCheckingPageCarriesWhatItsScriptSays(t *testing.T) {
	t.Parallel()
	for state, standing := range map[view.CheckingState]string{
		view.OutcomeUnknown: "pending", view.InProgress: "pending", view.HandedOver: "pending", view.NeedsPerson: "pending",
		view.Processing: "processing", view.RequiresAction: "requires_action", view.Closing: "closing",
	} {
		m := checking(state)
		m.Age, m.Script = 90*time.Second, view.Script{Keep: 36 * time.Hour, Timeout: 26 * time.Second}
		root := parse(t, renderPage(t, view.CheckingPage(m)))
		page := only(t, elements(root, func(n *html.Node) bool { return attr(n, "data-page") == "checking" }))
		for name, want := range map[string]string{
			"data-standing": standing, "data-age": "90000", "data-keep": "129600000", "data-timeout": "26000",
			"data-order": order.ID, "data-payment": m.Payment,
		} {
			require.Equal(t, want, attr(page, name), name)
		}
		for _, name := range []string{"handed_over", "busy", "shop_busy", "stopped", "next", "now"} {
			only(t, template(root, "data-says", name))
		}
		require.Contains(t, text(only(t, template(root, "data-says", "handed_over"))), m.Payment)
		require.Equal(t, "status", attr(only(t, elements(root, func(n *html.Node) bool { return attr(n, "id") == "waiting" })), "role"))
		require.NotEmpty(t, elements(root, func(n *html.Node) bool { return attr(n, "data-do") == "check" }))
	}
}

func TestOnlyPagesThatPayLoadTheScript(t *testing.T) {
	everyPage(t, func(t *testing.T, name string, root *html.Node) {
		want := 0
		if strings.HasPrefix(name, "checkout-") || strings.HasPrefix(name, "checking-") {
			want = 1
		}
		scripts := elements(root, func(n *html.Node) bool { return attr(n, "src") == static.Path("checkout.js") })
		require.Len(t, scripts, want)
	})
}
