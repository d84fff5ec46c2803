package checkout

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"payonce/idempotency"
)

// OrdersOf lists the newest hundred orders of each of some accounts, newest
// first, with their payments and refunds: what a page of keys is grouped by. It
// is one round trip for all accounts.
func (s *Service) OrdersOf(ctx context.Context, accounts ...string) ([]Order, error) {
	var (
		list []Order
		at   = map[[2]string]int{}
	)
	batch := &pgx.Batch{}
	batch.Queue(`
		SELECT o.* FROM unnest($1::text[]) AS wanted (account)
		 CROSS JOIN LATERAL (`+readAccountOrders+` LIMIT 100) AS o`, accounts).Query(func(rows pgx.Rows) (err error) {
		list, err = pgx.CollectRows(rows, scanOrder)
		for i, o := range list {
			at[[2]string{o.Account, o.ID}] = i
		}
		return err
	})
	batch.Queue(`SELECT`+paymentColumns+`FROM payments WHERE account = ANY($1) ORDER BY created_at, id`, accounts).
		Query(eachRow(func(from pgx.Row) error {
			var p paymentRow
			err := p.scan(from)
			if i, listed := at[[2]string{p.Account, p.Order}]; listed {
				list[i].Payments = append(list[i].Payments, p.Payment)
			}
			return err
		}))
	batch.Queue(`SELECT`+refundColumns+`FROM refunds WHERE account = ANY($1) ORDER BY created_at, id`, accounts).
		Query(eachRow(func(from pgx.Row) error {
			var r refundRow
			err := r.scan(from)
			if i, listed := at[[2]string{r.Account, r.Order}]; listed {
				list[i].Refunds = append(list[i].Refunds, r.Refund)
			}
			return err
		}))
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("reading the orders of accounts: %w", err)
	}
	return list, nil
}

// readAccountOrders is readOrders for the account of an outer row.
var readAccountOrders = strings.Replace(readOrders, "$1", "wanted.account", 1) + ` ORDER BY o.created_at DESC, o.id`

// NeedsPerson is true for a key that the completer has given up: nothing but a
// person, or the same request once more, will end it.
func NeedsPerson(k idempotency.KeyState) bool {
	return k.Status == idempotency.InProgress && k.LeaseLeft < 0 && k.CompleterTries >= len(keySchedule)
}

// eachRow scans row by row.
func eachRow(scan func(from pgx.Row) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}
