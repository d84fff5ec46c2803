package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"payonce/idempotency"
)

// PaymentRequest asks to pay an order: POST /orders/{id}/payments. Exactly one
// of PaymentMethod and ConfirmationToken is set. What is charged is the order's
// amount; a client has no say in it.
type PaymentRequest struct {
	Account           string
	Key               idempotency.Key
	Order             string
	PaymentMethod     string
	ConfirmationToken string
}

// Pay pays an order, in the remote shape: claim, call, record.
//
// The answer is 201 for a payment that succeeded, 202 for one that waits for
// the buyer's bank or for settlement, 402 for one that was declined or not
// made. These are stored under the key and replayed.
//
// Stored nowhere: *InvalidError; *ConflictError around ErrNotFound,
// ErrPaymentInProgress, ErrOrderAlreadyPaid, ErrOrderClosed, ErrProviderBusy,
// ErrProviderRefused or ErrOutcomeUnknown; and the errors of the ledger.
//
// Once the key is claimed, a hang-up of the client changes nothing.
func (s *Service) Pay(ctx context.Context, r PaymentRequest) (idempotency.Response, error) {
	req, err := s.paymentRequest(r)
	if err != nil {
		return idempotency.Response{}, err
	}

	// Claim: the key, and the pending payment that holds the order's slot, in
	// one transaction. A second key for the order is refused here, before
	// Stripe is called.
	a, answer, err := s.claimPayment(ctx, r, req)
	if err != nil {
		return idempotency.Response{}, s.explain(ctx, r, err)
	}
	if answer != nil {
		return *answer, nil
	}

	// Call: the provider, with no transaction and no connection held.
	calling, hangUp := detach(ctx, s.ProviderTimeout)
	defer hangUp()
	v := s.call(calling, a)

	// Record: the outcome, the business rows and the answer, in one transaction.
	recording, done := detach(ctx, recordTimeout)
	defer done()
	answered, err := s.persist(recording, a.claim, func() (idempotency.Response, error) { return s.record(recording, a, v) })
	return answered, a.about(err)
}

// about names the order and the payment in an error of the record phase. What
// is not an answer leaves the outcome unknown to the client: the key is in
// progress until its lease lapses.
func (a *attempt) about(err error) error {
	var conflict *ConflictError
	if err == nil || errors.As(err, &conflict) {
		return err
	}
	return &ConflictError{
		Err: err, Order: a.order.ID, Course: a.order.Course, Payment: &a.payment.Payment, RetryAfter: giveUpRetry,
	}
}

// paymentRequest checks the request and names it for the ledger. It reads
// nothing and stores nothing.
func (s *Service) paymentRequest(r PaymentRequest) (idempotency.Request, error) {
	if !ourID.MatchString(r.Order) {
		return idempotency.Request{}, ErrNotFound
	}
	if err := s.checkMethod(r); err != nil {
		return idempotency.Request{}, err
	}
	fields := map[string]any{"payment_method": r.PaymentMethod}
	if r.ConfirmationToken != "" {
		fields = map[string]any{"confirmation_token": r.ConfirmationToken}
	}
	operation := "POST /orders/" + r.Order + "/payments"
	fingerprint, err := idempotency.NewFingerprint(operation, fields)
	return idempotency.Request{Scope: r.Account, Key: r.Key, Operation: operation, Fingerprint: fingerprint}, err
}

func (s *Service) checkMethod(r PaymentRequest) error {
	switch {
	case r.PaymentMethod != "" && r.ConfirmationToken != "":
		return &InvalidError{Field: "confirmation_token", Reason: "Send payment_method or confirmation_token, not both."}
	case r.ConfirmationToken != "" && !s.ConfirmationTokens:
		return &InvalidError{Field: "confirmation_token", Reason: "This shop takes no confirmation tokens. Send payment_method."}
	case r.ConfirmationToken != "" && !providerID.MatchString(r.ConfirmationToken):
		return &InvalidError{Field: "confirmation_token", Reason: "It is not a confirmation token."}
	case r.ConfirmationToken != "":
		return nil
	case r.PaymentMethod == "" && s.ConfirmationTokens:
		return &InvalidError{Field: "confirmation_token", Reason: "Choose how to pay."}
	case s.ConfirmationTokens && len(s.Config.Methods) == 0:
		return &InvalidError{Field: "payment_method", Reason: "This shop takes no payment methods. Send confirmation_token."}
	case r.PaymentMethod == "":
		return &InvalidError{Field: "payment_method", Reason: "Choose a payment method."}
	}
	for _, m := range s.Config.Methods {
		if m.ID == r.PaymentMethod {
			return nil
		}
	}
	return &InvalidError{Field: "payment_method", Reason: "It is not one of the payment methods that this shop offers."}
}

