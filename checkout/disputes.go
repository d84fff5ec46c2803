package checkout

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"payonce/idempotency"
)

// Dispute is a charge that the buyer's bank questions.
type Dispute struct {
	ID, Charge string
	// Intent is the charge's, where the provider says so; it is not stored.
	Intent         string
	Status, Reason string
	Money          Money
}

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

// disputeEvent asks how the dispute stands and writes it beside the payment,
// which stays succeeded. What the event says is not used: events come in any
// order, and in any version's shape.
func (s *Service) disputeEvent(ctx context.Context, e Event) (EventResult, error) {
	if !providerID.MatchString(e.DisputeID) {
		return EventIgnored, nil
	}
	for range hintTries {
		result, err := s.askDispute(ctx, e)
		if !errors.Is(err, errStale) {
			return result, err
		}
	}
	return "", errStale
}

// askDispute asks once. The answer speaks only about the row that was read
// before the question; it returns errStale if another delivery has written a
// newer one meanwhile.
func (s *Service) askDispute(ctx context.Context, e Event) (EventResult, error) {
	var version int // 0: no row yet
	err := s.pool.QueryRow(ctx, `SELECT coalesce((SELECT version FROM disputes WHERE id = $1), 0)`, e.DisputeID).Scan(&version)
	if err != nil {
		return "", err
	}
	d, err := s.provider.Dispute(ctx, e.DisputeID)
	switch {
	case err != nil && notThere(err):
		return EventIgnored, nil
	case err != nil:
		return "", fmt.Errorf("asking about a dispute: %w", err)
	}
	v, err := s.charged(ctx, d.Charge, d.Intent)
	if err != nil || v.payment.ID == "" {
		return EventIgnored, err
	}
	return EventApplied, s.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {
		queueEvent(tx, e, v.payment.Account, "applied", "")
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO disputes (id, account, payment_id, charge, status, reason, amount, currency)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			    ON CONFLICT (account, id) DO UPDATE SET status = excluded.status, reason = excluded.reason, amount = excluded.amount,
			       version = disputes.version + 1, updated_at = clock_timestamp()
			 WHERE disputes.version = $9`,
			d.ID, v.payment.Account, v.payment.ID, d.Charge, short(d.Status), short(d.Reason), d.Money.Amount, d.Money.Currency, version)
		if err == nil && tag.RowsAffected() == 0 {
			return errStale
		}
		return err
	})
}
