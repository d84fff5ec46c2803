package checkout

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const readOrders = `
	SELECT o.account, o.id, o.amount, o.currency, o.status, o.closing_at IS NOT NULL, o.payment_key, o.created_at,
	       o.expires_at, o.paid_at, c.slug, c.title, c.summary, c.amount, c.currency
	  FROM orders o JOIN courses c ON c.slug = o.course
	 WHERE o.account = $1`

func scanOrder(from pgx.CollectableRow) (o Order, err error) {
	var paidAt *time.Time
	c := &o.Course
	err = from.Scan(&o.Account, &o.ID, &o.Price.Amount, &o.Price.Currency, &o.Status, &o.Closing, &o.PaymentKey,
		&o.CreatedAt, &o.ExpiresAt, &paidAt, &c.Slug, &c.Title, &c.Summary, &c.Price.Amount, &c.Price.Currency)
	if paidAt != nil {
		o.PaidAt = *paidAt
	}
	return o, err
}

// Order gives one order with its payments and refunds. It returns ErrNotFound
// if there is none or it is another account's.
func (s *Service) Order(ctx context.Context, account, id string) (Order, error) {
	if !ourID.MatchString(id) {
		return Order{}, ErrNotFound
	}
	o, err := s.readOrder(ctx, account, id)
	if err != nil {
		return Order{}, fmt.Errorf("reading order %s: %w", id, err)
	}
	return o, nil
}

// readOrder reads an order and what belongs to it in one round trip.
func (s *Service) readOrder(ctx context.Context, account, id string) (o Order, err error) {
	batch := &pgx.Batch{}
	batch.Queue(readOrders+` AND o.id = $2`, account, id).Query(func(rows pgx.Rows) (err error) {
		o, err = pgx.CollectExactlyOneRow(rows, scanOrder)
		return found(err)
	})
	batch.Queue(`SELECT`+paymentColumns+`FROM payments WHERE account = $1 AND order_id = $2 ORDER BY created_at, id`, account, id).
		Query(func(rows pgx.Rows) (err error) {
			o.Payments, err = pgx.CollectRows(rows, func(from pgx.CollectableRow) (Payment, error) {
				var p paymentRow
				err := p.scan(from)
				return p.Payment, err
			})
			return err
		})
	batch.Queue(`SELECT`+refundColumns+`FROM refunds WHERE account = $1 AND order_id = $2 ORDER BY created_at, id`, account, id).
		Query(func(rows pgx.Rows) (err error) {
			o.Refunds, err = pgx.CollectRows(rows, func(from pgx.CollectableRow) (Refund, error) {
				var r refundRow
				err := r.scan(from)
				return r.Refund, err
			})
			return err
		})
	return o, s.pool.SendBatch(ctx, batch).Close()
}

// Orders lists the account's newest hundred orders, newest first, without
// their payments.
func (s *Service) Orders(ctx context.Context, account string) ([]Order, error) {
	rows, _ := s.pool.Query(ctx, readOrders+` ORDER BY o.created_at DESC, o.id LIMIT 100`, account)
	list, err := pgx.CollectRows(rows, scanOrder)
	if err != nil {
		return nil, fmt.Errorf("reading the orders: %w", err)
	}
	return list, nil
}
