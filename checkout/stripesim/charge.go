package stripesim

type charge struct {
	ID                            string               `json:"id"`
	Object                        string               `json:"object"`
	Amount                        int64                `json:"amount"`
	AmountCaptured                int64                `json:"amount_captured"`
	AmountRefunded                int64                `json:"amount_refunded"`
	Application                   null                 `json:"application"`
	ApplicationFee                null                 `json:"application_fee"`
	ApplicationFeeAmount          null                 `json:"application_fee_amount"`
	BalanceTransaction            null                 `json:"balance_transaction"`
	BillingDetails                billingDetails       `json:"billing_details"`
	CalculatedStatementDescriptor string               `json:"calculated_statement_descriptor"`
	Captured                      bool                 `json:"captured"`
	Created                       int64                `json:"created"`
	Currency                      string               `json:"currency"`
	Customer                      null                 `json:"customer"`
	Description                   *string              `json:"description"`
	Disputed                      bool                 `json:"disputed"`
	FailureBalanceTransaction     null                 `json:"failure_balance_transaction"`
	FailureCode                   *string              `json:"failure_code"`
	FailureMessage                *string              `json:"failure_message"`
	FraudDetails                  struct{}             `json:"fraud_details"`
	Invoice                       null                 `json:"invoice"`
	Livemode                      bool                 `json:"livemode"`
	Metadata                      map[string]string    `json:"metadata"`
	OnBehalfOf                    null                 `json:"on_behalf_of"`
	Outcome                       outcome              `json:"outcome"`
	Paid                          bool                 `json:"paid"`
	PaymentIntent                 reference            `json:"payment_intent"`
	PaymentMethod                 string               `json:"payment_method"`
	PaymentMethodDetails          paymentMethodDetails `json:"payment_method_details"`
	ReceiptEmail                  *string              `json:"receipt_email"`
	ReceiptNumber                 null                 `json:"receipt_number"`
	ReceiptURL                    *string              `json:"receipt_url"`
	Refunded                      bool                 `json:"refunded"`
	Refunds                       *page                `json:"refunds,omitempty"`
	Review                        null                 `json:"review"`
	Shipping                      null                 `json:"shipping"`
	Source                        null                 `json:"source"`
	SourceTransfer                null                 `json:"source_transfer"`
	StatementDescriptor           *string              `json:"statement_descriptor"`
	StatementDescriptorSuffix     *string              `json:"statement_descriptor_suffix"`
	Status                        string               `json:"status"`
	TransferData                  null                 `json:"transfer_data"`
	TransferGroup                 *string              `json:"transfer_group"`
}

// outcome says who decided about a charge, and why (https://docs.stripe.com/declines).
type outcome struct {
	NetworkStatus string  `json:"network_status"`
	Reason        *string `json:"reason"`
	RiskLevel     string  `json:"risk_level"`
	RiskScore     int     `json:"risk_score"`
	SellerMessage string  `json:"seller_message"`
	Type          string  `json:"type"`
}

type paymentMethodDetails struct {
	Card cardDetails `json:"card"`
	Type string      `json:"type"`
}

type cardDetails struct {
	AmountAuthorized         int64              `json:"amount_authorized"`
	Brand                    string             `json:"brand"`
	Checks                   cardChecks         `json:"checks"`
	Country                  string             `json:"country"`
	ExpMonth                 int                `json:"exp_month"`
	ExpYear                  int                `json:"exp_year"`
	ExtendedAuthorization    availability       `json:"extended_authorization"`
	Fingerprint              string             `json:"fingerprint"`
	Funding                  string             `json:"funding"`
	IncrementalAuthorization availability       `json:"incremental_authorization"`
	Installments             null               `json:"installments"`
	Last4                    string             `json:"last4"`
	Mandate                  null               `json:"mandate"`
	Multicapture             availability       `json:"multicapture"`
	Network                  string             `json:"network"`
	NetworkToken             networkToken       `json:"network_token"`
	Overcapture              overcapture        `json:"overcapture"`
	ThreeDSecure             *threeDSecureCheck `json:"three_d_secure"`
	Wallet                   null               `json:"wallet"`
}

