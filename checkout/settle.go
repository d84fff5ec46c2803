package checkout

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"payonce/idempotency"
)

// errMismatch: an intent whose amount, currency, mode or order is not the
// payment's. It settles nothing.
var errMismatch = errors.New("the intent does not belong to the payment")

// settle applies what Stripe says of a payment's intent, and gives the answer.
// Everything that learns of an intent comes here: the record phase, and what
// else may hear of it first. It only moves forward; the same state twice is
// success.
//
// The caller holds the locks of the key, the order and the payment, taken in
// this order. What is queued here needs no row count: the rows are locked.
//
// It returns errMismatch if the intent is not this payment's.
func (s *Service) settle(tx *idempotency.Tx, o orderRow, p paymentRow, in Intent) (idempotency.Response, error) {
	if in.Money != p.Price || in.Live != s.Live || in.Order != o.ID || in.Account != o.Account || !providerID.MatchString(in.ID) {
		return idempotency.Response{}, errMismatch
	}
	p.Intent = in.ID
	switch in.Status {
	case IntentSucceeded:
		if !providerID.MatchString(in.Charge) {
			return idempotency.Response{}, errMismatch
		}
		return s.settlePaid(tx, o, p, in.Charge), nil
	case IntentRequiresAction:
		p.Status, p.NextAction = PaymentRequiresAction, bankURL(in.NextActionURL)
	case IntentProcessing:
		p.Status, p.NextAction = PaymentProcessing, ""
	default:
		return idempotency.Response{}, errMismatch
	}
	// The slot stays held, and no key is minted: this may still become money.
	tx.Queue(`
		UPDATE payments SET status = $3, intent = $4, next_action = nullif($5, ''), version = version + 1, updated_at = clock_timestamp()
		 WHERE account = $1 AND id = $2 AND status IN ('pending', 'requires_action', 'processing')`,
		p.Account, p.ID, string(p.Status), p.Intent, p.NextAction)
	return idempotency.Response{Status: http.StatusAccepted, Type: jsonType, Body: encode(p.View())}, nil
}

// settlePaid writes that the money moved: payment, order, enrolment.
func (s *Service) settlePaid(tx *idempotency.Tx, o orderRow, p paymentRow, charge string) idempotency.Response {
	switch {
	case p.Status == PaymentSucceeded: // known already
	case o.Status != OrderOpen:
		s.log.Error("money arrived for an order that is not open: a person must look",
			slog.String("order", o.ID), slog.String("payment", p.ID), slog.String("charge", charge))
	}
	p.Status, p.Charge = PaymentSucceeded, charge
	tx.Queue(`
		UPDATE payments SET status = 'succeeded', intent = $3, charge = $4, code = NULL, decline_code = NULL, next_action = NULL,
		       version = version + 1, updated_at = clock_timestamp()
		 WHERE account = $1 AND id = $2 AND status <> 'succeeded'`,
		p.Account, p.ID, p.Intent, p.Charge)
	if o.Status == OrderOpen {
		tx.Queue(`
			UPDATE orders SET status = 'paid', paid_at = clock_timestamp(), closing_at = NULL
			 WHERE account = $1 AND id = $2 AND status = 'open'`, o.Account, o.ID)
		queueEnrol(tx, o.Account, o.Course, o.ID)
	}
	return idempotency.Response{Status: http.StatusCreated, Type: jsonType, Body: encode(p.View())}
}

// decline writes that the provider said no to this payment's own confirm: the
// slot is free, and the next key minted.
func (s *Service) decline(tx *idempotency.Tx, o orderRow, p paymentRow, fault *ProviderError) idempotency.Response {
	p.Status, p.Code, p.DeclineCode = PaymentFailed, "card_declined", ""
	if word.MatchString(fault.Code) {
		p.Code = fault.Code
	}
	if word.MatchString(fault.DeclineCode) {
		p.DeclineCode = fault.DeclineCode
	}
	p.Intent = o.Intent
	tx.Queue(`
		UPDATE payments SET status = 'failed', intent = $3, code = $4, decline_code = nullif($5, ''),
		       version = version + 1, updated_at = clock_timestamp()
		 WHERE account = $1 AND id = $2 AND status = 'pending'`,
		p.Account, p.ID, p.Intent, p.Code, p.DeclineCode)
	problem := NewProblem(p.Code)
	problem.DeclineCode = tellable(p.DeclineCode)
	return s.ended(tx, o, p, problem)
}

// notMade writes that this attempt charged nothing and that nothing it sent can
// charge any more: its intent is canceled, or the provider refused its request
// for good.
func (s *Service) notMade(tx *idempotency.Tx, o orderRow, p paymentRow, v verdict) idempotency.Response {
	p.Status, p.Code, p.Intent = PaymentCanceled, "payment_not_made", o.Intent
	tx.Queue(`
		UPDATE payments SET status = 'canceled', intent = nullif($3, ''), code = $4, version = version + 1, updated_at = clock_timestamp()
		 WHERE account = $1 AND id = $2 AND status = 'pending'`,
		p.Account, p.ID, p.Intent, p.Code)
	if v.intent.Status == IntentCanceled {
		// Only what is known of the current generation counts; the next claim
		// raises it.
		tx.Queue(`
			UPDATE orders SET intent_canceled = true WHERE account = $1 AND id = $2 AND intent = $3`,
			o.Account, o.ID, v.intent.ID)
	}
	return s.ended(tx, o, p, NewProblem(p.Code))
}

// ended answers for an attempt that ended without money, with the next key.
func (s *Service) ended(tx *idempotency.Tx, o orderRow, p paymentRow, problem Problem) idempotency.Response {
	view := p.View()
	problem.Order, problem.Payment, problem.PaymentKey = o.ID, &view, queueMint(tx, o, p)
	return problem.Response()
}

// queueMint mints the next key, in the transaction that ends an attempt without
// money, and gives the order's key from now on; none while the order is being
// closed. Only this attempt's own key is replaced: the page may show a newer
// one already.
func queueMint(tx *idempotency.Tx, o orderRow, p paymentRow) string {
	if o.payable() != nil {
		return ""
	}
	if o.PaymentKey != p.Key {
		return o.PaymentKey
	}
	next := newID("key_")
	tx.Queue(`UPDATE orders SET payment_key = $3 WHERE account = $1 AND id = $2 AND payment_key = $4`,
		o.Account, o.ID, next, p.Key)
	return next
}

// bankURL gives the address where the bank asks the buyer, if it is one.
func bankURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || len(address) > 2048 || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return ""
	}
	return address
}
