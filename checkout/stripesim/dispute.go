package stripesim

import "slices"

type dispute struct {
	ID                   string             `json:"id"`
	Object               string             `json:"object"`
	Amount               int64              `json:"amount"`
	BalanceTransactions  []struct{}         `json:"balance_transactions"`
	Charge               reference          `json:"charge"`
	Created              int64              `json:"created"`
	Currency             string             `json:"currency"`
	Evidence             map[string]*string `json:"evidence"`
	EvidenceDetails      evidenceDetails    `json:"evidence_details"`
	IsChargeRefundable   bool               `json:"is_charge_refundable"`
	Livemode             bool               `json:"livemode"`
	Metadata             map[string]string  `json:"metadata"`
	PaymentIntent        reference          `json:"payment_intent"`
	PaymentMethodDetails disputedMethod     `json:"payment_method_details"`
	Reason               string             `json:"reason"`
	Status               string             `json:"status"`
}

type evidenceDetails struct {
	DueBy           *int64 `json:"due_by"`
	HasEvidence     bool   `json:"has_evidence"`
	PastDue         bool   `json:"past_due"`
	SubmissionCount int    `json:"submission_count"`
}

type disputedMethod struct {
	Card disputedCard `json:"card"`
	Type string       `json:"type"`
}

type disputedCard struct {
	Brand             string `json:"brand"`
	CaseType          string `json:"case_type"`
	NetworkReasonCode string `json:"network_reason_code"`
}

type disputeRecord struct {
	dispute `json:"shown"`
}

func (d *disputeRecord) ident() string    { return d.ID }
func (d *disputeRecord) kind() string     { return "dispute" }
func (d *disputeRecord) createdAt() int64 { return d.Created }

func (d *disputeRecord) shown() any {
	shown := d.dispute
	return &shown
}

// evidenceFields are all that a dispute shows; only the text below decides anything here.
var evidenceFields = []string{
	"access_activity_log", "billing_address", "cancellation_policy", "cancellation_policy_disclosure", "cancellation_rebuttal",
	"customer_communication", "customer_email_address", "customer_name", "customer_purchase_ip", "customer_signature",
	"duplicate_charge_documentation", "duplicate_charge_explanation", "duplicate_charge_id", "product_description", "receipt",
	"refund_policy", "refund_policy_disclosure", "refund_refusal_explanation", "service_date", "service_documentation",
	"shipping_address", "shipping_carrier", "shipping_date", "shipping_documentation", "shipping_tracking_number",
	"uncategorized_file", "uncategorized_text",
}

// How evidence decides a test dispute: https://docs.stripe.com/testing#evidence.
const (
	winningEvidence = "winning_evidence"
	losingEvidence  = "losing_evidence"
)

const evidenceTime = 9 * 24 * 60 * 60

// openDispute is the customer's bank, some time after the charge.
func (tx *tx) openDispute(chargeID string) {
	old, found := tx.get(chargeID).(*chargeRecord)
	if !found || old.Disputed {
		return
	}
	ch, rule := *old, tests[old.Method].dispute
	inquiry := rule.status == "warning_needs_response"
	due := tx.now() + evidenceTime
	d := &disputeRecord{dispute: dispute{
		ID: newID("du"), Object: "dispute", Amount: ch.Amount, BalanceTransactions: []struct{}{}, Charge: refer(ch.ID), Created: tx.now(),
		Currency: ch.Currency, Evidence: map[string]*string{}, EvidenceDetails: evidenceDetails{DueBy: &due},
		IsChargeRefundable: inquiry, Metadata: map[string]string{}, PaymentIntent: ch.PaymentIntent,
		PaymentMethodDetails: disputedMethod{Type: "card", Card: disputedCard{Brand: ch.PaymentMethodDetails.Card.Brand, CaseType: "chargeback", NetworkReasonCode: "83"}},
		Reason:               rule.reason, Status: rule.status,
	}}
	if inquiry {
		d.PaymentMethodDetails.Card.CaseType = "inquiry"
	}
	for _, name := range evidenceFields {
		d.Evidence[name] = nil
	}
	ch.Disputed, ch.ChargedBack = true, !inquiry
	tx.put(&ch)
	tx.put(d)
	tx.emit("charge.dispute.created", d.dispute, nil)
	if !inquiry {
		tx.emit("charge.dispute.funds_withdrawn", d.dispute, nil)
	}
}

func disputeUpdateParams() []param {
	fields := []param{{name: "uncategorized_text", kind: text, clears: true, max: 20_000}}
	for _, name := range evidenceFields {
		if !slices.ContainsFunc(fields, func(p param) bool { return p.name == name }) {
			fields = append(fields, param{name: name, kind: unimitated})
		}
	}
	return expandable(
		param{name: "evidence", kind: object, fields: fields},
		param{name: "metadata", kind: metadata},
		param{name: "submit", kind: boolean},
	)
}

// updateDispute takes evidence. With Stripe's two test texts the bank decides at once.
func updateDispute(tx *tx, p params) (any, *apiError) {
	old, found := tx.get(tx.call.subject).(*disputeRecord)
	if !found {
		return nil, missing("dispute", "dispute", tx.call.subject)
	}
	d := *old
	if d.Status != "needs_response" && d.Status != "warning_needs_response" && p.has("evidence") {
		return nil, conflict("", "", "This dispute is already closed.")
	}
	d.Metadata = p.merged(d.Metadata)
	said := p.text("evidence", "uncategorized_text")
	if said != "" {
		d.Evidence = map[string]*string{}
		for _, name := range evidenceFields {
			d.Evidence[name] = nil
		}
		d.Evidence["uncategorized_text"] = &said
		d.EvidenceDetails.HasEvidence = true
	}
	decided := said == winningEvidence || said == losingEvidence
	if decided {
		d.EvidenceDetails.SubmissionCount++
		d.Status = map[bool]string{true: "won", false: "lost"}[said == winningEvidence]
		if old.Status == "warning_needs_response" {
			d.Status = "warning_closed"
		}
	}
	tx.put(&d)
	tx.emit("charge.dispute.updated", d.dispute, map[string]any{"status": old.Status})
	if decided {
		tx.emit("charge.dispute.closed", d.dispute, nil)
		tx.reinstate(&d)
	}
	return d.shown(), nil
}

// reinstate gives the money of a won dispute back, after which it may be refunded again.
func (tx *tx) reinstate(d *disputeRecord) {
	if d.Status != "won" {
		return
	}
	ch := *tx.get(d.Charge.id).(*chargeRecord)
	ch.ChargedBack = false
	tx.put(&ch)
	tx.emit("charge.dispute.funds_reinstated", d.dispute, nil)
}

func disputeOf(p params) func(record) bool {
	pi, ch := p.text("payment_intent"), p.text("charge")
	return func(r record) bool {
		d := r.(*disputeRecord)
		return (pi == "" || d.PaymentIntent.id == pi) && (ch == "" || d.Charge.id == ch)
	}
}

func retrieveDispute(tx *tx, _ params) (any, *apiError) {
	d, found := tx.get(tx.call.subject).(*disputeRecord)
	if !found {
		return nil, missing("dispute", "dispute", tx.call.subject)
	}
	return d.shown(), nil
}
