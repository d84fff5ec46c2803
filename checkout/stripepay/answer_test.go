package stripepay_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
)

// TestIntentIsReadAsStripeMeansIt holds what is made of an answer, hostile ones
// included: everything here ends in the database, a log or a page.
func TestIntentIsReadAsStripeMeansIt(t *testing.T) {
	t.Parallel()
	said := func(status checkout.IntentStatus) checkout.Intent {
		return checkout.Intent{ID: "pi_1", Status: status, Money: checkout.Money{Amount: 4900, Currency: "usd"}, Account: "acc_1", Order: "ord_1"}
	}
	with := func(i checkout.Intent, change func(*checkout.Intent)) checkout.Intent {
		change(&i)
		return i
	}
	charged := with(said("succeeded"), func(i *checkout.Intent) { i.Charge = "ch_1" })
	next := func(url string) string {
		return fmt.Sprintf(`"next_action":{"type":"redirect_to_url","redirect_to_url":{"url":%q,"return_url":"https://shop.test"}}`, url)
	}
	tests := []struct {
		name, body string
		want       checkout.Intent
	}{
		{"succeeded names its charge", pi("succeeded", `"latest_charge":"ch_1"`), charged},
		{"succeeded, charge expanded", pi("succeeded", `"latest_charge":{"id":"ch_1","object":"charge","paid":true,"status":"succeeded"}`), charged},
		{"succeeded with a charge that was not paid names none", pi("succeeded", `"latest_charge":{"id":"ch_1","object":"charge","paid":false,"status":"failed"}`), said("succeeded")},
		{"a failed charge is no charge", pi("requires_payment_method", `"latest_charge":"ch_1"`), said("requires_payment_method")},
		{"a failed charge, expanded", pi("requires_payment_method", `"latest_charge":{"id":"ch_1","object":"charge","paid":false,"status":"failed"}`), said("requires_payment_method")},
		{"processing has no charge yet", pi("processing", `"latest_charge":"ch_1"`), said("processing")},
		{"canceled", pi("canceled", `"latest_charge":null`), said("canceled")},
		{"a status that Stripe invents tomorrow", pi("brand_new", ""), said("brand_new")},
		{"live", strings.Replace(pi("succeeded", `"latest_charge":"ch_1"`), `"livemode":false`, `"livemode":true`, 1), with(charged, func(i *checkout.Intent) { i.Live = true })},
		{"the bank's page", pi("requires_action", next("https://hooks.stripe.com/3d_secure_2/hosted?a=1&b=2")), with(said("requires_action"), func(i *checkout.Intent) { i.NextActionURL = "https://hooks.stripe.com/3d_secure_2/hosted?a=1&b=2" })},
		{"a challenge for Stripe.js has no page", pi("requires_action", `"next_action":{"type":"use_stripe_sdk","use_stripe_sdk":{"type":"three_d_secure_redirect"}}`), said("requires_action")},
		{"a script is no page", pi("requires_action", next("javascript:alert(1)//host")), said("requires_action")},
		{"a page without a host is none", pi("requires_action", next("https:///x")), said("requires_action")},
		{"a charge id that is none", pi("succeeded", `"latest_charge":"ch_<b>"`), said("succeeded")},
		{"metadata that no database takes", strings.Replace(strings.Replace(pi("canceled", ""), `"acc_1"`, `"acc\u0000"`, 1), `"ord_1"`, `"`+strings.Repeat("o", 501)+`"`, 1), with(said("canceled"), func(i *checkout.Intent) { i.Account, i.Order = "", "" })},
		{"an intent of someone else's", strings.Replace(pi("canceled", ""), `{"account":"acc_1","order":"ord_1"}`, "null", 1), with(said("canceled"), func(i *checkout.Intent) { i.Account, i.Order = "", "" })},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := provider(t, serve(t, says(200, test.body)).URL)
			got, err := p.Intent(t.Context(), "pi_1")
			require.NoError(t, err)
			require.Equal(t, test.want, got)

			test.want.Replayed = true
			replay := provider(t, serve(t, replays(says(200, test.body))).URL)
			got, err = confirm(t.Context(), replay)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// TestHostileTextOfAnErrorIsDropped: a code is stored, and shown in a page.
func TestHostileTextOfAnErrorIsDropped(t *testing.T) {
	t.Parallel()
	s := serve(t, says(402, `{"error":{"code":"a\u0000b","decline_code":"`+strings.Repeat("x", 501)+`","param":"\u202e","type":"card_error","payment_intent":"pi_1/.."}}`))
	_, err := confirm(t.Context(), provider(t, s.URL))
	require.Equal(t, &checkout.ProviderError{Fault: checkout.FaultDeclined, HTTPStatus: 402, RequestID: "req_1"}, faulted(t, err))
}

func re(n int, charge string) string {
	return fmt.Sprintf(`{"id":"re_%d","object":"refund","amount":900,"currency":"usd","charge":%q,"metadata":{"refund":"ref_%d"},"status":"succeeded"}`, n, charge, n)
}

func page(more bool, refunds ...string) string {
	return fmt.Sprintf(`{"object":"list","url":"/v1/refunds","has_more":%t,"data":[%s]}`, more, strings.Join(refunds, ","))
}

func TestRefundIsRead(t *testing.T) {
	t.Parallel()
	want := checkout.ProviderRefund{ID: "re_1", Status: "succeeded", Money: checkout.Money{Amount: 900, Currency: "usd"}, Charge: "ch_1", Refund: "ref_1", Replayed: true}
	p := provider(t, serve(t, replays(says(200, re(1, "ch_1")))).URL)
	got, err := p.CreateRefund(t.Context(), checkout.RefundParams{DownstreamKey: "refund:ref_1", Intent: "pi_1", Amount: 900, Refund: "ref_1", Payment: "pay_1", Order: "ord_1"})
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestRefundsAreReadWholeOrNotAtAll: a refund that is not in the list may be
// made again, so a list must never be short.
func TestRefundsAreReadWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	pages := func(first, second http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Query().Get("starting_after") {
			case "":
				first(w, r)
			case "re_2":
				second(w, r)
			default:
				panic("another page")
			}
		}
	}
	ids := func(list []checkout.ProviderRefund) (ids []string) {
		for _, refund := range list {
			ids = append(ids, refund.ID)
		}
		return ids
	}
	t.Run("every page, newest first", func(t *testing.T) {
		t.Parallel()
		s := serve(t, pages(says(200, page(true, re(3, "ch_1"), re(2, "ch_1"))), says(200, page(false, re(1, "ch_1")))))
		list, err := provider(t, s.URL).Refunds(t.Context(), "ch_1")
		require.NoError(t, err)
		require.Equal(t, []string{"re_3", "re_2", "re_1"}, ids(list))
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		list, err := provider(t, serve(t, says(200, page(false))).URL).Refunds(t.Context(), "ch_1")
		require.NoError(t, err)
		require.Empty(t, list)
	})
	first := says(200, page(true, re(3, "ch_1"), re(2, "ch_1")))
	broken := map[string]struct {
		answer http.HandlerFunc
		want   checkout.Fault
	}{
		"a second page that fails":           {pages(first, says(500, failure("api_error", "", pi("succeeded", "")))), checkout.FaultUnknown},
		"a second page that is rate limited": {pages(first, says(429, failure("invalid_request_error", "rate_limit", pi("succeeded", "")))), checkout.FaultBusy},
		"a second page that hangs up":        {pages(first, hangUp), checkout.FaultUnknown},
		"a second page that is empty JSON":   {pages(first, says(200, "{}")), checkout.FaultUnknown},
		"a refund decoded in part":           {pages(says(200, page(true, strings.Replace(re(3, "ch_1"), "900", "9.5", 1), re(2, "ch_1"))), says(200, page(false))), checkout.FaultUnknown},
		"a first page decoded in part":       {pages(says(200, strings.Replace(page(true, re(3, "ch_1"), re(2, "ch_1")), `"/v1/refunds"`, "5", 1)), says(200, page(false))), checkout.FaultUnknown},
		"a first page by a redirect":         {pages(says(302, page(true, re(3, "ch_1"), re(2, "ch_1"))), says(200, page(false))), checkout.FaultUnknown},
		"another charge's refund":            {says(200, page(false, re(1, "ch_2"))), checkout.FaultUnknown},
		"a refund without an id":             {says(200, page(false, strings.Replace(re(1, "ch_1"), "re_1", "", 1))), checkout.FaultUnknown},
		"a page by a redirect":               {says(302, page(false, re(1, "ch_1"))), checkout.FaultUnknown},
		"a list without an end":              {says(200, page(true, re(3, "ch_1"), re(2, "ch_1"))), checkout.FaultUnknown},
	}
	for name, test := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := provider(t, serve(t, test.answer).URL).Refunds(t.Context(), "ch_1")
			require.Nil(t, list)
			require.Equal(t, test.want, faulted(t, err).Fault)
		})
	}
}

