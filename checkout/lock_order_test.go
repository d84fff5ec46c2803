package checkout_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
)

// TestLocksAreTakenInOneOrder: key, order, payment, whoever settles. Two that
// settle one payment in two orders wait for each other, and the database ends
// one of them.
func TestLocksAreTakenInOneOrder(t *testing.T) {
	t.Parallel()
	for name, settles := range map[string]struct {
		// prepare gives what settles the order's payment.
		prepare func(*shop, checkout.OrderView) func() error
	}{
		"TheOwner": {func(s *shop, o checkout.OrderView) func() error {
			hold, err := s.stripe.Add(stripesim.Rule{Path: confirmPath, Action: stripesim.Hold, At: stripesim.Answer})
			require.NoError(s.t, err)
			owner := s.start(o.ID, o.PaymentKey, visa)
			require.NoError(s.t, hold.Wait(s.t.Context(), 1))
			return func() error {
				hold.Release()
				return <-owner
			}
		}},
		"AnEvent": {func(s *shop, o checkout.OrderView) func() error {
			_, err := s.pay(o.ID, o.PaymentKey, "pm_sim_reply_lost")
			conflict(s.t, err, checkout.ErrOutcomeUnknown)
			in := s.intent(o.ID)
			return func() error {
				_, err := s.HandleEvent(context.Background(), checkout.Event{
					ID: "evt_paid", Type: "payment_intent.succeeded", CreatedAt: time.Now(), Intent: &in, IntentID: in.ID,
				})
				return err
			}
		}},
		"TheWayBack": {func(s *shop, o checkout.OrderView) func() error {
			require.NoError(s.t, s.stripe.Finish(s.asked(o).PaymentIntent, stripesim.Succeeded))
			return func() error { return s.Ask(context.Background(), account, o.ID) }
		}},
		"ACancel": {func(s *shop, o checkout.OrderView) func() error {
			payment := s.asked(o)
			return func() error {
				_, err := s.Cancel(context.Background(), checkout.CancelRequest{Account: account, Payment: payment.ID})
				return err
			}
		}},
		"TheCompleter": {func(s *shop, o checkout.OrderView) func() error {
			s.asked(o)
			_, err := s.pool.Exec(s.t.Context(), "UPDATE payments SET ask_at = ask_at - interval '30 hours'")
			require.NoError(s.t, err)
			return func() error {
				_, err := s.CompleteOnce(context.Background())
				return err
			}
		}},
		"ATakeover": {func(s *shop, o checkout.OrderView) func() error {
			_, err := s.pay(o.ID, o.PaymentKey, "pm_sim_reply_lost")
			conflict(s.t, err, checkout.ErrOutcomeUnknown)
			s.lapse()
			return func() error {
				_, err := s.pay(o.ID, o.PaymentKey, "pm_sim_reply_lost")
				return err
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			order := s.order(course)
			settle := settles.prepare(s, order)

			holder, err := s.pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = holder.Rollback(context.Background()) }()
			_, err = holder.Exec(t.Context(), "SELECT 1 FROM orders WHERE id = $1 FOR UPDATE", order.ID)
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() { done <- settle() }()
			s.until("it waits for the order", func() bool {
				return s.count("pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", holder.Conn().PgConn().PID()) > 0
			})
			require.False(t, s.isFree("idempotency_keys WHERE key = $1", order.PaymentKey), "the key is locked before the order")
			require.True(t, s.isFree("payments WHERE order_id = $1", order.ID), "the payment is locked after it")
			require.NoError(t, holder.Rollback(t.Context()))
			require.NoError(t, <-done)
		})
	}
}

// isFree is true if nobody has locked the row.
func (s *shop) isFree(row string, args ...any) bool {
	s.t.Helper()
	tx, err := s.pool.Begin(s.t.Context())
	require.NoError(s.t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	rows, _ := tx.Query(s.t.Context(), "SELECT true FROM "+row+" FOR UPDATE SKIP LOCKED", args...)
	found, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	require.NoError(s.t, err)
	return len(found) == 1
}
