package web_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
	"payonce/web"
)

const hook = "/webhooks/stripe"

// listen opens the shop to its local Stripe, as a program's own registration at
// Stripe does.
func (s *realShop) listen() {
	s.t.Helper()
	server := httptest.NewServer(s.server)
	s.t.Cleanup(server.Close)
	endpoint, err := s.provider.CreateEndpoint(s.t.Context(), server.URL+hook, "endpoint:"+server.URL)
	require.NoError(s.t, err)
	s.secret.Store(&endpoint.Secret)
}

// signature is Stripe's, spelled out (https://docs.stripe.com/webhooks#verify-manually).
func signature(body, secret string, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// delivery is a delivery of Stripe's: no cookie, no origin, and a program's Accept.
func delivery(body, signed string, changes ...with) *http.Request {
	return request(http.MethodPost, hook, body, append([]with{
		header("Content-Type", "application/json; charset=utf-8"), header("Stripe-Signature", signed), header("Cookie", "none=1"),
	}, changes...))
}

// object reads an object of the local Stripe as it is on the wire.
func (s *realShop) object(path string) (object map[string]any) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+path, nil)
	require.NoError(s.t, err)
	r.SetBasicAuth("sk_test_local", "")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	decoder := json.NewDecoder(answer.Body)
	decoder.UseNumber()
	require.NoError(s.t, decoder.Decode(&object))
	require.Equal(s.t, 200, answer.StatusCode, object)
	return object
}

// stripeEvent is an event about an object, as Stripe writes one.
func stripeEvent(id, kind string, object map[string]any, changes ...map[string]any) string {
	e := map[string]any{
		"id": id, "object": "event", "api_version": "2024-06-20", "created": time.Now().Unix(), "livemode": false,
		"pending_webhooks": 1, "request": map[string]any{"id": nil, "idempotency_key": nil}, "type": kind, "data": map[string]any{"object": object},
	}
	for _, change := range changes {
		maps.Copy(e, change)
	}
	body, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return string(body)
}

// deliver sends an event as Stripe does, signed now.
func (s *realShop) deliver(body string) answer {
	s.t.Helper()
	return s.send(delivery(body, signature(body, webhookSecret, time.Now())))
}

// result demands a delivery's result under a status.
func (a answer) result(status int, want string) {
	a.t.Helper()
	require.Equal(a.t, status, a.status, string(a.body))
	require.JSONEq(a.t, `{"result":"`+want+`"}`, string(a.body))
	require.Empty(a.t, a.cookies, "a delivery is no customer")
	require.Empty(a.t, a.header.Get("Location"))
}

// lost pays with the reply lost: charged at Stripe, and not known here. It gives
// the order, and the event that would tell.
func (s *realShop) lost() (order checkout.OrderView, object map[string]any) {
	s.t.Helper()
	order = s.ordered(slug)
	got := s.send(post("/orders/"+order.ID+"/payments", `{"payment_method":"pm_sim_reply_lost"}`, key(order.PaymentKey)))
	require.Equal(s.t, 503, got.status, string(got.body))
	var intent string
	require.NoError(s.t, s.pool.QueryRow(s.t.Context(), `SELECT intent FROM orders WHERE id = $1`, order.ID).Scan(&intent))
	return order, s.object("/v1/payment_intents/" + intent)
}

const succeeded = "payment_intent.succeeded"

