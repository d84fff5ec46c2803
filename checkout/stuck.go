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
// as often as its schedule allows, or asking cannot help.
type Stuck struct {
	// Kind is payment, refund, order or event; ID is the row's.
	Kind, ID string
	Account  string
	// Order is the order it belongs to, if any.
	Order string
	// Why says what is not known, or what to do, in a few words.
	Why   string
	Since time.Time
	// failed is true for a refund that failed: asking about it changes nothing.
	failed bool
}

// Stuck lists what waits for a person, oldest first, at most a hundred.
func (s *Service) Stuck(ctx context.Context) ([]Stuck, error) { return s.stuck(ctx, "") }

// stuck lists what waits for a person, or only what has the id. Each row is
// found by an index that holds little else.
func (s *Service) stuck(ctx context.Context, id string) ([]Stuck, error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT kind, id, account, order_id, why, since, failed FROM (
			SELECT 'payment' AS kind, p.id, p.account, p.order_id, 'the outcome of a payment is unknown' AS why, p.updated_at AS since, false AS failed
			  FROM idempotency_keys k JOIN payments p ON p.account = k.scope AND p.key = k.key AND p.status = 'pending'
			 WHERE k.status = 'in_progress' AND k.completer_tries >= $1 AND k.lease_until < clock_timestamp()
			UNION ALL
			SELECT 'refund', r.id, r.account, r.order_id, 'the outcome of a refund is unknown', r.updated_at, false
			  FROM idempotency_keys k JOIN refunds r ON r.account = k.scope AND r.key = k.key AND r.status = 'pending'
			 WHERE k.status = 'in_progress' AND k.completer_tries >= $1 AND k.lease_until < clock_timestamp()
			UNION ALL
			SELECT 'payment', id, account, order_id, 'it is still ' || status, updated_at, false FROM payments
			 WHERE status IN ('requires_action', 'processing') AND asks >= CASE status WHEN 'processing' THEN $2::int ELSE $3::int END
			UNION ALL
			SELECT 'refund', id, account, order_id, 'it is still pending', updated_at, false FROM refunds
			 WHERE status = 'pending' AND asks >= $4
			UNION ALL
			SELECT 'refund', r.id, r.account, r.order_id,
			       'it failed, and its order is closed: shop refund ' || p.id || ' ' || (p.amount - p.refunded) || ' gives the rest back', r.updated_at, true
			  FROM refunds r
			  JOIN payments p ON p.account = r.account AND p.id = r.payment_id AND p.refunded < p.amount
			  JOIN orders o ON o.account = r.account AND o.id = r.order_id AND o.status IN ('refunded', 'expired')
			 WHERE r.status = 'failed' AND r.dismissed_at IS NULL AND NOT EXISTS (
				SELECT 1 FROM refunds x WHERE x.account = r.account AND x.payment_id = r.payment_id
				   AND (x.status = 'pending' OR x.status = 'failed' AND (x.created_at, x.id) > (r.created_at, r.id)))
			UNION ALL
			SELECT 'order', id, account, id, 'it could not be closed', expires_at, false FROM orders
			 WHERE status = 'open' AND expires_at < clock_timestamp() AND asks >= $5
			UNION ALL
			SELECT 'event', id, coalesce(account, ''), '', coalesce(detail, $6), received_at, false FROM events
			 WHERE status IN ('waiting', 'parked') AND (status = 'parked' OR received_at < clock_timestamp() - $7::interval)) AS waiting
		 WHERE $8 = '' OR id = $8
		 ORDER BY since LIMIT 100`,
		len(keySchedule), len(processingSchedule), len(actionSchedule), len(refundSchedule), len(orderSchedule),
		notKnown, eventPatience, id)
	list, err := pgx.CollectRows(rows, func(from pgx.CollectableRow) (w Stuck, err error) {
		err = from.Scan(&w.Kind, &w.ID, &w.Account, &w.Order, &w.Why, &w.Since, &w.failed)
		return w, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing what waits for a person: %w", err)
	}
	return list, nil
}

// What AskAgain and Dismiss refuse.
var (
	// ErrNotStuck: nothing of that id waits for a person. By AskAgain and Dismiss.
	ErrNotStuck = errors.New("nothing of that id waits for a person")
	// ErrRefundFailed: the provider could not give the money back, and asking it
	// again changes nothing; a new refund may. By AskAgain.
	ErrRefundFailed = errors.New("the refund failed, and asking about it changes nothing: give the money back by a new refund, or by other means and dismiss it")
	// ErrNotDismissable: it waits for an answer that only the provider can give.
	// By Dismiss.
	ErrNotDismissable = errors.New("only an event or a failed refund can be dismissed: ask about it again")
)

// AskAgain gives a payment, refund or order back to the completer, from the
// start of its schedule; or applies an event again, by asking the provider what
// it is about, and says what became of it: EventApplied, EventIgnored (it was
// nothing of ours) or EventParked (it still cannot work, and stays on the list).
// The result is empty for what is no event.
//
// It returns ErrNotStuck, ErrRefundFailed, or the error of HandleEvent.
func (s *Service) AskAgain(ctx context.Context, id string) (EventResult, error) {
	row, err := s.stuckRow(ctx, id)
	switch {
	case err != nil:
		return "", err
	case row.Kind == "event":
		return s.applyAgain(ctx, row)
	case row.failed:
		return "", ErrRefundFailed
	}
	return "", s.askAgain(ctx, row)
}

// Dismiss takes an event or a failed refund off the list: a person has dealt
// with it by other means. It returns ErrNotStuck or ErrNotDismissable.
func (s *Service) Dismiss(ctx context.Context, id string) error {
	row, err := s.stuckRow(ctx, id)
	switch {
	case err != nil:
		return err
	case row.Kind == "event":
		return s.dismissEvent(ctx, id)
	case !row.failed:
		return ErrNotDismissable
	}
	// All of the payment that failed: an older failure would come back for it.
	_, err = s.pool.Exec(ctx, `
		UPDATE refunds SET dismissed_at = clock_timestamp()
		 WHERE account = $1 AND status = 'failed' AND dismissed_at IS NULL
		   AND payment_id = (SELECT payment_id FROM refunds WHERE account = $1 AND id = $2)`, row.Account, id)
	if err != nil {
		return fmt.Errorf("dismissing a refund: %w", err)
	}
	return nil
}

// stuckRow finds what waits for a person under an id, wherever on the list.
func (s *Service) stuckRow(ctx context.Context, id string) (Stuck, error) {
	if len(id) > 255 || !printable(id) {
		return Stuck{}, ErrNotStuck
	}
	list, err := s.stuck(ctx, id)
	if err != nil {
		return Stuck{}, err
	}
	if len(list) == 0 {
		return Stuck{}, ErrNotStuck
	}
	return list[0], nil
}

// applyAgain handles an event as if it was delivered again. Its row has only
// the ids, so the provider is asked what there is to know.
func (s *Service) applyAgain(ctx context.Context, row Stuck) (EventResult, error) {
	e := Event{ID: row.ID, Hint: true, Live: s.Live}
	err := s.pool.QueryRow(ctx, `
		SELECT type, coalesce(intent, ''), coalesce(charge, ''), coalesce(dispute, ''), received_at FROM events WHERE id = $1`, row.ID).
		Scan(&e.Type, &e.IntentID, &e.Charge, &e.DisputeID, &e.CreatedAt)
	if err != nil {
		return "", fmt.Errorf("reading an event: %w", err)
	}
	result, err := s.HandleEvent(ctx, e)
	switch {
	case err != nil:
		return result, err
	case result == EventDuplicate: // another delivery was faster
		return EventApplied, nil
	case result == EventIgnored:
		return result, s.dismissEvent(ctx, row.ID)
	}
	return result, nil
}

func (s *Service) dismissEvent(ctx context.Context, id string) error {
	_, err := s.pool.Exec(ctx, `UPDATE events SET status = 'ignored' WHERE id = $1 AND status IN ('waiting', 'parked')`, id)
	if err != nil {
		return fmt.Errorf("dismissing an event: %w", err)
	}
	return nil
}

func (s *Service) askAgain(ctx context.Context, row Stuck) error {
	table := row.Kind + "s" // payments, refunds or orders: our own words, from Stuck
	if _, err := s.pool.Exec(ctx, `
		UPDATE `+table+` SET asks = 0, ask_at = clock_timestamp() WHERE account = $1 AND id = $2`, row.Account, row.ID); err != nil {
		return fmt.Errorf("giving a row back to the completer: %w", err)
	}
	if row.Kind == "order" {
		return nil
	}
	var key string
	err := s.pool.QueryRow(ctx, `SELECT coalesce(key, '') FROM `+table+` WHERE account = $1 AND id = $2`, row.Account, row.ID).Scan(&key)
	if err != nil || key == "" {
		return err
	}
	if err := s.ledger.AskAgain(ctx, row.Account, idempotency.Key(key)); !errors.Is(err, idempotency.ErrNotStuck) {
		return err
	}
	return nil
}
