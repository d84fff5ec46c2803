package stripesim_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// ids returns the ids on a page.
func ids(r reply) []string {
	var found []string
	for _, element := range r.at("data").([]any) {
		found = append(found, element.(map[string]any)["id"].(string))
	}
	return found
}

func TestListsArePagedNewestFirst(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	require.Equal(t, []any{}, c.get("/v1/payment_intents").at("data"))
	var all []string
	for range 12 {
		all = append([]string{c.create()}, all...)
	}
	const path = "/v1/payment_intents"
	r := c.get(path)
	require.Equal(t, all[:10], ids(r), "ten are a page")
	require.Equal(t, true, r.at("has_more"))
	require.Equal(t, path, r.at("url"))
	r = c.get(path, "starting_after", all[9])
	require.Equal(t, all[10:], ids(r))
	require.Equal(t, false, r.at("has_more"))
	r = c.get(path, "ending_before", all[5], "limit", "2")
	require.Equal(t, all[3:5], ids(r), "the page that ends there, not the first one")
	require.Equal(t, true, r.at("has_more"))
	require.Equal(t, all[:2], ids(c.get(path, "ending_before", all[2])))
	require.Equal(t, all, ids(c.get(path, "limit", "12")))

	for _, pairs := range [][]string{
		{"limit", "0"},
		{"limit", "101"},
		{"limit", "x"},
		{"starting_after", "pi_none"},
		{"ending_before", "pi_none"},
		{"starting_after", all[0], "ending_before", all[1]},
		{"customer", "cus_1"},
		{"unknown", "1"},
		{"created[about]", "1"},
	} {
		require.Equal(t, 400, c.get(path, pairs...).status, "%v", pairs)
	}
}

func TestListsAreFiltered(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	one, two := c.create("transfer_group", "g"), c.create()
	first := c.confirm(one, "", "pm_card_visa").text("latest_charge")
	second := c.confirm(two, "", "pm_card_visa").text("latest_charge")
	require.Equal(t, []string{second, first}, ids(c.get("/v1/charges")))
	require.Equal(t, []string{first}, ids(c.get("/v1/charges", "payment_intent", one)))
	require.Equal(t, []string{first}, ids(c.get("/v1/charges", "transfer_group", "g")))
	require.Empty(t, ids(c.get("/v1/charges", "payment_intent", "pi_none")))

	ofFirst := c.post("/v1/refunds", "", "charge", first).text("id")
	ofSecond := c.post("/v1/refunds", "", "payment_intent", two).text("id")
	require.Equal(t, []string{ofSecond, ofFirst}, ids(c.get("/v1/refunds")))
	require.Equal(t, []string{ofFirst}, ids(c.get("/v1/refunds", "payment_intent", one)))
	require.Equal(t, []string{ofSecond}, ids(c.get("/v1/refunds", "charge", second)))

	require.Len(t, ids(c.get("/v1/events", "type", "charge.succeeded")), 2)
	require.Len(t, ids(c.get("/v1/events", "type", "charge.*")), 4)
	require.Len(t, ids(c.get("/v1/events", "types[]", "charge.refunded", "types[]", "payment_intent.created")), 4)

	require.NoError(t, c.sim.Advance(time.Hour))
	later := c.create()
	r := c.get("/v1/payment_intents/" + later)
	created := strconv.FormatInt(int64(r.at("created").(float64)), 10)
	require.Equal(t, []string{later}, ids(c.get("/v1/payment_intents", "created", created)))
	require.Equal(t, []string{later}, ids(c.get("/v1/payment_intents", "created[gte]", created)))
	require.Empty(t, ids(c.get("/v1/payment_intents", "created[gt]", created)))
	require.Equal(t, []string{two, one}, ids(c.get("/v1/payment_intents", "created[lt]", created)))
	require.Equal(t, []string{later, two, one}, ids(c.get("/v1/payment_intents", "created[lte]", created)))
}

