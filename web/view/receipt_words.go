package view

// words answers "was I charged?" for a settled order, and says what became of it.
func (m Receipt) words() Words {
	method := m.Method
	if method == "" {
		method = "your card"
	}
	switch m.State {
	case TakenFree:
		return Words{Title: "The course is yours.", Text: "It is free: no card, and nothing was charged."}
	case RefundInProgress:
		return Words{OnItsWay, "Refund on its way, " + m.Returned, "Your refund is being made.", m.Returned + " goes back to " + method + " as soon as Stripe confirms it."}
	case RefundedInPart:
		return Words{
			PartRefunded, "Charged once, " + m.Returned + " refunded", "The course is yours.",
			m.Amount + " went from " + method + ", once. " + m.Returned + " of it goes back.",
		}
	case RefundUndone:
		return Words{
			ChargedOnce, "Charged once. The refund did not go through", "The refund did not go through.",
			m.Amount + " was to go back to " + method + ", and came back to us. The course is closed, and this page says so until the money has gone back.",
		}
	case RefundedInWhole:
		return Words{
			Refunded, "Refunded, " + m.Returned, "The money goes back.",
			m.Returned + " goes back to " + method + ". The course is closed; you can buy it again.",
		}
	}
	if m.Dispute != nil && m.Dispute.State == DisputeLost {
		return Words{
			Refunded, "Charged once, given back by your bank", "The course is yours.",
			m.Amount + " went from " + method + ", once, and your bank has taken it back.",
		}
	}
	if m.AlreadyPaid {
		return Words{
			ChargedOnce, "Charged once, earlier. Not charged again.", "You have already paid for this.",
			"The second payment came from another tab or an older page. It was refused before it reached your card.",
		}
	}
	return Words{ChargedOnce, "Charged once", "The course is yours.", m.Amount + " went from " + method + ", once."}
}

func (m Receipt) replayedText() string {
	switch m.State {
	case TakenFree:
		return "The same order arrived again and got the recorded answer. There is one order, and nothing was charged."
	case Paid:
		return "The same payment arrived again and got the recorded answer. Your card was charged " + m.Amount + ", once."
	}
	return "The same request arrived again and got the recorded answer. Nothing was done a second time."
}

// facts are the rows of the receipt.
func (m Receipt) facts() []Fact {
	price, paid, returned := m.Amount, m.Amount, "Given back"
	switch m.State {
	case TakenFree:
		price, paid = "Free", ""
	case RefundInProgress:
		returned = "Being given back"
	}
	return given(
		Fact{Label: m.Course, Value: price},
		Fact{Label: "Paid", Value: paid, Total: true},
		Fact{Label: returned, Value: m.Returned},
		Fact{Label: "Card", Value: m.Method},
		Fact{Label: "Date", Value: m.Date, Stamp: m.Stamp},
		Fact{Label: "On your statement", Value: m.Statement},
		Fact{Label: "Order", Value: m.Order, Machine: true},
		Fact{Label: "Payment", Value: m.Payment, Machine: true},
		Fact{Label: "Charge", Value: m.Charge, Machine: true},
	)
}

// refundFacts are the refunds, a row each.
func refundFacts(refunds []RefundRow) []Fact {
	var facts []Fact
	for _, refund := range refunds {
		label := refund.Date
		if refund.Elsewhere {
			label += ", made elsewhere"
		}
		facts = append(facts, Fact{Label: label, Value: refund.Amount + " " + refund.State.words()})
	}
	return facts
}

func (s RefundState) words() string {
	switch s {
	case RefundMade:
		return "given back"
	case RefundFailed:
		return "did not go through"
	}
	return "on its way"
}
