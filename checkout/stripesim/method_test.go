package stripesim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

func TestTestMethodsDoWhatStripesDo(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	for _, row := range []struct{ method, last4, status, code, decline, param string }{
		{"pm_card_visa", "4242", "succeeded", "", "", ""},
		{"pm_card_visa_debit", "5556", "succeeded", "", "", ""},
		{"pm_card_mastercard", "4444", "succeeded", "", "", ""},
		{"pm_card_amex", "0005", "succeeded", "", "", ""},
		{"pm_card_discover", "1117", "succeeded", "", "", ""},
		{"pm_card_chargeDeclined", "0002", "402", "card_declined", "generic_decline", ""},
		{"pm_card_visa_chargeDeclined", "0002", "402", "card_declined", "generic_decline", ""},
		{"pm_card_chargeDeclinedInsufficientFunds", "9995", "402", "card_declined", "insufficient_funds", ""},
		{"pm_card_visa_chargeDeclinedInsufficientFunds", "9995", "402", "card_declined", "insufficient_funds", ""},
		{"pm_card_visa_chargeDeclinedLostCard", "9987", "402", "card_declined", "lost_card", ""},
		{"pm_card_visa_chargeDeclinedStolenCard", "9979", "402", "card_declined", "stolen_card", ""},
		{"pm_card_chargeDeclinedExpiredCard", "0069", "402", "expired_card", "", "exp_month"},
		{"pm_card_chargeDeclinedIncorrectCvc", "0127", "402", "incorrect_cvc", "", "cvc"},
		{"pm_card_chargeDeclinedProcessingError", "0119", "402", "processing_error", "", ""},
		{"pm_card_visa_chargeDeclinedVelocityLimitExceeded", "6975", "402", "card_declined", "card_velocity_exceeded", ""},
		{"pm_card_chargeCustomerFail", "0341", "402", "card_declined", "generic_decline", ""},
		{"pm_card_authenticationRequired", "3184", "requires_action", "", "", ""},
		{"pm_card_authenticationRequiredOnSetup", "3155", "requires_action", "", "", ""},
		{"pm_card_threeDSecure2Required", "3220", "requires_action", "", "", ""},
		{"pm_card_threeDSecureRequiredChargeDeclined", "1629", "requires_action", "", "", ""},
		{"pm_card_threeDSecureOptional", "3055", "succeeded", "", "", ""},
		{"pm_card_createDispute", "0259", "succeeded", "", "", ""},
		{"pm_card_createDisputeProductNotReceived", "2685", "succeeded", "", "", ""},
		{"pm_card_createDisputeInquiry", "1976", "succeeded", "", "", ""},
		{"pm_card_radarBlock", "0019", "402", "card_declined", "fraudulent", ""},
		{"pm_card_riskLevelHighest", "4954", "402", "card_declined", "fraudulent", ""},
		{"pm_card_riskLevelElevated", "9235", "succeeded", "", "", ""},
		{"pm_card_cvcCheckFail", "0101", "succeeded", "", "", ""},
		{"pm_card_avsZipFail", "0036", "succeeded", "", "", ""},
		{"pm_card_pendingRefund", "7726", "succeeded", "", "", ""},
		{"pm_card_refundFail", "5126", "succeeded", "", "", ""},
		{"pm_sim_processing", "4242", "processing", "", "", ""},
	} {
		id := c.create()
		r := c.confirm(id, "", row.method, "expand[]", "payment_method")
		if row.status != "402" {
			require.Equal(t, 200, r.status, row.method)
			require.Equal(t, row.status, r.text("status"), row.method)
			require.Equal(t, row.last4, r.text("payment_method", "card", "last4"), row.method)
			continue
		}
		require.Equal(t, 402, r.status, row.method)
		require.Equal(t, "card_error", r.text("error", "type"), row.method)
		require.Equal(t, row.code, r.text("error", "code"), row.method)
		require.Equal(t, row.decline, r.text("error", "decline_code"), row.method)
		require.Equal(t, row.param, r.text("error", "param"), row.method)
		require.Equal(t, row.last4, r.text("error", "payment_method", "card", "last4"), row.method)
		require.Equal(t, id, r.text("error", "payment_intent", "id"), row.method)

		ch := c.get("/v1/charges/" + r.text("error", "charge"))
		require.Equal(t, "failed", ch.text("status"), row.method)
		require.Equal(t, row.code, ch.text("failure_code"), row.method)
		require.Equal(t, false, ch.at("paid"), row.method)
		require.Zero(t, c.charges(id), row.method)
	}
}

func TestOutcomeSaysWhoDecided(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	outcome := func(method string) map[string]any {
		id := c.create()
		c.confirm(id, "", method)
		return c.get("/v1/charges", "payment_intent", id).at("data").([]any)[0].(map[string]any)["outcome"].(map[string]any)
	}
	bank := outcome("pm_card_chargeDeclinedInsufficientFunds")
	require.Equal(t, "issuer_declined", bank["type"])
	require.Equal(t, "declined_by_network", bank["network_status"])
	require.Equal(t, "insufficient_funds", bank["reason"])
	require.Equal(t, "expired_card", outcome("pm_card_chargeDeclinedExpiredCard")["reason"])
	stripe := outcome("pm_card_radarBlock")
	require.Equal(t, "blocked", stripe["type"])
	require.Equal(t, "not_sent_to_network", stripe["network_status"])
	require.Equal(t, "highest", stripe["risk_level"])
	require.Equal(t, "elevated", outcome("pm_card_riskLevelElevated")["risk_level"])
	require.Equal(t, "authorized", outcome("pm_card_visa")["type"])
}

func TestChallengeIsAskedForWhenRequested(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	require.Equal(t, "requires_action",
		c.confirm(id, "", "pm_card_threeDSecureOptional", "payment_method_options[card][request_three_d_secure]", "any").text("status"))

	for _, switchedOn := range []string{"off_session", "error_on_requires_action"} {
		id = c.create()
		r := c.confirm(id, "", "pm_card_threeDSecure2Required", switchedOn, "true")
		require.Equal(t, 402, r.status, switchedOn)
		require.Equal(t, "authentication_required", r.text("error", "code"), switchedOn)
		require.Equal(t, "authentication_required", r.text("error", "decline_code"), switchedOn)
	}
}
