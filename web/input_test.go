package web_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/idempotency"
)

const (
	payments = "/orders/" + someOrder + "/payments"
	refunds  = "/payments/" + somePay + "/refunds"
	withVisa = `{"payment_method":"pm_card_visa"}`
)

// badInput is a request that is refused before anything is claimed.
type badInput struct {
	given  string
	when   *http.Request
	expect int
	code   string
	field  string
}

// badInputs are those that the web refuses by itself.
func badInputs() []badInput {
	long := strings.Repeat("x", 255)
	return []badInput{
		// The key, as a program sends it.
		{"no key", post(payments, withVisa, key()), 400, "key_missing", "Idempotency-Key"},
		{"an empty key", post(payments, withVisa, key("")), 400, "key_missing", "Idempotency-Key"},
		{"a blank key", post(payments, withVisa, key("   ")), 400, "key_missing", "Idempotency-Key"},
		{"an empty key in quotes", post(payments, withVisa, key(`""`)), 400, "key_missing", "Idempotency-Key"},
		{"a blank key in quotes", post(payments, withVisa, key(`"  "`)), 400, "key_missing", "Idempotency-Key"},
		{"a key of 256 bytes", post(payments, withVisa, key(long+"x")), 400, "key_malformed", "Idempotency-Key"},
		{"a key of 256 bytes in quotes", post(payments, withVisa, key(`"`+long+`x"`)), 400, "key_malformed", "Idempotency-Key"},
		{"a key that is not ASCII", post(payments, withVisa, key("clé")), 400, "key_malformed", "Idempotency-Key"},
		{"a key with a control character", post(payments, withVisa, key("a\x7fb")), 400, "key_malformed", "Idempotency-Key"},
		{"a quote that does not end", post(payments, withVisa, key(`"abc`)), 400, "key_malformed", "Idempotency-Key"},
		{"two different keys", post(payments, withVisa, key("a", "b")), 400, "key_malformed", "Idempotency-Key"},
		{"a key that differs in case", post(payments, withVisa, key("a", "A")), 400, "key_malformed", "Idempotency-Key"},
		// The key, as a form sends it.
		{"a form without a key", form(payments, "payment_method=pm_card_visa"), 400, "key_missing", "idempotency_key"},
		{"a form with a blank key", form(payments, "payment_method=pm_card_visa&idempotency_key=+"), 400, "key_missing", "idempotency_key"},
		{"a form with a key of 256 bytes", form(payments, "payment_method=pm_card_visa&idempotency_key="+long+"x"), 400, "key_malformed", "idempotency_key"},
		{"a form with a key that is not ASCII", form(payments, "payment_method=pm_card_visa&idempotency_key=%F0%9F%8D%B0"), 400, "key_malformed", "idempotency_key"},
		{"a form with a line break in its key", form(payments, "payment_method=pm_card_visa&idempotency_key=a%0Ab"), 400, "key_malformed", "idempotency_key"},
		{"a form with two different keys", form(payments, "payment_method=pm_card_visa&idempotency_key=a&idempotency_key=b"), 400, "key_malformed", "idempotency_key"},
		{"header and field that differ", form(payments, "payment_method=pm_card_visa&idempotency_key=a", key("b")), 400, "key_malformed", "idempotency_key"},

		// JSON.
		{"an unknown member", post("/orders", `{"course":"a","coupon":"free"}`), 400, "invalid_request", "coupon"},
		{"an amount nobody asked for", post("/orders", `{"course":"a","amount":1}`), 400, "invalid_request", "amount"},
		{"an amount with a payment", post(payments, `{"payment_method":"pm_card_visa","amount":1}`), 400, "invalid_request", "amount"},
		{"a member in another case", post("/orders", `{"Course":"a"}`), 400, "invalid_request", "Course"},
		{"a key among the members", post("/orders", `{"course":"a","idempotency_key":"k"}`), 400, "invalid_request", "idempotency_key"},
		{"a duplicate member", post("/orders", `{"course":"a","course":"a"}`), 400, "invalid_request", "course"},
		{"a duplicate member, escaped", post("/orders", `{"course":"a","\u0063ourse":"b"}`), 400, "invalid_request", "course"},
		{"a duplicate amount", post(refunds, `{"amount":4900,"amount":1}`), 400, "invalid_request", "amount"},
		{"a number for text", post("/orders", `{"course":1}`), 400, "invalid_request", "course"},
		{"null", post("/orders", `{"course":null}`), 400, "invalid_request", "course"},
		{"a list", post("/orders", `{"course":["a"]}`), 400, "invalid_request", "course"},
		{"an object", post("/orders", `{"course":{"a":1}}`), 400, "invalid_request", "course"},
		{"true", post(payments, `{"payment_method":true}`), 400, "invalid_request", "payment_method"},
		{"text for a number", post(refunds, `{"amount":"4900"}`), 400, "invalid_request", "amount"},
		{"no member", post("/orders", `{}`), 400, "invalid_request", "course"},
		{"empty text", post("/orders", `{"course":""}`), 400, "invalid_request", "course"},
		{"text of 65 bytes", post("/orders", `{"course":"`+strings.Repeat("x", 65)+`"}`), 400, "invalid_request", "course"},
		{"33 characters of 66 bytes", post("/orders", `{"course":"`+strings.Repeat("é", 33)+`"}`), 400, "invalid_request", "course"},
		{"a method of 256 bytes", post(payments, `{"payment_method":"`+long+`x"}`), 400, "invalid_request", "payment_method"},
		{"a zero byte", post("/orders", `{"course":"a\u0000b"}`), 400, "invalid_request", "course"},
		{"half a surrogate pair", post("/orders", `{"course":"\ud800"}`), 400, "invalid_request", "course"},
		{"bytes that are not UTF-8", post("/orders", "{\"course\":\"\xff\"}"), 400, "invalid_request", "body"},
		{"no method and no token", post(payments, `{}`), 400, "invalid_request", "payment_method"},
		{"a method and a token", post(payments, `{"payment_method":"pm_card_visa","confirmation_token":"ctoken_1"}`), 400, "invalid_request", "confirmation_token"},
		{"an empty body", post("/orders", ``), 400, "invalid_request", "body"},
		{"a list for a body", post("/orders", `["course"]`), 400, "invalid_request", "body"},
		{"text for a body", post("/orders", `"course"`), 400, "invalid_request", "body"},
		{"half a body", post("/orders", `{"course":"a"`), 400, "invalid_request", "body"},
		{"half a member", post("/orders", `{"course":`), 400, "invalid_request", "body"},
		{"two bodies", post("/orders", `{"course":"a"}{"course":"b"}`), 400, "invalid_request", "body"},
		{"something behind the body", post("/orders", `{"course":"a"} x`), 400, "invalid_request", "body"},
		{"a comma too many", post("/orders", `{"course":"a",}`), 400, "invalid_request", "body"},
		{"a byte order mark", post("/orders", "\ufeff"+`{"course":"a"}`), 400, "invalid_request", "body"},
		{"a very long name", post("/orders", `{"`+strings.Repeat("é", 100)+`":1}`), 400, "invalid_request", strings.Repeat("é", 32) + "..."},

		// Amounts.
		{"half a cent", post(refunds, `{"amount":49.5}`), 400, "invalid_request", "amount"},
		{"less than nothing", post(refunds, `{"amount":-1}`), 400, "invalid_request", "amount"},
		{"nothing", post(refunds, `{"amount":0}`), 400, "invalid_request", "amount"},
		{"minus nothing", post(refunds, `{"amount":-0}`), 400, "invalid_request", "amount"},
		{"more than eight digits", post(refunds, `{"amount":100000000}`), 400, "invalid_request", "amount"},
		{"more than an int64", post(refunds, `{"amount":9223372036854775808}`), 400, "invalid_request", "amount"},
		{"an exponent that does not fit", post(refunds, `{"amount":1e999999999}`), 400, "invalid_request", "amount"},
		{"a small exponent", post(refunds, `{"amount":1e-999999999}`), 400, "invalid_request", "amount"},
		{"an exponent that no int holds", post(refunds, `{"amount":1e99999999999999999999}`), 400, "invalid_request", "amount"},
		{"a thousand digits", post(refunds, `{"amount":1.`+strings.Repeat("0", 1000)+`}`), 400, "invalid_request", "amount"},
		{"no amount", post(refunds, `{}`), 400, "invalid_request", "amount"},
		{"a form with words for an amount", form(refunds, "idempotency_key=k&amount=all"), 400, "invalid_request", "amount"},
		{"a form with a sign", form(refunds, "idempotency_key=k&amount=%2B4900"), 400, "invalid_request", "amount"},
		{"a form with a space", form(refunds, "idempotency_key=k&amount=+4900"), 400, "invalid_request", "amount"},
		{"a form with a hexadecimal amount", form(refunds, "idempotency_key=k&amount=0x10"), 400, "invalid_request", "amount"},
		{"a form with a fraction", form(refunds, "idempotency_key=k&amount=9800/2"), 400, "invalid_request", "amount"},

		// Forms.
		{"a field given twice", form("/orders", "idempotency_key=k&course=a&course=b"), 400, "invalid_request", "course"},
		{"a field given twice, the same", form("/orders", "idempotency_key=k&course=a&course=a"), 400, "invalid_request", "course"},
		{"a form without its field", form("/orders", "idempotency_key=k"), 400, "invalid_request", "course"},
		{"a form with an empty field", form("/orders", "idempotency_key=k&course="), 400, "invalid_request", "course"},
		{"a form that is not UTF-8", form("/orders", "idempotency_key=k&course=%FF"), 400, "invalid_request", "course"},
		{"a form with a zero byte", form("/orders", "idempotency_key=k&course=a%00b"), 400, "invalid_request", "course"},
		{"a form that is not encoded", form("/orders", "idempotency_key=k&course=%zz"), 400, "invalid_request", "body"},

		// Around the body.
		{"a query string", post("/orders?coupon=free", `{"course":"a"}`), 400, "invalid_request", "coupon"},
		{"a query string with the field", post("/orders?course=a", `{}`), 400, "invalid_request", "course"},
		{"a query string on a payment", post(payments+"?x", withVisa), 400, "invalid_request", "x"},
		{"a bare question mark", post(payments+"?", withVisa), 400, "invalid_request", "query"},
		{"a query string on a new session", post("/session?x=1", ""), 400, "invalid_request", "x"},
		{"a body over the limit", post("/orders", `{"course":"`+strings.Repeat("x", 16<<10)+`"}`), 413, "too_large", "body"},
		{"a form over the limit", form("/orders", "idempotency_key=k&course=a&x="+strings.Repeat("x", 16<<10)), 413, "too_large", "body"},
		{"no media type", post("/orders", `{"course":"a"}`, header("Content-Type")), 415, "media_type", "Content-Type"},
		{"plain text", post("/orders", `{"course":"a"}`, header("Content-Type", "text/plain")), 415, "media_type", "Content-Type"},
		{"multipart", post("/orders", "--b\r\nContent-Disposition: form-data; name=\"course\"\r\n\r\na\r\n--b--\r\n", header("Content-Type", "multipart/form-data; boundary=b")), 415, "media_type", "Content-Type"},
		{"another charset", post("/orders", `{"course":"a"}`, header("Content-Type", "application/json; charset=utf-16")), 415, "media_type", "Content-Type"},
		{"a media type that cannot be read", post("/orders", `{"course":"a"}`, header("Content-Type", "application/json; charset")), 415, "media_type", "Content-Type"},
		{"two media types", post("/orders", `{"course":"a"}`, header("Content-Type", "application/json", "application/x-www-form-urlencoded")), 415, "media_type", "Content-Type"},
		{"a compressed body", post("/orders", `{"course":"a"}`, header("Content-Encoding", "gzip")), 415, "media_type", "Content-Encoding"},

		// Addresses.
		{"an order's id that is none", post("/orders/a%00b/payments", withVisa), 404, "not_found", ""},
		{"an order's id that climbs", post("/orders/..%2f..%2fetc/payments", withVisa), 404, "not_found", ""},
		{"a payment's id of 65 bytes", post("/payments/"+strings.Repeat("x", 65)+"/refunds", `{"amount":1}`), 404, "not_found", ""},
		{"a payment's id that is not UTF-8", post("/payments/%ff/refunds", `{"amount":1}`), 404, "not_found", ""},
	}
}

