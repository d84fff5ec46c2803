package view

// Closed is the page of an order that expired without being paid.
type Closed struct {
	Frame Frame
	Order OrderSummary
	Date  string // when it expired: "14 November 2026, 10:42"; may be empty
	Stamp string // RFC 3339; may be empty
}

func (m Closed) facts() []Fact {
	return given(
		Fact{Label: m.Order.Course, Value: m.Order.Amount},
		Fact{Label: "Order", Value: m.Order.ID, Machine: true},
		Fact{Label: "Closed", Value: m.Date, Stamp: m.Stamp},
	)
}
