package checkout

import (
	"encoding/json"

	"payonce/idempotency"
)

// ProblemType is the media type of every error answer (RFC 9457).
const ProblemType = "application/problem+json"

// Problem is an error answer: RFC 9457's members, and what a client needs to
// go on safely.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what to do, in words.
	Detail string `json:"detail"`
	Code   string `json:"code"`
	// SafeNewKey is true if a new key cannot lead to a second charge for what
	// this request asked.
	SafeNewKey bool `json:"safe_new_key"`
	// Field names the field, header or parameter that was refused.
	Field string `json:"field,omitempty"`
	// Course, Order and Payment are what the problem is about.
	Course  string       `json:"course,omitempty"`
	Order   string       `json:"order,omitempty"`
	Payment *PaymentView `json:"payment,omitempty"`
	// DeclineCode is the bank's, where it may be told.
	DeclineCode string `json:"decline_code,omitempty"`
	// PaymentKey is the order's next key.
	PaymentKey string `json:"payment_key,omitempty"`
}

// What to do about a code where the request was no payment: the table's words
// are those for a payment.
var (
	refundDetails = map[string]string{
		"outcome_unknown":  "The money may or may not have been given back. Send the same request with the same key again after Retry-After; never a new key.",
		"provider_busy":    "Nothing was given back. Send the same request with the same key again after Retry-After.",
		"provider_refused": "Nothing was given back; the fault is ours and was logged. Send the same request with the same key again later.",
		"overloaded":       "Nothing was claimed and nothing was given back. Send the same request with the same key again after Retry-After.",
	}
	cancelDetails = map[string]string{
		"payment_in_progress": "This payment is being carried out or settled and cannot be given up now. Read the order to see how it ended. Do not pay again.",
		"outcome_unknown":     "The payment may or may not have been given up. Send the same request again after Retry-After: it takes no key. Do not pay again before.",
		"provider_busy":       "The payment was not given up. Send the same request again after Retry-After: it takes no key.",
		"provider_refused":    "The payment was not given up; the fault is ours and was logged. Send the same request again later: it takes no key.",
		"overloaded":          "The payment was not given up. Send the same request again after Retry-After: it takes no key.",
		"internal":            "Send the same request again: it takes no key.",
	}
)

// ForRefund is the problem in the words of a request to give money back.
func (p Problem) ForRefund() Problem { return p.inWordsOf(refundDetails) }

// ForCancel is the problem in the words of a request to give a payment up, which
// takes no key.
func (p Problem) ForCancel() Problem { return p.inWordsOf(cancelDetails) }

func (p Problem) inWordsOf(details map[string]string) Problem {
	if detail, ok := details[p.Code]; ok {
		p.Detail = detail
	}
	return p
}

// Response encodes the problem once: these bytes are stored, sent, and
// replayed.
func (p Problem) Response() idempotency.Response {
	return idempotency.Response{Status: p.Status, Type: ProblemType, Body: encode(p)}
}

// encode gives the JSON of an answer. It is called once an answer: the first
// and every replay are the same bytes.
func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic("checkout: bug: an answer that cannot be encoded: " + err.Error())
	}
	return body
}

// Definition is what the policy publishes of a code.
type Definition struct {
	Code       string
	Status     int
	Title      string
	Detail     string
	SafeNewKey bool
	// Stored is true if the answer is kept under the key and replayed.
	Stored bool
}

// Definitions lists every code of an error answer, in the order of its status.
// The policy page and the API description are generated from it.
func Definitions() []Definition { return definitions }

// definitions is the one table of codes. Stripe's own decline codes share the
// row card_declined.
var definitions = []Definition{
	{"key_missing", 400, "The idempotency key is missing", "Send a key: the Idempotency-Key header, or the field idempotency_key of a form. One key per purchase, made before the first send.", true, false},
	{"key_malformed", 400, "The idempotency key is malformed", "Send one key of 1 to 255 printable ASCII characters, once.", true, false},
	{"invalid_request", 400, "The request is not valid", "Correct the field and send it again. Nothing was stored; the same key may be used.", true, false},
	{"no_session", 401, "There is no session", "Open any page of the shop first and send its cookie along.", true, false},
	{"card_declined", 402, "The card was declined", "Nothing was charged. Choose another card, or try this one again, with the next key.", true, true},
	{"payment_not_made", 402, "The payment was not made", "Nothing was charged by this attempt and nothing can be. Pay again with the next key.", true, true},
	{"cross_site", 403, "The request came from another site", "Send the form from the shop's own page.", true, false},
	{"not_found", 404, "There is no such thing here", "Check the address, and that it belongs to this account.", true, false},
	{"method_not_allowed", 405, "This address does not take that method", "See the Allow header.", true, false},
	{"request_in_progress", 409, "The first request with this key is still running", "Send the same request with the same key again after Retry-After.", false, false},
	{"claim_contended", 409, "The key is being claimed by others", "Send the same request with the same key again after Retry-After.", false, false},
	{"payment_in_progress", 409, "A payment for this order is already on its way", "Wait for that payment; read the order to see how it ended. Do not pay again.", false, false},
	{"order_already_paid", 409, "The order is already paid", "Nothing was charged by this request. Read the order.", false, false},
	{"already_enrolled", 409, "This account has the course already", "Nothing was ordered. Open the course.", false, false},
	{"order_closed", 409, "The order is closed", "Nothing was charged by this request. Order the course again.", false, false},
	{"refund_not_possible", 409, "This amount cannot be refunded", "Read the order to see what was refunded already. Nothing was given back by this request.", true, true},
	{"too_large", 413, "The body is too large", "Send the declared fields only.", true, false},
	{"media_type", 415, "The media type is not accepted", "Send application/json or application/x-www-form-urlencoded.", true, false},
	{"key_reused", 422, "The key belongs to another request", "A key stands for one request and cannot carry another one. Nothing was sent to Stripe.", true, false},
	{"internal", 500, "Something went wrong on our side", "Send the same request with the same key again.", false, false},
	{"outcome_unknown", 503, "The outcome is not known yet", "The card may or may not have been charged. Send the same request with the same key again after Retry-After; never a new key.", false, false},
	{"provider_busy", 503, "Stripe is busy", "Nothing was charged. Send the same request with the same key again after Retry-After, or pay with the next key.", true, false},
	{"provider_refused", 503, "Stripe did not accept the request", "Nothing was charged; the fault is ours and was logged. Try again later, or another card with the next key.", true, false},
	{"overloaded", 503, "The shop is busy", "Nothing was claimed and nothing was charged. Send the same request with the same key again after Retry-After.", true, false},
}

// NewProblem starts the problem of a code. A code that is not in the table is
// Stripe's own for a refused card and gets the row card_declined under its own
// name.
func NewProblem(code string) Problem {
	row := Definition{}
	for _, d := range definitions {
		if d.Code == code || (row.Code == "" && d.Code == "card_declined") {
			row = d
		}
	}
	return Problem{
		Type: "/docs/idempotency#" + row.Code, Title: row.Title, Status: row.Status,
		Detail: row.Detail, Code: code, SafeNewKey: row.SafeNewKey,
	}
}
