package stripesim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

const confirms = "/v1/payment_intents/*/confirm"

func TestGatesComeInStripesOrder(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	bad := []string{"amount", "x"} // fails validation
	limited := stripesim.Rule{Method: "POST", Action: stripesim.Fail, Failure: &stripesim.Failure{Status: 429, Code: "rate_limit"}}
	require.Equal(t, 200, c.confirm(id, "used", "pm_card_visa").status)

	// Authentication comes before the rate limit.
	rule := c.rule(limited)
	c.key = "pk_test_local"
	require.Equal(t, 401, c.post("/v1/payment_intents", "used", bad...).status)
	c.key = "sk_test_local"
	rule.Remove()

	// The rate limit comes before the key.
	rule = c.rule(limited)
	require.Equal(t, 429, c.confirm(id, "used", "pm_card_visa").status)
	rule.Remove()

	// The key comes before validation: its endpoint and parameters are compared first.
	r := c.post("/v1/payment_intents", "used", bad...)
	require.Equal(t, "idempotency_error", r.text("error", "type"))

	// Validation comes before execution: a succeeded PaymentIntent does not matter to a bad request.
	r = c.confirm(id, "fresh", "pm_card_visa", "unknown", "1")
	require.Equal(t, "parameter_unknown", r.text("error", "code"))
	r = c.confirm(id, "fresh", "pm_card_visa")
	require.Equal(t, "payment_intent_unexpected_state", r.text("error", "code"))
}

func TestEveryTestKeyIsAnAccount(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	for key, code := range map[string]string{
		"": "", "pk_test_local": "secret_key_required", "sk_live_local": "", "rk_live_local": "", "sk_test_": "", "nonsense": "",
	} {
		c.key = key
		r := c.get("/v1/charges")
		require.Equal(t, 401, r.status, key)
		require.Equal(t, code, r.text("error", "code"), key)
		require.Equal(t, "invalid_request_error", r.text("error", "type"), key)
		if len(key) > 8 {
			require.NotContains(t, r.text("error", "message"), key, "a key is never shown whole")
		}
	}
	c.key = "sk_test_other"
	require.Equal(t, 404, c.get("/v1/payment_intents/"+id).status)
	require.Empty(t, c.get("/v1/payment_intents").at("data"))
}

func TestKeysOfTwoAccountsDoNotMeet(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	first := c.post("/v1/payment_intents", "key", "amount", "4900", "currency", "usd")
	c.key = "sk_test_other"
	second := c.post("/v1/payment_intents", "key", "amount", "900", "currency", "usd")
	require.Equal(t, 200, second.status)
	require.False(t, second.replayed())
	require.NotEqual(t, first.text("id"), second.text("id"))

	rule := c.rule(stripesim.Rule{Path: "/v1/payment_intents", Action: stripesim.Hold})
	held := later(func() reply { return c.post("/v1/payment_intents", "busy", "amount", "900", "currency", "usd") })
	wait(t, rule, 1)
	other := *c
	other.key = "sk_test_local"
	require.Equal(t, 200, other.post("/v1/payment_intents", "busy", "amount", "900", "currency", "usd").status, "nor block each other")
	rule.Release()
	require.Equal(t, 200, (<-held).status)
}

func TestFirstResultIsReplayedByteForByte(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		method string
		status int
	}{
		"succeeded":       {"pm_card_visa", 200},
		"requires_action": {"pm_card_threeDSecure2Required", 200},
		"declined":        {"pm_card_chargeDeclined", 402},
		"server error":    {"pm_sim_always_500", 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, stripesim.Config{})
			id := c.create()
			first := c.confirm(id, "key", row.method)
			require.Equal(t, row.status, first.status)
			require.False(t, first.replayed())
			require.Equal(t, first.header.Get("Request-Id"), first.header.Get("Original-Request"))
			again := c.confirm(id, "key", row.method)
			require.Equal(t, row.status, again.status)
			require.True(t, again.replayed())
			require.Equal(t, first.raw, again.raw)
			require.Equal(t, first.header.Get("Request-Id"), again.header.Get("Original-Request"))
			require.Equal(t, first.header.Get("Stripe-Should-Retry"), again.header.Get("Stripe-Should-Retry"))
		})
	}
}