// attempt is one owner's hold on one payment, and what it knows of the order.
type attempt struct {
	claim   idempotency.Claim
	order   orderRow
	payment paymentRow
	// absent is true for the completer: the buyer is away, so it asks and
	// cancels, and never confirms.
	absent bool
}

// errSlotTaken: another payment of the order is money, or could become money.
var errSlotTaken = errors.New("the order's slot is taken")

// slotTries bounds how often a claim meets a slot that is taken and, a moment
// later, free.
const slotTries = 3

func (s *Service) claimPayment(ctx context.Context, r PaymentRequest, req idempotency.Request) (*attempt, *idempotency.Response, error) {
	for try := 1; ; try++ {
		// It is filled by the run that is committed, which need not be the last: a
		// run that follows a COMMIT in doubt may find the key granted to this
		// request already, and then reads nothing.
		a := &attempt{}
		claim, answer, err := s.ledger.Claim(ctx, req, func(_ context.Context, tx *idempotency.Tx, c idempotency.Claim) error {
			queueLockOrder(tx, r.Account, r.Order, &a.order)
			switch c.Origin {
			case idempotency.Fresh:
				s.queueTakeSlot(tx, r, a)
			case idempotency.Retaken:
				queueRetakeSlot(tx, r, a)
			case idempotency.TakenOver:
				queueHeldSlot(tx, r, a)
			}
			return nil
		})
		if err == nil && claim != nil {
			a.claim = *claim
		}
		if !errors.Is(err, errSlotTaken) {
			return a, answer, err
		}
		if err := s.whoHoldsSlot(ctx, r); err != nil || try == slotTries {
			return nil, nil, orElse(err, idempotency.ErrClaimContended)
		}
	}
}

// queueTakeSlot takes the slot for a fresh key: it inserts the pending payment,
// with the parameters of its confirm frozen. It comes after the order's lock,
// under which the order must be open.
func (s *Service) queueTakeSlot(tx *idempotency.Tx, r PaymentRequest, a *attempt) {
	tx.Queue(`
		INSERT INTO payments (account, id, order_id, key, status, amount, currency, payment_method, confirmation_token, return_url)
		SELECT account, $3, id, $4, 'pending', amount, currency, nullif($5, ''), nullif($6, ''), $7 || token
		  FROM orders WHERE account = $1 AND id = $2 AND status = 'open' AND closing_at IS NULL
		    ON CONFLICT DO NOTHING
		RETURNING`+paymentColumns,
		r.Account, r.Order, newID("pay_"), string(r.Key), r.PaymentMethod, r.ConfirmationToken,
		s.PublicURL+"/orders/"+r.Order+"/return?token=").
		QueryRow(a.scanSlot)
}

// queueRetakeSlot takes the slot again for a key that was released: the same
// payment goes back to pending, or nothing changes. Like a fresh key it comes
// after the order's lock, under which the order must be open: the key may be
// retried long after its order expired, when there is no intent left to be
// canceled, and would be charged for nothing.
func queueRetakeSlot(tx *idempotency.Tx, r PaymentRequest, a *attempt) {
	tx.Queue(`
		UPDATE payments SET status = 'pending', version = version + 1, updated_at = clock_timestamp()
		 WHERE account = $1 AND status = 'released' AND id = (
			SELECT id FROM payments WHERE account = $1 AND order_id = $2 AND key = $3 ORDER BY created_at DESC LIMIT 1)
		   AND NOT EXISTS (
			SELECT 1 FROM payments WHERE account = $1 AND order_id = $2
			   AND status IN ('pending', 'requires_action', 'processing', 'succeeded'))
		   AND EXISTS (SELECT 1 FROM orders WHERE account = $1 AND id = $2 AND status = 'open' AND closing_at IS NULL)
		RETURNING`+paymentColumns, r.Account, r.Order, string(r.Key)).
		QueryRow(a.scanSlot)
}

