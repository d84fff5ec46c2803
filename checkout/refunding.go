package checkout

import (
	"context"
	"errors"
	"net/http"
	"time"

	"payonce/idempotency"
)

// RefundRequest asks for money back: POST /payments/{id}/refunds.
type RefundRequest struct {
	Account string
	Key     idempotency.Key
	Payment string
	// Amount is in minor units of the payment's currency.
	Amount int64
}

// A refund is sent in runs. A run begins with a send before which nothing that
// was sent for this refund can still be on its way, and refunds.sent_at is when:
// when the refund was claimed, or when an earlier run is forgotten and the
// provider's list does not have it. These two say how old a run may be; both are
// measured by the database's clock.
//
// A refund is made twice only if its downstream key is carried out twice, and
// Stripe keeps a key for 24 hours from its execution. So:
//
//   - within repeatRefund of the run's begin it is sent again under the same key,
//     by whoever holds it now. Of two shops, or of a taker and an owner that is
//     not dead, one is executed and the other is answered from the key; the four
//     hours that are left are for a send that lingers;
//   - later it is never sent, only looked for in the list of the charge's refunds.
//     A list that does not have it proves nothing yet;
//   - after forgottenRefund, a day after the last send, nothing lingers. If the
//     list does not have it then, it was never made, and the next run may begin.
//
// A refusal (400: refunded or disputed elsewhere) ends a refund only as the
// answer to the first send of a run, because then no other send exists. To a
// repeat it says nothing about the sends before it: one of them may linger, and
// be carried out once the dispute is won. So after a repeat that was refused, and
// also where the refusal is a stored one, the list is read; without an answer
// there the next run ends it.
//
// Who may begin a run is decided in the row: the owner of the key under its fence,
// the completer under its turn (see dueRefunds). Who began it may end it only
// while it still has the fence or the turn, so that nobody else has sent; who
// took it over is not the one that began it, and leaves the end to the next run.
// Whoever pauses before a send finds the fence or the turn gone when it records.
//
// An event may tell of the refund at any point, also before the answer: it
// settles the row and completes the key, under the locks that the record phase
// takes, and the owner finds itself fenced.
const (
	repeatRefund    = 20 * time.Hour
	forgottenRefund = repeatRefund + 24*time.Hour
)

// Refund gives money back, in the remote shape: claim, call, record. The claim
// reserves the amount, so that what was refunded and what is being refunded is
// never more than the payment. A full refund makes the order refunded, revokes
// the enrolment, and lets the course be bought again. What is left of a payment
// whose order is closed can be given back too: its refund has failed.
//
// The answer is 201 with the refund, or 409 refund_not_possible if the amount is
// more than is left, the payment did not succeed, its refund window is over, or
// the provider refused it for good. Both are stored. Stored nowhere:
// *InvalidError, ErrNotFound, *ConflictError around ErrProviderBusy,
// ErrProviderRefused or ErrOutcomeUnknown, and the errors of the ledger.
func (s *Service) Refund(ctx context.Context, r RefundRequest) (idempotency.Response, error) {
	req, err := refundRequest(r)
	if err != nil {
		return idempotency.Response{}, err
	}

	// Claim: the key, and the pending refund that reserves the amount.
	g, answer, err := s.claimRefund(ctx, r, req)
	if errors.Is(err, errNotRefundable) {
		return s.refuseRefund(ctx, r, req)
	}
	if err != nil {
		return idempotency.Response{}, s.aboutRefund(ctx, r, err)
	}
	if answer != nil {
		return *answer, nil
	}

	// Call: the provider, with no transaction and no connection held.
	calling, hangUp := detach(ctx, s.ProviderTimeout)
	defer hangUp()
	v := s.callRefund(calling, g)

	// Record: the refund, what it changes, and the answer.
	recording, done := detach(ctx, recordTimeout)
	defer done()
	return s.persist(recording, g.claim, func() (idempotency.Response, error) { return s.recordRefund(recording, g, v) })
}

// aboutRefund names the order in an error of the ledger, so that the answer can
// lead to it.
func (s *Service) aboutRefund(ctx context.Context, r RefundRequest, err error) error {
	if !errors.Is(err, idempotency.ErrInProgress) && !errors.Is(err, idempotency.ErrClaimContended) && !errors.Is(err, idempotency.ErrKeyReused) {
		return err
	}
	v, readErr := s.lookAtPayment(ctx, CancelRequest{Account: r.Account, Payment: r.Payment})
	if readErr != nil {
		return err // the error says enough without it
	}
	return &ConflictError{Err: err, Order: v.order.ID, Course: v.order.Course}
}

