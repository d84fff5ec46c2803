package stripesim_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

func TestHeldOnItsWayAConfirmBlocksNobody(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	rule := c.rule(stripesim.Rule{Method: "POST", Path: confirms, Action: stripesim.Hold, At: stripesim.Arrival})
	late := later(func() reply { return c.confirm(id, "late", "pm_card_visa") })
	wait(t, rule, 1)
	require.Equal(t, "canceled", c.post("/v1/payment_intents/"+id+"/cancel", "fence").text("status"))
	rule.Release()
	require.Equal(t, "payment_intent_unexpected_state", (<-late).text("error", "code"), "a canceled PaymentIntent is a fence")
	require.Zero(t, c.charges(id))
}

func TestHeldBeforeItsAnswerACallIsDone(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	rule := c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Hold, At: stripesim.Answer})
	held := later(func() reply { return c.confirm(id, "key", "pm_card_visa") })
	wait(t, rule, 1)
	require.Equal(t, "succeeded", c.status(id))
	require.True(t, c.confirm(id, "key", "pm_card_visa").replayed(), "its result is stored already")
	require.Equal(t, 200, c.post("/v1/refunds", "", "payment_intent", id).status, "and its object free")
	rule.Release()
	require.Equal(t, 200, (<-held).status)
}

func TestHeldCallsCanBeBroken(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	for point, charges := range map[stripesim.Point]int{stripesim.Arrival: 0, stripesim.Execution: 0, stripesim.Answer: 1} {
		id := c.create()
		rule := c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Hold, At: point})
		held := later(func() reply { return c.confirm(id, "key"+id, "pm_card_visa") })
		wait(t, rule, 1)
		rule.Break()
		require.Error(t, (<-held).err)
		require.Equal(t, charges, c.charges(id), point)
		require.Equal(t, 200, c.confirm(id, "key"+id, "pm_card_visa").status, "the key is given back")
		require.Equal(t, 1, c.charges(id), point)
	}
}

func TestDroppedBeforeAndAfter(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	for point, charges := range map[stripesim.Point]int{stripesim.Arrival: 0, stripesim.Execution: 0, stripesim.Answer: 1} {
		id := c.create()
		c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Drop, At: point})
		require.Error(t, c.confirm(id, "key"+id, "pm_card_visa").err)
		require.Equal(t, charges, c.charges(id), point)
		r := c.confirm(id, "key"+id, "pm_card_visa")
		require.Equal(t, charges == 1, r.replayed(), point)
	}
}

func TestFailuresOfEveryKind(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	c.unchecked = true
	fail := func(f stripesim.Failure) (id string, first, again reply) {
		id = c.create()
		c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Fail, Failure: &f})
		first = c.confirm(id, "key"+id, "pm_card_visa")
		return id, first, c.confirm(id, "key"+id, "pm_card_visa")
	}
	// Refused at the front: the repeat executes.
	id, first, again := fail(stripesim.Failure{Status: 503, ShouldRetry: "true"})
	require.Equal(t, 503, first.status)
	require.Equal(t, "api_error", first.text("error", "type"))
	require.Equal(t, "true", first.header.Get("Stripe-Should-Retry"))
	require.Equal(t, 200, again.status)
	require.False(t, again.replayed())
	require.Equal(t, 1, c.charges(id))
	// Stored, not executed.
	id, first, again = fail(stripesim.Failure{Status: 500, Stored: true})
	require.Equal(t, 500, first.status)
	require.True(t, again.replayed())
	require.Equal(t, first.raw, again.raw)
	require.Zero(t, c.charges(id))
	// Stored, and executed all the same: the 500 that lies.
	id, _, again = fail(stripesim.Failure{Status: 500, Stored: true, Executed: true})
	require.Equal(t, 500, again.status)
	require.True(t, again.replayed())
	require.Equal(t, 1, c.charges(id))
	// Executed, and forgotten: only the state knows.
	id, first, again = fail(stripesim.Failure{Status: 502, Executed: true, Body: "<html>Bad Gateway</html>"})
	require.Equal(t, 502, first.status)
	require.Equal(t, "text/html", first.header.Get("Content-Type"))
	require.Equal(t, "<html>Bad Gateway</html>", string(first.raw))
	require.Equal(t, "payment_intent_unexpected_state", again.text("error", "code"))
	require.Equal(t, 1, c.charges(id))
	// 200 that cannot be read.
	id, first, _ = fail(stripesim.Failure{Status: 200, Stored: true, Executed: true, Body: `{"id": "pi_`, ContentType: "application/json"})
	require.Equal(t, 200, first.status)
	require.Nil(t, first.body)
	require.Equal(t, 1, c.charges(id))
	// Any code.
	_, first, _ = fail(stripesim.Failure{Status: 409, Code: "idempotency_key_in_use", Type: "idempotency_error"})
	require.Equal(t, 409, first.status)
	require.Equal(t, "idempotency_error", first.text("error", "type"))
}

