package stripesim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

func TestReplyLostChargesAndIsReplayed(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	require.Error(t, c.confirm(id, "key", "pm_sim_reply_lost").err)
	require.Equal(t, "succeeded", c.status(id), "the money moved, and nobody was told")
	r := c.confirm(id, "key", "pm_sim_reply_lost")
	require.Equal(t, 200, r.status)
	require.True(t, r.replayed())
	require.Equal(t, 1, c.charges(id))
	require.Equal(t, stripesim.Confirms{Received: 2, Executed: 1, Replayed: 1}, c.sim.Counts().ConfirmsByKey["key"])
}

func TestNeverArrivedLeavesNoTrace(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	require.Error(t, c.confirm(id, "key", "pm_sim_never_arrived").err)
	require.Equal(t, "requires_payment_method", c.status(id))
	require.Equal(t, 200, c.post("/v1/payment_intents", "key", "amount", "4900", "currency", "usd").status, "the key is free, for any request")
	r := c.confirm(id, "other", "pm_sim_never_arrived")
	require.Equal(t, "succeeded", r.text("status"), "once, then as pm_card_visa")
	require.False(t, r.replayed())
}

func TestRateLimitedIsNotStored(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	r := c.confirm(id, "key", "pm_sim_rate_limited")
	require.Equal(t, 429, r.status)
	require.Equal(t, "rate_limit", r.text("error", "code"))
	require.Equal(t, "invalid_request_error", r.text("error", "type"))
	require.Equal(t, "global-rate", r.header.Get("Stripe-Rate-Limited-Reason"))
	require.Empty(t, r.header.Get("Retry-After"), "Stripe sends none")
	require.Empty(t, r.header.Get("Original-Request"))
	require.Equal(t, "requires_payment_method", c.status(id))
	r = c.confirm(id, "key", "pm_sim_rate_limited")
	require.Equal(t, "succeeded", r.text("status"))
	require.False(t, r.replayed())
}

func TestServerErrorIsStoredAndChargesNothing(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	r := c.confirm(id, "key", "pm_sim_server_error")
	require.Equal(t, 500, r.status)
	require.Equal(t, "api_error", r.text("error", "type"))
	require.Equal(t, "false", r.header.Get("Stripe-Should-Retry"))
	again := c.confirm(id, "key", "pm_sim_server_error")
	require.Equal(t, 500, again.status)
	require.True(t, again.replayed())
	require.Zero(t, c.charges(id))
	require.Equal(t, "requires_payment_method", c.status(id))
	require.Equal(t, "succeeded", c.confirm(id, "other", "pm_sim_server_error").text("status"))
	require.Equal(t, 500, c.confirm(id, "key", "pm_sim_server_error").status, "a stored 500 stays one for ever")
}

func TestAlways500IsAlways500(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	for _, key := range []string{"one", "two", "three"} {
		r := c.confirm(id, key, "pm_sim_always_500")
		require.Equal(t, 500, r.status)
		require.False(t, r.replayed())
	}
	require.Zero(t, c.charges(id))
	require.Equal(t, "succeeded", c.confirm(id, "four", "pm_card_visa").text("status"))
}

func TestFaultsHappenOncePerPaymentIntent(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	for range 2 {
		id := c.create()
		require.Equal(t, 429, c.confirm(id, "", "pm_sim_rate_limited").status)
		require.Error(t, c.confirm(id, "", "pm_sim_never_arrived").err, "another fault has its own once")
		require.Equal(t, 200, c.confirm(id, "", "pm_sim_never_arrived").status)
	}
}

