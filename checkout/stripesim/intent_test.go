package stripesim_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

func TestPaymentIntentMovesAsStripesDoes(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	confirm := func(id string, pairs ...string) reply {
		return c.post("/v1/payment_intents/"+id+"/confirm", "", pairs...)
	}
	cancel := func(id string) reply { return c.post("/v1/payment_intents/"+id+"/cancel", "") }
	capture := func(id string, pairs ...string) reply {
		return c.post("/v1/payment_intents/"+id+"/capture", "", pairs...)
	}
	create := func(pairs ...string) reply {
		return c.post("/v1/payment_intents", "", append([]string{"amount", "4900", "currency", "usd", "payment_method_types[]", "card"}, pairs...)...)
	}
	refusedBecauseOf := func(status string, r reply) {
		t.Helper()
		require.Equal(t, 400, r.status, "%s", r.raw)
		require.Equal(t, "payment_intent_unexpected_state", r.text("error", "code"))
		require.Equal(t, status, r.text("error", "payment_intent", "status"))
	}

	// Creation.
	require.Equal(t, "requires_payment_method", create().text("status"))
	require.Equal(t, "requires_confirmation", create("payment_method", "pm_card_visa").text("status"))
	require.Equal(t, "succeeded", create("payment_method", "pm_card_visa", "confirm", "true").text("status"))
	require.Equal(t, "requires_action", create("payment_method", "pm_card_threeDSecure2Required", "confirm", "true").text("status"))
	require.Equal(t, "requires_capture", create("payment_method", "pm_card_visa", "confirm", "true", "capture_method", "manual").text("status"))
	require.Equal(t, "processing", create("payment_method", "pm_sim_processing", "confirm", "true").text("status"))

	// A declined creation did create.
	r := create("payment_method", "pm_card_chargeDeclined", "confirm", "true")
	require.Equal(t, 402, r.status)
	require.Equal(t, "requires_payment_method", c.status(r.text("error", "payment_intent", "id")))

	// Confirmation needs a method, and is possible once.
	id := c.create()
	refusedBecauseOf("requires_payment_method", confirm(id))
	require.Equal(t, "requires_confirmation", c.post("/v1/payment_intents/"+id, "", "payment_method", "pm_card_visa").text("status"))
	require.Equal(t, "succeeded", confirm(id).text("status"))
	refusedBecauseOf("succeeded", confirm(id, "payment_method", "pm_card_visa"))
	refusedBecauseOf("succeeded", cancel(id))
	refusedBecauseOf("succeeded", capture(id))
	refusedBecauseOf("succeeded", c.post("/v1/payment_intents/"+id, "", "amount", "100"))
	require.Equal(t, 200, c.post("/v1/payment_intents/"+id, "", "metadata[note]", "late").status)

	// Another card while the first one's challenge is open: the challenge is dropped.
	id = c.create()
	require.Equal(t, "requires_action", confirm(id, "payment_method", "pm_card_threeDSecure2Required").text("status"))
	require.Equal(t, "succeeded", confirm(id, "payment_method", "pm_card_visa").text("status"))
	require.ErrorIs(t, c.sim.Finish(id, stripesim.Succeeded), stripesim.ErrState)
	require.Equal(t, 1, c.charges(id))

	// Cancellation is possible from every open state, and final.
	for _, method := range []string{"", "pm_card_visa", "pm_card_threeDSecure2Required"} {
		id = c.create()
		if method == "pm_card_visa" {
			require.Equal(t, 200, c.post("/v1/payment_intents/"+id, "", "payment_method", method).status)
		} else if method != "" {
			require.Equal(t, 200, confirm(id, "payment_method", method).status)
		}
		r = c.post("/v1/payment_intents/"+id+"/cancel", "", "cancellation_reason", "abandoned")
		require.Equal(t, "canceled", r.text("status"))
		require.Equal(t, "abandoned", r.text("cancellation_reason"))
		require.NotNil(t, r.at("canceled_at"))
		require.Nil(t, r.at("next_action"))
		refusedBecauseOf("canceled", confirm(id, "payment_method", "pm_card_visa"))
		refusedBecauseOf("canceled", cancel(id))
		require.Zero(t, c.charges(id))
	}

	// Manual capture: in part, or given back.
	id = c.create("capture_method", "manual", "payment_method", "pm_card_visa")
	require.Equal(t, "requires_capture", confirm(id).text("status"))
	refusedBecauseOf("requires_capture", confirm(id))
	require.Equal(t, "amount_too_large", capture(id, "amount_to_capture", "4901").text("error", "code"))
	r = capture(id, "amount_to_capture", "1000")
	require.Equal(t, "succeeded", r.text("status"))
	require.EqualValues(t, 1000, r.at("amount_received"))
	id = c.create("capture_method", "manual", "payment_method", "pm_card_visa")
	require.Equal(t, "requires_capture", confirm(id).text("status"))
	require.Equal(t, "canceled", cancel(id).text("status"))

	// Processing can be neither confirmed nor canceled.
	id = c.create()
	require.Equal(t, "processing", confirm(id, "payment_method", "pm_sim_processing").text("status"))
	refusedBecauseOf("processing", confirm(id, "payment_method", "pm_card_visa"))
	refusedBecauseOf("processing", cancel(id))
}