func TestRulesMatchMethodPathKeyAndTurn(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	teapot := &stripesim.Failure{Status: 418}
	rule := c.rule(stripesim.Rule{
		Method: "POST", Path: confirms, KeyPrefix: "pay:", Skip: 1, Times: 2, Action: stripesim.Fail, Failure: teapot,
	})
	id := c.create()
	require.Equal(t, 200, c.get("/v1/payment_intents/"+id).status, "another method")
	require.Equal(t, 200, c.post("/v1/payment_intents/"+id, "pay:0", "description", "a").status, "another path")
	require.Equal(t, 402, c.confirm(id, "other", "pm_card_chargeDeclined").status, "another key")
	require.Equal(t, 402, c.confirm(id, "", "pm_card_chargeDeclined").status, "no key")
	require.Equal(t, 402, c.confirm(id, "pay:1", "pm_card_chargeDeclined").status, "skipped")
	require.Equal(t, 418, c.confirm(id, "pay:2", "pm_card_visa").status)
	require.Equal(t, 418, c.confirm(id, "pay:3", "pm_card_visa").status)
	require.Equal(t, 200, c.confirm(id, "pay:4", "pm_card_visa").status, "worn out")
	wait(t, rule, 2)

	always := c.rule(stripesim.Rule{Path: "/v1/charges", Times: -1, Action: stripesim.Fail, Failure: teapot})
	for range 3 {
		require.Equal(t, 418, c.get("/v1/charges").status)
	}
	always.Remove()
	require.Equal(t, 200, c.get("/v1/charges").status)
	require.Nil(t, c.sim.Rule(always.ID()))
}

func TestNonsenseIsNoRule(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	for _, rule := range []stripesim.Rule{
		{},
		{Action: "explode"},
		{Action: stripesim.Hold, At: "never"},
		{Action: stripesim.Delay},
		{Action: stripesim.Fail},
		{Action: stripesim.Fail, Failure: &stripesim.Failure{Status: 99}},
		{Action: stripesim.Fail, At: stripesim.Answer, Failure: &stripesim.Failure{Status: 500}},
	} {
		_, err := c.sim.Add(rule)
		require.ErrorIs(t, err, stripesim.ErrRule)
	}
	for _, rule := range []stripesim.DeliveryRule{{Tamper: "ink"}, {Copies: -1}, {DelayMS: -1}, {JitterMS: -1}} {
		_, err := c.sim.AddDelivery(rule)
		require.ErrorIs(t, err, stripesim.ErrRule)
	}
}

func TestWaitingForARuleEndsWithIt(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	rule := c.rule(stripesim.Rule{Action: stripesim.Hold})
	require.ErrorIs(t, rule.Wait(ended, 1), context.Canceled)
	waiting := make(chan error, 1)
	go func() { waiting <- rule.Wait(context.Background(), 1) }()
	rule.Remove()
	require.ErrorIs(t, <-waiting, stripesim.ErrReset)
}

func TestResetForgetsEverything(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	require.Equal(t, 200, c.confirm(id, "key", "pm_card_visa").status)
	c.key = "sk_test_other"
	kept := c.create()
	rule := c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Hold, At: stripesim.Execution})
	other := *c
	held := later(func() reply { return other.confirm(kept, "key", "pm_card_visa") })
	wait(t, rule, 1)
	require.NoError(t, c.sim.Reset("sk_test_local"))
	rule.Release()
	require.Equal(t, 200, (<-held).status, "one account only")
	require.Equal(t, "succeeded", c.status(kept))
	c.key = "sk_test_local"
	require.Equal(t, 404, c.get("/v1/payment_intents/"+id).status)

	// A call that is under way while everything is forgotten writes nothing any more.
	id = c.create()
	rule = c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Hold, At: stripesim.Execution})
	held = later(func() reply { return c.confirm(id, "key", "pm_card_visa") })
	wait(t, rule, 1)
	require.NoError(t, c.sim.Reset("sk_test_local"))
	rule.Release()
	require.Error(t, (<-held).err)
	require.Zero(t, c.sim.Counts().ChargesByPaymentIntent[id])

	id = c.create()
	rule = c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Hold, At: stripesim.Execution})
	held = later(func() reply { return c.confirm(id, "key", "pm_card_visa") })
	wait(t, rule, 1)
	require.NoError(t, c.sim.Reset(""))
	require.Error(t, (<-held).err, "what is held is dropped")
	require.Zero(t, c.sim.Counts().Charges)
	require.Empty(t, c.get("/v1/payment_intents").at("data"))
}

