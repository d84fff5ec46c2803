package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/idempotency"
	"payonce/web/view"
)

// What the web itself refuses, before the Service is called.
var (
	errNoSession  = errors.New("no session")
	errCrossSite  = errors.New("the request came from another site")
	errTooLarge   = errors.New("the body is too large")
	errMediaType  = errors.New("the media type is not accepted")
	errBadRequest = errors.New("the request is not valid")
)

// answers is the one table from what went wrong to the code that says so; the
// status, the words and whether a new key is safe are the code's own, in
// checkout.Definitions. Whatever is not here is internal.
//
// retryAfter is the default number of seconds after which the same request
// with the same key is worth sending again; 0 if it is not.
var answers = []struct {
	err        error
	code       string
	retryAfter int
}{
	{idempotency.ErrKeyMissing, "key_missing", 0},
	{idempotency.ErrKeyMalformed, "key_malformed", 0},
	{errBadRequest, "invalid_request", 0},
	{errNoSession, "no_session", 0},
	{errCrossSite, "cross_site", 0},
	{checkout.ErrNotFound, "not_found", 0},
	{echo.ErrNotFound, "not_found", 0},
	{echo.ErrMethodNotAllowed, "method_not_allowed", 0},
	{idempotency.ErrInProgress, "request_in_progress", 1},
	{idempotency.ErrClaimContended, "claim_contended", 1},
	{checkout.ErrPaymentInProgress, "payment_in_progress", 0},
	{checkout.ErrOrderAlreadyPaid, "order_already_paid", 0},
	{checkout.ErrAlreadyEnrolled, "already_enrolled", 0},
	{checkout.ErrOrderClosed, "order_closed", 0},
	{errTooLarge, "too_large", 0},
	{errMediaType, "media_type", 0},
	{idempotency.ErrKeyReused, "key_reused", 0},
	{checkout.ErrOutcomeUnknown, "outcome_unknown", 2},
	{idempotency.ErrCommitUnknown, "outcome_unknown", 2},
	{checkout.ErrProviderBusy, "provider_busy", 1},
	{checkout.ErrProviderRefused, "provider_refused", 0},
	{idempotency.ErrOverloaded, "overloaded", 1},
}

// refusal is an error about one part of the request.
type refusal struct {
	err    error
	field  string // as the client spells it
	detail string // in place of the code's own, if not empty
}

func (e *refusal) Error() string {
	if e.field == "" {
		return e.err.Error()
	}
	return e.field + ": " + e.err.Error()
}

// Unwrap gives the sentinel.
func (e *refusal) Unwrap() error { return e.err }

// invalid refuses a field, with a sentence that says why and what to do.
func invalid(field, reason string) error {
	return &refusal{err: errBadRequest, field: field, detail: reason}
}

// failure is an error as it is answered.
type failure struct {
	checkout.Problem
	retryAfter int
	// words and ways replace the page's own for the code, where set.
	words *view.Words
	ways  []view.Link
}

// failureOf finds the answer to an error, however deep it is wrapped.
func failureOf(err error) failure {
	var lab *labRefusal
	if errors.As(err, &lab) {
		return lab.failure()
	}
	f := failure{Problem: checkout.NewProblem("internal")}
	for _, row := range answers {
		if errors.Is(err, row.err) {
			f = failure{Problem: checkout.NewProblem(row.code), retryAfter: row.retryAfter}
			break
		}
	}

	var bad *checkout.InvalidError
	if errors.As(err, &bad) {
		f = failure{Problem: checkout.NewProblem("invalid_request")}
		f.Field, f.Detail = bad.Field, bad.Reason
	}
	var refused *refusal
	if errors.As(err, &refused) {
		f.Field = refused.field
		if refused.detail != "" {
			f.Detail = refused.detail
		}
	}
	if why, ok := strings.CutPrefix(cause(err), idempotency.ErrKeyMalformed.Error()+": "); ok {
		f.Detail = sentence(why) + " " + f.Detail
	}

	var conflict *checkout.ConflictError
	if errors.As(err, &conflict) {
		f.Course, f.Order, f.PaymentKey = conflict.Course, conflict.Order, conflict.PaymentKey
		if conflict.Payment != nil {
			payment := conflict.Payment.View()
			f.Payment = &payment
		}
		if conflict.RetryAfter > 0 {
			f.retryAfter = conflict.RetryAfter
		}
	}
	var running *idempotency.InProgressError
	if errors.As(err, &running) {
		f.retryAfter = max(1, int((running.RetryAfter+time.Second-1)/time.Second))
	}
	var reused *idempotency.ReusedError
	if errors.As(err, &reused) {
		f.tellFirst(reused)
	}
	return f
}

// tellFirst says what became of the request that has the key. Until that has
// ended for good no new key is safe.
func (f *failure) tellFirst(e *idempotency.ReusedError) {
	if !e.Settled() {
		f.SafeNewKey, f.PaymentKey = false, ""
	}
	switch {
	case e.Status == idempotency.InProgress:
		f.Detail += " The request that has this key is running, or its outcome is not known yet: send that one again, or read the order, and use no new key before."
	case e.Status == idempotency.FailedRetryable:
		f.Detail += " The request that has this key was not carried out."
	case e.ResponseStatus == http.StatusAccepted:
		f.Detail += " The request that has this key was answered with 202 and its money may still come: read the order, and use no new key before."
	case e.ResponseStatus != 0:
		f.Detail += " The request that has this key was answered with " + strconv.Itoa(e.ResponseStatus) + "."
	}
}

// cause gives the text of the error behind a refusal.
func cause(err error) string {
	var refused *refusal
	if errors.As(err, &refused) {
		err = refused.err
	}
	return err.Error()
}

// sentence makes one of an error's text.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