// TestBadInput: what is refused before the Service is called. So nothing is
// claimed, nothing is stored and nothing is sent to Stripe, and the same key
// may be sent again.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for _, row := range badInputs() {
		t.Run(row.given, func(t *testing.T) {
			t.Parallel()
			s := open(t)

			// As a program, whatever the request was.
			row.when.Header.Set("Accept", "application/json")
			got := s.send(row.when)
			p := got.problem()
			require.Equal(t, row.expect, got.status)
			require.Equal(t, row.code, p.Code)
			require.Equal(t, row.field, p.Field)
			require.NotEmpty(t, p.Detail)
			require.True(t, p.SafeNewKey, "nothing was stored")
			require.Empty(t, got.header.Get("Retry-After"))
			require.Empty(t, s.fake.writes, "the Service was called")
		})
	}
}

// TestBadInputIsAPage: the same refusals, for a browser, are readable pages
// with the same status.
func TestBadInputIsAPage(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		when   *http.Request
		expect int
	}{
		"no key":                {form(payments, "payment_method=pm_card_visa"), 400},
		"a field given twice":   {form(payments, "payment_method=a&payment_method=b&idempotency_key=k"), 400},
		"no field":              {form(payments, "idempotency_key=k"), 400},
		"a body over a limit":   {form(payments, strings.Repeat("x", 17<<10)), 413},
		"multipart":             {form(payments, "", header("Content-Type", "multipart/form-data; boundary=b")), 415},
		"a query string":        {form(payments+"?a=b", "payment_method=a&idempotency_key=k"), 400},
		"an id that is no id":   {form("/orders/a%00b/payments", "payment_method=a&idempotency_key=k"), 404},
		"an unknown address":    {get("/nothing", fromBrowser), 404},
		"a method it lacks":     {request(http.MethodDelete, "/orders", "", []with{fromBrowser}), 405},
		"an order's id twisted": {get("/orders/%ff", fromBrowser), 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			got := s.send(row.when)
			require.Equal(t, row.expect, got.status)
			require.Contains(t, got.page(), "The same, for a machine")
			require.Equal(t, "no-store", got.header.Get("Cache-Control"))
			require.Empty(t, s.fake.writes)
		})
	}
}