func TestIdsAreExpandedOnRequest(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	r := c.confirm(id, "", "pm_card_visa", "expand[0]", "latest_charge", "expand[1]", "payment_method")
	require.Equal(t, "succeeded", r.text("latest_charge", "status"))
	require.Equal(t, "4242", r.text("payment_method", "card", "last4"))
	require.Regexp(t, "^ch_", c.get("/v1/payment_intents/"+id).text("latest_charge"), "an id again for the next caller")

	r = c.get("/v1/payment_intents", "expand[]", "data.latest_charge.payment_intent")
	require.Equal(t, id, r.at("data").([]any)[0].(map[string]any)["latest_charge"].(map[string]any)["payment_intent"].(map[string]any)["id"])
	require.Nil(t, c.get("/v1/payment_intents/"+c.create(), "expand[]", "latest_charge").at("latest_charge"), "nothing to expand")
	refund := c.post("/v1/refunds", "", "payment_intent", id, "expand[]", "charge", "expand[]", "payment_intent")
	require.Equal(t, true, refund.at("charge", "refunded"))
	require.Equal(t, "succeeded", refund.text("payment_intent", "status"))

	r = c.get("/v1/payment_intents/"+id, "expand[]", "latest_charge.refunds", "expand[]", "latest_charge.balance_transaction", "expand[]", "customer")
	require.Equal(t, 200, r.status, "what is null here may be expanded as at Stripe")
	require.Equal(t, []any{refund.text("id")}, []any{r.at("latest_charge", "refunds").(map[string]any)["data"].([]any)[0].(map[string]any)["id"]})

	for _, path := range []string{"nothing", "latest_charge.nothing", "data.latest_charge", "latest_charge.payment_intent.latest_charge.payment_intent.latest_charge"} {
		r := c.get("/v1/payment_intents/"+id, "expand[]", path)
		require.Equal(t, 400, r.status, path)
		require.Contains(t, r.text("error", "message"), path)
	}
	require.Equal(t, 400, c.get("/v1/payment_intents", "expand[]", "latest_charge").status, "in a list it is under data")

	// A confirm with an expansion that does not exist is refused before it charges.
	other := c.create()
	require.Equal(t, 400, c.confirm(other, "key", "pm_card_visa", "expand[]", "nothing").status)
	require.Equal(t, "requires_payment_method", c.status(other))
}

func TestEventsTellEveryTransition(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		does   func(c *client)
		events []string
	}{
		"paid": {
			func(c *client) { c.confirm(c.create(), "", "pm_card_visa") },
			[]string{"payment_intent.created", "charge.succeeded", "payment_intent.succeeded"},
		},
		"paid at once": {
			func(c *client) { c.create("confirm", "true", "payment_method", "pm_card_visa") },
			[]string{"payment_intent.created", "charge.succeeded", "payment_intent.succeeded"},
		},
		"declined": {
			func(c *client) { c.confirm(c.create(), "", "pm_card_chargeDeclined") },
			[]string{"payment_intent.created", "charge.failed", "payment_intent.payment_failed"},
		},
		"challenge passed": {
			func(c *client) {
				id := c.create()
				c.confirm(id, "", "pm_card_threeDSecure2Required")
				require.NoError(c.t, c.sim.Finish(id, stripesim.Succeeded))
			},
			[]string{"payment_intent.created", "payment_intent.requires_action", "charge.succeeded", "payment_intent.succeeded"},
		},
		"challenge failed": {
			func(c *client) {
				id := c.create()
				c.confirm(id, "", "pm_card_threeDSecure2Required")
				require.NoError(c.t, c.sim.Finish(id, stripesim.Failed))
			},
			[]string{"payment_intent.created", "payment_intent.requires_action", "payment_intent.payment_failed"},
		},
		"captured": {
			func(c *client) {
				id := c.create("capture_method", "manual")
				c.confirm(id, "", "pm_card_visa")
				c.post("/v1/payment_intents/"+id+"/capture", "")
			},
			[]string{"payment_intent.created", "charge.succeeded", "payment_intent.amount_capturable_updated", "charge.captured", "payment_intent.succeeded"},
		},
		"canceled": {
			func(c *client) { c.post("/v1/payment_intents/"+c.create()+"/cancel", "") },
			[]string{"payment_intent.created", "payment_intent.canceled"},
		},
		"refunded in two parts": {
			func(c *client) {
				id := c.create()
				c.confirm(id, "", "pm_card_visa")
				c.post("/v1/refunds", "", "payment_intent", id, "amount", "1000")
				c.post("/v1/refunds", "", "payment_intent", id)
			},
			[]string{"payment_intent.created", "charge.succeeded", "payment_intent.succeeded", "charge.refunded", "charge.refunded"},
		},
		"nothing happened": {
			func(c *client) {
				id := c.create()
				c.confirm(id, "key", "pm_sim_server_error")
				c.confirm(id, "key", "pm_sim_server_error")
				c.post("/v1/payment_intents/"+id, "", "description", "there is no payment_intent.updated")
			},
			[]string{"payment_intent.created"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, stripesim.Config{})
			row.does(c)
			require.Equal(t, row.events, c.events())
		})
	}
}

