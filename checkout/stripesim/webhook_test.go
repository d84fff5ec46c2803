package stripesim_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// received is one delivery as the endpoint got it.
type received struct {
	body      []byte
	signature string
	event     map[string]any
}

func (r received) id() string   { return r.event["id"].(string) }
func (r received) kind() string { return r.event["type"].(string) }

// endpoint is a shop's webhook endpoint.
type endpoint struct {
	t      *testing.T
	url    string
	id     string
	secret string

	mu     sync.Mutex
	got    []received
	answer func(received) int // status; 200 when nil
	news   chan struct{}
}

// listen registers an endpoint through the API.
func (c *client) listen(answer func(received) int, events ...string) *endpoint {
	c.t.Helper()
	e := &endpoint{t: c.t, answer: answer, news: make(chan struct{}, 1)}
	server := httptest.NewServer(e)
	c.t.Cleanup(server.Close)
	e.url = server.URL + "/webhooks/stripe"
	if len(events) == 0 {
		events = []string{"*"}
	}
	pairs := []string{"url", e.url, "api_version", stripesim.APIVersion}
	for _, event := range events {
		pairs = append(pairs, "enabled_events[]", event)
	}
	r := c.post("/v1/webhook_endpoints", "", pairs...)
	require.Equal(c.t, 200, r.status, "%s", r.raw)
	e.id, e.secret = r.text("id"), r.text("secret")
	require.Regexp(c.t, `^whsec_\w{32}$`, e.secret)
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	got := received{body: body, signature: r.Header.Get("Stripe-Signature")}
	if err := json.Unmarshal(body, &got.event); err != nil {
		e.t.Errorf("not an event: %s", body)
	}
	e.mu.Lock()
	e.got = append(e.got, got)
	answer := e.answer
	e.mu.Unlock()
	if answer != nil {
		w.WriteHeader(answer(got))
	}
	select {
	case e.news <- struct{}{}:
	default:
	}
}

func (e *endpoint) deliveries() []received {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]received{}, e.got...)
}

// wait returns the deliveries once there are n.
func (e *endpoint) wait(n int) []received {
	e.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		if got := e.deliveries(); len(got) >= n {
			return got
		}
		select {
		case <-e.news:
		case <-deadline:
			require.FailNow(e.t, "too few deliveries", "%d of %d", len(e.deliveries()), n)
		}
	}
}

func kinds(deliveries []received) []string {
	var found []string
	for _, d := range deliveries {
		found = append(found, d.kind())
	}
	return found
}

// verify checks the signature as Stripe documents it, and returns how many of the v1 are right for the secret.
func verify(t *testing.T, d received, secret string) int {
	t.Helper()
	var stamp string
	right := 0
	for part := range strings.SplitSeq(d.signature, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "t":
			stamp = value
		case "v1":
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write([]byte(stamp + "." + string(d.body)))
			if hex.EncodeToString(mac.Sum(nil)) == value {
				right++
			}
		}
	}
	return right
}

// soon makes events leave at once and retries follow quickly.
var soon = stripesim.Config{DeliverAfter: time.Millisecond, Backoff: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}}

func TestEventsAreDeliveredSigned(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	e := c.listen(nil, "payment_intent.succeeded", "charge.succeeded")
	id := c.create()
	require.Equal(t, 200, c.confirm(id, "key", "pm_card_visa").status)
	got := e.wait(2)
	require.ElementsMatch(t, []string{"charge.succeeded", "payment_intent.succeeded"}, kinds(got), "only what the endpoint asked for")
	for _, d := range got {
		require.Equal(t, 1, verify(t, d, e.secret))
		require.Contains(t, d.signature, ",v0=", "as in test mode, to be ignored")
		requireStripe(t, d.body)
		require.EqualValues(t, 1, d.event["pending_webhooks"])
		require.Equal(t, stripesim.APIVersion, d.event["api_version"])
		path := "/v1/events/" + d.id()
		require.Eventually(t, func() bool { return c.get(path).at("pending_webhooks") == 0.0 }, 20*time.Second, time.Millisecond)
		require.Equal(t, d.event["data"], c.get(path).at("data"))
	}
}

func TestTwoEndpointsGetEachEvent(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	one, two := c.listen(nil, "payment_intent.created"), c.listen(nil, "payment_intent.created")
	c.create()
	first, second := one.wait(1)[0], two.wait(1)[0]
	require.Equal(t, first.id(), second.id())
	require.EqualValues(t, 2, first.event["pending_webhooks"])
	require.Zero(t, verify(t, first, two.secret), "each has a secret of its own")
}

