package stripesim_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

func TestFormsAreReadInEveryEncodingThatClientsSend(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"stripe-go: bare brackets and indexes": "amount=4900&currency=usd&metadata[a+b]=%C3%BC%26%3D&metadata[order]=o1&payment_method_types[0]=card&payment_method_options[card][request_three_d_secure]=any",
		"curl: encoded brackets":               "amount=4900&currency=usd&metadata%5Ba%20b%5D=%C3%BC%26%3D&metadata%5Border%5D=o1&payment_method_types%5B0%5D=card&payment_method_options%5Bcard%5D%5Brequest_three_d_secure%5D=any",
		"others: lists without indexes":        "amount=4900&currency=usd&metadata[a b]=ü%26=&metadata[order]=o1&payment_method_types[]=card&payment_method_options[card][request_three_d_secure]=any",
		"upper-case currency":                  "amount=4900&currency=USD&metadata[a+b]=ü%26%3D&metadata[order]=o1&payment_method_types[]=card&payment_method_options[card][request_three_d_secure]=any",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, stripesim.Config{})
			r := c.send(context.Background(), http.MethodPost, "/v1/payment_intents", "", body)
			require.Equal(t, 200, r.status, "%s", r.raw)
			require.Equal(t, map[string]any{"a b": "ü&=", "order": "o1"}, r.at("metadata"))
			require.Equal(t, []any{"card"}, r.at("payment_method_types"))
			require.Equal(t, "any", r.at("payment_method_options", "card", "request_three_d_secure"))
			require.Equal(t, "usd", r.at("currency"))
		})
	}
}

func TestTheSameParametersInAnotherEncodingAreTheSameRequest(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	send := func(body string) reply {
		return c.send(context.Background(), http.MethodPost, "/v1/payment_intents", "key", body)
	}
	first := send("amount=4900&currency=usd&payment_method_types[0]=card&metadata[a]=1&metadata[b]=2")
	require.Equal(t, 200, first.status)
	for _, body := range []string{
		"metadata[b]=2&metadata[a]=1&payment_method_types[]=card&currency=usd&amount=4900",
		"amount=4900&currency=usd&payment_method_types%5B0%5D=card&metadata%5Ba%5D=1&metadata%5Bb%5D=2",
	} {
		r := send(body)
		require.True(t, r.replayed(), "%s", body)
		require.Equal(t, first.raw, r.raw)
	}
	for _, body := range []string{
		"amount=4901&currency=usd&payment_method_types[0]=card&metadata[a]=1&metadata[b]=2",
		"amount=4900&currency=usd&payment_method_types[0]=card&metadata[a]=1",
		"amount=4900&currency=usd&payment_method_types[0]=card&metadata[a]=12&metadata[b]=",
		"amount=4900&currency=usd&payment_method_types[0]=card&metadata[a]=11%3Ab%3D2", // what a careless joining of the two makes
	} {
		require.Equal(t, "idempotency_error", send(body).at("error", "type"), "%s", body)
	}
}

func TestWhatIsNotAFormIsRefused(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	for _, body := range []string{
		"amount[=1", "[a]=1", "metadata[a[b]]=1", "metadata[a]b=1", "amount=%zz", "%zz=1", "a]b=1",
		"metadata=1&metadata[a]=1", "metadata[a]=1&metadata=1", "a[b][c][d][e][f][g][h][i]=1",
	} {
		r := c.send(context.Background(), http.MethodPost, "/v1/payment_intents", "", body)
		require.Equal(t, 400, r.status, body)
		require.Equal(t, "invalid_request_error", r.at("error", "type"), body)
	}
	request, err := http.NewRequest(http.MethodPost, c.url+"/v1/payment_intents", strings.NewReader(`{"amount":4900,"currency":"usd"}`))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer sk_test_local")
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 400, answer.StatusCode)
	require.Equal(t, 400, c.send(context.Background(), http.MethodPost, "/v1/payment_intents", "", "description="+strings.Repeat("a", 1<<20)).status)
}

