package stripesim

type refund struct {
	ID                     string             `json:"id"`
	Object                 string             `json:"object"`
	Amount                 int64              `json:"amount"`
	BalanceTransaction     null               `json:"balance_transaction"`
	Charge                 reference          `json:"charge"`
	Created                int64              `json:"created"`
	Currency               string             `json:"currency"`
	DestinationDetails     destinationDetails `json:"destination_details"`
	FailureReason          string             `json:"failure_reason,omitempty"`
	Metadata               map[string]string  `json:"metadata"`
	PaymentIntent          reference          `json:"payment_intent"`
	Reason                 *string            `json:"reason"`
	ReceiptNumber          null               `json:"receipt_number"`
	SourceTransferReversal null               `json:"source_transfer_reversal"`
	Status                 string             `json:"status"`
	TransferReversal       null               `json:"transfer_reversal"`
}

type destinationDetails struct {
	Card destinationCard `json:"card"`
	Type string          `json:"type"`
}

type destinationCard struct {
	ReferenceStatus string `json:"reference_status"`
	ReferenceType   string `json:"reference_type"`
	Type            string `json:"type"`
}

type refundRecord struct {
	refund `json:"shown"`
}

func (r *refundRecord) ident() string    { return r.ID }
func (r *refundRecord) kind() string     { return "refund" }
func (r *refundRecord) createdAt() int64 { return r.Created }

func (r *refundRecord) shown() any {
	re := r.refund
	return &re
}

func refundCreateParams() []param {
	return expandable(append(unimitatedParams(
		"currency", "customer", "instructions_email", "origin", "refund_application_fee", "reverse_transfer"),
		param{name: "amount", kind: integer},
		param{name: "charge", kind: text},
		param{name: "metadata", kind: metadata},
		param{name: "payment_intent", kind: text},
		param{name: "reason", kind: choice, choices: []string{"duplicate", "fraudulent", "requested_by_customer"}},
	)...)
}

// refundedIntent locks the PaymentIntent behind a refund: two refunds at once could each find the whole amount left.
func refundedIntent(a *account, c *call) string {
	p := params{c.form}
	if ch, found := a.records[p.text("charge")].(*chargeRecord); found {
		return ch.PaymentIntent.id
	}
	return p.text("payment_intent")
}

func createRefund(tx *tx, p params) (any, *apiError) {
	ch, err := tx.refundedCharge(p)
	if err != nil {
		return nil, err
	}
	left := ch.Amount - ch.AmountRefunded // what a partial capture gave back counts as refunded
	amount := left
	if p.has("amount") {
		amount = p.integer("amount")
	}
	switch {
	case ch.ChargedBack:
		return nil, conflict("charge_disputed", "", "Charge %s has been charged back; cannot issue a refund.", ch.ID)
	case ch.Refunded:
		return nil, conflict("charge_already_refunded", "", "Charge %s has already been refunded.", ch.ID)
	case amount > left:
		return nil, conflict("", "amount", "Refund amount (%s) is greater than unrefunded amount on charge (%s)",
			format(amount, ch.Currency), format(left, ch.Currency))
	}
	re := &refundRecord{refund: refund{
		ID: newID("re"), Object: "refund", Amount: amount, Charge: refer(ch.ID), Created: tx.now(), Currency: ch.Currency,
		DestinationDetails: destinationDetails{
			Card: destinationCard{ReferenceStatus: "pending", ReferenceType: "acquirer_reference_number", Type: "refund"}, Type: "card",
		},
		Metadata: p.merged(nil), PaymentIntent: ch.PaymentIntent, Reason: p.optional("reason"), Status: succeeded,
	}}
	rule := tests[ch.Method].refund
	if rule == refundPending {
		re.Status = "pending"
	}
	if rule != refundSucceeds {
		tx.later(tx.server.config.Later, "settle refund", re.ID, ch.PaymentIntent.id)
	}
	refunded := *ch
	refunded.AmountRefunded += amount
	refunded.Refunded = refunded.AmountRefunded >= ch.Amount
	tx.put(re)
	tx.put(&refunded)
	// At this API version a card refund is announced on its charge only; refund.created came with 2024-10-28.
	tx.emit("charge.refunded", refunded.charge, map[string]any{
		"amount_refunded": ch.AmountRefunded, "refunded": ch.Refunded, "receipt_url": ch.ReceiptURL,
	})
	return re.shown(), nil
}

// refundedCharge finds the charge to refund: the one named, or the one that paid the PaymentIntent.
func (tx *tx) refundedCharge(p params) (*chargeRecord, *apiError) {
	chargeID, intentID := p.text("charge"), p.text("payment_intent")
	if chargeID == "" && intentID == "" {
		return nil, refuse("parameter_missing", "", "One of the following params should be provided for this request: payment_intent or charge.")
	}
	if chargeID == "" {
		pi, found := tx.get(intentID).(*intent)
		if !found {
			return nil, refuse("resource_missing", "payment_intent", "No such payment_intent: '%s'", intentID)
		}
		if pi.Status != succeeded && pi.Status != requiresCapture {
			return nil, conflict("", "payment_intent", "This PaymentIntent (%s) does not have a successful charge to refund.", intentID)
		}
		chargeID = pi.LatestCharge.id
	}
	ch, found := tx.get(chargeID).(*chargeRecord)
	if !found {
		return nil, refuse("resource_missing", "charge", "No such charge: '%s'", chargeID)
	}
	if intentID != "" && ch.PaymentIntent.id != intentID {
		return nil, refuse("", "charge", "Charge %s does not belong to PaymentIntent %s.", chargeID, intentID)
	}
	if !ch.Paid {
		return nil, conflict("", "charge", "Charge %s is not a successful charge and cannot be refunded.", chargeID)
	}
	return ch, nil
}

// settleRefund is what becomes of a refund days later: the pending one succeeds, or the bank sends the money back and
// it failed after all.
func (tx *tx) settleRefund(id string) {
	old, found := tx.get(id).(*refundRecord)
	if !found {
		return
	}
	re := *old
	ch := *tx.get(re.Charge.id).(*chargeRecord)
	switch {
	case tests[ch.Method].refund == refundPending && re.Status == "pending":
		re.Status = succeeded
	case tests[ch.Method].refund == refundFails && re.Status == succeeded:
		re.Status, re.FailureReason = "failed", "expired_or_canceled_card"
		ch.AmountRefunded -= re.Amount
		ch.Refunded = false
		tx.put(&ch)
	default:
		return
	}
	tx.put(&re)
	tx.emit("charge.refund.updated", re.refund, map[string]any{"status": old.Status})
}

func retrieveRefund(tx *tx, _ params) (any, *apiError) {
	re, found := tx.get(tx.call.subject).(*refundRecord)
	if !found {
		return nil, missing("refund", "id", tx.call.subject)
	}
	return re.shown(), nil
}