func TestWhatIsNot2xxIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	answers := []int{500, 302, 409, 200}
	e := c.listen(nil, "payment_intent.created")
	e.answer = func(received) int { return answers[len(e.deliveries())-1] }
	c.create()
	got := e.wait(4)
	for _, d := range got {
		require.Equal(t, got[0].id(), d.id())
		require.Equal(t, 1, verify(t, d, e.secret))
	}
	require.Eventually(t, func() bool { return c.get("/v1/events/"+got[0].id()).at("pending_webhooks") == 0.0 }, 20*time.Second, time.Millisecond)
	attempts := c.sim.Deliveries()
	require.Len(t, attempts, 4)
	for i, attempt := range attempts {
		require.Equal(t, answers[i], attempt.Status)
		require.Equal(t, i+1, attempt.Attempt)
	}
}

func TestDeliveryIsGivenUpAfterTheLastRetry(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	e := c.listen(func(received) int { return 500 }, "payment_intent.created")
	c.create()
	got := e.wait(4)
	next := c.listen(nil, "payment_intent.canceled")
	require.Equal(t, 200, c.post("/v1/payment_intents/"+c.get("/v1/payment_intents").at("data").([]any)[0].(map[string]any)["id"].(string)+"/cancel", "").status)
	next.wait(1)
	require.Len(t, e.deliveries(), 4)
	require.EqualValues(t, 1, c.get("/v1/events/"+got[0].id()).at("pending_webhooks"), "it stays undelivered")
	require.NoError(t, c.sim.Resend(got[0].id()))
	require.Equal(t, got[0].id(), e.wait(5)[4].id())
	require.ErrorIs(t, c.sim.Resend("evt_none"), stripesim.ErrNotFound)
}

func TestRetriesSurviveARestart(t *testing.T) {
	t.Parallel()
	config := stripesim.Config{
		Journal: filepath.Join(t.TempDir(), "journal"), DeliverAfter: time.Millisecond, Backoff: []time.Duration{time.Hour},
	}
	c := start(t, config)
	refused := true
	e := c.listen(nil, "payment_intent.created")
	e.answer = func(received) int { return map[bool]int{true: 503, false: 200}[refused] }
	c.create()
	first := e.wait(1)[0]
	require.Eventually(t, func() bool { return len(c.sim.Deliveries()) == 1 }, 20*time.Second, time.Millisecond)
	c = reopen(t, c, config)
	refused = false
	require.NoError(t, c.sim.Advance(time.Hour))
	again := e.wait(2)[1]
	require.Equal(t, first.id(), again.id())
	require.Equal(t, 1, verify(t, again, e.secret), "the secret survives too")
}

func TestEventsMayComeTwice(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	e := c.listen(nil, "payment_intent.created")
	c.delivery(stripesim.DeliveryRule{Copies: 2})
	c.create()
	got := e.wait(3)
	require.Equal(t, got[0].id(), got[1].id())
	require.Equal(t, got[0].id(), got[2].id())
}

func TestEventsMayComeOutOfOrder(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	e := c.listen(nil)
	rule := c.delivery(stripesim.DeliveryRule{Event: "payment_intent.payment_failed", Hold: true})
	id := c.create()
	require.Equal(t, 402, c.confirm(id, "", "pm_card_chargeDeclined").status)
	require.Equal(t, 200, c.confirm(id, "", "pm_card_visa").status)
	got := e.wait(4)
	require.ElementsMatch(t, []string{"payment_intent.created", "charge.failed", "charge.succeeded", "payment_intent.succeeded"}, kinds(got))
	require.NoError(t, rule.Release())
	require.Equal(t, "payment_intent.payment_failed", e.wait(5)[4].kind(), "the old failure arrives after the success")
}

func TestEventsMayBeLost(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	e := c.listen(nil, "charge.succeeded", "payment_intent.succeeded")
	c.delivery(stripesim.DeliveryRule{Event: "payment_intent.*", Drop: true})
	require.Equal(t, 200, c.confirm(c.create(), "", "pm_card_visa").status)
	require.Equal(t, 200, c.confirm(c.create(), "", "pm_card_visa").status)
	require.ElementsMatch(t, []string{"charge.succeeded", "charge.succeeded", "payment_intent.succeeded"}, kinds(e.wait(3)))
	lost := c.get("/v1/events", "type", "payment_intent.succeeded").at("data").([]any)[1].(map[string]any)
	require.EqualValues(t, 1, lost["pending_webhooks"])
}

