package checkout

import "time"

// PaymentStatus is the state of a payment.
type PaymentStatus string

// The states of a payment. The first four hold the order's slot: they are
// money, or could still become money.
const (
	PaymentPending        PaymentStatus = "pending"
	PaymentRequiresAction PaymentStatus = "requires_action"
	PaymentProcessing     PaymentStatus = "processing"
	PaymentSucceeded      PaymentStatus = "succeeded"
	PaymentFailed         PaymentStatus = "failed"   // declined
	PaymentCanceled       PaymentStatus = "canceled" // its intent was canceled: nothing was charged and nothing can be
	PaymentReleased       PaymentStatus = "released" // its key is failed_retryable
)

// holdsSlot is true while the payment is money, or could still become money.
func (s PaymentStatus) holdsSlot() bool {
	switch s {
	case PaymentPending, PaymentRequiresAction, PaymentProcessing, PaymentSucceeded:
		return true
	}
	return false
}

// Payment is one attempt to pay an order: one key, one method.
type Payment struct {
	ID    string
	Order string
	// Key is the idempotency key that claimed it.
	Key    string
	Status PaymentStatus
	Price  Money
	// PaymentMethod is one of the offered methods, or empty when a
	// confirmation token was used.
	PaymentMethod     string
	ConfirmationToken string
	Intent            string
	Charge            string
	// Code and DeclineCode are Stripe's reasons of a failed payment.
	Code, DeclineCode string
	// NextAction is where the bank asks the buyer, in requires_action.
	NextAction string
	// Refunded is what was given back, in minor units.
	Refunded  int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// PaymentView is the JSON of a payment. A next_action is stored as its type and
// the order's address: the bank's own address can hold a client secret.
type PaymentView struct {
	ID            string        `json:"id"`
	Order         string        `json:"order"`
	Status        PaymentStatus `json:"status"`
	Amount        int64         `json:"amount"`
	Currency      string        `json:"currency"`
	PaymentIntent string        `json:"payment_intent,omitempty"`
	Charge        string        `json:"charge,omitempty"`
	DeclineCode   string        `json:"decline_code,omitempty"`
	NextAction    *NextAction   `json:"next_action,omitempty"`
}

// NextAction says what the buyer has to do, and where.
type NextAction struct {
	Type string `json:"type"` // redirect_to_url
	URL  string `json:"url"`  // the order's page, which links to the bank
}

// View is the payment's JSON.
func (p Payment) View() PaymentView {
	v := PaymentView{
		ID: p.ID, Order: p.Order, Status: p.Status, Amount: p.Price.Amount, Currency: p.Price.Currency,
		PaymentIntent: p.Intent, Charge: p.Charge, DeclineCode: tellable(p.DeclineCode),
	}
	if p.Status == PaymentRequiresAction {
		v.NextAction = &NextAction{Type: "redirect_to_url", URL: "/orders/" + p.Order}
	}
	return v
}

// tellable gives the decline code that a buyer may be told. Reasons that accuse
// (lost, stolen, fraudulent) are told as generic_decline
// (https://docs.stripe.com/declines/codes).
func tellable(declineCode string) string {
	switch declineCode {
	case "lost_card", "stolen_card", "fraudulent", "pickup_card", "merchant_blacklist", "security_violation", "restricted_card":
		return "generic_decline"
	}
	return declineCode
}

// Method is a payment method that the page offers.
type Method struct {
	// ID is what is sent to Stripe, such as pm_card_visa.
	ID string
	// Name and Note are for people: "Visa ending 4242", "Approved".
	Name, Note string
	// Fault is true for a method that makes the network misbehave rather than
	// the card: only the local Stripe knows these.
	Fault bool
}
