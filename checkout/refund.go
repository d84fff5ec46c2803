package checkout

import "time"

// RefundStatus is the state of a refund.
type RefundStatus string

// The states of a refund. A pending one counts against what is left to refund.
const (
	RefundPending   RefundStatus = "pending"
	RefundSucceeded RefundStatus = "succeeded"
	RefundFailed    RefundStatus = "failed"
)

// RefundOrigin tells who made a refund.
type RefundOrigin string

// The origins of a refund.
const (
	RefundByBuyer   RefundOrigin = "buyer"     // asked for under a key
	RefundLate      RefundOrigin = "late"      // money that arrived for a closed order goes back
	RefundElsewhere RefundOrigin = "elsewhere" // made in Stripe's dashboard
)

// Refund is money given back of one payment.
type Refund struct {
	ID      string
	Payment string
	Order   string
	Key     string // empty unless the buyer asked for it
	Origin  RefundOrigin
	Status  RefundStatus
	Price   Money
	// ProviderID is the refund's id at Stripe, once known.
	ProviderID string
	CreatedAt  time.Time
}

// RefundView is the JSON of a refund.
type RefundView struct {
	ID       string       `json:"id"`
	Payment  string       `json:"payment"`
	Order    string       `json:"order"`
	Status   RefundStatus `json:"status"`
	Amount   int64        `json:"amount"`
	Currency string       `json:"currency"`
	Refund   string       `json:"refund,omitempty"`
}

// View is the refund's JSON.
func (r Refund) View() RefundView {
	return RefundView{r.ID, r.Payment, r.Order, r.Status, r.Price.Amount, r.Price.Currency, r.ProviderID}
}