func refundRequest(r RefundRequest) (idempotency.Request, error) {
	if !ourID.MatchString(r.Payment) {
		return idempotency.Request{}, ErrNotFound
	}
	if r.Amount < 1 || r.Amount > maxAmount {
		return idempotency.Request{}, &InvalidError{Field: "amount", Reason: "It must be a whole number of minor units, at least 1."}
	}
	operation := "POST /payments/" + r.Payment + "/refunds"
	fingerprint, err := idempotency.NewFingerprint(operation, map[string]any{"amount": r.Amount})
	return idempotency.Request{Scope: r.Account, Key: r.Key, Operation: operation, Fingerprint: fingerprint}, err
}

// maxAmount is Stripe's largest amount, eight digits of minor units.
const maxAmount = 99999999

// giving is one owner's hold on one refund, and what it knows around it.
type giving struct {
	claim    idempotency.Claim
	order    orderRow
	payment  paymentRow
	refund   refundRow
	reserved int64 // pending refunds of the payment
	window   time.Duration
	late     bool // the refund window is over
}

// errNotRefundable: the amount is not there to be refunded.
var errNotRefundable = errors.New("not refundable")

// refundable is nil if amount may be given back now. The order may be closed: a
// refund that has failed left its money here, and nobody else would send it.
func (g *giving) refundable(amount int64) error {
	if g.payment.Status != PaymentSucceeded || g.late ||
		g.payment.Refunded+g.reserved+amount > g.payment.Price.Amount {
		return errNotRefundable
	}
	return nil
}

func (s *Service) claimRefund(ctx context.Context, r RefundRequest, req idempotency.Request) (*giving, *idempotency.Response, error) {
	g := &giving{window: s.RefundWindow} // filled as a payment's claim is: see claimPayment
	claim, answer, err := s.ledger.Claim(ctx, req, func(ctx context.Context, tx *idempotency.Tx, c idempotency.Claim) error {
		queueLockRefunded(tx, r.Account, r.Payment, g)
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		if c.Origin == idempotency.TakenOver {
			return g.hold(tx, r)
		}
		if !s.PartialRefunds && r.Amount != g.payment.Price.Amount {
			return &InvalidError{Field: "amount", Reason: "Only the whole payment can be refunded: " + g.payment.Price.String() + "."}
		}
		if err := g.refundable(r.Amount); err != nil {
			return err
		}
		if c.Origin == idempotency.Retaken {
			return g.reserveAgain(tx, r)
		}
		return g.reserve(tx, r)
	})
	if err == nil && claim != nil {
		g.claim = *claim
	}
	return g, answer, err
}

func (g *giving) scanRefund(from pgxRow) error { return found(g.refund.scan(from)) }

func (g *giving) reserve(tx *idempotency.Tx, r RefundRequest) error {
	tx.Queue(`
		INSERT INTO refunds (account, id, payment_id, order_id, key, status, amount, currency, sent_at)
		VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, clock_timestamp()) RETURNING`+refundColumns,
		r.Account, newID("ref_"), r.Payment, g.order.ID, string(r.Key), r.Amount, g.payment.Price.Currency).
		QueryRow(g.scanRefund)
	return nil
}

func (g *giving) reserveAgain(tx *idempotency.Tx, r RefundRequest) error {
	tx.Queue(`
		UPDATE refunds SET status = 'pending', sent_at = clock_timestamp(), updated_at = clock_timestamp()
		 WHERE account = $1 AND status = 'failed' AND id = (
			SELECT id FROM refunds WHERE account = $1 AND payment_id = $2 AND key = $3 ORDER BY created_at DESC LIMIT 1)
		RETURNING`+refundColumns, r.Account, r.Payment, string(r.Key)).
		QueryRow(g.scanRefund)
	return nil
}

func (g *giving) hold(tx *idempotency.Tx, r RefundRequest) error {
	tx.Queue(`SELECT`+refundColumns+`
		  FROM refunds WHERE account = $1 AND payment_id = $2 AND key = $3 AND status = 'pending' FOR UPDATE`,
		r.Account, r.Payment, string(r.Key)).
		QueryRow(g.scanRefund)
	return nil
}

