package main

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"payonce/checkout"
)

// stuckTimeout bounds the question behind the gauge: whoever scrapes gives up
// after ten seconds (Prometheus's default).
const stuckTimeout = 3 * time.Second

// newMetrics is the registry of the shop's metrics. The gauge is asked for at
// each scrape, of the database: every shop on it gives the same figure, and none
// has to count along.
func newMetrics(stuck func(context.Context) ([]checkout.Stuck, error), log *slog.Logger) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "payonce_waiting_for_a_person",
		Help: "Payments, refunds, orders and events that wait for a person, as shop stuck lists them: at most 100. NaN if the database did not say.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), stuckTimeout)
		defer cancel()
		list, err := stuck(ctx)
		if err != nil {
			// Not 0, which would say that all is well.
			log.Warn("counting what waits for a person", slog.Any("err", err))
			return math.NaN()
		}
		return float64(len(list))
	}))
	return registry
}
