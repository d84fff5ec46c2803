package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"payonce/idempotency"
)

// hintTries bounds how often a question is asked again because the rows moved
// on while it was answered.
const hintTries = 3

// errStale: the rows moved on since the question was asked.
var errStale = errors.New("the answer is about an older state")

// view is what was read of an order, without locks, before a question.
type view struct {
	order   orderRow
	payment paymentRow // in the slot, else the newest; its id is empty if there is none
}

func (v view) witness() witness {
	return witness{version: v.payment.Version, generation: v.order.Generation}
}

// unsettled is true while an answer of the provider could change something for
// somebody who is not the attempt's owner.
func (v view) unsettled() bool {
	return v.order.Intent != "" && (v.payment.Status == PaymentRequiresAction || v.payment.Status == PaymentProcessing)
}

// look reads an order and the payment that an answer would be about. It returns
// ErrNotFound if there is no such order.
func (s *Service) look(ctx context.Context, account, order string) (v view, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`SELECT`+orderColumns+`FROM orders WHERE account = $1 AND id = $2`, account, order).
		QueryRow(func(from pgx.Row) error { return found(v.order.scan(from)) })
	batch.Queue(`SELECT`+paymentColumns+`FROM payments WHERE account = $1 AND order_id = $2
		 ORDER BY status IN ('pending', 'requires_action', 'processing', 'succeeded') DESC, created_at DESC, id LIMIT 1`, account, order).
		QueryRow(func(from pgx.Row) error {
			if err := v.payment.scan(from); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		})
	return v, s.pool.SendBatch(ctx, batch).Close()
}

// Ask asks the provider what became of an order's payment that waits for the
// bank or for settlement, and settles what it says. Nothing is asked about a
// payment whose owner is at work, or when nothing waits. It never cancels.
//
// It returns ErrNotFound, ErrOutcomeUnknown if the provider did not say, or an
// error of the database.
func (s *Service) Ask(ctx context.Context, account, order string) error {
	if !ourID.MatchString(order) {
		return ErrNotFound
	}
	_, err := s.askAndSettle(ctx, account, order, nil)
	return err
}

// askAndSettle asks about the order's current intent, without a transaction,
// and settles the answer in one. also, if set, adds to that transaction before
// any lock of a business row: an event goes first in the lock order.
func (s *Service) askAndSettle(ctx context.Context, account, order string, also func(tx *idempotency.Tx)) (settled, error) {
	for range hintTries {
		v, err := s.look(ctx, account, order)
		if err != nil {
			return settled{}, err
		}
		if !v.unsettled() {
			return settled{}, s.justRecord(ctx, also)
		}
		asking, cancel := detach(ctx, s.ProviderTimeout)
		intent, err := s.provider.Intent(asking, v.order.Intent)
		cancel()
		if err != nil {
			return settled{}, fmt.Errorf("%w: asking about an order: %w", ErrOutcomeUnknown, err)
		}
		result, err := s.settleHint(ctx, v, intent, also)
		if !errors.Is(err, errStale) {
			return result, err
		}
	}
	return settled{}, fmt.Errorf("%w: %w", ErrOutcomeUnknown, errStale)
}

// justRecord runs also alone: there is nothing to settle.
func (s *Service) justRecord(ctx context.Context, also func(tx *idempotency.Tx)) error {
	if also == nil {
		return nil
	}
	return s.ledger.Transact(ctx, func(_ context.Context, tx *idempotency.Tx) error {
		also(tx)
		return nil
	})
}

// settleHint settles what somebody else than the attempt's owner learned. It
// found its rows without locks; now it takes them in the one order, event, key,
// order, payment, and looks again.
func (s *Service) settleHint(ctx context.Context, v view, intent Intent, also func(tx *idempotency.Tx)) (result settled, err error) {
	ctx, cancel := detach(ctx, recordTimeout)
	defer cancel()
	err = s.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {
		var h held
		if also != nil {
			also(tx)
			if err := tx.Flush(ctx); err != nil { // an event that was here before ends it
				return err
			}
		}
		idempotency.LockKey(tx, v.order.Account, idempotency.Key(v.payment.Key))
		queueLockOrder(tx, v.order.Account, v.order.ID, &h.order)
		queueLockPayment(tx, v.order.Account, v.payment.ID, &h.payment)
		queueSlot(tx, v.order, &h.slot)
		queueElsewhere(tx, v.order, intent, &h.elsewhere)
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		if h.slot != "" && h.slot != v.payment.ID && intent.Status == IntentSucceeded {
			return errStale // a success belongs to the payment in the slot
		}
		result, err = s.settle(tx, h, intent, v.witness())
		switch {
		case err != nil:
			return err
		case result.stale:
			return errStale
		case result.answer.Status != 0:
			s.ledger.Settle(tx, v.order.Account, idempotency.Key(v.payment.Key), result.answer)
		}
		return nil
	})
	if errors.Is(err, errMismatch) {
		s.log.Error("an intent does not belong to its payment: a person must look",
			slog.String("order", v.order.ID), slog.String("intent", intent.ID))
	}
	return result, err
}

// queueSlot reads which payment holds the order's slot. The order is locked, so
// no other can take it.
func queueSlot(tx *idempotency.Tx, o orderRow, slot *string) {
	tx.Queue(`
		SELECT coalesce((SELECT id FROM payments WHERE account = $1 AND order_id = $2
		   AND status IN ('pending', 'requires_action', 'processing', 'succeeded')), '')`, o.Account, o.ID).
		QueryRow(func(from pgx.Row) error { return from.Scan(slot) })
}

// queueElsewhere reads whether an intent, or the charge it made, is already
// another order's of this account. An intent names its order in its metadata,
// and whoever may edit that in the dashboard could pay two orders with one
// charge.
func queueElsewhere(tx *idempotency.Tx, o orderRow, in Intent, elsewhere *bool) {
	tx.Queue(`
		SELECT EXISTS (SELECT 1 FROM orders WHERE account = $1 AND intent = $3 AND id <> $2)
		    OR EXISTS (SELECT 1 FROM payments WHERE account = $1 AND charge = $4 AND status = 'succeeded' AND order_id <> $2)`,
		o.Account, o.ID, in.ID, in.Charge).
		QueryRow(func(from pgx.Row) error { return from.Scan(elsewhere) })
}