// queueHeldSlot reads the payment of a key that is taken over: its slot is
// held already.
func queueHeldSlot(tx *idempotency.Tx, r PaymentRequest, a *attempt) {
	tx.Queue(`SELECT`+paymentColumns+`
		  FROM payments WHERE account = $1 AND order_id = $2 AND key = $3 AND status = 'pending' FOR UPDATE`,
		r.Account, r.Order, string(r.Key)).
		QueryRow(func(from pgxRow) error {
			if err := a.payment.scan(from); err != nil { // no row: the key's own payment must be pending
				return fmt.Errorf("reading the payment of a key in progress: %w", err)
			}
			return nil
		})
}

// scanSlot reads the payment that took the slot, or says why there is none.
func (a *attempt) scanSlot(from pgxRow) error {
	err := found(a.payment.scan(from))
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	if err := a.order.payable(); err != nil {
		return err
	}
	return errSlotTaken
}

// whoHoldsSlot names the payment that refused a claim, or gives nil if the slot
// is free again.
func (s *Service) whoHoldsSlot(ctx context.Context, r PaymentRequest) error {
	order, err := s.readOrder(ctx, r.Account, r.Order)
	if err != nil {
		return err
	}
	if holder, ok := order.Slot(); ok {
		if holder.Status == PaymentSucceeded {
			return ErrOrderAlreadyPaid
		}
		return ErrPaymentInProgress
	}
	// The slot is free. Then the key has paid another order, so long ago that
	// the reaper removed it, or the slot was freed a moment ago.
	var used bool
	err = s.pool.QueryRow(ctx, `
		SELECT EXISTS (SELECT 1 FROM payments WHERE account = $1 AND key = $2
		   AND status IN ('pending', 'requires_action', 'processing', 'succeeded'))`, r.Account, string(r.Key)).Scan(&used)
	if err == nil && used {
		return &idempotency.ReusedError{Status: idempotency.Completed}
	}
	return err
}

// explain adds to an error what it is about, read after the claim rolled back.
func (s *Service) explain(ctx context.Context, r PaymentRequest, err error) error {
	c := &ConflictError{Err: err, Order: r.Order}
	var reused *idempotency.ReusedError
	switch {
	case errors.As(err, &reused):
	case errors.Is(err, ErrPaymentInProgress), errors.Is(err, ErrOrderAlreadyPaid), errors.Is(err, ErrOrderClosed):
	case errors.Is(err, idempotency.ErrInProgress), errors.Is(err, idempotency.ErrClaimContended):
		return c
	default:
		return err
	}
	order, readErr := s.readOrder(ctx, r.Account, r.Order)
	if readErr != nil {
		if errors.Is(readErr, ErrNotFound) {
			return err
		}
		return fmt.Errorf("reading what is in the way: %w", readErr)
	}
	c.Course = order.Course.Slug
	if holder, ok := order.Slot(); ok {
		c.Payment = &holder
		// Only an owner at work ends within seconds. A payment that waits for the
		// bank or for settlement may take days: to send again soon is no help.
		if errors.Is(err, ErrPaymentInProgress) && holder.Status == PaymentPending {
			c.RetryAfter = 1
		}
	} else if reused != nil && reused.Settled() && order.Status == OrderOpen && !order.Closing {
		c.PaymentKey = order.PaymentKey
	}
	return c
}

