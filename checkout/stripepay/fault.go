package stripepay

import (
	"errors"
	"net"
	"net/http"

	"github.com/stripe/stripe-go/v79"

	"payonce/checkout"
)

// Why an outcome is unknown, where neither the context nor the network says so.
var (
	// ErrNoAnswer: the connection ended before the answer.
	ErrNoAnswer = errors.New("the connection ended before the answer")
	// ErrNotStripes: there was an answer, and it is not one that Stripe gives.
	ErrNotStripes = errors.New("the answer is not Stripe's")
	// ErrMalformed: our own argument, refused before anything was sent.
	ErrMalformed = errors.New("malformed argument")
)

// judge turns the SDK's error into a *checkout.ProviderError. The intent that
// comes with it is passed on if it is the one that was asked for, where an empty
// id is any.
func (x *exchange) judge(err error, id string) error {
	verdict := &checkout.ProviderError{HTTPStatus: x.status, Replayed: x.replayed, RequestID: x.requestID}
	var said *stripe.Error
	switch {
	case x.status == 0:
		if !x.connected {
			verdict.Fault = checkout.FaultNotSent
		}
		verdict.Err = x.cause()
	// The type is not read here, only missed: Stripe always gives one, and a
	// gateway's {"error":{"message":"..."}} is no word of Stripe's.
	case !errors.As(err, &said) || said.Type == "":
		verdict.Fault = unread(x.status, x.replayed)
		verdict.Err = x.cause()
	default:
		verdict.Fault = fault(x.status, x.replayed, said)
		verdict.Code, verdict.DeclineCode = printable(string(said.Code)), printable(string(said.DeclineCode))
		verdict.Param = printable(said.Param)
		if intent, err := intent(said.PaymentIntent, id); err == nil {
			verdict.Intent = &intent
		}
	}
	return verdict
}

// fault judges an error of Stripe's by its status and code
// (https://docs.stripe.com/error-low-level). What is not named is unknown.
func fault(status int, replayed bool, said *stripe.Error) checkout.Fault {
	switch status {
	case http.StatusBadRequest:
		switch {
		case said.Code == stripe.ErrorCodePaymentIntentUnexpectedState:
			return checkout.FaultUnexpectedState
		// The one place where the type is read: Stripe gives this error no code.
		// Taking it for a refusal would call executed work not done.
		case said.Type == stripe.ErrorTypeIdempotency:
			return checkout.FaultKeyMismatch
		}
		return checkout.FaultRefused
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return checkout.FaultRefused
	case http.StatusPaymentRequired:
		return checkout.FaultDeclined
	case http.StatusConflict:
		return checkout.FaultKeyInUse
	case http.StatusTooManyRequests:
		// The other 429, lock_timeout, says that someone works on the object,
		// perhaps our own earlier send: unknown.
		if said.Code == stripe.ErrorCodeRateLimit {
			return checkout.FaultBusy
		}
	}
	return unread(status, replayed)
}

// unread judges an answer that means nothing to us. One that Stripe has stored
// will come again for as long as the key lives; telling it from a fresh one is
// what keeps the checkout from repeating it for ever.
func unread(status int, replayed bool) checkout.Fault {
	if replayed && (status >= 500 || status == http.StatusFailedDependency) {
		return checkout.FaultStored
	}
	return checkout.FaultUnknown
}

// cause says what ended a call without an answer of Stripe's, in words that
// hold nothing of the answer: net/http quotes a malformed one, and the SDK an
// undecodable one, client secret and all.
func (x *exchange) cause() error {
	var network *net.OpError
	switch {
	case x.ctx.Err() != nil:
		return x.ctx.Err()
	case x.status != 0:
		return ErrNotStripes
	case x.err != nil && !x.connected:
		return x.err
	case errors.As(x.err, &network):
		return network
	}
	return ErrNoAnswer
}

// strange is the verdict on an answer with status 200 that is not what was
// asked for.
func (x *exchange) strange() error {
	return &checkout.ProviderError{HTTPStatus: x.status, Replayed: x.replayed, RequestID: x.requestID, Err: ErrNotStripes}
}

// malformed is the verdict on an argument that cannot be sent.
func malformed(param string) error {
	return &checkout.ProviderError{Fault: checkout.FaultRefused, Param: param, Err: ErrMalformed}
}
