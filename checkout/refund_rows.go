package checkout

import (
	"time"

	"payonce/idempotency"
)

// refundRow is a refund as a transaction holds it.
type refundRow struct {
	Refund
	Account string
	// SentAgo is how long ago the run of its sends began; 0 if it was never sent.
	SentAgo time.Duration
}

const refundColumns = ` account, id, payment_id, order_id, coalesce(key, ''), origin, status, amount, currency,
	coalesce(refund, ''), created_at, coalesce(extract(epoch FROM clock_timestamp() - sent_at), 0)::float8 `

func (r *refundRow) scan(from pgxRow) error {
	var sentAgo float64
	err := from.Scan(&r.Account, &r.ID, &r.Payment, &r.Order, &r.Key, &r.Origin, &r.Status, &r.Price.Amount, &r.Price.Currency,
		&r.ProviderID, &r.CreatedAt, &sentAgo)
	r.SentAgo = time.Duration(sentAgo * float64(time.Second))
	return err
}

// queueLockRefunded locks the order and the payment of a refund, in this order,
// and reads them and what else is being refunded.
func queueLockRefunded(tx *idempotency.Tx, account, payment string, g *giving) {
	tx.Queue(`
		SELECT`+orderColumns+`FROM orders
		 WHERE account = $1 AND id = (SELECT order_id FROM payments WHERE account = $1 AND id = $2)
		   FOR UPDATE`, account, payment).
		QueryRow(func(from pgxRow) error { return found(g.order.scan(from)) })
	queueLockPayment(tx, account, payment, &g.payment)
	tx.Queue(`SELECT coalesce(sum(amount), 0)::bigint FROM refunds WHERE account = $1 AND payment_id = $2 AND status = 'pending'`,
		account, payment).
		QueryRow(func(from pgxRow) error { return from.Scan(&g.reserved) })
	tx.Queue(`SELECT paid_at < clock_timestamp() - $3::interval FROM orders
		 WHERE account = $1 AND id = (SELECT order_id FROM payments WHERE account = $1 AND id = $2) AND paid_at IS NOT NULL
		 UNION ALL SELECT false LIMIT 1`, account, payment, g.window).
		QueryRow(func(from pgxRow) error { return from.Scan(&g.late) })
}