func TestEventIsASnapshotWithItsCause(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	confirmed := c.confirm(id, "key", "pm_card_visa")
	require.Equal(t, 200, c.post("/v1/payment_intents/"+id, "", "description", "later").status)
	listed := c.get("/v1/events", "type", "payment_intent.succeeded").at("data").([]any)[0].(map[string]any)
	e := c.get("/v1/events/" + listed["id"].(string))
	require.Equal(t, listed, e.body)
	require.Nil(t, e.at("data", "object", "description"))
	require.Equal(t, confirmed.header.Get("Request-Id"), e.text("request", "id"))
	require.Equal(t, "key", e.text("request", "idempotency_key"))
	require.Equal(t, stripesim.APIVersion, e.text("api_version"))
	require.EqualValues(t, 0, e.at("pending_webhooks"))

	require.NoError(t, c.sim.Finish(c.create(), stripesim.Succeeded))
	e = c.get("/v1/events", "limit", "1")
	require.Nil(t, e.at("data").([]any)[0].(map[string]any)["request"], "no call caused it")
}

func TestRefundsKeepToTheCharge(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	message := c.post("/v1/refunds", "", "payment_intent", id).text("error", "message")
	require.Contains(t, message, "does not have a successful charge to refund")
	require.Equal(t, 200, c.confirm(id, "", "pm_card_visa").status)
	r := c.post("/v1/refunds", "one", "payment_intent", id, "amount", "1000", "reason", "requested_by_customer", "metadata[refund]", "r1")
	require.Equal(t, "succeeded", r.text("status"))
	require.Equal(t, "requested_by_customer", r.text("reason"))
	require.Equal(t, map[string]any{"refund": "r1"}, r.at("metadata"))
	require.Equal(t, r.body, c.get("/v1/refunds/"+r.text("id")).body)
	require.True(t, c.post("/v1/refunds", "one", "payment_intent", id, "amount", "1000", "reason", "requested_by_customer", "metadata[refund]", "r1").replayed())

	r = c.post("/v1/refunds", "", "payment_intent", id, "amount", "3901")
	require.Equal(t, 400, r.status)
	require.Equal(t, "amount", r.text("error", "param"))
	require.Contains(t, r.text("error", "message"), "Refund amount ($39.01 usd) is greater than unrefunded amount on charge ($39.00 usd)")
	require.Equal(t, "parameter_invalid_integer", c.post("/v1/refunds", "", "payment_intent", id, "amount", "0").text("error", "code"))

	require.EqualValues(t, 3900, c.post("/v1/refunds", "", "payment_intent", id).at("amount"), "the rest")
	ch := c.get("/v1/charges/" + c.get("/v1/payment_intents/"+id).text("latest_charge"))
	require.Equal(t, true, ch.at("refunded"))
	require.EqualValues(t, 4900, ch.at("amount_refunded"))
	require.Equal(t, "succeeded", c.status(id), "a PaymentIntent stays succeeded")
	require.Equal(t, "charge_already_refunded", c.post("/v1/refunds", "", "payment_intent", id).text("error", "code"))

	event := c.get("/v1/events", "type", "charge.refunded", "limit", "1").at("data").([]any)[0].(map[string]any)
	previous := event["data"].(map[string]any)["previous_attributes"].(map[string]any)
	require.EqualValues(t, 1000, previous["amount_refunded"])

	captured := c.create("capture_method", "manual")
	require.Equal(t, 200, c.confirm(captured, "", "pm_card_visa").status)
	require.Equal(t, 200, c.post("/v1/payment_intents/"+captured+"/capture", "", "amount_to_capture", "1000").status)
	require.EqualValues(t, 1000, c.post("/v1/refunds", "", "payment_intent", captured).at("amount"), "no more than was captured")

	other := c.create()
	require.Equal(t, 400, c.post("/v1/refunds", "", "payment_intent", other, "charge", ch.text("id")).status, "another's charge")
	failed := c.confirm(other, "", "pm_card_chargeDeclined").text("error", "charge")
	require.Equal(t, 400, c.post("/v1/refunds", "", "charge", failed).status)
}

