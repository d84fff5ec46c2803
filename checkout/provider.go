package checkout

import (
	"context"
	"errors"
	"fmt"
)

// Provider is what the checkout needs of a payment provider: Stripe, or the
// local one that answers as Stripe does. It is declared here, by its caller,
// so that a team can bring its own.
//
// Every mutating call carries the downstream key that the checkout chose, and
// makes exactly one request: a provider that retries by itself would hide a
// send from the checkout, which counts them.
//
// An error is a *ProviderError wherever the provider, or the way to it, can be
// judged. Any other error is an unknown outcome.
type Provider interface {
	// CreateIntent creates a PaymentIntent and confirms nothing.
	CreateIntent(ctx context.Context, p IntentParams) (Intent, error)
	// ConfirmIntent asks for the money. It is the only call that can take any.
	ConfirmIntent(ctx context.Context, p ConfirmParams) (Intent, error)
	// Intent asks what became of a PaymentIntent; it changes nothing.
	Intent(ctx context.Context, id string) (Intent, error)
	// CancelIntent ends a PaymentIntent: once canceled, nothing was charged by
	// it and nothing can be.
	CancelIntent(ctx context.Context, id, downstreamKey string) (Intent, error)
	// CreateRefund gives money back.
	CreateRefund(ctx context.Context, p RefundParams) (ProviderRefund, error)
	// Refunds lists what was given back of a charge, newest first.
	Refunds(ctx context.Context, charge string) ([]ProviderRefund, error)
	// Dispute asks how a dispute stands.
	Dispute(ctx context.Context, id string) (Dispute, error)
}

// IntentParams are the parameters of a PaymentIntent. They belong to the order
// and are the same on every attempt: a provider refuses a downstream key that comes
// with other parameters than before.
type IntentParams struct {
	DownstreamKey string
	Money         Money
	Description   string
	// Account and Order become the intent's metadata, by which an event finds
	// its order before the intent's id is stored.
	Account, Order string
}

// ConfirmParams are the parameters of one attempt, frozen on its payment.
// Exactly one of PaymentMethod and ConfirmationToken is set.
type ConfirmParams struct {
	DownstreamKey     string
	Intent            string
	PaymentMethod     string
	ConfirmationToken string
	// ReturnURL is where the bank sends the buyer back after 3-D Secure.
	ReturnURL string
}

// RefundParams are the parameters of one refund. Refund, Payment and Order
// become metadata, by which a refund is found again when its answer was lost.
type RefundParams struct {
	DownstreamKey          string
	Intent                 string
	Amount                 int64
	Refund, Payment, Order string
}

// IntentStatus is the status of a PaymentIntent, in Stripe's words.
type IntentStatus string

// The statuses that the checkout tells apart. What is not succeeded, canceled,
// requires_action or processing is undecided.
const (
	IntentRequiresPaymentMethod IntentStatus = "requires_payment_method"
	IntentRequiresConfirmation  IntentStatus = "requires_confirmation"
	IntentRequiresAction        IntentStatus = "requires_action"
	IntentProcessing            IntentStatus = "processing"
	IntentSucceeded             IntentStatus = "succeeded"
	IntentCanceled              IntentStatus = "canceled"
)

// Intent is what a provider says of a PaymentIntent.
type Intent struct {
	ID     string
	Status IntentStatus
	Money  Money
	// Live is true for real money.
	Live bool
	// Charge is the charge that took the money; empty unless succeeded. (At
	// Stripe latest_charge may be a failed one; that is not reported here.)
	Charge string
	// Account and Order are read back from the metadata.
	Account, Order string
	// NextActionURL is where the bank asks the buyer, in requires_action.
	NextActionURL string
	// Code and DeclineCode are those of the last payment error. They may be
	// another attempt's: only where one attempt alone can be meant do they count.
	Code, DeclineCode string
	// Replayed is true for an answer given under this downstream key before: a
	// snapshot of that moment, not of now.
	Replayed bool
}

// ProviderRefund is what a provider says of a refund.
type ProviderRefund struct {
	ID     string
	Status string // pending, requires_action, succeeded, failed or canceled
	Money  Money
	Charge string
	// Refund is our own refund's id, read back from the metadata; empty for
	// one made elsewhere.
	Refund   string
	Replayed bool
}

// Fault says what an error of a provider proves. The zero value proves
// nothing, so whatever nobody classified is an unknown outcome.
type Fault int

// Each fault, and what it proves about the call that met it.
const (
	// FaultUnknown: a timeout, a reset, a 5xx, 424, an answer that is not
	// Stripe's, a lock timeout. The call may or may not have been executed.
	FaultUnknown Fault = iota
	// FaultNotSent: the request never left this process.
	FaultNotSent
	// FaultBusy: 429 rate_limit. Refused before execution.
	FaultBusy
	// FaultRefused: 400 validation, 401, 403, 404. Refused before execution;
	// ours to mend.
	FaultRefused
	// FaultDeclined: 402. The bank or Stripe said no to this confirm.
	FaultDeclined
	// FaultUnexpectedState: 400 payment_intent_unexpected_state. The intent is
	// not where we thought; it may have succeeded.
	FaultUnexpectedState
	// FaultKeyInUse: 409 idempotency_key_in_use. Someone is on it.
	FaultKeyInUse
	// FaultKeyMismatch: 400 idempotency_error. The downstream key was used
	// before with other parameters, so something was executed under it.
	FaultKeyMismatch
	// FaultStored: a 5xx that Stripe stored under the downstream key and now
	// replays. It will never change, and it still proves nothing.
	FaultStored
)

var faultNames = [...]string{"unknown", "not_sent", "busy", "refused", "declined", "unexpected_state", "key_in_use", "key_mismatch", "stored"}

// String names the fault in one word, for logs.
func (f Fault) String() string {
	if f < 0 || int(f) >= len(faultNames) {
		return "unknown"
	}
	return faultNames[f]
}

// ProviderError is an error of a provider, judged on its HTTP status and code,
// never on its message or type. Its text carries no client secret.
type ProviderError struct {
	Fault Fault
	// HTTPStatus is 0 when there was no answer.
	HTTPStatus int
	// Code and DeclineCode are Stripe's, such as card_declined and
	// insufficient_funds.
	Code, DeclineCode string
	// Param names the parameter that was refused.
	Param string
	// Intent is the PaymentIntent that came with the error, if one did.
	Intent *Intent
	// Replayed is true for an error stored under this downstream key before.
	Replayed bool
	// RequestID is Stripe's, for its dashboard.
	RequestID string
	// Err is the transport's error, if there was no answer.
	Err error
}

func (e *ProviderError) Error() string {
	text := "provider: " + e.Fault.String()
	if e.HTTPStatus != 0 {
		text += fmt.Sprintf(", status %d", e.HTTPStatus)
	}
	if e.Code != "" {
		text += ", code " + e.Code
	}
	if e.Param != "" {
		text += ", param " + e.Param
	}
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the transport's error.
func (e *ProviderError) Unwrap() error { return e.Err }

// judged gives the ProviderError within err, or one with an unknown outcome.
func judged(err error) *ProviderError {
	var e *ProviderError
	if errors.As(err, &e) {
		return e
	}
	return &ProviderError{Fault: FaultUnknown, Err: err}
}
