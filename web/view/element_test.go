package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"payonce/web/view"
)

// TestElementPage: the page has a place for Stripe's form, no list and no field for a card, and no Pay for a browser without
// script, which is told why.
func TestElementPage(t *testing.T) {
	t.Parallel()
	m := checkout(view.NoOutcome)
	m.Methods, m.Faults, m.Element = nil, nil, element()
	page := renderPage(t, view.CheckoutPage(m))
	root := parse(t, page)

	place := only(t, elements(root, func(n *html.Node) bool { return attr(n, "id") == "element" }))
	for name, want := range map[string]string{"data-key": "pk_test_1", "data-amount": "4900", "data-currency": "usd"} {
		require.Equal(t, want, attr(place, name), name)
	}
	require.Nil(t, place.FirstChild, "Stripe puts its frame into an empty place")
	fields := elements(only(t, elements(root, func(n *html.Node) bool { return attr(n, "id") == "pay" })), named("input"))
	require.Equal(t, "idempotency_key", attr(only(t, fields), "name"), "the form has no other field")
	_, hidden := lookup(only(t, elements(root, withClass("button-pay"))), "hidden")
	require.True(t, hidden, "the script shows Pay")
	require.Contains(t, page, "<noscript>")
	require.Contains(t, page, "Paying by card needs script here.")
	require.NotContains(t, page, "https://js.stripe.com", "the script loads it")

	list := parse(t, renderPage(t, view.CheckoutPage(checkout(view.NoOutcome))))
	_, hidden = lookup(only(t, elements(list, withClass("button-pay"))), "hidden")
	require.False(t, hidden, "a list needs no script")
	require.Empty(t, elements(list, func(n *html.Node) bool { return attr(n, "id") == "element" || n.Data == "noscript" }))
}

// TestChallengePage: where the bank has no page to link to, the script shows its question, and a browser without script is
// told; where that is not possible either, the page says what is.
func TestChallengePage(t *testing.T) {
	t.Parallel()
	m := checking(view.RequiresAction)
	m.BankURL, m.Challenge = "", &view.Challenge{PublishableKey: "pk_test_1"}
	page := renderPage(t, view.CheckingPage(m))
	button := only(t, elements(parse(t, page), func(n *html.Node) bool { return attr(n, "id") == "challenge" }))
	require.Equal(t, "pk_test_1", attr(button, "data-key"))
	_, hidden := lookup(button, "hidden")
	require.True(t, hidden, "the script shows it")
	require.Contains(t, page, "Your bank asks through Stripe’s own script, and script is off here.")
	require.NotContains(t, page, "_secret_")

	m.Challenge = nil
	page = renderPage(t, view.CheckingPage(m))
	require.Contains(t, page, "cannot be shown on this page. Nothing was charged: use another card.")
	require.NotContains(t, page, `id="challenge"`)
}
