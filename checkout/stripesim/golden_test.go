package stripesim_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// TestObjectsHaveTheFieldsOfStripes compares with payloads made after Stripe's fixtures: no field more, no field less.
func TestObjectsHaveTheFieldsOfStripes(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{Later: time.Millisecond})

	paid := c.create()
	require.Equal(t, 200, c.confirm(paid, "paid", "pm_card_visa").status)
	declined := c.create()
	refused := c.confirm(declined, "declined", "pm_card_chargeDeclinedInsufficientFunds")
	challenged := c.create()
	waiting := c.confirm(challenged, "challenged", "pm_card_threeDSecure2Required", "return_url", "http://127.0.0.1:8080/pay/return")
	method := c.get("/v1/payment_methods/" + waiting.text("payment_method"))
	refund := c.post("/v1/refunds", "refund", "payment_intent", paid)
	disputed := c.create()
	require.Equal(t, 200, c.confirm(disputed, "disputed", "pm_card_createDispute").status)

	first := func(path string, pairs ...string) any {
		r := c.get(path, pairs...)
		require.Equal(t, 200, r.status)
		require.NotEmpty(t, r.at("data"))
		return r.at("data").([]any)[0]
	}
	require.Eventually(t, func() bool { return len(c.get("/v1/disputes").at("data").([]any)) == 1 }, 20*time.Second, time.Millisecond)

	for name, have := range map[string]any{
		"pi_succeeded":          c.get("/v1/payment_intents/" + paid).body,
		"pi_declined":           c.get("/v1/payment_intents/" + declined).body,
		"pi_requires_action":    waiting.body,
		"charge_succeeded":      first("/v1/charges", "payment_intent", paid),
		"charge_failed":         first("/v1/charges", "payment_intent", declined),
		"payment_method":        method.body,
		"refund":                refund.body,
		"dispute":               first("/v1/disputes"),
		"error_402":             refused.body,
		"event_pi_succeeded":    first("/v1/events", "type", "payment_intent.succeeded"),
		"event_charge_refunded": first("/v1/events", "type", "charge.refunded"),
	} {
		raw, err := os.ReadFile(filepath.Join("testdata", "golden", name+".json"))
		require.NoError(t, err)
		require.Equal(t, shape(decode(t, raw), ""), shape(have, ""), name)
	}
}