func TestDeclineLeavesAPayablePaymentIntent(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	refused := c.confirm(id, "first", "pm_card_chargeDeclined")
	require.Equal(t, 402, refused.status)
	pi := c.get("/v1/payment_intents/" + id)
	require.Equal(t, "requires_payment_method", pi.text("status"))
	require.Nil(t, pi.at("payment_method"))
	require.Equal(t, "card_declined", pi.text("last_payment_error", "code"))
	require.Equal(t, refused.text("error", "charge"), pi.text("latest_charge"), "the latest charge is the failed one")
	require.Equal(t, refused.text("error", "payment_method", "id"), pi.text("last_payment_error", "payment_method", "id"))

	require.True(t, c.confirm(id, "first", "pm_card_chargeDeclined").replayed())
	paid := c.confirm(id, "second", "pm_card_visa")
	require.Equal(t, "succeeded", paid.text("status"))
	require.Nil(t, paid.at("last_payment_error"))
	require.Equal(t, 1, c.charges(id))
	require.Len(t, c.get("/v1/charges", "payment_intent", id).at("data"), 2)
}

func TestAutomaticMethodsNeedAReturnURL(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	create := func(pairs ...string) reply {
		return c.post("/v1/payment_intents", "", append([]string{"amount", "4900", "currency", "usd"}, pairs...)...)
	}
	r := create()
	require.Equal(t, map[string]any{"enabled": true, "allow_redirects": "always"}, r.at("automatic_payment_methods"))
	id := r.text("id")
	r = c.confirm(id, "", "pm_card_visa")
	require.Equal(t, 400, r.status)
	require.Empty(t, r.text("error", "code"))
	require.Equal(t, id, r.text("error", "payment_intent", "id"))
	require.Equal(t, "succeeded", c.confirm(id, "", "pm_card_visa", "return_url", "https://shop.test/return").text("status"))

	id = create("automatic_payment_methods[enabled]", "true", "automatic_payment_methods[allow_redirects]", "never").text("id")
	require.Equal(t, "succeeded", c.confirm(id, "", "pm_card_visa").text("status"))
	require.Equal(t, 400, create("confirm", "true", "payment_method", "pm_card_visa").status)
	require.Equal(t, 400, create("confirm", "true", "payment_method_types[]", "card").status, "nothing to pay with")
}

func TestMethodPaysOnce(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	one, two := c.create(), c.create()
	fresh := c.confirm(one, "", "pm_card_visa").text("payment_method")
	require.Regexp(t, `^pm_1\w{23}$`, fresh, "a test method's name is never shown")
	require.Equal(t, fresh, c.get("/v1/payment_methods/"+fresh).text("id"))
	r := c.confirm(two, "", fresh)
	require.Equal(t, 400, r.status)
	require.Contains(t, r.text("error", "message"), "previously used")
	require.Equal(t, "requires_payment_method", c.status(two))
	require.NotEqual(t, fresh, c.confirm(two, "", "pm_card_visa").text("payment_method"))
}

func TestConfirmationsAreCapped(t *testing.T) {
	t.Parallel()
	for _, refuses := range []bool{false, true} {
		c := start(t, stripesim.Config{ConfirmCap: 2, CapRefuses: refuses})
		id := c.create()
		for i := range 2 {
			require.Equal(t, 402, c.confirm(id, "try"+strconv.Itoa(i), "pm_card_chargeDeclined").status)
		}
		last := c.confirm(id, "last", "pm_card_visa")
		if refuses {
			require.Equal(t, "payment_intent_unexpected_state", last.text("error", "code"))
			require.Equal(t, "canceled", last.text("error", "payment_intent", "status"))
		} else {
			require.Equal(t, "canceled", last.text("status"))
		}
		require.Equal(t, "canceled", c.status(id))
		require.Zero(t, c.charges(id))
	}
}

func TestTwoConfirmsOfOneIntentChargeOnce(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	const copies = 16
	rule := c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Hold, At: stripesim.Arrival, Times: copies})
	var replies []<-chan reply
	for i := range copies {
		replies = append(replies, later(func() reply { return c.confirm(id, "key"+strconv.Itoa(i), "pm_card_visa") }))
	}
	wait(t, rule, copies)
	rule.Release()
	paid := 0
	for _, r := range replies {
		switch r := <-r; {
		case r.status == 200:
			paid++
		default:
			require.Contains(t, []string{"payment_intent_unexpected_state", "lock_timeout"}, r.text("error", "code"))
		}
	}
	require.Equal(t, 1, paid)
	require.Equal(t, 1, c.charges(id))
}

func TestIntentUnderWorkIsLocked(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{LockWait: 1}) // one nanosecond: at once
	id, other := c.create(), c.create()
	rule := c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Hold, At: stripesim.Execution})
	held := later(func() reply { return c.confirm(id, "first", "pm_card_visa") })
	wait(t, rule, 1)
	for _, r := range []reply{
		c.confirm(id, "second", "pm_card_visa"),
		c.post("/v1/payment_intents/"+id+"/cancel", "cancel"),
		c.post("/v1/refunds", "refund", "payment_intent", id),
	} {
		require.Equal(t, 429, r.status)
		require.Equal(t, "lock_timeout", r.text("error", "code"))
		require.Equal(t, "true", r.header.Get("Stripe-Should-Retry"))
		require.Empty(t, r.header.Get("Stripe-Rate-Limited-Reason"))
	}
	require.Equal(t, 200, c.confirm(other, "other", "pm_card_visa").status, "another PaymentIntent is free")
	rule.Release()
	require.Equal(t, 200, (<-held).status)
	r := c.confirm(id, "second", "pm_card_visa")
	require.Equal(t, "payment_intent_unexpected_state", r.text("error", "code"), "a lock timeout is not stored")
}

func TestClientSecretIsChecked(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	r := c.get("/v1/payment_intents/" + c.create())
	id, secret := r.text("id"), r.text("client_secret")
	require.Regexp(t, "^"+id+`_secret_\w{25}$`, secret)
	require.Equal(t, 200, c.get("/v1/payment_intents/"+id, "client_secret", secret).status)
	require.Equal(t, 400, c.get("/v1/payment_intents/"+id, "client_secret", secret+"x").status)
}
