package checkout

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"payonce/idempotency"
)

// errMismatch: an intent whose amount, currency, mode, order or charge is not
// the payment's. It settles nothing.
var errMismatch = errors.New("the intent does not belong to the payment")

// held is what a transaction holds locked when it settles: the key, then these.
type held struct {
	order   orderRow
	payment paymentRow
	// slot is the id of the payment in the order's slot; empty if it is free.
	slot string
	// elsewhere is true if the intent or its charge is another order's.
	elsewhere bool
}

// witness is who reports an intent's state, and what the rows were before the
// provider was asked.
type witness struct {
	// owner is true for the attempt's owner in its record phase.
	owner bool
	// version is the payment's, generation the order's. An answer that is not
	// final speaks only about them.
	version, generation int
}

// owner is the witness of a record phase. Its claim fences it.
var owner = witness{owner: true}

// settled is what became of a report.
type settled struct {
	// answer is what the payment's key gets, if it is not completed yet. Its
	// Status is 0 if nothing was settled.
	answer idempotency.Response
	// stale is true if the rows have moved on since the question: ask again.
	stale bool
	// alarm is true if a person must look.
	alarm bool
}

// settle applies what Stripe says of a payment's intent. Everything that learns
// of an intent comes here: the record phase, webhooks, the way back from the
// bank, cancel and the completer. It only moves forward; the same state twice
// is success.
//
// The caller holds the locks of the key, the order and the payment, taken in
// this order. What is queued here needs no row count: the rows are locked.
//
// It returns errMismatch if the intent is not this payment's.
func (s *Service) settle(tx *idempotency.Tx, h held, in Intent, by witness) (settled, error) {
	o, p := h.order, h.payment
	if in.Money != p.Price || in.Live != s.Live || in.Order != o.ID || in.Account != o.Account || !providerID.MatchString(in.ID) {
		return settled{}, errMismatch
	}
	if in.Status == IntentSucceeded {
		// Of a payment that has succeeded, only its own charge is the same state.
		// Another one is money that somebody else moved in this order's name: it
		// must not pass for the one that is known.
		another := p.Status == PaymentSucceeded && (p.Intent != in.ID || p.Charge != in.Charge)
		if another || h.elsewhere || !providerID.MatchString(in.Charge) {
			return settled{}, errMismatch
		}
		p.Intent = in.ID
		return s.settlePaid(tx, h, p, in.Charge), nil
	}

	// Anything else counts only from the intent that the order has now, and
	// never for a payment whose owner is at work: it has one, or will lapse and
	// be taken over.
	waiting := p.Status == PaymentRequiresAction || p.Status == PaymentProcessing
	switch {
	case by.owner:
	case !waiting || in.ID != o.Intent:
		return settled{}, nil
	case in.Status != IntentCanceled && (p.Version != by.version || o.Generation != by.generation):
		return settled{stale: true}, nil
	}
	p.Intent = in.ID
	switch in.Status {
	case IntentRequiresAction:
		return settled{answer: s.wait(tx, p, PaymentRequiresAction, bankURL(in.NextActionURL))}, nil
	case IntentProcessing:
		return settled{answer: s.wait(tx, p, PaymentProcessing, "")}, nil
	case IntentCanceled:
		return settled{answer: s.notMade(tx, o, p, verdict{intent: in})}, nil
	}
	if by.owner {
		return settled{}, errMismatch // undecided is no answer: the call phase asks on
	}
	// The challenge or the bank said no: no other confirm was ever sent on an
	// intent that waits for a challenge.
	return settled{answer: s.decline(tx, o, p, challengeFailed(in))}, nil
}

// wait writes that the payment waits for the bank or for settlement. The slot
// stays held, and no key is minted: this may still become money.
func (s *Service) wait(tx *idempotency.Tx, p paymentRow, status PaymentStatus, bank string) idempotency.Response {
	first := processingSchedule[0]
	if status == PaymentRequiresAction {
		first = s.ActionTimeout
	}
	if p.Status != status || p.NextAction != bank {
		tx.Queue(`
			UPDATE payments SET status = $3, intent = $4, next_action = nullif($5, ''), version = version + 1,
			       asks = 0, ask_at = clock_timestamp() + $6::interval, updated_at = clock_timestamp()
			 WHERE account = $1 AND id = $2 AND status IN ('pending', 'requires_action', 'processing')`,
			p.Account, p.ID, string(status), p.Intent, bank, first)
	}
	p.Status, p.NextAction = status, bank
	return idempotency.Response{Status: http.StatusAccepted, Type: jsonType, Body: encode(p.View())}
}

// settlePaid writes that the money moved: payment, order, enrolment. Money is
// always recorded, whatever was believed of the payment before.
func (s *Service) settlePaid(tx *idempotency.Tx, h held, p paymentRow, charge string) settled {
	o := h.order
	known := p.Status == PaymentSucceeded
	expected := p.Status.holdsSlot()
	p.Status, p.Charge = PaymentSucceeded, charge
	result := settled{answer: idempotency.Response{Status: http.StatusCreated, Type: jsonType, Body: encode(p.View())}}
	if known {
		return result
	}
	log := s.log.With(slog.String("order", o.ID), slog.String("payment", p.ID), slog.String("charge", charge))
	if h.slot != "" && h.slot != p.ID {
		log.Error("money arrived for a payment that had ended, while another one holds the slot: a person must look")
		return settled{alarm: true}
	}
	if !expected {
		log.Error("money arrived for a payment that had ended without money")
		result.alarm = true
	}
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
		return result
	}
	log.Error("money arrived for a closed order: it goes back")
	queueLateRefund(tx, p)
	return result
}

// queueLateRefund reserves the one refund of money that arrived for a closed
// order; the completer sends it.
func queueLateRefund(tx *idempotency.Tx, p paymentRow) {
	tx.Queue(`
		INSERT INTO refunds (account, id, payment_id, order_id, origin, status, amount, currency)
		VALUES ($1, $2, $3, $4, 'late', 'pending', $5, $6)
		    ON CONFLICT (account, payment_id) WHERE origin = 'late' DO NOTHING`,
		p.Account, newID("ref_"), p.ID, p.Order, p.Price.Amount, p.Price.Currency)
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
		UPDATE payments SET status = 'failed', intent = $3, code = $4, decline_code = nullif($5, ''), next_action = NULL,
		       version = version + 1, updated_at = clock_timestamp()
		 WHERE account = $1 AND id = $2 AND status IN ('pending', 'requires_action', 'processing')`,
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
		UPDATE payments SET status = 'canceled', intent = nullif($3, ''), code = $4, next_action = NULL, version = version + 1, updated_at = clock_timestamp()
		 WHERE account = $1 AND id = $2 AND status IN ('pending', 'requires_action', 'processing')`,
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