type availability struct {
	Status string `json:"status"`
}

type networkToken struct {
	Used bool `json:"used"`
}

type overcapture struct {
	MaximumAmountCapturable int64  `json:"maximum_amount_capturable"`
	Status                  string `json:"status"`
}

type threeDSecureCheck struct {
	AuthenticationFlow          string  `json:"authentication_flow"`
	ElectronicCommerceIndicator string  `json:"electronic_commerce_indicator"`
	ExemptionIndicator          null    `json:"exemption_indicator"`
	Result                      string  `json:"result"`
	ResultReason                *string `json:"result_reason"`
	TransactionID               string  `json:"transaction_id"`
	Version                     string  `json:"version"`
}

// chargeRecord is a charge and the name of the test method behind it, which decides what becomes of its refunds.
type chargeRecord struct {
	charge      `json:"shown"`
	Method      string `json:"method"`
	ChargedBack bool   `json:"charged_back,omitempty"` // the bank took the money: nothing can be refunded
}

func (c *chargeRecord) ident() string    { return c.ID }
func (c *chargeRecord) kind() string     { return "charge" }
func (c *chargeRecord) createdAt() int64 { return c.Created }

func (c *chargeRecord) shown() any {
	ch := c.charge
	return &ch
}

// newCharge is the charge of one attempt on a PaymentIntent: approved, or declined where the test method says so.
func (tx *tx) newCharge(pi *intent, m *method, d *decline) *chargeRecord {
	card := tests[m.Test]
	now := tx.now()
	ch := charge{
		ID: newID("ch"), Object: "charge",
		Amount: pi.Amount, CalculatedStatementDescriptor: statementDescriptor(pi), Created: now, Currency: pi.Currency,
		Description: pi.Description, Metadata: pi.Metadata,
		PaymentIntent: refer(pi.ID), PaymentMethod: m.ID, ReceiptEmail: pi.ReceiptEmail,
		StatementDescriptor: pi.StatementDescriptor, StatementDescriptorSuffix: pi.StatementDescriptorSuffix,
		TransferGroup: pi.TransferGroup,
		Outcome:       card.outcome(d),
		PaymentMethodDetails: paymentMethodDetails{Type: "card", Card: cardDetails{
			AmountAuthorized: pi.Amount, Brand: m.Card.Brand, Checks: m.Card.Checks, Country: m.Card.Country,
			ExpMonth: m.Card.ExpMonth, ExpYear: m.Card.ExpYear, Fingerprint: m.Card.Fingerprint, Funding: m.Card.Funding,
			ExtendedAuthorization: availability{"disabled"}, IncrementalAuthorization: availability{"unavailable"},
			Last4: m.Card.Last4, Multicapture: availability{"unavailable"}, Network: m.Card.Brand,
			Overcapture: overcapture{MaximumAmountCapturable: pi.Amount, Status: "unavailable"},
		}},
	}
	if pi.Authenticated == m.ID {
		ch.PaymentMethodDetails.Card.ThreeDSecure = passedChallenge()
	}
	if d != nil {
		ch.Status, ch.FailureCode, ch.FailureMessage = "failed", &d.code, &d.message
		return &chargeRecord{charge: ch, Method: m.Test}
	}
	ch.Status, ch.Paid = succeeded, true
	if pi.CaptureMethod != "manual" {
		ch.Captured, ch.AmountCaptured = true, pi.Amount
	}
	receipt := tx.call.base + "/receipts/" + ch.ID
	ch.ReceiptURL = &receipt
	return &chargeRecord{charge: ch, Method: m.Test}
}

func statementDescriptor(pi *intent) string {
	switch {
	case pi.StatementDescriptor != nil:
		return *pi.StatementDescriptor
	case pi.StatementDescriptorSuffix != nil:
		return "LOCAL STRIPE* " + *pi.StatementDescriptorSuffix
	}
	return "LOCAL STRIPE"
}
