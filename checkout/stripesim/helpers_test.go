package stripesim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// client talks to a local Stripe as any program would: raw HTTP, one account.
type client struct {
	t       *testing.T
	sim     *stripesim.Server
	url     string
	key     string
	version string
	// unchecked is for answers that are wrong on purpose; every other one is held against Stripe's specification.
	unchecked bool
}

// start serves a local Stripe for the test.
func start(t *testing.T, config stripesim.Config) *client {
	t.Helper()
	sim, err := stripesim.New(config)
	require.NoError(t, err)
	server := httptest.NewServer(sim)
	t.Cleanup(func() {
		require.NoError(t, sim.Close())
		server.Close()
	})
	return &client{t: t, sim: sim, url: server.URL, key: "sk_test_local"}
}

// reply is an answer, or the error of a connection that broke.
type reply struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any
	err    error
}

// at returns a value inside the answer: at("error", "payment_intent", "status").
func (r reply) at(path ...string) any {
	var v any = r.body
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func (r reply) text(path ...string) string {
	s, _ := r.at(path...).(string)
	return s
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// send makes one request on a connection of its own: Go's transport sends a keyed POST again by itself when a kept
// connection breaks.
func (c *client) send(ctx context.Context, method, path, idempotencyKey, body string) reply {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	require.NoError(c.t, err)
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.version != "" {
		request.Header.Set("Stripe-Version", c.version)
	}
	if idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Close = true
	request.GetBody = nil
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = answer.Body.Close() }()
	r := reply{status: answer.StatusCode, header: answer.Header}
	if r.raw, r.err = io.ReadAll(answer.Body); r.err == nil {
		_ = json.Unmarshal(r.raw, &r.body)
	}
	if r.err == nil && strings.HasPrefix(path, "/v1/") && answer.Header.Get("Content-Type") == "application/json" && !c.unchecked {
		requireStripe(c.t, r.raw)
	}
	return r
}

func (c *client) post(path, key string, pairs ...string) reply {
	return c.send(context.Background(), http.MethodPost, path, key, form(pairs...))
}

func (c *client) get(path string, pairs ...string) reply {
	if len(pairs) > 0 {
		path += "?" + form(pairs...)
	}
	return c.send(context.Background(), http.MethodGet, path, "", "")
}

// form encodes names and values; brackets stay as they are, as stripe-go sends them.
func form(pairs ...string) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		parts = append(parts, pairs[i]+"="+url.QueryEscape(pairs[i+1]))
	}
	return strings.Join(parts, "&")
}

// create makes a PaymentIntent of $49.00 for cards and returns its id.
func (c *client) create(pairs ...string) string {
	c.t.Helper()
	r := c.post("/v1/payment_intents", "", append([]string{
		"amount", "4900", "currency", "usd", "payment_method_types[0]", "card", "metadata[order]", "ord_1",
	}, pairs...)...)
	require.Equal(c.t, 200, r.status, "%s", r.raw)
	return r.text("id")
}

func (c *client) confirm(id, key, method string, pairs ...string) reply {
	return c.post("/v1/payment_intents/"+id+"/confirm", key, append([]string{"payment_method", method}, pairs...)...)
}

// status asks for a PaymentIntent's status.
func (c *client) status(id string) string {
	c.t.Helper()
	r := c.get("/v1/payment_intents/" + id)
	require.Equal(c.t, 200, r.status)
	return r.text("status")
}

// charges asks for a PaymentIntent's charges and returns how many succeeded.
func (c *client) charges(id string) int {
	c.t.Helper()
	r := c.get("/v1/charges", "payment_intent", id)
	require.Equal(c.t, 200, r.status)
	paid := 0
	for _, ch := range r.at("data").([]any) {
		if ch.(map[string]any)["status"] == "succeeded" {
			paid++
		}
	}
	return paid
}

// wait returns when the rule has acted on n calls.
func wait(t *testing.T, rule *stripesim.ActiveRule, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(t, rule.Wait(ctx, n), fmt.Sprintf("rule %s", rule.ID()))
}

func (c *client) rule(rule stripesim.Rule) *stripesim.ActiveRule {
	c.t.Helper()
	active, err := c.sim.Add(rule)
	require.NoError(c.t, err)
	return active
}

// later runs a call beside the test and returns where its reply will be.
func later(call func() reply) <-chan reply {
	replies := make(chan reply, 1)
	go func() { replies <- call() }()
	return replies
}
