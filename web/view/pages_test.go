package view_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"payonce/web/view"
)

// everyPage runs a test on every page in every state, the last resort included.
func everyPage(t *testing.T, test func(t *testing.T, name string, root *html.Node)) {
	t.Helper()
	t.Parallel()
	pages := map[string]string{"last-resort": string(view.LastResort)}
	for _, story := range stories() {
		pages[story.name] = renderPage(t, story.page)
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, name, parse(t, page))
		})
	}
}

func TestEveryPageHasOneH1AndATitle(t *testing.T) {
	everyPage(t, func(t *testing.T, _ string, root *html.Node) {
		h1 := only(t, elements(root, named("h1")))
		require.NotEmpty(t, text(h1))
		require.True(t, strings.HasSuffix(text(only(t, elements(root, named("title")))), " · Pay Once"))
		require.Equal(t, "en", attr(only(t, elements(root, named("html"))), "lang"))
		require.Len(t, elements(root, named("main")), 1)
	})
}

func TestNoPageNeedsWhatTheContentSecurityPolicyForbids(t *testing.T) {
	everyPage(t, func(t *testing.T, _ string, root *html.Node) {
		for n := range root.Descendants() {
			require.NotContains(t, []string{"style", "iframe", "object", "embed", "base"}, n.Data)
			if n.Data == "script" {
				require.Equal(t, "module", attr(n, "type"))
				require.Nil(t, n.FirstChild, "a script in the page")
			}
			for _, a := range n.Attr {
				require.NotEqual(t, "style", a.Key, n.Data)
				require.False(t, strings.HasPrefix(a.Key, "on"), "%s of %s", a.Key, n.Data)
			}
			if src, ok := lookup(n, "src"); ok {
				require.Truef(t, strings.HasPrefix(src, "/static/"), "%s from %s", n.Data, src)
			}
		}
	})
}

func TestNoPageHasMoreThanOneMainAction(t *testing.T) {
	everyPage(t, func(t *testing.T, name string, root *html.Node) {
		main := elements(root, func(n *html.Node) bool {
			_, off := lookup(n, "disabled")
			return hasClass(n, "button") && !hasClass(n, "button-plain") && !off
		})
		require.LessOrEqual(t, len(main), 1)
		green := elements(root, withClass("button-pay"))
		if strings.HasPrefix(name, "checkout-") {
			require.Equal(t, "Pay $49.00", text(only(t, green)))
		} else {
			require.Empty(t, green, "Pay is offered by the checkout only")
		}
	})
}

func TestEveryFormSendsItsKeyFromAFieldThatBrowsersDoNotRestore(t *testing.T) {
	everyPage(t, func(t *testing.T, _ string, root *html.Node) {
		for _, form := range elements(root, named("form")) {
			require.Equal(t, "post", attr(form, "method"))
			hidden := elements(form, func(n *html.Node) bool { return n.Data == "input" && attr(n, "type") == "hidden" })
			keys := 0
			for _, field := range hidden {
				require.Equal(t, "off", attr(field, "autocomplete"), attr(field, "name"))
				if attr(field, "name") == "idempotency_key" {
					require.NotEmpty(t, attr(field, "value"))
					keys++
				}
			}
			if action := attr(form, "action"); action == "/session" || strings.HasSuffix(action, "/cancel") || strings.HasSuffix(action, "/runs") {
				require.Zero(t, keys)
			} else {
				require.Equal(t, 1, keys, attr(form, "action"))
			}
		}
	})
}

// routes are what the shop answers. A link to anything else would be a promise that it does not keep.
var routes = regexp.MustCompile(`^(/|/ledger|/lab(/[a-z-]+)?(\?run=run_[A-Z0-9]+)?|/orders|/orders/[^/]+(/return(\?token=[a-z0-9]+)?)?|/courses/[^/]+|/courses/[^/]+/lessons/[0-9]+|/docs/idempotency(#[a-z0-9_]+)?|/static/[0-9a-f]+/[a-z.]+)$`)

var actions = regexp.MustCompile(`^(/orders|/orders/[^/]+/payments|/payments/[^/]+/(refunds|cancel)|/session|/lab(/[a-z-]+)?/runs)$`)

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	everyPage(t, func(t *testing.T, _ string, root *html.Node) {
		ids := map[string]bool{}
		for _, n := range elements(root, func(n *html.Node) bool { return attr(n, "id") != "" }) {
			require.False(t, ids[attr(n, "id")], "two elements with the id %q", attr(n, "id"))
			ids[attr(n, "id")] = true
		}
		for _, n := range elements(root, func(*html.Node) bool { return true }) {
			if labelled, ok := lookup(n, "aria-labelledby"); ok {
				require.True(t, ids[labelled], "nothing has the id %q", labelled)
			}
			if action, ok := lookup(n, "action"); ok {
				require.Regexp(t, actions, action)
			}
			href, ok := lookup(n, "href")
			if here, inside := strings.CutPrefix(href, "#"); inside {
				require.True(t, ids[here], "nothing has the id %q", here)
			} else if ok && !strings.HasPrefix(href, "http://127.0.0.1:12111/") {
				require.Regexp(t, routes, href)
			}
		}
	})
}

func TestEveryDrawingIsToldInWordsOrIsDecoration(t *testing.T) {
	everyPage(t, func(t *testing.T, _ string, root *html.Node) {
		for _, svg := range elements(root, named("svg")) {
			if svg.Parent.Data == "svg" {
				continue // a part of the drawing around it
			}
			if attr(svg, "role") == "img" {
				require.NotEmpty(t, attr(svg, "aria-label"))
			} else {
				require.Equal(t, "true", attr(svg, "aria-hidden"))
			}
		}
	})
}

func TestWordsArePlain(t *testing.T) {
	unwanted := regexp.MustCompile(`(?i)oops|sorry|please|!|unfortunately|successfully`)
	everyPage(t, func(t *testing.T, _ string, root *html.Node) {
		require.NotRegexp(t, unwanted, text(only(t, elements(root, named("main")))))
	})
}