// TestEventMayComeBeforeTheAnswer asks, from inside the webhook, whether the caller has its answer yet.
func TestEventMayComeBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	id := c.create()
	answered := make(chan struct{})
	e := c.listen(func(d received) int {
		select {
		case <-answered:
			t.Error("the answer was first")
		default:
		}
		// The receiver may use the API meanwhile: neither the key nor the object is locked.
		if r := c.confirm(id, "key", "pm_card_visa"); !r.replayed() {
			t.Errorf("the result is not stored yet: %d", r.status)
		}
		if r := c.post("/v1/refunds", "", "payment_intent", id); r.status != 200 {
			t.Errorf("the object is locked: %d", r.status)
		}
		return 200
	}, "payment_intent.succeeded")
	c.delivery(stripesim.DeliveryRule{Event: "payment_intent.succeeded", BeforeAnswer: true})
	require.Equal(t, 200, c.confirm(id, "key", "pm_card_visa").status)
	close(answered)
	require.Len(t, e.deliveries(), 1)
}

func TestDeliveriesAreMadeWrongOnce(t *testing.T) {
	t.Parallel()
	for tamper, wrong := range map[stripesim.Tamper]func(t *testing.T, d received, secret string){
		stripesim.TamperSignature: func(t *testing.T, d received, secret string) { require.Zero(t, verify(t, d, secret)) },
		stripesim.TamperBody:      func(t *testing.T, d received, secret string) { require.Zero(t, verify(t, d, secret)) },
		stripesim.TamperUnsigned:  func(t *testing.T, d received, _ string) { require.Empty(t, d.signature) },
		stripesim.TamperStale: func(t *testing.T, d received, secret string) {
			require.Equal(t, 1, verify(t, d, secret))
			require.Less(t, stamp(t, d), time.Now().Add(-50*time.Minute).Unix())
		},
		stripesim.TamperFuture: func(t *testing.T, d received, secret string) {
			require.Equal(t, 1, verify(t, d, secret))
			require.Greater(t, stamp(t, d), time.Now().Add(50*time.Minute).Unix())
		},
		stripesim.TamperVersion: func(t *testing.T, d received, secret string) {
			require.Equal(t, 1, verify(t, d, secret))
			require.NotEqual(t, stripesim.APIVersion, d.event["api_version"])
		},
		stripesim.TamperLivemode: func(t *testing.T, d received, secret string) {
			require.Equal(t, 1, verify(t, d, secret))
			require.Equal(t, true, d.event["livemode"])
		},
	} {
		t.Run(string(tamper), func(t *testing.T) {
			t.Parallel()
			c := start(t, soon)
			e := c.listen(nil, "payment_intent.created")
			e.answer = func(received) int { return map[bool]int{true: 400, false: 200}[len(e.deliveries()) == 1] }
			c.delivery(stripesim.DeliveryRule{Tamper: tamper})
			c.create()
			got := e.wait(2)
			wrong(t, got[0], e.secret)
			require.Equal(t, 1, verify(t, got[1], e.secret))
			require.Equal(t, stripesim.APIVersion, got[1].event["api_version"])
		})
	}
}

func stamp(t *testing.T, d received) int64 {
	t.Helper()
	_, rest, _ := strings.Cut(d.signature, "t=")
	text, _, _ := strings.Cut(rest, ",")
	at, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return at
}

func TestSecretsAreRolledWithAnOverlap(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	e := c.listen(nil, "payment_intent.created")
	next, err := c.sim.RollSecret(e.id, time.Hour)
	require.NoError(t, err)
	require.NotEqual(t, e.secret, next)
	c.create()
	both := e.wait(1)[0]
	require.Equal(t, 1, verify(t, both, e.secret), "one signature by each")
	require.Equal(t, 1, verify(t, both, next))
	require.NoError(t, c.sim.Advance(time.Hour))
	c.create()
	after := e.wait(2)[1]
	require.Zero(t, verify(t, after, e.secret))
	require.Equal(t, 1, verify(t, after, next))
	_, err = c.sim.RollSecret("we_none", time.Hour)
	require.ErrorIs(t, err, stripesim.ErrNotFound)
}

