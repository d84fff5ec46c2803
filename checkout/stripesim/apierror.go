package stripesim

import (
	"fmt"
	"net/http"
	"strings"
)

// apiError is an answer that is not the object asked for.
type apiError struct {
	status int
	body   errorBody

	// begun tells whether the endpoint had begun to execute. Such a result is stored under the idempotency key and
	// what the call changed is kept; any other is forgotten, and the key may be used for the mended request
	// (https://docs.stripe.com/api/idempotent_requests).
	begun bool

	shouldRetry string // Stripe-Should-Retry; absent when empty
	limited     string // Stripe-Rate-Limited-Reason; absent when empty
}

// errorBody is what stands under "error" in the answer. Fields that do not apply are absent, never null.
type errorBody struct {
	Charge        string         `json:"charge,omitempty"`
	Code          string         `json:"code,omitempty"`
	DeclineCode   string         `json:"decline_code,omitempty"`
	DocURL        string         `json:"doc_url,omitempty"`
	Message       string         `json:"message"`
	Param         string         `json:"param,omitempty"`
	PaymentIntent *paymentIntent `json:"payment_intent,omitempty"`
	PaymentMethod *paymentMethod `json:"payment_method,omitempty"`
	Type          string         `json:"type"`
}

const (
	invalidRequest   = "invalid_request_error"
	cardError        = "card_error"
	internalError    = "api_error"
	idempotencyError = "idempotency_error"
)

// docURL is where Stripe explains a code; empty without one.
func docURL(code string) string {
	if code == "" {
		return ""
	}
	return "https://stripe.com/docs/error-codes/" + strings.ReplaceAll(code, "_", "-")
}

func newError(status int, kind, code, param, message string) *apiError {
	return &apiError{status: status, body: errorBody{
		Type: kind, Code: code, Param: param, Message: message, DocURL: docURL(code),
	}}
}

// refuse is a request that failed validation: 400, nothing executed, nothing stored.
func refuse(code, param, format string, args ...any) *apiError {
	return newError(http.StatusBadRequest, invalidRequest, code, param, fmt.Sprintf(format, args...))
}

// conflict is a request that the state of an object forbids: 400, found while executing, hence stored.
func conflict(code, param, format string, args ...any) *apiError {
	e := refuse(code, param, format, args...)
	e.begun = true
	return e
}

// unexpectedState is a call that the PaymentIntent's status forbids. It carries the whole PaymentIntent: to a caller
// that repeats a confirm, "succeeded" inside it is good news.
func unexpectedState(pi paymentIntent, format string, args ...any) *apiError {
	e := conflict("payment_intent_unexpected_state", "", format, args...)
	e.body.PaymentIntent = &pi
	return e
}

// missing is an object named in the path that does not exist.
func missing(kind, param, id string) *apiError {
	return newError(http.StatusNotFound, invalidRequest, "resource_missing", param, fmt.Sprintf("No such %s: '%s'", kind, id))
}

func errUnrecognized(method, path string) *apiError {
	return newError(http.StatusNotFound, invalidRequest, "", "", fmt.Sprintf(
		"Unrecognized request URL (%s: %s). If you are trying to list objects, remove the trailing slash. "+
			"If you are trying to retrieve an object, make sure you passed a valid (non-empty) identifier in your code.", method, path))
}

func errRateLimited() *apiError {
	e := newError(http.StatusTooManyRequests, invalidRequest, "rate_limit", "",
		"Request rate limit exceeded. You can learn more about rate limits here https://stripe.com/docs/rate-limits.")
	e.limited = "global-rate"
	return e
}

// errLockTimeout is an object that another call works on. It was not executed, so the same key may be sent again.
func errLockTimeout() *apiError {
	e := newError(http.StatusTooManyRequests, invalidRequest, "lock_timeout", "",
		"This object cannot be accessed right now because another API request or Stripe process is currently accessing it. "+
			"If you see this error intermittently, retry the request.")
	e.shouldRetry = "true"
	return e
}

func errKeyInUse(key string) *apiError {
	return newError(http.StatusConflict, invalidRequest, "idempotency_key_in_use", "", fmt.Sprintf(
		"There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, "+
			"and the other request is still going through): %s. Please try again later.", key))
}

func errKeyOtherParameters(key string) *apiError {
	return newError(http.StatusBadRequest, idempotencyError, "", "", fmt.Sprintf(
		"Keys for idempotent requests can only be used with the same parameters they were first used with. "+
			"Try using a key other than '%s' if you meant to execute a different request.", key))
}

func errKeyOtherEndpoint(key, path, first string) *apiError {
	return newError(http.StatusBadRequest, idempotencyError, "", "", fmt.Sprintf(
		"Keys for idempotent requests can only be used for the same endpoint they were first used for ('%s' vs '%s'). "+
			"Try using a key other than '%s' if you meant to execute a different request.", path, first, key))
}

// errServer is Stripe's own failure while executing: stored, although nobody can tell from it what happened.
func errServer() *apiError {
	e := newError(http.StatusInternalServerError, internalError, "", "",
		"An unknown error occurred while the local Stripe pretended to process your request.")
	e.begun, e.shouldRetry = true, "false"
	return e
}

// errJournal is the local Stripe's own trouble: it promises nothing that it could not write down.
func errJournal() *apiError {
	return newError(http.StatusInternalServerError, internalError, "", "", "The local Stripe could not write its journal.")
}