// TestRefusedByTheService: what only the Service can know, with the field named.
func TestRefusedByTheService(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		given  string
		when   *http.Request
		err    error
		expect int
		code   string
		field  string
	}{
		{"an unknown course", post("/orders", `{"course":"nope"}`), &checkout.InvalidError{Field: "course", Reason: "There is none."}, 400, "invalid_request", "course"},
		{"a method off the list", post(payments, `{"payment_method":"pm_card_amex"}`), &checkout.InvalidError{Field: "payment_method", Reason: "It is not offered."}, 400, "invalid_request", "payment_method"},
		{"another account's order", post(payments, withVisa), checkout.ErrNotFound, 404, "not_found", ""},
		{"another account's payment", post(refunds, `{"amount":4900}`), checkout.ErrNotFound, 404, "not_found", ""},
	} {
		t.Run(row.given, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.fake.fails(row.err)
			got := s.send(row.when)
			p := got.problem()
			require.Equal(t, row.expect, got.status)
			require.Equal(t, row.code, p.Code)
			require.Equal(t, row.field, p.Field)
			require.Empty(t, p.Order, "an order that is not this account's")
		})
	}
}

// TestFormAndJSONAreOneRequest: both become the same call, so their
// fingerprints cannot differ.
func TestFormAndJSONAreOneRequest(t *testing.T) {
	t.Parallel()
	s := open(t)
	sent := func(r *http.Request) any {
		t.Helper()
		s.fake.writes = nil
		s.send(r)
		require.Len(t, s.fake.writes, 1)
		return s.fake.writes[0]
	}
	quoted := key(`"` + someKey + `"`)

	order := checkout.OrderRequest{Account: sent(post("/orders", `{"course":"a"}`)).(checkout.OrderRequest).Account, Key: someKey, Course: "a"}
	require.NotEmpty(t, order.Account)
	payment := checkout.PaymentRequest{Account: order.Account, Key: someKey, Order: someOrder, PaymentMethod: "pm_card_visa"}
	token := checkout.PaymentRequest{Account: order.Account, Key: someKey, Order: someOrder, ConfirmationToken: "ctoken_1"}
	refund := checkout.RefundRequest{Account: order.Account, Key: someKey, Payment: somePay, Amount: 4900}

	for name, row := range map[string]struct {
		when   *http.Request
		expect any
	}{
		"order, JSON":                     {post("/orders", ` { "course" : "a" } `+"\n"), order},
		"order, JSON escaped":             {post("/orders", `{"course":"\u0061"}`), order},
		"order, charset named":            {post("/orders", `{"course":"a"}`, header("Content-Type", "application/json; charset=UTF-8")), order},
		"order, bare key":                 {post("/orders", `{"course":"a"}`, key(someKey)), order},
		"order, key repeated":             {post("/orders", `{"course":"a"}`, key(someKey, `"`+someKey+`"`)), order},
		"order, form":                     {form("/orders", "course=a&idempotency_key="+someKey), order},
		"order, form with unknown fields": {form("/orders", "x=1&x=2&course=a&amount=1&idempotency_key="+someKey), order},
		"order, form reordered":           {form("/orders", "idempotency_key="+someKey+"&course=%61"), order},
		"order, form and header":          {form("/orders", "course=a&idempotency_key="+someKey, quoted), order},
		"order, form, key in the header":  {form("/orders", "course=a", quoted), order},
		"order, form, key repeated":       {form("/orders", "course=a&idempotency_key="+someKey+"&idempotency_key="+someKey), order},
		"payment, JSON":                   {post(payments, withVisa), payment},
		"payment, form":                   {form(payments, "payment_method=pm_card_visa&idempotency_key="+someKey), payment},
		"payment, token":                  {post(payments, `{"confirmation_token":"ctoken_1"}`), token},
		"refund, 4900":                    {post(refunds, `{"amount":4900}`), refund},
		"refund, 4900.0":                  {post(refunds, `{"amount":4900.0}`), refund},
		"refund, 4.9e3":                   {post(refunds, `{"amount":4.9e3}`), refund},
		"refund, 49E+2":                   {post(refunds, `{"amount":49E+2}`), refund},
		"refund, 49000e-1":                {post(refunds, `{"amount":49000e-1}`), refund},
		"refund, form":                    {form(refunds, "amount=4900&idempotency_key="+someKey), refund},
		"refund, form 4900.0":             {form(refunds, "amount=4900.0&idempotency_key="+someKey), refund},
	} {
		require.Equal(t, row.expect, sent(row.when), name)
	}
}

// TestKeysAreKeptAsTheyAre: 1 to 255 bytes of printable ASCII, case kept.
func TestKeysAreKeptAsTheyAre(t *testing.T) {
	t.Parallel()
	s := open(t)
	for i, text := range []string{"a", "A", "../..", "'; DROP TABLE", "a b", "%41", strings.Repeat("k", 255)} {
		s.fake.writes = nil
		s.send(post("/orders", `{"course":"a"}`, key(text)))
		s.send(form("/orders", "course=a&idempotency_key="+url.QueryEscape(text)))
		require.Len(t, s.fake.writes, 2, strconv.Itoa(i))
		for _, w := range s.fake.writes {
			require.Equal(t, idempotency.Key(text), w.(checkout.OrderRequest).Key)
		}
	}
}
