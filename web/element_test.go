package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/static"
	"payonce/web"
)

func withElement(c *web.Config) { c.Stripe, c.PublishableKey = web.StripeTest, "pk_test_1" }

// policyOf reads the Content-Security-Policy of an answer.
func policyOf(h http.Header) map[string]string {
	csp := map[string]string{}
	for directive := range strings.SplitSeq(h.Get("Content-Security-Policy"), "; ") {
		name, value, _ := strings.Cut(directive, " ")
		csp[name] = value
	}
	return csp
}

// strict is the policy of every page that has no card form.
var strict = map[string]string{
	"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'", "connect-src": "'self'",
	"form-action": "'self'", "frame-ancestors": "'none'", "base-uri": "'none'",
}

// TestElement: with a publishable key the checkout page, and no other, has
// Stripe's Payment Element and may load what that needs.
func TestElement(t *testing.T) {
	t.Parallel()
	s := open(t, withElement)
	s.fake.methods = nil
	s.fake.orders[someOrder] = orderOpen()

	page := s.send(get("/orders/"+someOrder, fromBrowser))
	require.Equal(t, 200, page.status)
	require.Contains(t, page.page(), `data-key="pk_test_1" data-amount="4900" data-currency="usd"`)
	require.Contains(t, page.page(), payButton)
	require.Contains(t, page.page(), "<noscript>")
	require.NotContains(t, page.page(), `name="payment_method"`)
	require.NotContains(t, page.page(), `id="panel"`, "a token pays once: there is nothing to try with it")
	require.NotContains(t, s.server.Routes(), "GET /orders/:id/charges")
	want := map[string]string{}
	for name, value := range strict {
		want[name] = value
	}
	want["script-src"] = "'self' https://js.stripe.com https://*.js.stripe.com"
	want["connect-src"] = "'self' https://api.stripe.com"
	want["frame-src"] = "https://js.stripe.com https://*.js.stripe.com https://hooks.stripe.com"
	require.Equal(t, want, policyOf(page.header))

	// Everything else is as strict as without.
	asked := attempt(checkout.PaymentRequiresAction)
	asked.NextAction = "https://bank.test/3ds"
	for what, order := range map[string]checkout.Order{
		"a receipt": orderPaid(), "a page that checks": orderWith(attempt(checkout.PaymentPending)), "a page that leads to the bank": orderWith(asked),
	} {
		s.fake.orders[someOrder] = order
		require.Equal(t, strict, policyOf(s.send(get("/orders/"+someOrder, fromBrowser)).header), what)
	}
	asked.NextAction, asked.Intent = "", "pi_1"
	s.fake.orders[someOrder] = orderWith(asked)
	page = s.send(get("/orders/"+someOrder, fromBrowser))
	require.Equal(t, want, policyOf(page.header), "the bank's question, shown by Stripe.js")
	require.Contains(t, page.page(), `id="challenge"`)
	require.NotContains(t, page.page(), "_secret_", "which the page asks for when it needs it")
	s.fake.orders[someOrder] = orderOpen()
	for _, r := range []*http.Request{
		get("/orders/" + someOrder), get("/"), get("/", fromBrowser), get("/courses/"+slug, fromBrowser), get("/orders", fromBrowser),
		get("/ledger", fromBrowser), get("/docs/idempotency", fromBrowser), get("/nothing", fromBrowser), get(static.Path("element.js")),
		post(payments, `{"confirmation_token":"ctoken_1"}`, key()), form(payments, "confirmation_token=ctoken_1&idempotency_key=k"),
	} {
		require.Equal(t, strict, policyOf(s.send(r).header), "%s %s", r.Method, r.URL)
	}

	t.Run("NotWithoutAPublishableKey", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.orders[someOrder] = orderOpen()
		page := s.send(get("/orders/"+someOrder, fromBrowser))
		require.Equal(t, strict, policyOf(page.header))
		require.Contains(t, page.page(), `name="payment_method"`)
		require.NotContains(t, page.page(), `id="element"`)
	})

	t.Run("RealMoneyIsNotCalledTestMoney", func(t *testing.T) {
		t.Parallel()
		s := open(t, withElement, func(c *web.Config) { c.Stripe, c.Demo, c.PublishableKey = web.StripeLive, false, "pk_live_1" })
		s.fake.orders[someOrder] = orderOpen()
		page := s.send(get("/orders/"+someOrder, fromBrowser)).page()
		require.Contains(t, page, `data-key="pk_live_1"`)
		require.NotContains(t, page, "no real money")
	})
}
