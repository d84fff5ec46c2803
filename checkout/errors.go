package checkout

import "errors"

// What a call of the Service can meet beside the errors of the ledger
// (idempotency.ErrKeyReused, ErrInProgress, ErrClaimContended, ErrOverloaded).
// None of these leaves a trace under the key that met it.
var (
	// ErrNotFound: there is no such course, order, payment or lesson, or it is
	// not this account's. Returned by every method that names one.
	ErrNotFound = errors.New("not found")
	// ErrPaymentInProgress: another key holds the order's slot. By Pay.
	ErrPaymentInProgress = errors.New("a payment for this order is in progress")
	// ErrOrderAlreadyPaid: the order is paid or was refunded. By Pay.
	ErrOrderAlreadyPaid = errors.New("the order is already paid")
	// ErrOrderClosed: the order expired or is being closed. By Pay.
	ErrOrderClosed = errors.New("the order is closed")
	// ErrAlreadyEnrolled: the account has the course. By PlaceOrder.
	ErrAlreadyEnrolled = errors.New("already enrolled")
	// ErrOutcomeUnknown: the call ended and nobody can say yet whether money
	// moved; the key stays in progress. By Pay and Refund.
	ErrOutcomeUnknown = errors.New("the outcome is unknown")
	// ErrProviderBusy: refused before execution, the key can be retried. By Pay
	// and Refund.
	ErrProviderBusy = errors.New("the provider is busy")
	// ErrProviderRefused: refused before execution, ours to mend. By Pay and
	// Refund.
	ErrProviderRefused = errors.New("the provider refused the request")
)

// InvalidError is returned for a field that cannot be accepted, before anything
// is claimed.
type InvalidError struct {
	Field  string // as the client spells it
	Reason string // why, and what to do, as a sentence
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// ConflictError carries what an error above is about, so that the answer can
// link to it. errors.Is sees through it.
type ConflictError struct {
	Err    error
	Course string
	Order  string
	// Payment is the one in the way, or the one whose outcome is unknown.
	Payment *Payment
	// PaymentKey is the order's key now; empty unless a new key is safe.
	PaymentKey string
	// RetryAfter is how many whole seconds to wait before the same request is
	// worth sending again; 0 if it is not.
	RetryAfter int
}

func (e *ConflictError) Error() string { return e.Err.Error() }

// Unwrap gives the sentinel.
func (e *ConflictError) Unwrap() error { return e.Err }