func TestSecretKeyGoesToStripeOnly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		key, base string
		want      error
	}{
		{"sk_test_1", "", nil},
		{"rk_test_1", "http://127.0.0.1:12111", nil},
		{"sk_test_local", "http://127.0.0.1:12111/sim/", nil},
		{"sk_live_1", "", nil},
		{"sk_live_1", "https://api.stripe.com", nil},
		{"sk_live_1", "https://API.stripe.com:443/v1/", nil},
		{"", "", stripepay.ErrNoKey},
		{"", "http://127.0.0.1:12111", stripepay.ErrNoKey},
		{"pk_test_1", "", stripepay.ErrMalformedKey},
		{"sk_test_1\n", "", stripepay.ErrMalformedKey},
		{"sk_test 1", "", stripepay.ErrMalformedKey},
		{"whsec_1", "", stripepay.ErrMalformedKey},
		{"sk_test_1", "127.0.0.1:12111", stripepay.ErrMalformedBase},
		{"sk_test_1", "localhost", stripepay.ErrMalformedBase},
		{"sk_test_1", "ftp://127.0.0.1", stripepay.ErrMalformedBase},
		{"sk_test_1", "https://user@127.0.0.1", stripepay.ErrMalformedBase},
		{"sk_test_1", "https://127.0.0.1?x=1", stripepay.ErrMalformedBase},
		{"sk_live_1", "http://127.0.0.1:12111", stripepay.ErrLiveKeyWithBase},
		{"rk_live_1", "http://127.0.0.1:12111", stripepay.ErrLiveKeyWithBase},
		{"sk_org_live_1", "http://127.0.0.1:12111", stripepay.ErrLiveKeyWithBase},
		{"sk_live_1", "http://api.stripe.com", stripepay.ErrLiveKeyWithBase},
		{"sk_live_1", "https://api.stripe.com:8443", stripepay.ErrLiveKeyWithBase},
		{"sk_live_1", "https://api.stripe.com.example", stripepay.ErrLiveKeyWithBase},
		{"sk_live_1", "https://api.stripe.com@example.test", stripepay.ErrMalformedBase},
	}
	for _, test := range tests {
		require.ErrorIs(t, stripepay.CheckKey(test.key, test.base), test.want, "%q at %q", test.key, test.base)
		p, err := stripepay.New(stripepay.Config{SecretKey: test.key, Base: test.base})
		require.ErrorIs(t, err, test.want)
		require.Equal(t, test.want == nil, p != nil)
		if err != nil && test.key != "" {
			require.NotContains(t, err.Error(), test.key)
		}
	}
	for _, test := range []struct {
		publishable, secret string
		want                error
	}{
		{"pk_test_1", "sk_test_1", nil},
		{"pk_test_1", "rk_test_1", nil},
		{"pk_live_1", "sk_live_1", nil},
		{"pk_live_1", "rk_live_1", nil},
		{"pk_test_1", "sk_live_1", stripepay.ErrKeysOfTwoModes},
		{"pk_live_1", "sk_test_1", stripepay.ErrKeysOfTwoModes},
		{"sk_test_1", "sk_test_1", stripepay.ErrSecretKeyPublished},
		{"sk_live_1", "sk_test_1", stripepay.ErrSecretKeyPublished},
		{"rk_live_1", "sk_live_1", stripepay.ErrSecretKeyPublished},
		{"whsec_1", "sk_test_1", stripepay.ErrSecretKeyPublished},
		{"hunter2", "sk_test_1", stripepay.ErrMalformedPublishableKey},
		{"pk_1", "sk_test_1", stripepay.ErrMalformedPublishableKey},
		{"pk_test_1\n", "sk_test_1", stripepay.ErrMalformedPublishableKey},
		{" sk_test_1", "sk_test_1", stripepay.ErrMalformedPublishableKey},
	} {
		err := stripepay.CheckPublishableKey(test.publishable, test.secret)
		require.ErrorIs(t, err, test.want, "%q with %q", test.publishable, test.secret)
		if err != nil {
			require.NotContains(t, err.Error(), test.publishable)
			require.NotContains(t, err.Error(), test.secret)
		}
	}
	require.True(t, stripepay.LiveKey("pk_live_1"))
	require.False(t, stripepay.LiveKey("sk_test_live"))
}