func TestEndpointsAreKeptThroughStripesAPI(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	e := c.listen(nil)
	path := "/v1/webhook_endpoints/" + e.id
	r := c.get(path)
	require.Equal(t, e.url, r.text("url"))
	require.Empty(t, r.text("secret"), "shown once")
	require.Equal(t, []any{"*"}, r.at("enabled_events"))
	require.Equal(t, []string{e.id}, ids(c.get("/v1/webhook_endpoints")))

	require.Equal(t, "disabled", c.post(path, "", "disabled", "true", "description", "a", "metadata[a]", "b", "url", e.url+"?x", "enabled_events[]", "charge.refunded").text("status"))
	c.create()
	require.Equal(t, 0.0, c.get("/v1/events", "limit", "1").at("data").([]any)[0].(map[string]any)["pending_webhooks"])
	require.Equal(t, "enabled", c.post(path, "", "disabled", "false").text("status"))

	require.Equal(t, 200, c.send(t.Context(), http.MethodDelete, path, "", "").status)
	require.Equal(t, 404, c.get(path).status)
	require.Empty(t, ids(c.get("/v1/webhook_endpoints")))
	for _, pairs := range [][]string{
		{"url", "nowhere", "enabled_events[]", "*"},
		{"url", e.url},
		{"url", e.url, "enabled_events", ""},
		{"enabled_events[]", "*"},
		{"url", e.url, "enabled_events[]", "*", "api_version", "2020-08-27"},
		{"url", e.url, "enabled_events[]", "*", "connect", "true"},
	} {
		require.Equal(t, 400, c.post("/v1/webhook_endpoints", "", pairs...).status, "%v", pairs)
	}
}

func TestDeletedEndpointGetsNothingMore(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	gone, stays := c.listen(nil), c.listen(nil)
	rule := c.delivery(stripesim.DeliveryRule{Endpoint: gone.id, Hold: true, Times: -1})
	c.create()
	stays.wait(1)
	require.Equal(t, 200, c.send(t.Context(), http.MethodDelete, "/v1/webhook_endpoints/"+gone.id, "", "").status)
	require.NoError(t, rule.Release())
	c.create()
	stays.wait(2)
	require.Empty(t, gone.deliveries())
}

func TestEventsCanBeInvented(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	e := c.listen(nil, "payment_intent.succeeded")
	id := c.create()
	status, emitted := c.control("POST", "emit", `{"type":"payment_intent.succeeded","object_id":"`+id+`"}`)
	require.Equal(t, 200, status)
	got := e.wait(1)[0]
	require.Equal(t, emitted["event"], got.id())
	require.Equal(t, "requires_payment_method", got.event["data"].(map[string]any)["object"].(map[string]any)["status"], "as it is, not as the type says")
	status, _ = c.control("POST", "emit", `{"type":"payment_intent.succeeded","object":{"id":"pi_foreign","object":"payment_intent"}}`)
	require.Equal(t, 200, status)
	require.True(t, bytes.Contains(e.wait(2)[1].body, []byte("pi_foreign")))
	for body, want := range map[string]int{
		`{"type":"x"}`: 400, `{"type":"x","object_id":"pi_none"}`: 404, `{"object_id":"` + id + `"}`: 400, `{"kind":"x"}`: 400,
	} {
		status, _ = c.control("POST", "emit", body)
		require.Equal(t, want, status, body)
	}
}

func TestDeliveriesAreSteeredOverHTTP(t *testing.T) {
	t.Parallel()
	c := start(t, soon)
	e := c.listen(nil, "payment_intent.created")
	status, rule := c.control("POST", "delivery_rules", `{"event":"payment_intent.*","hold":true,"delay_ms":1,"jitter_ms":1}`)
	require.Equal(t, 200, status)
	c.create()
	require.Len(t, c.controlList("delivery_rules"), 1)
	require.Empty(t, e.deliveries())
	status, _ = c.control("POST", "delivery_rules/"+rule["id"].(string)+"/release", "")
	require.Equal(t, 200, status)
	event := e.wait(1)[0].id()
	status, _ = c.control("POST", "events/"+event+"/resend", "")
	require.Equal(t, 200, status)
	e.wait(2)
	require.Eventually(t, func() bool { return len(c.controlList("deliveries")) == 2 }, 20*time.Second, time.Millisecond)
	status, rolled := c.control("POST", "webhook_endpoints/"+e.id+"/roll", "overlap=1h")
	require.Equal(t, 200, status)
	require.Regexp(t, `^whsec_`, rolled["secret"])
	status, _ = c.control("POST", "webhook_endpoints/"+e.id+"/roll", "overlap=soon")
	require.Equal(t, 400, status)
	status, _ = c.control("DELETE", "delivery_rules/"+rule["id"].(string), "")
	require.Equal(t, 200, status)
	status, _ = c.control("DELETE", "delivery_rules/"+rule["id"].(string), "")
	require.Equal(t, 404, status)
}

func (c *client) delivery(rule stripesim.DeliveryRule) *stripesim.ActiveDelivery {
	c.t.Helper()
	active, err := c.sim.AddDelivery(rule)
	require.NoError(c.t, err)
	return active
}
