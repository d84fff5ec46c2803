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

// Refund is money given back of one payment.
type Refund struct {
	ID      string
	Payment string
	Order   string
	Key     string
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
