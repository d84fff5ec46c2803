package checkout

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"payonce/idempotency"
)

// pgxRow is what a callback of a queued statement reads its row from.
type pgxRow = pgx.Row

// The recovery points after idempotency.PointClaimed.
const (
	// pointIntentCreated: the PaymentIntent's id is stored on the order.
	pointIntentCreated = "intent_created"
	// pointCalled: something was sent whose outcome was not known.
	pointCalled = "called"
)

// resendTakeovers is how many takeovers may repeat the confirm; later ones ask.
const resendTakeovers = 2

// outcome is what a call phase found.
type outcome int

const (
	outcomeUnknown   outcome = iota // nobody knows: the zero value
	outcomeAnswered                 // the intent succeeded, waits for the buyer, or is processing
	outcomeDeclined                 // the answer to our own confirm, under its own downstream key
	outcomeNotMade                  // the intent is canceled: nothing was charged and nothing can be
	outcomeRetryable                // refused before execution, and nothing else was sent
	outcomeKeyInUse                 // someone else is on it
)

func (o outcome) String() string {
	return [...]string{"unknown", "answered", "declined", "not_made", "retryable", "key_in_use"}[o]
}

// verdict is what a call phase found, and why.
type verdict struct {
	outcome outcome
	intent  Intent         // for outcomeAnswered, and the canceled one for outcomeNotMade
	fault   *ProviderError // why, where there was an error
}

// refusals is 1 if the provider refused the request itself, which it would
// refuse again.
func (v verdict) refusals() int {
	if v.fault != nil && v.fault.Fault == FaultRefused &&
		(v.fault.HTTPStatus == http.StatusBadRequest || v.fault.HTTPStatus == http.StatusNotFound) {
		return 1
	}
	return 0
}

// caller is one call phase: the attempt, and what it has sent.
type caller struct {
	*Service
	*attempt
	// confirmed is true once this call phase has sent a confirm.
	confirmed bool
	// challenged is true once our own confirm is known to have led to a
	// challenge or to processing, so that an undecided intent means "no".
	challenged bool
}

// call runs the call phase: what is missing is done, step by step, until an
// outcome is known or known to be unknown.
//
// Only two things end an attempt without success: the provider's answer to its
// own confirm under its own downstream key, or a terminal intent. An intent
// that "requires a payment method" proves nothing, since a confirm may still be
// on its way to it.
func (s *Service) call(ctx context.Context, a *attempt) verdict {
	c := &caller{Service: s, attempt: a}
	for {
		var step func(context.Context) (verdict, bool)
		switch {
		case c.order.Intent == "" && c.absent:
			// Nothing was ever confirmed, and nothing can be: the dead owner's
			// checkpoint is fenced.
			return verdict{outcome: outcomeRetryable}
		case c.order.Intent == "":
			step = c.create
		case c.order.Canceled:
			step = c.raise
		case c.mayConfirm():
			step = c.confirm
		default:
			step = c.ask
		}
		if v, done := step(ctx); done {
			return v
		}
		if ctx.Err() != nil { // the deadline of the whole phase, before each send
			return verdict{}
		}
	}
}

// again says that the call phase goes on with what it knows now.
var again = verdict{}

// mayConfirm is true if a confirm may be sent: by a clean owner; or, by one who
// took over, the very same again, soon after the claim. Later the provider may
// have forgotten the downstream key, and would charge afresh.
func (c *caller) mayConfirm() bool {
	if c.confirmed || c.absent {
		return false
	}
	return c.claim.Clean() ||
		c.claim.Takeovers <= resendTakeovers && c.claim.Age < c.ResendWindow && !c.order.PastTime
}

// create makes the order's PaymentIntent and stores its id. Nothing was ever
// confirmed before that, so a refusal is retryable even after a takeover.
func (c *caller) create(ctx context.Context) (verdict, bool) {
	intent, err := c.provider.CreateIntent(ctx, IntentParams{
		DownstreamKey: intentKey(c.order), Money: c.order.Price, Description: c.order.Description,
		Account: c.order.Account, Order: c.order.ID,
	})
	if err != nil {
		fault := judged(err)
		switch fault.Fault {
		case FaultNotSent, FaultBusy:
			return verdict{outcome: outcomeRetryable, fault: fault}, true
		case FaultRefused:
			return c.refused(fault), true
		case FaultKeyMismatch, FaultStored:
			// What this downstream key holds will never be an intent for us.
			return c.raise(ctx)
		case FaultKeyInUse:
			return verdict{outcome: outcomeKeyInUse, fault: fault}, true
		}
		return verdict{fault: fault}, true
	}
	if !providerID.MatchString(intent.ID) {
		return verdict{fault: &ProviderError{Err: errors.New("an intent without a proper id")}}, true
	}
	return c.checkpoint(ctx, intent.ID)
}

