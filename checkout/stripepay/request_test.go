package stripepay_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
)

// TestEachCallSendsItsFrozenParameters spells out what is sent. Whoever changes
// a line here changes what a key that is in progress during the deployment was
// first used with, and Stripe answers idempotency_error.
func TestEachCallSendsItsFrozenParameters(t *testing.T) {
	t.Parallel()
	tests := map[string]seen{
		"CreateIntent": {"POST", "/v1/payment_intents", "pi:ord_1:1", url.Values{
			"amount": {"4900"}, "currency": {"usd"}, "description": {"Idempotency, end to end"}, "payment_method_types[0]": {"card"},
			"metadata[account]": {"acc_1"}, "metadata[order]": {"ord_1"},
		}},
		"ConfirmIntent": {"POST", "/v1/payment_intents/pi_1/confirm", "pay:pay_1:1", url.Values{
			"payment_method": {"pm_card_visa"}, "return_url": {"https://shop.test/orders/ord_1/return"},
		}},
		"ConfirmIntent, token": {"POST", "/v1/payment_intents/pi_1/confirm", "pay:pay_1:1", url.Values{
			"confirmation_token": {"ctoken_1"}, "return_url": {"https://shop.test/orders/ord_1/return"}, "use_stripe_sdk": {"false"},
		}},
		"Intent":       {"GET", "/v1/payment_intents/pi_1", "", url.Values{"expand[0]": {"latest_charge"}}},
		"CancelIntent": {"POST", "/v1/payment_intents/pi_1/cancel", "cancel:ord_1:1:owner", url.Values{}},
		"CreateRefund": {"POST", "/v1/refunds", "refund:ref_1", url.Values{
			"amount": {"900"}, "payment_intent": {"pi_1"},
			"metadata[refund]": {"ref_1"}, "metadata[payment]": {"pay_1"}, "metadata[order]": {"ord_1"},
		}},
		"Refunds": {"GET", "/v1/refunds", "", url.Values{"charge": {"ch_1"}, "limit": {"100"}}},
		"Dispute": {"GET", "/v1/disputes/du_1", "", url.Values{}},
	}
	require.Len(t, tests, len(calls))
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, says(500, failure("api_error", "", pi("processing", ""))))
			require.Error(t, calls[name](t.Context(), provider(t, s.URL)))
			require.Equal(t, []seen{want}, s.seen())
		})
	}
}

// TestMalformedArgumentsAreNotSent: an id goes into a path, where an empty one
// asks for another resource; a key that the SDK would make up, send empty or
// trim protects nothing.
func TestMalformedArgumentsAreNotSent(t *testing.T) {
	t.Parallel()
	s := serve(t, says(200, pi("succeeded", "")))
	p := provider(t, s.URL)
	refused := func(t *testing.T, param string, err error) {
		t.Helper()
		verdict := faulted(t, err)
		require.ErrorIs(t, err, stripepay.ErrMalformed)
		require.Equal(t, checkout.FaultRefused, verdict.Fault)
		require.Equal(t, param, verdict.Param)
		require.Empty(t, s.seen())
	}
	for _, id := range []string{"", "pi_", "pi_1/../../refunds", "pi_1?x=1", "pi_1%2fcancel", "pi_1\n", "ch_1", "pi_é", "pi_" + strings.Repeat("a", 251)} {
		_, err := p.ConfirmIntent(t.Context(), checkout.ConfirmParams{DownstreamKey: "k", Intent: id, PaymentMethod: "pm_card_visa"})
		refused(t, "intent", err)
		_, err = p.Intent(t.Context(), id)
		refused(t, "intent", err)
		_, err = p.CancelIntent(t.Context(), id, "k")
		refused(t, "intent", err)
		_, err = p.CreateRefund(t.Context(), checkout.RefundParams{DownstreamKey: "k", Intent: id, Amount: 1})
		refused(t, "payment_intent", err)
		_, err = p.Refunds(t.Context(), strings.Replace(strings.Replace(id, "ch_", "re_", 1), "pi_", "ch_", 1))
		refused(t, "charge", err)
	}
	for _, key := range []string{"", " ", "two words", "k ", "k\x00", "ké", strings.Repeat("k", 256)} {
		_, err := p.CreateIntent(t.Context(), checkout.IntentParams{DownstreamKey: key, Money: checkout.Money{Amount: 4900, Currency: "usd"}})
		refused(t, "idempotency_key", err)
		_, err = p.ConfirmIntent(t.Context(), checkout.ConfirmParams{DownstreamKey: key, Intent: "pi_1", PaymentMethod: "pm_card_visa"})
		refused(t, "idempotency_key", err)
		_, err = p.CancelIntent(t.Context(), "pi_1", key)
		refused(t, "idempotency_key", err)
		_, err = p.CreateRefund(t.Context(), checkout.RefundParams{DownstreamKey: key, Intent: "pi_1", Amount: 1})
		refused(t, "idempotency_key", err)
	}
	_, err := p.ConfirmIntent(t.Context(), checkout.ConfirmParams{DownstreamKey: "k", Intent: "pi_1"})
	refused(t, "payment_method", err)
	_, err = p.ConfirmIntent(t.Context(), checkout.ConfirmParams{DownstreamKey: "k", Intent: "pi_1", PaymentMethod: "pm_card_visa", ConfirmationToken: "ctoken_1"})
	refused(t, "payment_method", err)
}
