package checkout

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Disputes lists what the buyer's bank questions of an order's charges, oldest
// first. An order that is not the account's has none.
func (s *Service) Disputes(ctx context.Context, account, order string) ([]Dispute, error) {
	if !ourID.MatchString(order) {
		return nil, nil
	}
	rows, _ := s.pool.Query(ctx, `
		SELECT d.id, d.charge, d.status, d.reason, d.amount, d.currency
		  FROM disputes d JOIN payments p ON p.account = d.account AND p.id = d.payment_id
		 WHERE p.account = $1 AND p.order_id = $2
		 ORDER BY d.created_at, d.id`, account, order)
	list, err := pgx.CollectRows(rows, func(from pgx.CollectableRow) (d Dispute, err error) {
		err = from.Scan(&d.ID, &d.Charge, &d.Status, &d.Reason, &d.Money.Amount, &d.Money.Currency)
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the disputes of an order: %w", err)
	}
	return list, nil
}