func TestReplayIsASnapshot(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	require.Equal(t, "requires_action", c.confirm(id, "key", "pm_card_threeDSecure2Required").text("status"))
	require.NoError(t, c.sim.Finish(id, stripesim.Succeeded))
	require.Equal(t, "requires_action", c.confirm(id, "key", "pm_card_threeDSecure2Required").text("status"))
	require.Equal(t, "succeeded", c.status(id))
}

func TestKeyIsBoundToItsRequest(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	one, two := c.create(), c.create()
	require.Equal(t, 200, c.confirm(one, "key", "pm_card_visa").status)

	r := c.confirm(one, "key", "pm_card_mastercard")
	require.Equal(t, 400, r.status)
	require.Equal(t, "idempotency_error", r.text("error", "type"))
	require.Empty(t, r.text("error", "code"))
	require.Contains(t, r.text("error", "message"), "same parameters")

	for path, other := range map[string]reply{
		"/v1/payment_intents/" + two + "/confirm": c.confirm(two, "key", "pm_card_visa"),
		"/v1/payment_intents/" + one + "/cancel":  c.post("/v1/payment_intents/"+one+"/cancel", "key"),
		"/v1/refunds":                             c.post("/v1/refunds", "key", "payment_intent", one),
	} {
		require.Equal(t, 400, other.status)
		require.Equal(t, "idempotency_error", other.text("error", "type"))
		require.Contains(t, other.text("error", "message"), "('"+path+"' vs '/v1/payment_intents/"+one+"/confirm')")
	}
	require.Equal(t, "requires_payment_method", c.status(two))
}

func TestKeysAreForPostOnly(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	for range 2 {
		r := c.send(t.Context(), "GET", "/v1/payment_intents/"+id, "key", "")
		require.Equal(t, 200, r.status)
		require.Empty(t, r.header.Get("Idempotency-Key"))
		require.False(t, r.replayed())
	}
	require.False(t, c.confirm(id, "key", "pm_card_visa").replayed())
	require.Equal(t, 400, c.post("/v1/payment_intents", strings.Repeat("k", 256), "amount", "4900", "currency", "usd").status)
	require.Equal(t, 200, c.post("/v1/payment_intents", strings.Repeat("k", 255), "amount", "4900", "currency", "usd").status)
}

func TestWithoutAKeyEveryRequestExecutes(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	require.NotEqual(t, c.create(), c.create())
}

// TestWhatDidNotExecuteIsNotStored repeats a mended request under the key of one that was refused.
func TestWhatDidNotExecuteIsNotStored(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]func(*client, string) reply{
		"401": func(c *client, id string) reply {
			c.key = "pk_test"
			defer func() { c.key = "sk_test_local" }()
			return c.confirm(id, "key", "pm_card_visa")
		},
		"400": func(c *client, id string) reply { return c.confirm(id, "key", "pm_card_visa", "unknown", "1") },
		"404": func(c *client, _ string) reply { return c.confirm("pi_none", "key", "pm_card_visa") },
		"429": func(c *client, id string) reply {
			c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Fail, Failure: &stripesim.Failure{Status: 429, Code: "rate_limit"}})
			return c.confirm(id, "key", "pm_card_visa")
		},
		"503 at the front": func(c *client, id string) reply {
			c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Fail, Failure: &stripesim.Failure{Status: 503}})
			return c.confirm(id, "key", "pm_card_visa")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, stripesim.Config{})
			id := c.create()
			r := refused(c, id)
			require.GreaterOrEqual(t, r.status, 400)
			require.Empty(t, r.header.Get("Original-Request"))
			mended := c.confirm(id, "key", "pm_card_visa")
			require.Equal(t, 200, mended.status, "%s", mended.raw)
			require.False(t, mended.replayed())
			require.Equal(t, 1, c.charges(id))
		})
	}
}

func TestStateErrorsAreStoredUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	for _, forget := range []bool{false, true} {
		c := start(t, stripesim.Config{ForgetStateErrors: forget})
		id := c.create()
		path := "/v1/payment_intents/" + id + "/confirm"
		r := c.post(path, "key")
		require.Equal(t, "payment_intent_unexpected_state", r.text("error", "code"))
		require.Equal(t, id, r.text("error", "payment_intent", "id"))
		require.Equal(t, 200, c.post("/v1/payment_intents/"+id, "", "payment_method", "pm_card_visa").status)
		r = c.post(path, "key")
		require.Equal(t, forget, r.status == 200)
		require.Equal(t, !forget, r.replayed())
	}
}

func TestKeyInUseIs409(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	rule := c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Hold, At: stripesim.Execution})
	held := later(func() reply { return c.confirm(id, "key", "pm_card_visa") })
	wait(t, rule, 1)
	for _, other := range []reply{c.confirm(id, "key", "pm_card_visa"), c.confirm(id, "key", "pm_card_mastercard")} {
		require.Equal(t, 409, other.status)
		require.Equal(t, "idempotency_key_in_use", other.text("error", "code"))
		require.Equal(t, "invalid_request_error", other.text("error", "type"))
	}
	require.Equal(t, "requires_payment_method", c.status(id), "a reader does not wait, and sees the old state")
	rule.Release()
	first := <-held
	require.Equal(t, 200, first.status)
	require.Equal(t, first.raw, c.confirm(id, "key", "pm_card_visa").raw)
}

func TestConcurrentDuplicatesExecuteOnce(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{Journal: t.TempDir() + "/journal"})
	id := c.create()
	// All are on their way before one may go on: a barrier, not luck.
	const copies = 64
	rule := c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Hold, At: stripesim.Arrival, Times: copies})
	var replies []<-chan reply
	for range copies {
		replies = append(replies, later(func() reply { return c.confirm(id, "key", "pm_card_visa") }))
	}
	wait(t, rule, copies)
	rule.Release()
	executed := 0
	for _, r := range replies {
		switch r := <-r; {
		case r.status == 409:
		case r.status == 200 && r.replayed():
		case r.status == 200:
			executed++
		default:
			t.Errorf("unexpected answer %d: %s", r.status, r.raw)
		}
	}
	require.Equal(t, 1, executed)
	require.Equal(t, 1, c.charges(id))
	counts := c.sim.Counts()
	require.Equal(t, copies, counts.ConfirmsByKey["key"].Received)
	require.Equal(t, 1, counts.ConfirmsByKey["key"].Executed)
	require.Equal(t, 1, counts.ChargesByOrder["ord_1"])
}

func TestPrunedKeyExecutesAgain(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	send := func(key string) reply {
		return c.post("/v1/payment_intents", key, "amount", "4900", "currency", "usd")
	}
	one, two := send("one"), send("two")
	pruned, err := c.sim.PruneKeys("one")
	require.NoError(t, err)
	require.Equal(t, 1, pruned)
	require.NotEqual(t, one.text("id"), send("one").text("id"))
	require.True(t, send("two").replayed())

	require.NoError(t, c.sim.Advance(24*time.Hour-time.Minute))
	require.True(t, send("two").replayed(), "Stripe remembers for a day")
	require.NoError(t, c.sim.Advance(2*time.Minute))
	require.NotEqual(t, two.text("id"), send("two").text("id"), "and not longer")

	pruned, err = c.sim.PruneKeys("")
	require.NoError(t, err)
	require.Equal(t, 2, pruned)
}
