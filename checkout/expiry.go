package checkout

import (
	"context"
	"errors"

	"payonce/idempotency"
)

// dueOrders takes open orders whose time is over, or whose closing was
// interrupted. An order with a payment on its way is left until that is
// resolved.
func (s *Service) dueOrders(ctx context.Context) ([]task, error) {
	rows, _ := s.pool.Query(ctx, `
		UPDATE orders SET asks = asks + 1, ask_at = clock_timestamp() + make_interval(secs => ($1::float8[])[asks + 1])
		 WHERE (account, id) IN (
			SELECT account, id FROM orders o
			 WHERE status = 'open' AND expires_at < clock_timestamp() AND ask_at < clock_timestamp() AND asks < cardinality($1::float8[])
			   AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.account = o.account AND p.order_id = o.id
				AND p.status IN ('pending', 'processing', 'succeeded'))
			 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING account, id`, seconds(orderSchedule), completerBatch)
	return collectTasks(rows, s.expire)
}

// expire closes an order whose time is over. It closes first, under the order's
// lock, which refuses new claims and new generations; then cancels the current
// intent; then ends in expired, or in paid if the money was faster. Canceling
// first would let a claim open the next intent in between.
func (s *Service) expire(ctx context.Context, account, order string) (bool, error) {
	closed, o, err := s.closeOrder(ctx, account, order)
	if err != nil || !closed {
		return false, err
	}
	if o.Intent == "" || o.Canceled {
		return s.endOrder(ctx, o)
	}
	calling, hangUp := detach(ctx, s.ProviderTimeout)
	defer hangUp()
	intent, err := s.cancelIntent(calling, o, newID("by_"))
	if err != nil {
		return false, err
	}
	for range hintTries {
		v, err := s.look(ctx, account, order)
		if err != nil {
			return false, err
		}
		if v.payment.ID != "" {
			if _, err = s.settleHint(ctx, v, intent, nil); errors.Is(err, errStale) {
				continue
			}
		}
		if err != nil || intent.Status != IntentCanceled {
			return intent.Status == IntentSucceeded, err
		}
		return s.endOrder(ctx, o)
	}
	return false, errStale
}

// closeOrder sets closing_at, unless a payment is on its way or is money.
func (s *Service) closeOrder(ctx context.Context, account, order string) (closed bool, o orderRow, err error) {
	ctx, cancel := detach(ctx, recordTimeout)
	defer cancel()
	err = s.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {
		closed = false
		queueLockOrder(tx, account, order, &o)
		var busy bool
		tx.Queue(`
			SELECT EXISTS (SELECT 1 FROM payments WHERE account = $1 AND order_id = $2
			   AND status IN ('pending', 'processing', 'succeeded'))`, account, order).
			QueryRow(func(from pgxRow) error { return from.Scan(&busy) })
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		if busy || o.Status != OrderOpen || !o.PastTime {
			return nil
		}
		closed = true
		tx.Queue(`
			UPDATE orders SET closing_at = coalesce(closing_at, clock_timestamp())
			 WHERE account = $1 AND id = $2 AND status = 'open'`, account, order)
		return nil
	})
	return closed, o, err
}

// endOrder ends a closed order whose intent is canceled, or that never had one.
func (s *Service) endOrder(ctx context.Context, o orderRow) (bool, error) {
	tag, err := s.pool.Exec(ctx, `
		UPDATE orders SET status = 'expired', closing_at = NULL, intent_canceled = intent IS NOT NULL
		 WHERE account = $1 AND id = $2 AND status = 'open' AND closing_at IS NOT NULL AND coalesce(intent, '') = $3
		   AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.account = $1 AND p.order_id = $2
			AND p.status IN ('pending', 'requires_action', 'processing', 'succeeded'))`,
		o.Account, o.ID, o.Intent)
	return tag.RowsAffected() == 1, err
}
