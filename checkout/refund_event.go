package checkout

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"payonce/idempotency"
)

// refundEvent reads the charge's refunds and applies them one by one.
func (s *Service) refundEvent(ctx context.Context, e Event) (EventResult, error) {
	if !providerID.MatchString(e.Charge) {
		return EventIgnored, nil
	}
	v, err := s.charged(ctx, e.Charge, e.IntentID)
	if err != nil || v.payment.ID == "" {
		return EventIgnored, err
	}
	return EventApplied, s.applyRefunds(ctx, v, func(tx *idempotency.Tx) { queueEvent(tx, e, v.payment.Account, "applied", "") })
}

// applyRefunds lists what Stripe gave back of a payment and writes each refund
// by its id: never as a difference of totals, which would count one of ours that
// is pending twice.
func (s *Service) applyRefunds(ctx context.Context, v view, also func(tx *idempotency.Tx)) error {
	list, err := s.provider.Refunds(ctx, v.payment.Charge)
	if err != nil {
		return fmt.Errorf("%w: listing the refunds of a charge: %w", ErrOutcomeUnknown, err)
	}
	keys, err := s.refundKeys(ctx, v.payment, list)
	if err != nil {
		return err
	}
	return s.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {
		if also != nil {
			also(tx)
			if err := tx.Flush(ctx); err != nil {
				return err
			}
		}
		g := &giving{window: s.RefundWindow}
		for _, key := range keys {
			idempotency.LockKey(tx, v.payment.Account, idempotency.Key(key))
		}
		queueLockRefunded(tx, v.payment.Account, v.payment.ID, g)
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		for _, said := range list {
			if said.Charge != v.payment.Charge || said.Money.Currency != v.payment.Price.Currency || !providerID.MatchString(said.ID) {
				continue
			}
			if err := s.applyRefund(ctx, tx, g, said); err != nil {
				return err
			}
		}
		queueRefunded(tx, g)
		return nil
	})
}

// refundKeys lists the keys under which these refunds were asked for, in their
// order, since keys are locked before the order.
func (s *Service) refundKeys(ctx context.Context, p paymentRow, list []ProviderRefund) ([]string, error) {
	ids := make([]string, 0, len(list))
	for _, said := range list {
		ids = append(ids, said.Refund)
	}
	rows, _ := s.pool.Query(ctx, `
		SELECT key FROM refunds WHERE account = $1 AND payment_id = $2 AND id = ANY ($3) AND key IS NOT NULL ORDER BY key`,
		p.Account, p.ID, ids)
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("reading the keys of refunds: %w", err)
	}
	return keys, nil
}

// applyRefund writes one refund: ours is settled, and its key completed; one
// that was made elsewhere gets a row. So does a second one at the provider that
// carries the name of one of ours: both moved money, and a row that told of one
// of them only would hide the other.
func (s *Service) applyRefund(ctx context.Context, tx *idempotency.Tx, g *giving, said ProviderRefund) error {
	account := g.payment.Account
	err := found(g.refund.scan(tx.QueryRow(ctx, `
		SELECT`+refundColumns+`FROM refunds
		 WHERE account = $1 AND payment_id = $2 AND (refund = $3 OR id = $4 AND refund IS NULL)
		 ORDER BY refund = $3 DESC NULLS LAST LIMIT 1 FOR UPDATE`, account, g.payment.ID, said.ID, said.Refund)))
	status := refundStatus(said.Status)
	if errors.Is(err, ErrNotFound) {
		tx.Queue(`
			INSERT INTO refunds (account, id, payment_id, order_id, origin, status, amount, currency, refund, ask_at)
			VALUES ($1, $2, $3, $4, 'elsewhere', $5, $6, $7, $8, clock_timestamp() + $9::interval)
			    ON CONFLICT DO NOTHING`,
			account, newID("ref_"), g.payment.ID, g.order.ID, string(status), said.Money.Amount, said.Money.Currency, said.ID, refundSchedule[0])
		return nil
	}
	if err != nil {
		return err
	}
	if !g.refund.moves(status) {
		return nil
	}
	tx.Queue(`UPDATE refunds SET status = $3, refund = $4, updated_at = clock_timestamp() WHERE account = $1 AND id = $2`,
		account, g.refund.ID, string(status), said.ID)
	g.refund.Status, g.refund.ProviderID = status, said.ID
	if g.refund.Key != "" {
		s.ledger.Settle(tx, account, idempotency.Key(g.refund.Key), refundAnswer(g))
	}
	return nil
}

// moves is true if what a list of refunds says of this one is news. The list was
// read before the row was locked, so it may be old: a refund goes from pending
// to succeeded to failed, perhaps days later, and never back. What we hold for
// not made, and the provider has after all, is money that moved.
func (r *refundRow) moves(said RefundStatus) bool {
	switch {
	case r.ProviderID == "":
		return true
	case r.Status == RefundPending:
		return said != RefundPending
	}
	return r.Status == RefundSucceeded && said == RefundFailed
}
