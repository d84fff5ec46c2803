package checkout

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// OrdersToldByRefunds lists the account's orders whose own status does not tell
// where the money is: an expired order that was charged late, and any whose
// refund is on its way or did not go through.
func (s *Service) OrdersToldByRefunds(ctx context.Context, account string) ([]string, error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT DISTINCT order_id FROM refunds WHERE account = $1 AND (origin = 'late' OR status <> 'succeeded')`, account)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("reading the orders with refunds: %w", err)
	}
	return list, nil
}