// checkpoint stores the intent's id, under the fence and once. Who lost the
// race to store uses the stored one: nobody confirms an intent whose id is not
// stored, or a takeover after the provider has forgotten the create's key would
// make and confirm a second one.
func (c *caller) checkpoint(ctx context.Context, id string) (verdict, bool) {
	stored := false
	err := c.ledger.Checkpoint(ctx, c.claim, pointIntentCreated, func(tx *idempotency.Tx) {
		stored = false
		tx.Queue(idempotency.Fence+`
			UPDATE orders SET intent = $5 FROM fence
			 WHERE account = $1 AND id = $6 AND generation = $7 AND intent IS NULL`,
			c.claim.Fenced(id, c.order.ID, c.order.Generation)...).
			Exec(func(tag pgconn.CommandTag) error {
				stored = tag.RowsAffected() == 1
				return nil
			})
	})
	if err == nil && stored {
		c.order.Intent = id
		return again, false
	}
	if err != nil && !errors.Is(err, idempotency.ErrCommitUnknown) {
		return c.internal("storing the intent", err), true
	}
	return c.refresh(ctx)
}

// raise opens the next generation, when the current intent is known to be
// canceled or none was ever stored, the order is open, and this attempt has not
// confirmed the current one. Otherwise the attempt ends here.
func (c *caller) raise(ctx context.Context) (verdict, bool) {
	if c.order.Intent != "" && !c.confirmed && !c.claim.Clean() {
		// An earlier owner may have confirmed it. It is canceled, so nothing
		// was charged and nothing can be: the attempt ends.
		return c.canceled(), true
	}
	raised := false
	err := c.ledger.Checkpoint(ctx, c.claim, idempotency.PointClaimed, func(tx *idempotency.Tx) {
		raised = false
		tx.Queue(idempotency.Fence+`
			UPDATE orders SET generation = generation + 1, intent = NULL, intent_canceled = false FROM fence
			 WHERE account = $1 AND id = $5 AND generation = $6 AND coalesce(intent, '') = $7
			   AND status = 'open' AND closing_at IS NULL`,
			c.claim.Fenced(c.order.ID, c.order.Generation, c.order.Intent)...).
			Exec(func(tag pgconn.CommandTag) error {
				raised = tag.RowsAffected() == 1
				return nil
			})
	})
	if err == nil && raised {
		c.order.Generation++
		c.order.Intent, c.order.Canceled, c.confirmed = "", false, false
		return again, false
	}
	if err != nil && !errors.Is(err, idempotency.ErrCommitUnknown) {
		return c.internal("raising the generation", err), true
	}
	before := c.order
	if v, done := c.refresh(ctx); done {
		return v, true
	}
	if c.order.Generation == before.Generation && c.order.payable() != nil {
		return c.canceled(), true // closed meanwhile: no further intent for this order
	}
	return again, false
}

// refresh reads the order again, under the fence: from the row, after a COMMIT
// in doubt or a race that was lost.
func (c *caller) refresh(ctx context.Context) (verdict, bool) {
	generation := c.order.Generation
	err := c.ledger.Hold(ctx, c.claim, func(_ context.Context, tx *idempotency.Tx) error {
		queueLockOrder(tx, c.order.Account, c.order.ID, &c.order)
		return nil
	})
	if err != nil && !errors.Is(err, idempotency.ErrCommitUnknown) {
		return c.internal("reading the order", err), true
	}
	if c.order.Generation != generation {
		c.confirmed = false
	}
	return again, false
}

