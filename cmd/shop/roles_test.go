package main

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
)

func TestRoles(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	// abandoned is an order whose payment was charged and whose owner is gone.
	abandoned := func(t *testing.T) (*shop, checkout.Order) {
		t.Helper()
		s := openShop(t)
		o, err := s.order("pm_sim_reply_lost")
		require.ErrorIs(t, err, checkout.ErrOutcomeUnknown)
		s.exec(`UPDATE idempotency_keys SET lease_until = lease_until - interval '1 hour' WHERE status = 'in_progress'`)
		s.exec(`INSERT INTO events (id, type, status, received_at) VALUES ('evt_old', 'x', 'applied', clock_timestamp() - interval '60 days')`)
		return s, o
	}
	command := func(interval time.Duration) *serveCommand {
		c := &serveCommand{}
		c.CompleterInterval, c.Retention, c.EventRetention = interval, 72*time.Hour, 1080*time.Hour
		return c
	}
	events := func(s *shop) (n int) {
		require.NoError(s.t, s.pool.QueryRow(s.t.Context(), `SELECT count(*) FROM events`).Scan(&n))
		return n
	}

	t.Run("FinishWhatNobodyIsLeftToFinish", func(t *testing.T) {
		t.Parallel()
		s, o := abandoned(t)
		stop := play(t.Context(), command(100*time.Millisecond).roles(s.Service, s.ledger, log))
		defer stop()
		s.until("the completer finishes the payment", func() bool { return s.now(o.ID).Status == checkout.OrderPaid })
		s.until("the reaper forgets the event", func() bool { return events(s) == 0 })
		require.Equal(t, 1, s.stripe.Counts().ChargesByOrder[o.ID])
	})

	t.Run("AreWithoutACompleterWhereTheIntervalIsZero", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		names := func(interval time.Duration) (list []string) {
			for _, r := range command(interval).roles(s.Service, s.ledger, log) {
				require.Positive(t, r.interval)
				list = append(list, r.name)
			}
			return list
		}
		require.Equal(t, []string{"reaper"}, names(0))
		require.Equal(t, []string{"reaper", "completer"}, names(time.Second))
	})

	t.Run("EndOnlyWhenTheRunThatIsUnderWayHasEnded", func(t *testing.T) {
		t.Parallel()
		running, goOn := make(chan struct{}), make(chan struct{})
		var ended, runs atomic.Int64
		stop := every(t.Context(), time.Hour, func(ctx context.Context) {
			runs.Add(1)
			close(running)
			<-ctx.Done() // told to stop
			<-goOn
			ended.Add(1)
		})
		<-running
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		require.Zero(t, ended.Load())
		close(goOn)
		<-stopped
		require.Equal(t, int64(1), ended.Load())
		require.Equal(t, int64(1), runs.Load())
	})
}

// TestWaitingForAPerson: the gauge says what shop stuck lists, and no figure at
// all when nobody can tell.
func TestWaitingForAPerson(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	gauge := func(t *testing.T, stuck func(context.Context) ([]checkout.Stuck, error)) float64 {
		t.Helper()
		families, err := newMetrics(stuck, log).Gather()
		require.NoError(t, err)
		require.Len(t, families, 1)
		require.Equal(t, "payonce_waiting_for_a_person", families[0].GetName())
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	s := openShop(t)
	require.Zero(t, gauge(t, s.Stuck))
	s.exec(`INSERT INTO events (id, type, status) VALUES ('evt_1', 'x', 'parked'), ('evt_2', 'x', 'parked'), ('evt_3', 'x', 'applied')`)
	require.InDelta(t, 2, gauge(t, s.Stuck), 0)
	require.True(t, math.IsNaN(gauge(t, func(context.Context) ([]checkout.Stuck, error) { return nil, errors.New("away") })))
}