func TestParametersAreValidatedLikeStripes(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	long := strings.Repeat("a", 501)
	for _, row := range []struct{ name, path, body, param, code string }{
		{"unknown", "/v1/payment_intents", "amount=4900&currency=usd&amont=1", "amont", "parameter_unknown"},
		{"unknown inside", "/v1/payment_intents", "amount=4900&currency=usd&payment_method_options[card][cvv]=1", "payment_method_options[card][cvv]", "parameter_unknown"},
		{"missing", "/v1/payment_intents", "currency=usd", "amount", "parameter_missing"},
		{"missing inside", "/v1/payment_intents", "amount=4900&currency=usd&automatic_payment_methods[allow_redirects]=never", "automatic_payment_methods[enabled]", "parameter_missing"},
		{"empty", "/v1/payment_intents", "amount=4900&currency=usd&payment_method=", "payment_method", "parameter_invalid_empty"},
		{"text for an integer", "/v1/payment_intents", "amount=abc&currency=usd", "amount", "parameter_invalid_integer"},
		{"float", "/v1/payment_intents", "amount=49.5&currency=usd", "amount", "parameter_invalid_integer"},
		{"exponent", "/v1/payment_intents", "amount=4.9e3&currency=usd", "amount", "parameter_invalid_integer"},
		{"plus", "/v1/payment_intents", "amount=%2B4900&currency=usd", "amount", "parameter_invalid_integer"},
		{"zero", "/v1/payment_intents", "amount=0&currency=usd", "amount", "parameter_invalid_integer"},
		{"negative", "/v1/payment_intents", "amount=-5&currency=usd", "amount", "parameter_invalid_integer"},
		{"beyond int64", "/v1/payment_intents", "amount=99999999999999999999&currency=usd", "amount", "parameter_invalid_integer"},
		{"boolean", "/v1/payment_intents", "amount=4900&currency=usd&confirm=yes", "confirm", ""},
		{"choice", "/v1/payment_intents", "amount=4900&currency=usd&capture_method=later", "capture_method", ""},
		{"another method type", "/v1/payment_intents", "amount=4900&currency=usd&payment_method_types[]=ideal", "payment_method_types[0]", ""},
		{"list as text", "/v1/payment_intents", "amount=4900&currency=usd&payment_method_types=card", "payment_method_types", ""},
		{"list with names", "/v1/payment_intents", "amount=4900&currency=usd&payment_method_types[a]=card", "payment_method_types", ""},
		{"object as text", "/v1/payment_intents", "amount=4900&currency=usd&automatic_payment_methods=true", "automatic_payment_methods", ""},
		{"text as object", "/v1/payment_intents", "amount[a]=4900&currency=usd", "amount", ""},
		{"not UTF-8", "/v1/payment_intents", "amount=4900&currency=usd&description=%ff", "description", ""},
		{"NUL", "/v1/payment_intents", "amount=4900&currency=usd&description=a%00b", "description", ""},
		{"metadata value", "/v1/payment_intents", "amount=4900&currency=usd&metadata[a]=" + long, "metadata[a]", ""},
		{"metadata name", "/v1/payment_intents", "amount=4900&currency=usd&metadata[" + long[:41] + "]=1", "metadata[" + long[:41] + "]", ""},
		{"descriptor", "/v1/payment_intents", "amount=4900&currency=usd&statement_descriptor_suffix=" + long[:23], "statement_descriptor_suffix", ""},
		{"URL", "/v1/payment_intents", "amount=4900&currency=usd&confirm=true&payment_method=pm_card_visa&return_url=here", "return_url", "url_invalid"},
		{"only with confirm", "/v1/payment_intents", "amount=4900&currency=usd&return_url=https://shop.test/", "return_url", ""},
		{"two ways to choose methods", "/v1/payment_intents", "amount=4900&currency=usd&payment_method_types[]=card&automatic_payment_methods[enabled]=true", "", ""},
		{"what is not imitated", "/v1/payment_intents", "amount=4900&currency=usd&customer=cus_1", "customer", ""},
		{"unknown method", "/v1/payment_intents", "amount=4900&currency=usd&payment_method=pm_card_none", "payment_method", "resource_missing"},
		{"unknown method at confirm", "/v1/payment_intents/" + id + "/confirm", "payment_method=pm_sim_none", "payment_method", "resource_missing"},
		{"two ways to pay", "/v1/payment_intents/" + id + "/confirm", "payment_method=pm_card_visa&confirmation_token=ctoken_1", "", ""},
		{"unknown token", "/v1/payment_intents/" + id + "/confirm", "confirmation_token=ctoken_1", "confirmation_token", "resource_missing"},
		{"cancellation reason", "/v1/payment_intents/" + id + "/cancel", "cancellation_reason=automatic", "cancellation_reason", ""},
		{"refund of nothing", "/v1/refunds", "amount=100", "", "parameter_missing"},
		{"refund reason", "/v1/refunds", "payment_intent=" + id + "&reason=because", "reason", ""},
		{"refund of an unknown charge", "/v1/refunds", "charge=ch_1", "charge", "resource_missing"},
		{"expand", "/v1/payment_intents", "amount=4900&currency=usd&expand[]=nothing", "expand", ""},
	} {
		r := c.send(context.Background(), http.MethodPost, row.path, "", row.body)
		require.Equal(t, 400, r.status, "%s: %s", row.name, r.raw)
		require.Equal(t, "invalid_request_error", r.text("error", "type"), row.name)
		require.Equal(t, row.param, r.text("error", "param"), row.name)
		require.Equal(t, row.code, r.text("error", "code"), row.name)
		if row.code != "" {
			require.Equal(t, "https://stripe.com/docs/error-codes/"+strings.ReplaceAll(row.code, "_", "-"), r.text("error", "doc_url"))
		}
	}
	require.Len(t, c.get("/v1/payment_intents").at("data"), 1, "what is refused creates nothing")
}

