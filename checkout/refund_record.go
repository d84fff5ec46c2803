package checkout

import (
	"context"
	"log/slog"
	"net/http"

	"payonce/idempotency"
)

func (s *Service) recordRefund(ctx context.Context, g *giving, v refundVerdict) (idempotency.Response, error) {
	if v.fault != nil {
		s.log.Info("the provider's answer to a refund", slog.String("refund", g.refund.ID),
			slog.String("outcome", v.outcome.String()), slog.Any("err", v.fault))
	}
	switch v.outcome {
	case outcomeAnswered:
		if v.refund.Money != g.refund.Price || !providerID.MatchString(v.refund.ID) {
			s.log.Error("the provider's refund is not the one asked for: a person must look", slog.String("refund", g.refund.ID))
			break
		}
		return s.ledger.Record(ctx, g.claim, func(ctx context.Context, tx *idempotency.Tx) (idempotency.Response, error) {
			if err := g.lock(ctx, tx); err != nil {
				return idempotency.Response{}, err
			}
			return settleRefund(tx, g, v.refund), nil
		})
	case outcomeNotMade:
		return s.ledger.Record(ctx, g.claim, func(ctx context.Context, tx *idempotency.Tx) (idempotency.Response, error) {
			if err := g.lock(ctx, tx); err != nil {
				return idempotency.Response{}, err
			}
			queueRefundStatus(tx, g, RefundFailed, "")
			return notRefundable(g), nil
		})
	case outcomeRetryable:
		sentinel := ErrProviderBusy
		if v.fault.Fault == FaultRefused {
			sentinel = ErrProviderRefused
			s.log.Error("the provider refused our refund", slog.String("refund", g.refund.ID), slog.Any("err", v.fault))
		}
		answer, err := s.ledger.Release(ctx, g.claim, func(ctx context.Context, tx *idempotency.Tx) error {
			if err := g.lock(ctx, tx); err != nil {
				return err
			}
			queueRefundStatus(tx, g, RefundFailed, "")
			return nil
		})
		if err == nil && answer == nil {
			err = &ConflictError{Err: sentinel, Order: g.order.ID, RetryAfter: 1}
		}
		return orEmpty(answer), err
	}
	sentinel := ErrOutcomeUnknown
	if v.outcome == outcomeKeyInUse {
		sentinel = idempotency.ErrInProgress
	}
	answer, err := s.ledger.GiveUp(ctx, g.claim, pointCalled)
	if err == nil && answer == nil {
		err = &ConflictError{Err: sentinel, Order: g.order.ID, RetryAfter: giveUpRetry}
	}
	return orEmpty(answer), err
}

// lock takes the locks of the record phase: order, payment, refund.
func (g *giving) lock(ctx context.Context, tx *idempotency.Tx) error {
	queueLockRefunded(tx, g.payment.Account, g.payment.ID, g)
	tx.Queue(`SELECT`+refundColumns+`FROM refunds WHERE account = $1 AND id = $2 FOR UPDATE`, g.refund.Account, g.refund.ID).
		QueryRow(g.scanRefund)
	return tx.Flush(ctx)
}

// refundStatus gives our word for Stripe's.
func refundStatus(said string) RefundStatus {
	switch said {
	case "succeeded":
		return RefundSucceeded
	case "failed", "canceled":
		return RefundFailed
	}
	return RefundPending
}

// settleRefund applies what Stripe says of a refund to its owner's question,
// and gives the answer. What was given back is counted once, from the refunds.
func settleRefund(tx *idempotency.Tx, g *giving, said ProviderRefund) idempotency.Response {
	g.refund.Status, g.refund.ProviderID = refundStatus(said.Status), said.ID
	queueRefundStatus(tx, g, g.refund.Status, said.ID)
	queueRefunded(tx, g)
	return refundAnswer(g)
}

func refundAnswer(g *giving) idempotency.Response {
	return idempotency.Response{Status: http.StatusCreated, Type: jsonType, Body: encode(g.refund.View())}
}

func queueRefundStatus(tx *idempotency.Tx, g *giving, status RefundStatus, id string) {
	tx.Queue(`
		UPDATE refunds SET status = $3, refund = coalesce(nullif($4, ''), refund), ask_at = clock_timestamp() + $5::interval,
		       updated_at = clock_timestamp()
		 WHERE account = $1 AND id = $2 AND status = 'pending'`,
		g.refund.Account, g.refund.ID, string(status), id, refundSchedule[0])
}

// queueRefunded writes what was given back. The sum is taken from the refunds,
// never from a difference of totals, which would count a pending one twice.
func queueRefunded(tx *idempotency.Tx, g *giving) {
	account, order := g.order.Account, g.order.ID
	tx.Queue(`
		UPDATE payments SET version = version + 1, updated_at = clock_timestamp(), refunded = (
			SELECT coalesce(sum(amount), 0) FROM refunds WHERE account = $1 AND payment_id = $2 AND status = 'succeeded')
		 WHERE account = $1 AND id = $2`, account, g.payment.ID)
	tx.Queue(`
		UPDATE orders SET status = 'refunded'
		 WHERE account = $1 AND id = $2 AND status = 'paid' AND amount = (
			SELECT refunded FROM payments WHERE account = $1 AND id = $3)`, account, order, g.payment.ID)
	tx.Queue(`
		UPDATE enrolments SET status = 'revoked', updated_at = clock_timestamp()
		 WHERE account = $1 AND order_id = $2 AND status = 'active'
		   AND EXISTS (SELECT 1 FROM orders WHERE account = $1 AND id = $2 AND status = 'refunded')`, account, order)
}

func orEmpty(answer *idempotency.Response) idempotency.Response {
	if answer == nil {
		return idempotency.Response{}
	}
	return *answer
}