func TestWebhook(t *testing.T) {
	t.Parallel()

	t.Run("SettlesAPaymentAndItsKey", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order, object := s.lost()
		body := stripeEvent("evt_1", succeeded, object)
		s.deliver(body).result(200, "applied")
		require.Equal(t, checkout.OrderPaid, s.order(order.ID).Status)
		again := s.send(post("/orders/"+order.ID+"/payments", `{"payment_method":"pm_sim_reply_lost"}`, key(order.PaymentKey)))
		require.Equal(t, 201, again.status)
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		s.deliver(body).result(200, "duplicate")
		s.deliver(stripeEvent("evt_2", succeeded, object)).result(200, "applied") // the same news under another id
		require.Equal(t, 2, s.rows("events"))
		require.Equal(t, 1, s.rows("enrolments"))
		require.Equal(t, 1, s.charges(order.ID))
	})

	t.Run("RefusesWhatStripeDidNotSign", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order, object := s.lost()
		body := stripeEvent("evt_1", succeeded, object)
		now := time.Now()
		right := signature(body, webhookSecret, now)
		for name, r := range map[string]*http.Request{
			"unsigned":             delivery(body, "", func(r *http.Request) { r.Header.Del("Stripe-Signature") }),
			"an empty signature":   delivery(body, ""),
			"no signature in it":   delivery(body, fmt.Sprintf("t=%d", now.Unix())),
			"another's secret":     delivery(body, signature(body, "whsec_another_another_another", now)),
			"an empty secret":      delivery(body, signature(body, "", now)),
			"signed an hour ago":   delivery(body, signature(body, webhookSecret, now.Add(-time.Hour))),
			"signed an hour ahead": delivery(body, signature(body, webhookSecret, now.Add(time.Hour))),
			"a later time on it":   delivery(body, strings.Replace(signature(body, webhookSecret, now.Add(-time.Hour)), fmt.Sprintf("t=%d", now.Add(-time.Hour).Unix()), fmt.Sprintf("t=%d", now.Unix()), 1)),
			"a byte more":          delivery(body+" ", right),
			"another amount":       delivery(strings.Replace(body, "4900", "4901", 1), right),
			"another scheme":       delivery(body, strings.Replace(right, "v1=", "v0=", 1)),
			"no event":             delivery("{}", signature("{}", webhookSecret, now)),
			"no JSON":              delivery("succeeded", signature("succeeded", webhookSecret, now)),
			"nothing":              delivery("", signature("", webhookSecret, now)),
		} {
			got := s.send(r)
			got.result(400, "refused")
			require.NotContains(t, string(got.body), "whsec_", name)
			require.Equal(t, checkout.OrderOpen, s.order(order.ID).Status, name)
		}
		require.Zero(t, s.rows("events"), "nothing is forgotten by having been seen")
		s.deliver(body).result(200, "applied")
	})

	t.Run("RefusesWhatIsTooLarge", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		_, object := s.lost()
		object["description"] = strings.Repeat("x", 1<<20)
		s.deliver(stripeEvent("evt_1", succeeded, object)).result(413, "too_large")
		require.Zero(t, s.rows("events"))
		object["description"] = strings.Repeat("x", 1<<19)
		s.deliver(stripeEvent("evt_1", succeeded, object)).result(200, "applied")
	})

	t.Run("IgnoresWhatIsNotOurs", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order, object := s.lost()
		foreign := maps.Clone(object)
		foreign["metadata"] = map[string]any{}
		hostile := maps.Clone(object)
		hostile["metadata"] = map[string]any{"order": "../../x", "account": "a b"}
		for id, body := range map[string]string{
			"a foreign intent":        stripeEvent("evt_1", succeeded, foreign),
			"metadata that is no id":  stripeEvent("evt_2", succeeded, hostile),
			"live mode":               stripeEvent("evt_3", succeeded, object, map[string]any{"livemode": true}),
			"a type of no interest":   stripeEvent("evt_4", "customer.created", map[string]any{"id": "cus_1", "object": "customer"}),
			"an intent's other event": stripeEvent("evt_5", "payment_intent.created", object),
		} {
			s.deliver(body).result(200, "ignored")
			require.Equal(t, checkout.OrderOpen, s.order(order.ID).Status, id)
		}
	})

	t.Run("ParksWhatCanNeverWork", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order, object := s.lost()
		for id, change := range map[string]map[string]any{
			"evt_amount":   {"amount": 4901, "amount_received": 4901},
			"evt_currency": {"currency": "eur"},
			"evt_charge":   {"latest_charge": nil},
		} {
			wrong := maps.Clone(object)
			maps.Copy(wrong, change)
			body := stripeEvent(id, succeeded, wrong)
			s.deliver(body).result(200, "parked")
			s.deliver(body).result(200, "parked")
		}
		require.Equal(t, checkout.OrderOpen, s.order(order.ID).Status)
		require.Equal(t, 3, s.rows("events WHERE status = 'parked'"))
	})

	t.Run("SendsBackWhatIsNotKnownYetAndParksItAfterAnHour", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		_, object := s.lost()
		object["metadata"].(map[string]any)["order"] = someOrder
		body := stripeEvent("evt_1", succeeded, object)
		s.deliver(body).result(503, "not_yet")
		s.deliver(body).result(503, "not_yet")
		old := stripeEvent("evt_2", succeeded, object, map[string]any{"created": time.Now().Add(-2 * time.Hour).Unix()})
		s.deliver(old).result(503, "not_yet") // after an outage, say: it came a moment ago
		require.Equal(t, 2, s.rows("events WHERE status = 'waiting'"))
		_, err := s.pool.Exec(t.Context(), `UPDATE events SET received_at = received_at - interval '2 hours'`)
		require.NoError(t, err)
		s.deliver(body).result(200, "parked")
	})

	t.Run("AsksToComeAgainWhileStripeCannotBeAsked", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		p := s.asked(order)
		object := s.object("/v1/payment_intents/" + p.PaymentIntent)
		rule, err := s.stripe.Add(stripesim.Rule{Method: "GET", Path: "/v1/payment_intents/*", Action: stripesim.Drop, Times: -1})
		require.NoError(t, err)
		body := stripeEvent("evt_1", "payment_intent.requires_action", object)
		s.deliver(body).result(503, "not_yet")
		rule.Remove()
		s.deliver(body).result(200, "applied")
		s.deliver(body).result(200, "duplicate")
	})

	t.Run("DoesNotAnswer200WhileAnotherDeliveryRuns", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order, object := s.lost()
		running, err := s.pool.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = running.Rollback(t.Context()) }()
		_, err = running.Exec(t.Context(), `INSERT INTO events (id, type, status) VALUES ('evt_1', 'x', 'applied')`)
		require.NoError(t, err)
		body := stripeEvent("evt_1", succeeded, object)
		s.deliver(body).result(409, "running")
		require.NoError(t, running.Rollback(t.Context()))
		require.Equal(t, checkout.OrderOpen, s.order(order.ID).Status)
		s.deliver(body).result(200, "applied")
	})

	t.Run("IsHeardByTheLocalStripe", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		s.listen()
		_, err := s.stripe.AddDelivery(stripesim.DeliveryRule{Event: succeeded, Tamper: stripesim.TamperBody})
		require.NoError(t, err)
		order, _ := s.lost()
		s.until("a retry has settled it", func() bool { return s.order(order.ID).Status == checkout.OrderPaid })
		require.Equal(t, 1, s.charges(order.ID))
	})
}

