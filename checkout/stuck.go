package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"payonce/idempotency"
)

// Stuck is something that waits for a person: the completer has asked about it
// as often as its schedule allows.
type Stuck struct {
	// Kind is payment, refund, order or event; ID is the row's.
	Kind, ID string
	Account  string
	// Order is the order it belongs to, if any.
	Order string
	// Why says what is not known, in a few words.
	Why   string
	Since time.Time
}

// Stuck lists what waits for a person, oldest first, at most a hundred.
func (s *Service) Stuck(ctx context.Context) ([]Stuck, error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT kind, id, account, order_id, why, since FROM (
			SELECT 'payment' AS kind, p.id, p.account, p.order_id, 'the outcome of a payment is unknown' AS why, p.updated_at AS since
			  FROM idempotency_keys k JOIN payments p ON p.account = k.scope AND p.key = k.key AND p.status = 'pending'
			 WHERE k.status = 'in_progress' AND k.completer_tries >= $1 AND k.lease_until < clock_timestamp()
			UNION ALL
			SELECT 'refund', r.id, r.account, r.order_id, 'the outcome of a refund is unknown', r.updated_at
			  FROM idempotency_keys k JOIN refunds r ON r.account = k.scope AND r.key = k.key AND r.status = 'pending'
			 WHERE k.status = 'in_progress' AND k.completer_tries >= $1 AND k.lease_until < clock_timestamp()
			UNION ALL
			SELECT 'payment', id, account, order_id, 'it is still ' || status, updated_at FROM payments
			 WHERE (status = 'processing' AND asks >= $2) OR (status = 'requires_action' AND asks >= $3)
			UNION ALL
			SELECT 'refund', id, account, order_id, 'it is still pending', updated_at FROM refunds
			 WHERE status = 'pending' AND asks >= $4
			UNION ALL
			SELECT 'refund', r.id, r.account, r.order_id, 'it failed, and its order is closed: the money is still here', r.updated_at
			  FROM refunds r
			  JOIN payments p ON p.account = r.account AND p.id = r.payment_id AND p.refunded < p.amount
			  JOIN orders o ON o.account = r.account AND o.id = r.order_id AND o.status IN ('refunded', 'expired')
			 WHERE r.status = 'failed' AND NOT EXISTS (
				SELECT 1 FROM refunds x WHERE x.account = r.account AND x.payment_id = r.payment_id AND x.status = 'pending')
			UNION ALL
			SELECT 'order', id, account, id, 'it could not be closed', expires_at FROM orders
			 WHERE status = 'open' AND expires_at < clock_timestamp() AND asks >= $5
			UNION ALL
			SELECT 'event', id, coalesce(account, ''), '', coalesce(detail, 'it was parked'), received_at FROM events
			 WHERE status = 'parked') AS waiting
		 ORDER BY since LIMIT 100`,
		len(keySchedule), len(processingSchedule), len(actionSchedule), len(refundSchedule), len(orderSchedule))
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Stuck])
	if err != nil {
		return nil, fmt.Errorf("listing what waits for a person: %w", err)
	}
	return list, nil
}

// ErrNotStuck: nothing of that id waits for a person. By AskAgain.
var ErrNotStuck = errors.New("nothing of that id waits for a person")

// AskAgain gives a row back to the completer, from the start of its schedule;
// id is a payment's, a refund's, an order's or a parked event's, which is then
// settled by hand and leaves the list. It returns ErrNotStuck.
func (s *Service) AskAgain(ctx context.Context, id string) error {
	list, err := s.Stuck(ctx)
	if err != nil {
		return err
	}
	for _, stuck := range list {
		if stuck.ID == id {
			return s.askAgain(ctx, stuck)
		}
	}
	return ErrNotStuck
}

func (s *Service) askAgain(ctx context.Context, stuck Stuck) error {
	if stuck.Kind == "event" {
		_, err := s.pool.Exec(ctx, `UPDATE events SET status = 'ignored' WHERE id = $1 AND status = 'parked'`, stuck.ID)
		return err
	}
	table := stuck.Kind + "s" // payments, refunds or orders: our own words, from Stuck
	if _, err := s.pool.Exec(ctx, `
		UPDATE `+table+` SET asks = 0, ask_at = clock_timestamp() WHERE account = $1 AND id = $2`, stuck.Account, stuck.ID); err != nil {
		return fmt.Errorf("giving a row back to the completer: %w", err)
	}
	if stuck.Kind == "order" {
		return nil
	}
	var key string
	err := s.pool.QueryRow(ctx, `SELECT coalesce(key, '') FROM `+table+` WHERE account = $1 AND id = $2`, stuck.Account, stuck.ID).Scan(&key)
	if err != nil || key == "" {
		return err
	}
	if err := s.ledger.AskAgain(ctx, stuck.Account, idempotency.Key(key)); !errors.Is(err, idempotency.ErrNotStuck) {
		return err
	}
	return nil
}
