package main

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"payonce/checkout"
	"payonce/idempotency"
)

// reapInterval is how often finished keys and old events are looked for; each
// turn goes on while there are some.
const reapInterval = time.Minute

// roles are what every shop does beside selling: finish what nobody is left to
// finish, and forget what nobody can ask for any more. All shops of a database
// do both; its rows decide who does what.
func (c *serveCommand) roles(service *checkout.Service, ledger *idempotency.Ledger, log *slog.Logger) []role {
	roles := []role{{"reaper", reapInterval, func(ctx context.Context) { c.reap(ctx, service, ledger, log) }}}
	if c.CompleterInterval > 0 {
		roles = append(roles, role{"completer", c.CompleterInterval, func(ctx context.Context) { complete(ctx, service, log) }})
	}
	return roles
}

// role is what a shop does again and again, at an interval.
type role struct {
	name     string
	interval time.Duration
	run      func(context.Context)
}

// play starts the roles. The returned function ends them, the last one first,
// and waits for a run that is under way.
func play(ctx context.Context, roles []role) (stop func()) {
	var stops []func()
	for _, r := range roles {
		stops = append(stops, every(ctx, r.interval, r.run))
	}
	return func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
}

func complete(ctx context.Context, service *checkout.Service, log *slog.Logger) {
	done, err := service.CompleteOnce(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		log.Warn("completing", slog.Any("err", err))
	case done != checkout.CompleteResult{}:
		log.Info("completed", slog.Int("keys", done.Keys), slog.Int("payments", done.Payments),
			slog.Int("refunds", done.Refunds), slog.Int("orders", done.Orders), slog.Int("unknown", done.Unknown))
	}
}

func (c *serveCommand) reap(ctx context.Context, service *checkout.Service, ledger *idempotency.Ledger, log *slog.Logger) {
	for {
		keys, err := ledger.ReapOnce(ctx, idempotency.Reap{Retention: c.Retention, Keep: checkout.KeepKeys})
		events := 0
		if err == nil {
			events, err = service.ReapEventsOnce(ctx, c.EventRetention)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("reaping", slog.Any("err", err))
		}
		if err != nil || (keys.Keys == 0 && events == 0) {
			return
		}
		log.Info("reaped", slog.Int("keys", keys.Keys), slog.Int("history", keys.History), slog.Int("events", events))
	}
}

// every runs f at once and then at each interval, until the returned function
// is called, which waits for a run to end.
func every(ctx context.Context, interval time.Duration, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			f(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}
