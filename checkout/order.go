package checkout

import "time"

// OrderStatus is the state of an order.
type OrderStatus string

// The states of an order. An order that is being closed is still open, with
// Closing set: the index that allows one live order must cover it until it is
// known that no money arrived.
const (
	OrderOpen     OrderStatus = "open"
	OrderPaid     OrderStatus = "paid"
	OrderRefunded OrderStatus = "refunded"
	OrderExpired  OrderStatus = "expired"
)

// Order is one purchase of one course by one account.
type Order struct {
	Account string
	ID      string
	Course  Course // its title and summary now, its price as ordered
	Price   Money
	Status  OrderStatus
	// Closing is true once the order accepts no further payment.
	Closing bool
	// PaymentKey is the key that the page carries: one per purchase intent.
	PaymentKey string
	CreatedAt  time.Time
	ExpiresAt  time.Time
	PaidAt     time.Time // zero unless paid or refunded
	// Payments are the attempts, oldest first; Refunds likewise.
	Payments []Payment
	Refunds  []Refund
}

// Slot gives the payment that is money, or could still become money.
func (o Order) Slot() (Payment, bool) {
	for _, p := range o.Payments {
		if p.Status.holdsSlot() {
			return p, true
		}
	}
	return Payment{}, false
}

// Last gives the newest attempt.
func (o Order) Last() (Payment, bool) {
	if len(o.Payments) == 0 {
		return Payment{}, false
	}
	return o.Payments[len(o.Payments)-1], true
}

// OrderView is the JSON of an order. PaymentKey is there while the order is
// open; Payments and Refunds only where the order itself was asked for.
type OrderView struct {
	ID         string        `json:"id"`
	Course     string        `json:"course"`
	Amount     int64         `json:"amount"`
	Currency   string        `json:"currency"`
	Status     OrderStatus   `json:"status"`
	PaymentKey string        `json:"payment_key,omitempty"`
	Payments   []PaymentView `json:"payments,omitempty"`
	Refunds    []RefundView  `json:"refunds,omitempty"`
}

// View is the order's JSON, with its payments and refunds.
func (o Order) View() OrderView {
	v := OrderView{ID: o.ID, Course: o.Course.Slug, Amount: o.Price.Amount, Currency: o.Price.Currency, Status: o.Status}
	if o.Status == OrderOpen && !o.Closing {
		v.PaymentKey = o.PaymentKey
	}
	for _, p := range o.Payments {
		v.Payments = append(v.Payments, p.View())
	}
	for _, r := range o.Refunds {
		v.Refunds = append(v.Refunds, r.View())
	}
	return v
}