func TestFaultsActHoweverTheMethodIsNamed(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	// On the PaymentIntent itself.
	id := c.create("payment_method", "pm_sim_rate_limited")
	require.Equal(t, 429, c.post("/v1/payment_intents/"+id+"/confirm", "").status)
	require.Equal(t, 200, c.post("/v1/payment_intents/"+id+"/confirm", "").status)
	// In a confirmation token.
	id = c.create()
	token := c.post("/v1/test_helpers/confirmation_tokens", "", "payment_method", "pm_sim_rate_limited").text("id")
	require.Equal(t, 429, c.post("/v1/payment_intents/"+id+"/confirm", "", "confirmation_token", token).status)
	require.Equal(t, 200, c.post("/v1/payment_intents/"+id+"/confirm", "", "confirmation_token", token).status)
	// In a creation that confirms at once: the key stands for the PaymentIntent that does not exist yet.
	pairs := []string{"amount", "4900", "currency", "usd", "payment_method_types[]", "card", "confirm", "true", "payment_method", "pm_sim_never_arrived"}
	require.Error(t, c.post("/v1/payment_intents", "one", pairs...).err)
	require.Equal(t, 200, c.post("/v1/payment_intents", "one", pairs...).status)
	require.Error(t, c.post("/v1/payment_intents", "two", pairs...).err)
	// Without confirmation nothing happens yet.
	require.Equal(t, 200, c.post("/v1/payment_intents", "", "amount", "4900", "currency", "usd", "payment_method", "pm_sim_always_500").status)
}

// TestSlowChargeLandsAfterTheCallerHungUp is the caller that was killed in mid-call: what Stripe began, it finishes.
func TestSlowChargeLandsAfterTheCallerHungUp(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{SlowCall: 300 * time.Millisecond, LockWait: 1})
	id := c.create()
	rule := c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Delay, DelayMS: 1, At: stripesim.Execution})
	ctx, hangUp := context.WithCancel(t.Context())
	call := later(func() reply {
		return c.send(ctx, "POST", "/v1/payment_intents/"+id+"/confirm", "key", "payment_method=pm_sim_slow")
	})
	wait(t, rule, 1)
	// While it is slow: the key is in use, the PaymentIntent locked, and a reader sees the old state.
	require.Equal(t, 409, c.confirm(id, "key", "pm_sim_slow").status)
	require.Equal(t, "lock_timeout", c.confirm(id, "other", "pm_card_visa").text("error", "code"))
	require.Equal(t, "requires_payment_method", c.status(id))
	hangUp()
	require.ErrorIs(t, (<-call).err, context.Canceled)
	require.Eventually(t, func() bool { return c.status(id) == "succeeded" }, 20*time.Second, time.Millisecond)
	require.True(t, c.confirm(id, "key", "pm_sim_slow").replayed())
	require.Equal(t, 1, c.charges(id))
}

func TestProcessingSucceedsLater(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{Later: time.Millisecond})
	id := c.create()
	require.Equal(t, "processing", c.confirm(id, "", "pm_sim_processing").text("status"))
	require.Eventually(t, func() bool { return c.status(id) == "succeeded" }, 20*time.Second, time.Millisecond)
	require.Equal(t, 1, c.charges(id))
	types := c.events()
	require.Equal(t, []string{"payment_intent.created", "payment_intent.processing", "charge.succeeded", "payment_intent.succeeded"}, types)
}

func TestProcessingSettlesOnce(t *testing.T) {
	t.Parallel()
	for outcome, status := range map[stripesim.Outcome]string{stripesim.Succeeded: "succeeded", stripesim.Failed: "requires_payment_method"} {
		c := start(t, stripesim.Config{Later: time.Hour})
		id, marker := c.create(), c.create()
		require.Equal(t, 200, c.confirm(id, "", "pm_sim_processing").status)
		require.Equal(t, 200, c.confirm(marker, "", "pm_sim_processing").status)
		require.NoError(t, c.sim.Finish(id, outcome))
		require.Equal(t, status, c.status(id))
		require.NoError(t, c.sim.Advance(time.Hour))
		require.Eventually(t, func() bool { return c.status(marker) == "succeeded" }, 20*time.Second, time.Millisecond)
		// Both jobs were started together, and closing waits for them.
		require.NoError(t, c.sim.Close())
		require.Equal(t, status, c.status(id))
		require.Len(t, c.get("/v1/charges", "payment_intent", id).at("data"), 1, "the job found it decided")
	}
	c := start(t, stripesim.Config{})
	require.ErrorIs(t, c.sim.Finish(c.create(), "maybe"), stripesim.ErrState)
	require.ErrorIs(t, c.sim.Finish("pi_none", stripesim.Failed), stripesim.ErrNotFound)
}

// events returns the types of all events, oldest first.
func (c *client) events() []string {
	c.t.Helper()
	var types []string
	for _, e := range c.get("/v1/events", "limit", "100").at("data").([]any) {
		types = append([]string{e.(map[string]any)["type"].(string)}, types...)
	}
	return types
}
