package checkout

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"payonce/idempotency"
)

// CancelRequest gives up a payment that waits for the buyer's bank, so that
// another card can be used: POST /payments/{id}/cancel.
type CancelRequest struct {
	Account string
	Payment string
}

// Cancel cancels the payment's intent. It needs no key: it is idempotent by
// nature. The answer is 200 with the payment: canceled, with the order's next
// key; or succeeded, if the buyer's bank was faster; or as it ended before.
// Confirming a second card on an intent that waits for the first would break
// the attribution of its answers, so the next attempt gets a new intent.
//
// It returns ErrNotFound, or *ConflictError around ErrPaymentInProgress (the
// payment's owner is at work, or Stripe is settling it) or ErrOutcomeUnknown.
func (s *Service) Cancel(ctx context.Context, r CancelRequest) (CancelView, error) {
	if !ourID.MatchString(r.Payment) {
		return CancelView{}, ErrNotFound
	}
	for range hintTries {
		v, err := s.lookAtPayment(ctx, r)
		if err != nil {
			return CancelView{}, err
		}
		switch v.payment.Status {
		case PaymentRequiresAction:
		case PaymentPending, PaymentProcessing:
			return CancelView{}, &ConflictError{
				Err: ErrPaymentInProgress, Order: v.order.ID, Course: v.order.Course, Payment: &v.payment.Payment, RetryAfter: 1,
			}
		default:
			return v.canceled(), nil
		}
		_, err = s.cancelAndSettle(ctx, v)
		if err != nil && !errors.Is(err, errStale) {
			return CancelView{}, &ConflictError{
				Err: err, Order: v.order.ID, Course: v.order.Course, Payment: &v.payment.Payment, RetryAfter: giveUpRetry,
			}
		}
	}
	return CancelView{}, ErrOutcomeUnknown
}

// CancelView is the JSON of a payment after Cancel.
type CancelView struct {
	PaymentView
	// PaymentKey is the order's key while the order can be paid.
	PaymentKey string `json:"payment_key,omitempty"`
}

func (v view) canceled() CancelView {
	c := CancelView{PaymentView: v.payment.View()}
	if v.order.payable() == nil && !v.payment.Status.holdsSlot() {
		c.PaymentKey = v.order.PaymentKey
	}
	return c
}

// Response is the view as an answer.
func (v CancelView) Response() idempotency.Response {
	return idempotency.Response{Status: http.StatusOK, Type: jsonType, Body: encode(v)}
}

// lookAtPayment reads a payment and its order without locks.
func (s *Service) lookAtPayment(ctx context.Context, r CancelRequest) (v view, err error) {
	if err := found(v.payment.scan(s.pool.QueryRow(ctx,
		`SELECT`+paymentColumns+`FROM payments WHERE account = $1 AND id = $2`, r.Account, r.Payment))); err != nil {
		return view{}, err
	}
	err = found(v.order.scan(s.pool.QueryRow(ctx,
		`SELECT`+orderColumns+`FROM orders WHERE account = $1 AND id = $2`, r.Account, v.payment.Order)))
	return v, err
}

// cancelAndSettle cancels the order's current intent and settles what the
// provider says to that: canceled, or that it has succeeded.
func (s *Service) cancelAndSettle(ctx context.Context, v view) (settled, error) {
	calling, done := detach(ctx, s.ProviderTimeout)
	defer done()
	intent, err := s.cancelIntent(calling, v.order, newID("by_"))
	if err != nil {
		return settled{}, err
	}
	return s.settleHint(ctx, v, intent, nil)
}

// cancelIntent cancels the order's intent and gives what it is after that. It
// returns ErrOutcomeUnknown if the provider did not say.
func (s *Service) cancelIntent(ctx context.Context, o orderRow, owner string) (Intent, error) {
	intent, err := s.provider.CancelIntent(ctx, o.Intent, cancelKey(o, owner))
	if err == nil {
		return intent, nil
	}
	fault := judged(err)
	if fault.Fault == FaultUnexpectedState && fault.Intent != nil {
		return *fault.Intent, nil
	}
	if fault.Fault == FaultUnexpectedState {
		if intent, err = s.provider.Intent(ctx, o.Intent); err == nil {
			return intent, nil
		}
	}
	return Intent{}, fmt.Errorf("%w: canceling an intent: %w", ErrOutcomeUnknown, err)
}
