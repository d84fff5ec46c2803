package view

// ReturnState is the short answer on the way back from the bank.
type ReturnState string

// The states of the way back.
const (
	ReturnPaid     ReturnState = "paid"
	ReturnChecking ReturnState = "checking"
	ReturnNotPaid  ReturnState = "not_paid"
	ReturnRefunded ReturnState = "refunded"
)

// Return is the page for a buyer who comes back from the bank without a
// session: it says what became of the money, and nothing else about the order.
type Return struct {
	Frame Frame
	State ReturnState
	// Again is this page's own address, to look again while it is not known.
	Again string
}

type returnWords struct {
	title, text string
	charged     Charged
	money       string
}

func (s ReturnState) words() returnWords {
	switch s {
	case ReturnPaid:
		return returnWords{
			"It is paid.", "Your order is paid, once. Go back to the browser in which you ordered to read the course.",
			ChargedOnce, "Charged once",
		}
	case ReturnRefunded:
		return returnWords{
			"The money goes back.", "Your order was charged once, and all of it goes back to the card it came from.",
			Refunded, "Refunded",
		}
	case ReturnChecking:
		return returnWords{
			"We are checking. Do not pay again.",
			"It is not known yet how this payment ended. Check again in a moment, or go back to the browser in which you ordered.",
			NotKnownYet, "Not known yet",
		}
	}
	return returnWords{
		"It is not paid.", "Nothing was charged. Go back to the browser in which you ordered to pay with another card.",
		NotCharged, "Not charged",
	}
}
