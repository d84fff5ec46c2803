package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/web"
)

// lines are the log's, decoded.
func (s *shop) lines() (lines []map[string]any) {
	s.t.Helper()
	for line := range strings.Lines(s.log.String()) {
		var l map[string]any
		require.NoError(s.t, json.Unmarshal([]byte(line), &l))
		lines = append(lines, l)
	}
	return lines
}

// TestTheLogTellsNoSecret: a line a request, which finds the key in the ledger
// and could not send it.
func TestTheLogTellsNoSecret(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.log.Reset()
	s.fake.answers(declined())
	got := s.send(post(payments, `{"confirmation_token":"ctoken_hunter2"}`, header("Authorization", "Bearer hunter2")))
	s.send(get("/orders?token=hunter2"))
	s.send(post("/orders?token=hunter2", `{}`))

	lines := s.lines()
	require.Len(t, lines, 3)
	l := lines[0]
	require.Equal(t, "INFO", l["level"])
	require.Equal(t, got.header.Get("X-Request-Id"), l["request"])
	require.Equal(t, "POST", l["method"])
	require.Equal(t, payments, l["path"])
	require.Equal(t, "/orders/:id/payments", l["route"])
	require.InDelta(t, 402, l["status"], 0)
	require.Equal(t, "card_declined", l["code"])
	require.Equal(t, false, l["replayed"])
	require.Equal(t, someKey[:8]+"...", l["key"])

	log := s.log.String()
	require.NotContains(t, log, "hunter2")
	require.NotContains(t, log, someKey)
	require.NotContains(t, log, s.cookie.Value)
}

func TestShortKeysAreNotLoggedWhole(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.send(post("/orders", `{"course":"a"}`, key("QZXW")))
	require.NotContains(t, s.log.String(), "QZXW")
	require.Contains(t, s.log.String(), `"key":"QZ..."`)
}

// TestRequestIDsAreOurs: a client cannot choose under which id it is logged.
func TestRequestIDsAreOurs(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := s.send(get("/", header("X-Request-Id", "mine"))).header.Get("X-Request-Id")
	second := s.send(get("/", header("X-Request-Id", "mine"))).header.Get("X-Request-Id")
	require.NotEqual(t, "mine", first)
	require.NotEqual(t, first, second)
}

// TestReplaysAreNotBelievedFromTheClient: the marker is the ledger's to set.
func TestReplaysAreNotBelievedFromTheClient(t *testing.T) {
	t.Parallel()
	s := open(t)
	got := s.send(post("/orders", `{"course":"a"}`, header("Idempotent-Replayed", "true")))
	require.Empty(t, got.header.Get("Idempotent-Replayed"))
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s := open(t, func(c *web.Config) { c.Metrics = registry })
	s.fake.fails(checkout.ErrNotFound)
	s.send(post(payments, withVisa))
	s.send(post("/orders/ord_other/payments", withVisa))
	s.send(get("/nothing/1"))
	s.send(get("/nothing/2"))
	s.send(request("BREW", "/nothing", "", nil))
	s.send(request(http.MethodDelete, "/orders", "", nil))

	w := httptest.NewRecorder()
	s.server.MetricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`payonce_http_requests_total{method="POST",route="/orders/:id/payments",status="404"} 2`,
		`payonce_http_requests_total{method="GET",route="none",status="404"} 2`,
		`payonce_http_requests_total{method="other",route="none",status="404"} 1`,
		`payonce_http_requests_total{method="other",route="/orders",status="405"} 1`,
		`payonce_http_request_duration_seconds_count{method="POST",route="/orders/:id/payments"} 2`,
	} {
		require.Contains(t, w.Body.String(), want)
	}
	require.NotContains(t, w.Body.String(), "ord_other")

	_, err := web.New(config(&fake{}))
	require.NoError(t, err)
	c := config(&fake{})
	c.Metrics = registry
	_, err = web.New(c)
	require.ErrorContains(t, err, "registering metrics")
}

// TestTracing: the traced shop answers as the untraced one.
func TestTracing(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *web.Config) { c.Tracing = true })
	require.Equal(t, 200, s.send(get("/")).status)
	require.Equal(t, 201, s.send(post(payments, withVisa)).status)
}