func TestConcurrentRefundsNeverExceedTheCharge(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	charged := c.confirm(id, "", "pm_card_visa").text("latest_charge")
	const copies = 12
	rule := c.rule(stripesim.Rule{Path: "/v1/refunds", Action: stripesim.Hold, At: stripesim.Arrival, Times: copies})
	var replies []<-chan reply
	for i := range copies {
		by, value := "payment_intent", id
		if i%2 == 0 {
			by, value = "charge", charged
		}
		replies = append(replies, later(func() reply { return c.post("/v1/refunds", "key"+strconv.Itoa(i), by, value, "amount", "1000") }))
	}
	wait(t, rule, copies)
	rule.Release()
	done := 0
	for _, r := range replies {
		if (<-r).status == 200 {
			done++
		}
	}
	require.Equal(t, 4, done)
	require.EqualValues(t, 4000, c.get("/v1/charges/"+charged).at("amount_refunded"))
}

func TestRefundsChangeTheirMindLater(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{Later: time.Millisecond})
	for method, row := range map[string]struct {
		first, last string
		refunded    float64
	}{
		"pm_card_pendingRefund": {"pending", "succeeded", 4900},
		"pm_card_refundFail":    {"succeeded", "failed", 0},
	} {
		id := c.create()
		charged := c.confirm(id, "", method).text("latest_charge")
		refund := c.post("/v1/refunds", "", "payment_intent", id)
		require.Equal(t, row.first, refund.text("status"))
		path := "/v1/refunds/" + refund.text("id")
		require.Eventually(t, func() bool { return c.get(path).text("status") == row.last }, 20*time.Second, time.Millisecond)
		require.Equal(t, row.refunded, c.get("/v1/charges/"+charged).at("amount_refunded"))
		require.Equal(t, row.refunded == 4900, c.get("/v1/charges/"+charged).at("refunded"))
		e := c.get("/v1/events", "limit", "1").at("data").([]any)[0].(map[string]any)
		require.Equal(t, "charge.refund.updated", e["type"])
		require.Equal(t, row.last == "failed", c.get(path).text("failure_reason") != "")
	}
}

