package checkout

import (
	"context"
	"fmt"
)

// OrderOfPayment gives the order that a payment belongs to, with its payments
// and refunds. It returns ErrNotFound if there is no such payment or it is
// another account's.
func (s *Service) OrderOfPayment(ctx context.Context, account, payment string) (Order, error) {
	if !ourID.MatchString(payment) {
		return Order{}, ErrNotFound
	}
	var order string
	err := found(s.pool.QueryRow(ctx, `SELECT order_id FROM payments WHERE account = $1 AND id = $2`, account, payment).Scan(&order))
	if err != nil {
		return Order{}, fmt.Errorf("reading the order of payment %s: %w", payment, err)
	}
	return s.Order(ctx, account, order)
}