// refuseRefund stores that the amount cannot be refunded: a definitive answer,
// which nothing later turns into a refund under the same key.
//
// A key that was released before cannot be completed this way; it gets the same
// answer, decided afresh each time.
func (s *Service) refuseRefund(ctx context.Context, r RefundRequest, req idempotency.Request) (idempotency.Response, error) {
	answer, err := s.ledger.Do(ctx, req, func(ctx context.Context, tx *idempotency.Tx) (idempotency.Response, error) {
		g := &giving{window: s.RefundWindow}
		queueLockRefunded(tx, r.Account, r.Payment, g)
		if err := tx.Flush(ctx); err != nil {
			return idempotency.Response{}, err
		}
		if g.refundable(r.Amount) == nil { // it became possible a moment ago
			return idempotency.Response{}, idempotency.ErrClaimContended
		}
		return notRefundable(g), nil
	})
	if !errors.Is(err, idempotency.ErrInProgress) {
		return answer, err
	}
	view, err := s.lookAtPayment(ctx, CancelRequest{Account: r.Account, Payment: r.Payment})
	if err != nil {
		return idempotency.Response{}, err
	}
	return notRefundable(&giving{order: view.order, payment: view.payment}), nil
}

func notRefundable(g *giving) idempotency.Response {
	problem := NewProblem("refund_not_possible")
	view := g.payment.View()
	problem.Order, problem.Payment = g.order.ID, &view
	return problem.Response()
}

// refundVerdict is what the call phase of a refund found.
type refundVerdict struct {
	outcome outcome // answered, notMade (refused for good), retryable, keyInUse or unknown
	refund  ProviderRefund
	fault   *ProviderError
}

// callRefund sends the refund, or finds out what became of one that was sent.
func (s *Service) callRefund(ctx context.Context, g *giving) refundVerdict {
	first := g.claim.Clean() // this send begins a run
	if !first && g.refund.SentAgo >= repeatRefund {
		v := s.findRefund(ctx, g)
		if v.outcome == outcomeAnswered || v.fault != nil || g.refund.SentAgo < forgottenRefund {
			return v
		}
		if s.beginRun(ctx, g) != nil {
			return refundVerdict{}
		}
		first = true
	}
	refund, err := s.provider.CreateRefund(ctx, RefundParams{
		DownstreamKey: refundKey(g.refund.ID), Intent: g.payment.Intent, Amount: g.refund.Price.Amount,
		Refund: g.refund.ID, Payment: g.payment.ID, Order: g.order.ID,
	})
	if err == nil {
		return refundVerdict{outcome: outcomeAnswered, refund: refund}
	}
	fault := judged(err)
	switch {
	case fault.Fault == FaultKeyInUse:
		return refundVerdict{outcome: outcomeKeyInUse, fault: fault}
	case first && fault.forGood():
		return refundVerdict{outcome: outcomeNotMade, fault: fault}
	case first && (fault.Fault == FaultNotSent || fault.Fault == FaultBusy || fault.Fault == FaultRefused):
		return refundVerdict{outcome: outcomeRetryable, fault: fault}
	case fault.forGood(), fault.Fault == FaultStored, fault.Fault == FaultKeyMismatch:
		return s.findRefund(ctx, g)
	}
	return refundVerdict{fault: fault}
}

// forGood is true for the refusal of a refund that stays one: the money went
// back in another way, or the buyer's bank has it in dispute.
func (e *ProviderError) forGood() bool {
	return (e.Fault == FaultRefused || e.Fault == FaultUnexpectedState) && e.HTTPStatus == http.StatusBadRequest
}

// beginRun begins a run of sends after one that is forgotten, under the owner's
// fence: nobody else has begun one since it read how old the run was.
func (s *Service) beginRun(ctx context.Context, g *giving) error {
	return s.ledger.Hold(ctx, g.claim, func(_ context.Context, tx *idempotency.Tx) error {
		tx.Queue(`UPDATE refunds SET sent_at = clock_timestamp() WHERE account = $1 AND id = $2`, g.refund.Account, g.refund.ID)
		return nil
	})
}

// findRefund looks among the charge's refunds for ours, by its metadata. Not
// found is not "not done": the outcome stays unknown.
func (s *Service) findRefund(ctx context.Context, g *giving) refundVerdict {
	list, err := s.provider.Refunds(ctx, g.payment.Charge)
	if err != nil {
		return refundVerdict{fault: judged(err)}
	}
	for _, refund := range list {
		if refund.Refund == g.refund.ID {
			return refundVerdict{outcome: outcomeAnswered, refund: refund}
		}
	}
	return refundVerdict{}
}
