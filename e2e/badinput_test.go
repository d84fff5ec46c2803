package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBadInput: what is refused, by which status, code and field, and that
// nothing of it reaches the database or Stripe.
func TestBadInput(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	c := d.customer(t, d.open(t))
	open := c.place("idempotency-end-to-end")
	bought, paid := c.buy("stripe-in-production")
	declinedOrder := c.place("proof-by-exhaustion")
	stranger := d.customer(t, d.shops[0])
	strangers, strangersPayment := stranger.buy("idempotency-end-to-end")
	strangersOpen := stranger.place("stripe-in-production")

	const (
		visa = `{"payment_method":"pm_card_visa"}`
		form = "application/x-www-form-urlencoded"
	)
	pay, giveBack := paymentsOf(open), refundsOf(paid)
	long := strings.Repeat("k", 255)

	type request struct {
		path, body string
		headers    []string // in place of JSON's and a fresh key's
		stranger   bool     // sent without a session
	}
	json := func(path, body string) request {
		return request{path: path, body: body, headers: []string{"Content-Type", "application/json", "Idempotency-Key", newKey()}}
	}
	// key sends a payment under the keys that are given, each in a header of its own.
	key := func(keys ...string) request {
		r := request{path: pay, body: visa, headers: []string{"Content-Type", "application/json"}}
		for _, k := range keys {
			r.headers = append(r.headers, "Idempotency-Key", k)
		}
		return r
	}
	fields := func(path, body string, headers ...string) request {
		return request{path: path, body: body, headers: append([]string{"Content-Type", form}, headers...)}
	}
	with := func(r request, headers ...string) request {
		r.headers = append(r.headers, headers...)
		return r
	}
	typed := func(mediaType, body string) request {
		return request{path: "/orders", body: body, headers: []string{"Content-Type", mediaType, "Idempotency-Key", newKey()}}
	}

	for _, row := range []struct {
		given  string
		when   request
		status int
		code   string
		field  string
	}{
		{"no key", key(), 400, "key_missing", "Idempotency-Key"},
		{"a blank key", key(" "), 400, "key_missing", "Idempotency-Key"},
		{"an empty key in quotes", key(`""`), 400, "key_missing", "Idempotency-Key"},
		{"a key of 256 bytes", key(long + "k"), 400, "key_malformed", "Idempotency-Key"},
		{"a key of 256 bytes in quotes", key(`"` + long + `k"`), 400, "key_malformed", "Idempotency-Key"},
		{"a key that is not ASCII", key("clé"), 400, "key_malformed", "Idempotency-Key"},
		{"a quote that does not end", key(`"abc`), 400, "key_malformed", "Idempotency-Key"},
		{"two different keys", key("a", "b"), 400, "key_malformed", "Idempotency-Key"},
		{"two keys, one in quotes", key("a", `"b"`), 400, "key_malformed", "Idempotency-Key"},
		{"a form without a key", fields(pay, "payment_method=pm_card_visa"), 400, "key_missing", "idempotency_key"},
		{"a form with a blank key", fields(pay, "payment_method=pm_card_visa&idempotency_key=+"), 400, "key_missing", "idempotency_key"},
		{"a form with a key of 256 bytes", fields(pay, "payment_method=pm_card_visa&idempotency_key="+long+"k"), 400, "key_malformed", "idempotency_key"},
		{"a form with two different keys", fields(pay, "payment_method=pm_card_visa&idempotency_key=a&idempotency_key=b"), 400, "key_malformed", "idempotency_key"},
		{"a form and a header that differ", fields(pay, "payment_method=pm_card_visa&idempotency_key=a", "Idempotency-Key", "b"), 400, "key_malformed", "idempotency_key"},

		{"an unknown member", json("/orders", `{"course":"proof-by-exhaustion","coupon":"free"}`), 400, "invalid_request", "coupon"},
		{"an amount with an order", json("/orders", `{"course":"payments-platform-team","amount":1}`), 400, "invalid_request", "amount"},
		{"an amount with a payment", json(pay, `{"payment_method":"pm_card_visa","amount":1}`), 400, "invalid_request", "amount"},
		{"a currency with a payment", json(pay, `{"payment_method":"pm_card_visa","currency":"jpy"}`), 400, "invalid_request", "currency"},
		{"a duplicate member", json("/orders", `{"course":"proof-by-exhaustion","course":"proof-by-exhaustion"}`), 400, "invalid_request", "course"},
		{"a duplicate member in disguise", json(giveBack, `{"amount":1,"\u0061mount":7500}`), 400, "invalid_request", "amount"},
		{"a number for text", json("/orders", `{"course":7}`), 400, "invalid_request", "course"},
		{"text for a number", json(giveBack, `{"amount":"7500"}`), 400, "invalid_request", "amount"},
		{"null for text", json(pay, `{"payment_method":null}`), 400, "invalid_request", "payment_method"},
		{"a list for text", json(pay, `{"payment_method":["pm_card_visa"]}`), 400, "invalid_request", "payment_method"},
		{"a zero byte", json("/orders", `{"course":"proof\u0000"}`), 400, "invalid_request", "course"},
		{"bytes that are not UTF-8", json("/orders", "{\"course\":\"\xff\"}"), 400, "invalid_request", "body"},
		{"half a surrogate pair", json("/orders", `{"course":"\ud800"}`), 400, "invalid_request", "course"},
		{"no member", json("/orders", `{}`), 400, "invalid_request", "course"},
		{"no body", json("/orders", ``), 400, "invalid_request", "body"},
		{"half a body", json("/orders", `{"course":`), 400, "invalid_request", "body"},
		{"two bodies", json("/orders", `{"course":"proof-by-exhaustion"}{}`), 400, "invalid_request", "body"},
		{"a form with a field twice", fields(pay, "idempotency_key="+newKey()+"&payment_method=pm_card_visa&payment_method=pm_card_visa"), 400, "invalid_request", "payment_method"},

		{"a query string", json("/orders?coupon=free", `{"course":"proof-by-exhaustion"}`), 400, "invalid_request", "coupon"},
		{"a query string on a payment", json(pay+"?amount=1", visa), 400, "invalid_request", "amount"},
		{"half a cent", json(giveBack, `{"amount":0.5}`), 400, "invalid_request", "amount"},
		{"nothing back", json(giveBack, `{"amount":0}`), 400, "invalid_request", "amount"},
		{"less than nothing back", json(giveBack, `{"amount":-7500}`), 400, "invalid_request", "amount"},
		{"more back than fits", json(giveBack, `{"amount":1e999999999}`), 400, "invalid_request", "amount"},

		{"a course that is not sold", json("/orders", `{"course":"alchemy"}`), 400, "invalid_request", "course"},
		{"a method off the list", json(pay, `{"payment_method":"pm_card_amex"}`), 400, "invalid_request", "payment_method"},
		{"a card number", json(pay, `{"payment_method":"4242424242424242"}`), 400, "invalid_request", "payment_method"},
		{"a confirmation token of nobody", json(pay, `{"confirmation_token":"ctoken_1"}`), 400, "invalid_request", "confirmation_token"},
		{"a method and a token", json(pay, `{"payment_method":"pm_card_visa","confirmation_token":"ctoken_1"}`), 400, "invalid_request", "confirmation_token"},
		{"another account's open order", json(paymentsOf(strangersOpen), visa), 404, "not_found", ""},
		{"another account's paid order", json(paymentsOf(strangers), visa), 404, "not_found", ""},
		{"another account's payment", json(refundsOf(strangersPayment), `{"amount":4900}`), 404, "not_found", ""},
		{"an order that is none", json("/orders/ord_none/payments", visa), 404, "not_found", ""},
		{"an order's id that climbs", json("/orders/..%2f..%2fetc/payments", visa), 404, "not_found", ""},
		{"an order's id with a zero byte", json("/orders/ord%00/payments", visa), 404, "not_found", ""},

		{"a body over the limit", json("/orders", `{"course":"`+strings.Repeat("x", 17<<10)+`"}`), 413, "too_large", "body"},
		{"a form over the limit", fields("/orders", "course=proof-by-exhaustion&idempotency_key=k&x="+strings.Repeat("x", 17<<10)), 413, "too_large", "body"},
		{"plain text", typed("text/plain", `{"course":"proof-by-exhaustion"}`), 415, "media_type", "Content-Type"},
		{"multipart", typed("multipart/form-data; boundary=b", "--b--"), 415, "media_type", "Content-Type"},
		{"another charset", typed("application/json; charset=utf-16", `{"course":"proof-by-exhaustion"}`), 415, "media_type", "Content-Type"},
		{"a compressed body", with(typed("application/json", "{}"), "Content-Encoding", "gzip"), 415, "media_type", "Content-Encoding"},

		{"a post from another site", with(json(pay, visa), "Sec-Fetch-Site", "cross-site"), 403, "cross_site", ""},
		{"a post from a sibling site", with(json(pay, visa), "Sec-Fetch-Site", "same-site"), 403, "cross_site", ""},
		{"a post from another origin", with(json(pay, visa), "Origin", "https://evil.example"), 403, "cross_site", ""},
		{"a post from no origin", with(json(pay, visa), "Origin", "null"), 403, "cross_site", ""},
		{"a post without a session", request{path: pay, body: visa, headers: json(pay, visa).headers, stranger: true}, 401, "no_session", ""},
		{"a forged session", with(request{path: pay, body: visa, headers: json(pay, visa).headers, stranger: true}, "Cookie", "payonce=YWNjdF9tZQ=="), 401, "no_session", ""},
	} {
		// One after the other: each must leave everything as it was.
		stored, sent := d.rows(t), d.stripe.changes(t)
		t.Run(row.given, func(t *testing.T) {
			sender := *c
			if row.when.stranger {
				sender.forget()
			}
			p := sender.raw(http.MethodPost, row.when.path, row.when.body, append(row.when.headers, "Accept", "application/json")...).
				problem(t, row.status, row.code)
			require.Equal(t, row.field, p.Field)
			require.True(t, p.SafeNewKey, "nothing was stored")
			require.Equal(t, stored, d.rows(t), "something was stored")
			require.Equal(t, sent, d.stripe.changes(t), "Stripe was called")
		})
	}

	// And the requests that were meant are still free to be made.
	c.paid(c.pay(open, open.PaymentKey, "pm_card_visa"))
	c.paid(c.pay(declinedOrder, declinedOrder.PaymentKey, "pm_card_visa"))
	require.Zero(t, d.stripe.requireOneCharge(t, bought).AmountRefunded)
}

// rows counts the rows of every table that a request could write to.
func (d *deployment) rows(t testing.TB) string {
	t.Helper()
	return sql[string](t, d, `
		SELECT concat_ws(' ',
			(SELECT count(*) FROM idempotency_keys), (SELECT count(*) FROM orders), (SELECT count(*) FROM payments),
			(SELECT count(*) FROM refunds), (SELECT count(*) FROM enrolments),
			(SELECT string_agg(id || status || payment_key || coalesce(intent, ''), ',' ORDER BY id) FROM orders),
			(SELECT string_agg(id || status || version, ',' ORDER BY id) FROM payments))`)
}
