package view

// LateMoney is what became of money that arrived after the order had closed.
type LateMoney string

// All of it goes back.
const (
	NoLateMoney    LateMoney = ""
	LateMoneyGoing LateMoney = "going"
	LateMoneyBack  LateMoney = "back"
	LateMoneyHere  LateMoney = "here" // the refund did not go through
)

// Closed is the page of an order that expired without being paid in time.
type Closed struct {
	Frame Frame
	Order OrderSummary
	Date  string // when it expired: "14 November 2026, 10:42"; may be empty
	Stamp string // RFC 3339; may be empty
	// Canceled says that a payment was tried, and its payment intent canceled at Stripe.
	Canceled bool
	// Late, where set, says that the order was charged after it had closed; the fields below belong to it.
	Late    LateMoney
	Method  string // "Visa ending 4242"; may be empty
	Payment string // the id of our payment row
	Charge  string // Stripe's id of the charge
	Refunds []RefundRow
}

// words answer "was I charged?".
func (m Closed) words() Words {
	const title, again = "This order is closed.", " You can order the course again."
	amount, method := m.Order.Amount, m.Method
	if method == "" {
		method = "your card"
	}
	late := "Your payment arrived after the order had closed: " + amount + " went from " + method + ", once. "
	switch m.Late {
	case LateMoneyGoing:
		return Words{OnItsWay, "Refund on its way, " + amount, title, late + "All of it goes back." + again}
	case LateMoneyBack:
		return Words{Refunded, "Refunded, " + amount, title, late + "All of it goes back to " + method + "." + again}
	case LateMoneyHere:
		return Words{
			ChargedOnce, "Charged once. The refund did not go through", title,
			late + "It was to go back, and the refund did not go through: the money is still with us, and this page says so until it has gone back.",
		}
	}
	text := "It was not paid in time. " + amount + " was not charged."
	if m.Canceled {
		text = "It was not paid in time. " + amount + " was not charged, and cannot be: the payment was canceled at Stripe."
	}
	return Words{NotCharged, "Not charged", title, text + again}
}

func (m Closed) facts() []Fact {
	return given(
		Fact{Label: m.Order.Course, Value: m.Order.Amount},
		Fact{Label: "Card", Value: m.Method},
		Fact{Label: "Closed", Value: m.Date, Stamp: m.Stamp},
		Fact{Label: "Order", Value: m.Order.ID, Machine: true},
		Fact{Label: "Payment", Value: m.Payment, Machine: true},
		Fact{Label: "Charge", Value: m.Charge, Machine: true},
	)
}
