package web

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/idempotency"
	"payonce/web/view"
)

// policyView is the JSON of the published policy, in the order of its three
// questions: who may do the work, what is remembered, and which request is the
// same (draft-ietf-httpapi-idempotency-key-header-07, section 2.3, asks a
// server to publish it).
type policyView struct {
	Exclusion exclusionView      `json:"exclusion"`
	Memory    memoryView         `json:"memory"`
	Identity  identityView       `json:"identity"`
	Answers   []policyAnswerView `json:"answers"`
}

type exclusionView struct {
	WaitSeconds            float64 `json:"wait_seconds"`
	LeaseSeconds           float64 `json:"lease_seconds"`
	ProviderTimeoutSeconds float64 `json:"provider_timeout_seconds"`
	// CompleterIntervalSeconds is 0 where nobody looks for what is left.
	CompleterIntervalSeconds float64 `json:"completer_interval_seconds"`
}

type memoryView struct {
	RetentionSeconds      float64 `json:"retention_seconds"`
	ResendWindowSeconds   float64 `json:"resend_window_seconds"`
	OrderExpirySeconds    float64 `json:"order_expiry_seconds"`
	ActionTimeoutSeconds  float64 `json:"action_timeout_seconds"`
	RefundWindowSeconds   float64 `json:"refund_window_seconds"`
	EventRetentionSeconds float64 `json:"event_retention_seconds"`
	ReplayHeader          string  `json:"replay_header"`
}

type identityView struct {
	Header       string                `json:"header"`
	FormField    string                `json:"form_field"`
	KeyMinLength int                   `json:"key_min_length"`
	KeyMaxLength int                   `json:"key_max_length"`
	Scope        string                `json:"scope"`
	Operations   []policyOperationView `json:"operations"`
}

type policyOperationView struct {
	Operation string   `json:"operation"`
	Fields    []string `json:"fields"`
	// OneOf is true where exactly one of the fields is sent.
	OneOf bool   `json:"one_of"`
	Shape string `json:"shape"`
}

type policyAnswerView struct {
	Code   string `json:"code"`
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// Stored is true if the answer is kept under the key and replayed.
	Stored     bool `json:"stored"`
	SafeNewKey bool `json:"safe_new_key"`
	// RetryAfter is true if the answer says when to send the same key again.
	RetryAfter bool `json:"retry_after"`
}

// operations are those that take a key, with what their fingerprint covers.
var operations = []policyOperationView{
	{"POST /orders", []string{"course"}, false, "local"},
	{"POST /orders/{id}/payments", []string{"payment_method", "confirmation_token"}, true, "remote"},
	{"POST /payments/{id}/refunds", []string{"amount"}, false, "remote"},
}

// successes are the answers that are no problems. Their codes exist here only,
// to have something to point at.
var successes = []policyAnswerView{
	{"done", http.StatusCreated, "It is done", "The order was placed, the payment or the refund was made. The same key gets this answer again.", true, false, false},
	{"order_open", http.StatusOK, "There is an open order", "The account has an open order for the course; this is it. Pay that one.", true, false, false},
	{"accepted", http.StatusAccepted, "It is accepted, not settled", "The bank asks the buyer first, or Stripe settles later. Read the order to see how it ended, and use no new key before.", true, false, false},
}

// publish makes the policy of the figures in force and the table of codes.
func publish(p Policy) policyView {
	v := policyView{
		Exclusion: exclusionView{p.Wait.Seconds(), p.Lease.Seconds(), p.ProviderTimeout.Seconds(), p.CompleterInterval.Seconds()},
		Memory: memoryView{
			p.Retention.Seconds(), p.ResendWindow.Seconds(), p.OrderExpiry.Seconds(), p.ActionTimeout.Seconds(),
			p.RefundWindow.Seconds(), p.EventRetention.Seconds(), replayedHeader,
		},
		Identity: identityView{
			Header: keyHeader, FormField: keyField, KeyMinLength: 1, KeyMaxLength: idempotency.MaxKeyLength,
			Scope: "account", Operations: operations,
		},
		Answers: append([]policyAnswerView{}, successes...),
	}
	for _, d := range checkout.Definitions() {
		v.Answers = append(v.Answers, policyAnswerView{
			d.Code, d.Status, d.Title, d.Detail, d.Stored, d.SafeNewKey, retriesSameKey(d.Code),
		})
	}
	return v
}

// retriesSameKey is true for the codes that come with Retry-After.
func retriesSameKey(code string) bool {
	for _, row := range answers {
		if row.code == code && row.retryAfter > 0 {
			return true
		}
	}
	return code == "internal"
}

// idempotencyPolicy answers GET /docs/idempotency.
func (s *Server) idempotencyPolicy(c echo.Context) error {
	private(c)
	if !wantsHTML(c) {
		return s.sendJSON(c, s.policy)
	}
	p := s.cfg.Policy
	m := view.Policy{
		Frame:     s.frame(view.PolicySection),
		Retention: span(p.Retention), Wait: span(p.Wait), Lease: span(p.Lease),
		ProviderTimeout: span(p.ProviderTimeout), ResendWindow: span(p.ResendWindow), OrderExpiry: span(p.OrderExpiry),
		ActionTimeout: span(p.ActionTimeout), RefundWindow: span(p.RefundWindow), EventRetention: span(p.EventRetention),
	}
	if p.CompleterInterval > 0 {
		m.CompleterInterval = span(p.CompleterInterval)
	}
	for _, o := range operations {
		m.Operations = append(m.Operations, view.PolicyOperation{Operation: o.Operation, Fields: o.words(), Shape: o.Shape})
	}
	for _, a := range s.policy.Answers {
		m.Answers = append(m.Answers, view.PolicyAnswer{
			Code: a.Code, Status: strconv.Itoa(a.Status), Sticks: a.Stored, SafeNewKey: a.newKeyWords(), Do: a.Detail,
		})
	}
	return s.sendPage(c, http.StatusOK, view.PolicyPage(m))
}

// words names the fields as a sentence does.
func (o policyOperationView) words() string {
	words := o.Fields[0]
	for _, f := range o.Fields[1:] {
		if o.OneOf {
			words += ", or " + f
		} else {
			words += ", " + f
		}
	}
	return words
}

// newKeyWords says when a new key is safe.
func (a policyAnswerView) newKeyWords() string {
	switch {
	case a.Status < http.StatusAccepted:
		return "not needed"
	case a.Code == "key_reused":
		return "no, while the first runs or is unknown; else yes"
	case a.SafeNewKey:
		return "yes"
	}
	return "no"
}