// record writes what the call phase found, and answers.
func (s *Service) record(ctx context.Context, a *attempt, v verdict) (idempotency.Response, error) {
	log := s.log.With(slog.String("order", a.order.ID), slog.String("payment", a.payment.ID), slog.Int("attempt", a.claim.Attempt))
	if v.fault != nil {
		log.Info("the provider's answer", slog.String("outcome", v.outcome.String()), slog.Any("err", v.fault))
	}
	switch v.outcome {
	case outcomeAnswered, outcomeDeclined, outcomeNotMade:
		answer, err := s.ledger.Record(ctx, a.claim, func(ctx context.Context, tx *idempotency.Tx) (idempotency.Response, error) {
			order, payment, err := lockBoth(ctx, tx, a)
			if err != nil {
				return idempotency.Response{}, err
			}
			switch v.outcome {
			case outcomeAnswered:
				settled, err := s.settle(tx, held{order: order, payment: payment, slot: payment.ID}, v.intent, owner)
				return settled.answer, err
			case outcomeDeclined:
				return s.decline(tx, order, payment, v.fault), nil
			}
			return s.notMade(tx, order, payment, v), nil
		})
		if errors.Is(err, errMismatch) {
			log.Error("the provider's answer does not belong to this payment: a person must look", slog.String("intent", v.intent.ID))
			return s.giveUp(ctx, a, ErrOutcomeUnknown)
		}
		return answer, err
	case outcomeRetryable:
		return s.release(ctx, a, v)
	case outcomeKeyInUse:
		return s.giveUp(ctx, a, idempotency.ErrInProgress)
	}
	return s.giveUp(ctx, a, ErrOutcomeUnknown)
}

// lockBoth locks the attempt's order and payment, in this order, after the
// fence, and reads them again.
func lockBoth(ctx context.Context, tx *idempotency.Tx, a *attempt) (o orderRow, p paymentRow, err error) {
	queueLockOrder(tx, a.order.Account, a.order.ID, &o)
	queueLockPayment(tx, a.payment.Account, a.payment.ID, &p)
	return o, p, tx.Flush(ctx)
}

// release ends a clean attempt that surely moved no money: the slot is free and
// the next key minted, and this key may be tried again too.
func (s *Service) release(ctx context.Context, a *attempt, v verdict) (idempotency.Response, error) {
	sentinel := ErrProviderBusy
	if v.fault != nil && v.fault.Fault == FaultRefused {
		sentinel = ErrProviderRefused
		s.log.Error("the provider refused our request", slog.String("order", a.order.ID), slog.Any("err", v.fault))
	}
	c := &ConflictError{Err: sentinel, Order: a.order.ID, Course: a.order.Course, RetryAfter: 1}
	answer, err := s.ledger.Release(ctx, a.claim, func(ctx context.Context, tx *idempotency.Tx) error {
		order, payment, err := lockBoth(ctx, tx, a)
		if err != nil {
			return err
		}
		payment.Status = PaymentReleased
		tx.Queue(`
			UPDATE payments SET status = 'released', version = version + 1, refusals = refusals + $3, updated_at = clock_timestamp()
			 WHERE account = $1 AND id = $2 AND status = 'pending'`, payment.Account, payment.ID, v.refusals())
		c.Payment, c.PaymentKey = &payment.Payment, queueMint(tx, order, payment)
		return nil
	})
	if err != nil {
		return idempotency.Response{}, err
	}
	if answer != nil {
		return *answer, nil
	}
	return idempotency.Response{}, c
}

// giveUp ends an attempt whose outcome is unknown. The key stays in progress:
// the same request with the same key finds out, and nothing else may.
func (s *Service) giveUp(ctx context.Context, a *attempt, sentinel error) (idempotency.Response, error) {
	answer, err := s.ledger.GiveUp(ctx, a.claim, pointCalled)
	if err != nil {
		return idempotency.Response{}, err
	}
	if answer != nil {
		return *answer, nil
	}
	return idempotency.Response{}, &ConflictError{
		Err: sentinel, Order: a.order.ID, Course: a.order.Course, Payment: &a.payment.Payment, RetryAfter: giveUpRetry,
	}
}

// giveUpRetry is the lease that the ledger leaves after an unknown outcome, in
// seconds.
const giveUpRetry = 2

// orElse gives err, or the other one if it is nil.
func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