func TestAmountsFollowTheRulesOfTheirCurrency(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	for _, row := range []struct{ amount, currency, code string }{
		{"50", "usd", ""},
		{"49", "usd", "amount_too_small"},
		{"99999999", "usd", ""},
		{"100000000", "usd", "amount_too_large"},
		{"50", "jpy", ""},
		{"49", "jpy", "amount_too_small"},
		{"30", "gbp", ""},
		{"29", "gbp", "amount_too_small"},
		{"1000", "krw", ""},
		{"1230", "kwd", ""},
		{"1234", "kwd", "-"},
		{"1200", "isk", ""},
		{"1234", "isk", "-"},
		{"1", "bif", ""},
		{"4900", "zzz", "-"},
	} {
		r := c.post("/v1/payment_intents", "", "amount", row.amount, "currency", row.currency)
		if row.code == "" {
			require.Equal(t, 200, r.status, "%s %s", row.amount, row.currency)
			continue
		}
		require.Equal(t, 400, r.status, "%s %s", row.amount, row.currency)
		require.Equal(t, strings.TrimSuffix(row.code, "-"), r.text("error", "code"), "%s %s", row.amount, row.currency)
	}
	require.Equal(t, "Amount must be at least $0.50 usd",
		c.post("/v1/payment_intents", "", "amount", "49", "currency", "usd").text("error", "message"))
	require.Equal(t, "Amount must be at least ¥50 jpy",
		c.post("/v1/payment_intents", "", "amount", "49", "currency", "jpy").text("error", "message"))
}

func TestAnswersCarryStripesHeaders(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	first := c.post("/v1/payment_intents", "key", "amount", "4900", "currency", "usd")
	require.Equal(t, "application/json", first.header.Get("Content-Type"))
	require.Equal(t, stripesim.APIVersion, first.header.Get("Stripe-Version"))
	require.Equal(t, "key", first.header.Get("Idempotency-Key"))
	require.Equal(t, "false", first.header.Get("Stripe-Should-Retry"))
	require.Regexp(t, `^req_\w{14}$`, first.header.Get("Request-Id"))
	require.Equal(t, first.header.Get("Request-Id"), first.header.Get("Original-Request"))
	require.Empty(t, first.header.Get("Idempotent-Replayed"))

	again := c.post("/v1/payment_intents", "key", "amount", "4900", "currency", "usd")
	require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	require.Equal(t, first.header.Get("Request-Id"), again.header.Get("Original-Request"))
	require.NotEqual(t, first.header.Get("Request-Id"), again.header.Get("Request-Id"))

	read := c.get("/v1/payment_intents/" + first.text("id"))
	require.NotEmpty(t, read.header.Get("Request-Id"))
	for _, name := range []string{"Idempotency-Key", "Original-Request", "Idempotent-Replayed", "Stripe-Should-Retry"} {
		require.Empty(t, read.header.Get(name), name)
	}
}

func TestOneVersionIsSpoken(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	c.version = stripesim.APIVersion
	require.Equal(t, 200, c.get("/v1/charges").status)
	c.version = "2026-08-26.dahlia"
	r := c.get("/v1/charges")
	require.Equal(t, 400, r.status)
	require.Contains(t, r.text("error", "message"), "dahlia")
}

func TestUnknownAddressesAreStripes404(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	for _, path := range []string{"/v1/customers", "/v1/payment_intents/", "/v1/payment_intents/pi_1/frobnicate"} {
		r := c.post(path, "")
		require.Equal(t, 404, r.status, path)
		require.Contains(t, r.text("error", "message"), "Unrecognized request URL (POST: "+path+")")
	}
	for path, param := range map[string]string{
		"/v1/payment_intents/pi_1": "intent", "/v1/charges/ch_1": "id", "/v1/refunds/re_1": "id", "/v1/events/evt_1": "id",
		"/v1/payment_methods/pm_1": "payment_method", "/v1/confirmation_tokens/ctoken_1": "confirmation_token",
		"/v1/disputes/du_1": "dispute", "/v1/webhook_endpoints/we_1": "webhook_endpoint",
	} {
		r := c.get(path)
		require.Equal(t, 404, r.status, path)
		require.Equal(t, "resource_missing", r.text("error", "code"), path)
		require.Equal(t, param, r.text("error", "param"), path)
	}
}

func TestMetadataAndTextsAreKeptAndEchoed(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create("description", "Course #1", "statement_descriptor_suffix", "COURSE", "receipt_email", "buyer@shop.test",
		"transfer_group", "group", "metadata[keep]", "1", "metadata[drop]", "2")
	updated := c.post("/v1/payment_intents/"+id, "", "metadata[drop]", "", "metadata[new]", "3", "description", "")
	require.Equal(t, map[string]any{"order": "ord_1", "keep": "1", "new": "3"}, updated.at("metadata"))
	require.Nil(t, updated.at("description"))
	require.Equal(t, 200, c.confirm(id, "", "pm_card_visa").status)
	ch := c.get("/v1/charges", "payment_intent", id).at("data").([]any)[0].(map[string]any)
	require.Equal(t, map[string]any{"order": "ord_1", "keep": "1", "new": "3"}, ch["metadata"])
	require.Equal(t, "COURSE", ch["statement_descriptor_suffix"])
	require.Equal(t, "buyer@shop.test", ch["receipt_email"])
	require.Equal(t, "group", ch["transfer_group"])
	require.Empty(t, c.post("/v1/payment_intents/"+id, "", "metadata", "").at("metadata"))
}
