package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics counts requests by method, route and status.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	events   *prometheus.CounterVec
}

func newMetrics(registry *prometheus.Registry) (*metrics, error) {
	m := &metrics{
		registry: registry,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "payonce_http_requests_total",
			Help: "Requests answered, by method, route and status.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "payonce_http_request_duration_seconds",
			Help: "Time from the first byte read to the last byte handed over.",
			// From a replay to the slowest call of a provider.
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20},
		}, []string{"method", "route"}),
	}
	m.events = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "payonce_webhook_events_total",
		Help: "Deliveries of Stripe's events, by what became of them.",
	}, []string{"result"})
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.events} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("web: registering metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) observe(method, route string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		method = "other" // the client's own words would each be a new series
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(method, route).Observe(took.Seconds())
}

// MetricsHandler serves the metrics in Prometheus's format. It is a handler of
// its own because the figures are not for the public.
func (s *Server) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
}