func TestDisputesFollowTheCharge(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{Later: time.Millisecond})
	open := func(method string) map[string]any {
		id := c.create()
		require.Equal(t, "succeeded", c.confirm(id, "", method).text("status"))
		var disputes []any
		require.Eventually(t, func() bool {
			disputes = c.get("/v1/disputes", "payment_intent", id).at("data").([]any)
			return len(disputes) == 1
		}, 20*time.Second, time.Millisecond)
		return disputes[0].(map[string]any)
	}
	d := open("pm_card_createDispute")
	require.Equal(t, "fraudulent", d["reason"])
	require.Equal(t, "needs_response", d["status"])
	charged := d["charge"].(string)
	require.Equal(t, true, c.get("/v1/charges/"+charged).at("disputed"))
	require.Equal(t, "charge_disputed", c.post("/v1/refunds", "", "charge", charged).text("error", "code"))
	path := "/v1/disputes/" + d["id"].(string)
	won := c.post(path, "", "evidence[uncategorized_text]", "winning_evidence", "submit", "true")
	require.Equal(t, "won", won.text("status"))
	require.Equal(t, won.body, c.get(path).body)
	require.Equal(t, 400, c.post(path, "", "evidence[uncategorized_text]", "losing_evidence").status, "decided is decided")
	require.Equal(t, 200, c.post("/v1/refunds", "", "charge", charged).status, "the money is back")
	events := c.events()
	for _, kind := range []string{"created", "funds_withdrawn", "updated", "closed", "funds_reinstated"} {
		require.True(t, slices.Contains(events, "charge.dispute."+kind), kind)
	}

	d = open("pm_card_createDisputeProductNotReceived")
	require.Equal(t, "product_not_received", d["reason"])
	require.Equal(t, "lost", c.post("/v1/disputes/"+d["id"].(string), "", "evidence[uncategorized_text]", "losing_evidence").text("status"))
	require.Equal(t, "charge_disputed", c.post("/v1/refunds", "", "charge", d["charge"].(string)).text("error", "code"))

	d = open("pm_card_createDisputeInquiry")
	require.Equal(t, "warning_needs_response", d["status"])
	require.Equal(t, true, d["is_charge_refundable"])
	require.Equal(t, 200, c.post("/v1/refunds", "", "charge", d["charge"].(string)).status)
}

func TestConfirmationTokenPaysOnce(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	token := func(method string, pairs ...string) string {
		r := c.post("/v1/test_helpers/confirmation_tokens", "", append([]string{"payment_method", method}, pairs...)...)
		require.Equal(t, 200, r.status)
		require.Equal(t, r.body, c.get("/v1/confirmation_tokens/"+r.text("id")).body)
		return r.text("id")
	}
	confirm := func(id, token string, pairs ...string) reply {
		return c.post("/v1/payment_intents/"+id+"/confirm", "", append([]string{"confirmation_token", token}, pairs...)...)
	}
	id, paying := c.create(), token("pm_card_visa")
	require.Equal(t, "succeeded", confirm(id, paying).text("status"))
	require.Equal(t, id, c.get("/v1/confirmation_tokens/"+paying).text("payment_intent"))
	r := confirm(c.create(), paying)
	require.Equal(t, 400, r.status)
	require.Contains(t, r.text("error", "message"), "already used")

	id = c.create()
	declined := token("pm_card_chargeDeclined")
	require.Equal(t, 402, confirm(id, declined).status)
	require.Equal(t, 400, confirm(id, declined).status, "a decline uses it up")

	// The token's return URL satisfies automatic methods; the browser's script is the token's default for a challenge.
	automatic := c.post("/v1/payment_intents", "", "amount", "4900", "currency", "usd").text("id")
	r = confirm(automatic, token("pm_card_threeDSecure2Required", "return_url", "https://shop.test/return"))
	require.Equal(t, "requires_action", r.text("status"))
	require.Equal(t, "use_stripe_sdk", r.text("next_action", "type"))
	r = confirm(automatic, token("pm_card_threeDSecure2Required", "return_url", "https://shop.test/return"), "use_stripe_sdk", "false")
	require.Equal(t, "redirect_to_url", r.text("next_action", "type"))

	stale := token("pm_card_visa")
	require.NoError(t, c.sim.Advance(12*time.Hour))
	require.Contains(t, confirm(c.create(), stale).text("error", "message"), "expired")
	r = c.post("/v1/payment_intents", "", "amount", "4900", "currency", "usd", "payment_method_types[]", "card", "confirm", "true",
		"confirmation_token", token("pm_card_visa"))
	require.Equal(t, "succeeded", r.text("status"))
}