// confirm asks for the money, with the parameters frozen at the claim.
func (c *caller) confirm(ctx context.Context) (verdict, bool) {
	c.confirmed = true
	intent, err := c.provider.ConfirmIntent(ctx, ConfirmParams{
		DownstreamKey: confirmKey(c.payment, c.order.Generation), Intent: c.order.Intent,
		PaymentMethod: c.payment.PaymentMethod, ConfirmationToken: c.payment.ConfirmationToken,
		ReturnURL: c.payment.ReturnURL,
	})
	if err == nil {
		switch {
		case intent.Status == IntentSucceeded:
			return verdict{outcome: outcomeAnswered, intent: intent}, true
		case intent.Status == IntentRequiresAction || intent.Status == IntentProcessing:
			if intent.Replayed { // a snapshot: ask what it is now
				c.challenged = true
				return again, false
			}
			return verdict{outcome: outcomeAnswered, intent: intent}, true
		case intent.Status == IntentCanceled:
			c.order.Canceled = true
			return again, false
		}
		return again, false // undecided, which our own confirm never is: ask
	}

	fault := judged(err)
	switch fault.Fault {
	case FaultDeclined:
		return verdict{outcome: outcomeDeclined, fault: fault}, true
	case FaultUnexpectedState:
		return c.unexpected(fault)
	case FaultKeyMismatch, FaultStored:
		return again, false // it will never change under this key: ask
	case FaultNotSent, FaultBusy, FaultRefused:
		if fault.Replayed {
			return again, false // a stored refusal: likewise
		}
		if c.claim.Clean() {
			return c.refused(fault), true
		}
		// An earlier owner's confirm may be on its way: a refusal of this one
		// proves nothing about that one.
		return verdict{fault: fault}, true
	case FaultKeyInUse:
		return verdict{outcome: outcomeKeyInUse, fault: fault}, true
	}
	return verdict{fault: fault}, true
}

// unexpected judges payment_intent_unexpected_state by where the intent is.
func (c *caller) unexpected(fault *ProviderError) (verdict, bool) {
	if fault.Intent == nil {
		return again, false // ask
	}
	switch fault.Intent.Status {
	case IntentSucceeded:
		return verdict{outcome: outcomeAnswered, intent: *fault.Intent, fault: fault}, true
	case IntentCanceled:
		c.order.Canceled = true // it refused our confirm: on to the next generation
	}
	return again, false
}

// refused judges a clean attempt that the provider refused. A request that it
// would refuse again ends the attempt the second time.
func (c *caller) refused(fault *ProviderError) verdict {
	v := verdict{outcome: outcomeRetryable, fault: fault}
	if v.refusals() > 0 && c.payment.Refusals > 0 {
		v.outcome = outcomeNotMade
	}
	return v
}

// ask asks the provider what became of the intent and, if it is undecided,
// cancels it. The cancel is the fence at the provider: its answer decides.
func (c *caller) ask(ctx context.Context) (verdict, bool) {
	intent, err := c.provider.Intent(ctx, c.order.Intent)
	if err != nil {
		return verdict{fault: judged(err)}, true
	}
	switch intent.Status {
	case IntentSucceeded, IntentRequiresAction, IntentProcessing:
		return verdict{outcome: outcomeAnswered, intent: intent}, true
	case IntentCanceled:
		return c.canceled(), true
	}
	if c.challenged {
		return verdict{outcome: outcomeDeclined, fault: challengeFailed(intent)}, true
	}
	if ctx.Err() != nil {
		return verdict{}, true
	}

	intent, err = c.provider.CancelIntent(ctx, c.order.Intent, cancelKey(c.order, c.claim.Owner))
	if err == nil && intent.Status == IntentCanceled {
		return c.canceled(), true
	}
	fault := judged(err)
	if fault.Fault == FaultUnexpectedState && fault.Intent != nil {
		switch fault.Intent.Status {
		case IntentSucceeded, IntentProcessing, IntentRequiresAction:
			return verdict{outcome: outcomeAnswered, intent: *fault.Intent, fault: fault}, true
		case IntentCanceled:
			return c.canceled(), true
		}
	}
	return verdict{fault: fault}, true
}

// challengeFailed is the decline of a payment whose challenge or settlement
// ended with a "no".
func challengeFailed(in Intent) *ProviderError {
	fault := &ProviderError{Fault: FaultDeclined, Code: in.Code, DeclineCode: in.DeclineCode, Intent: &in}
	if fault.Code == "" {
		fault.Code = "payment_intent_authentication_failure"
	}
	return fault
}

// canceled ends the attempt on a canceled intent.
func (c *caller) canceled() verdict {
	return verdict{outcome: outcomeNotMade, intent: Intent{ID: c.order.Intent, Status: IntentCanceled}}
}

// internal gives up after a failure of our own. If the claim was lost, giving
// up finds that out and answers from the row.
func (c *caller) internal(doing string, err error) verdict {
	if !errors.Is(err, idempotency.ErrFenced) {
		c.log.Error(doing, slog.String("order", c.order.ID), slog.Any("err", err))
	}
	return verdict{}
}