// control sends one request to the control surface and decodes the answer.
func (c *client) control(method, path, body string) (int, map[string]any) {
	c.t.Helper()
	request, err := http.NewRequest(method, c.url+"/_sim/"+path, strings.NewReader(body))
	require.NoError(c.t, err)
	if !strings.HasPrefix(body, "{") {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(c.t, err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(c.t, err)
	var v map[string]any
	require.NoError(c.t, json.Unmarshal(raw, &v), "%s", raw)
	return answer.StatusCode, v
}

func (c *client) controlList(path string) []map[string]any {
	c.t.Helper()
	answer, err := http.Get(c.url + "/_sim/" + path)
	require.NoError(c.t, err)
	defer func() { _ = answer.Body.Close() }()
	var v []map[string]any
	require.NoError(c.t, json.NewDecoder(answer.Body).Decode(&v))
	return v
}

// TestControlSurfaceOverHTTP steers from outside, as tests of a shop in another process do.
func TestControlSurfaceOverHTTP(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{ID: "folder-1"})
	status, identity := c.control("GET", "identity", "")
	require.Equal(t, 200, status)
	require.Equal(t, map[string]any{
		"id": "folder-1", "product": stripesim.Product, "api_version": stripesim.APIVersion, "pid": float64(os.Getpid()),
	}, identity)

	id := c.create()
	status, rule := c.control("POST", "rules", `{"path":"/v1/payment_intents/*/confirm","action":"hold","at":"answer"}`)
	require.Equal(t, 200, status)
	held := later(func() reply { return c.confirm(id, "key", "pm_card_visa") })
	path := "rules/" + rule["id"].(string)
	status, _ = c.control("POST", path+"/wait", "count=1&timeout=20s")
	require.Equal(t, 200, status)
	status, _ = c.control("POST", path+"/wait", "count=2&timeout=1ms")
	require.Equal(t, 408, status)
	_, counts := c.control("GET", "counts", "")
	require.EqualValues(t, 1, counts["charges"])
	require.Equal(t, map[string]any{id: 1.0}, counts["charges_by_payment_intent"])
	require.Equal(t, map[string]any{"ord_1": 1.0}, counts["charges_by_order"])
	status, _ = c.control("POST", path+"/release", "")
	require.Equal(t, 200, status)
	require.Equal(t, 200, (<-held).status)
	require.Len(t, c.controlList("rules"), 1)
	status, _ = c.control("DELETE", path, "")
	require.Equal(t, 200, status)
	require.Empty(t, c.controlList("rules"))
	status, _ = c.control("DELETE", path, "")
	require.Equal(t, 404, status)

	require.True(t, c.confirm(id, "key", "pm_card_visa").replayed())
	log := c.controlList("requests")
	require.Len(t, log, 3)
	last := log[2]
	require.Equal(t, "POST", last["method"])
	require.Equal(t, "/v1/payment_intents/"+id+"/confirm", last["path"])
	require.Equal(t, id, last["payment_intent"])
	require.Equal(t, "key", last["key"])
	require.EqualValues(t, 200, last["status"])
	require.Equal(t, true, last["replayed"])
	require.Equal(t, false, last["executed"])
	require.Equal(t, true, log[1]["executed"])

	_, pruned := c.control("POST", "prune", "key=key")
	require.EqualValues(t, 1, pruned["pruned"])
	status, _ = c.control("POST", "advance", "by=25h")
	require.Equal(t, 200, status)
	status, _ = c.control("POST", "advance", "by=soon")
	require.Equal(t, 400, status)
	status, _ = c.control("POST", "rules", `{"action":"hold","when":"now"}`)
	require.Equal(t, 400, status, "an unknown member is a mistake in the test")
	status, _ = c.control("POST", "rules", `{"action":"explode"}`)
	require.Equal(t, 400, status)

	open := c.create()
	status, _ = c.control("POST", "payment_intents/"+open+"/finish", "outcome=succeeded")
	require.Equal(t, 200, status)
	require.Equal(t, "succeeded", c.status(open))
	status, _ = c.control("POST", "payment_intents/"+open+"/finish", "outcome=succeeded")
	require.Equal(t, 409, status)
	status, _ = c.control("POST", "payment_intents/pi_none/finish", "outcome=succeeded")
	require.Equal(t, 404, status)

	status, _ = c.control("POST", "reset", "")
	require.Equal(t, 200, status)
	require.Empty(t, c.controlList("requests"))
	require.Empty(t, c.get("/v1/charges").at("data"))
}

func TestSlowConnectionsAreCountedWhileTheyRun(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	rule := c.rule(stripesim.Rule{Path: "/v1/charges", Action: stripesim.Delay, DelayMS: 5, Times: 2})
	require.Equal(t, 200, c.get("/v1/charges").status)
	wait(t, rule, 1)
	id := c.create()
	hold := c.rule(stripesim.Rule{Path: confirms, Action: stripesim.Hold})
	held := later(func() reply { return c.confirm(id, "key", "pm_card_visa") })
	wait(t, hold, 1)
	log := c.sim.Requests()
	require.False(t, log[len(log)-1].Done)
	require.Zero(t, log[len(log)-1].Status)
	hold.Release()
	require.Equal(t, 200, (<-held).status)
	require.Eventually(t, func() bool { log := c.sim.Requests(); return log[len(log)-1].Done }, 20*time.Second, time.Millisecond)
}