// TestTheSignatureIsTheOnlyProtection: whatever else browsers and sessions need
// does not stand in a delivery's way, and nothing reads its body first.
func TestTheSignatureIsTheOnlyProtection(t *testing.T) {
	t.Parallel()
	type delivered struct{ body, signature string }
	var got []delivered
	s := open(t, func(c *web.Config) {
		c.Webhook = func(body []byte, signature string) (checkout.Event, error) {
			got = append(got, delivered{string(body), signature})
			return checkout.Event{ID: "evt_1"}, nil
		}
	})
	s.cookie = nil
	bodies := []string{
		` { "id" : "evt_1", "amount":4.9e3,"x":"\u00e9" }` + "\r\n\x00\xff", "", "a=b&a=c&idempotency_key=k", strings.Repeat("{", 1<<20),
	}
	for _, body := range bodies {
		for name, change := range map[string]with{
			"as Stripe sends it":        func(*http.Request) {},
			"through another origin":    header("Origin", "https://dashboard.stripe.com"),
			"with a browser's metadata": header("Sec-Fetch-Site", "cross-site"),
			"as a form":                 header("Content-Type", "application/x-www-form-urlencoded"),
			"as something else":         header("Content-Type", "text/plain; charset=utf-16"),
			"asking for a page":         header("Accept", "text/html"),
			"with somebody's key":       key("one", "two"),
		} {
			got = nil
			s.fake.writes = nil
			a := s.send(request(http.MethodPost, hook, body, []with{header("Stripe-Signature", " t=1,v1=x "), change}))
			a.result(200, "applied")
			require.Equal(t, []delivered{{body, " t=1,v1=x "}}, got, name)
			require.Equal(t, []any{checkout.Event{ID: "evt_1"}}, s.fake.writes, name)
		}
	}
	require.Equal(t, 405, s.send(get(hook)).status)
	require.Equal(t, 403, s.send(post(payments, withVisa, header("Origin", "https://dashboard.stripe.com"))).status, "of all others, the origin is asked")
}

// TestNoEndpointWithoutASecret: a shop that cannot verify does not listen.
func TestNoEndpointWithoutASecret(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *web.Config) { c.Webhook = nil })
	r := delivery("{}", "t=1,v1=x")
	r.AddCookie(s.cookie)
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	require.Equal(t, 404, w.Code)
	_, err := io.ReadAll(w.Body)
	require.NoError(t, err)
}

// TestDeliveriesAreCounted by what became of them.
func TestDeliveriesAreCounted(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.send(delivery("{}", "forged")).result(400, "refused")
	w := httptest.NewRecorder()
	s.server.MetricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Contains(t, w.Body.String(), `payonce_webhook_events_total{result="refused"} 1`)
	require.Contains(t, s.log.String(), "a delivery was refused")
}
