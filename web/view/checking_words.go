package view

// checkingWords are what the page says in one state.
type checkingWords struct {
	kind    NoticeKind
	title   string
	text    string
	charged Charged
	money   string
	total   string // the label of the sum
}

var checkingCopy = map[CheckingState]checkingWords{
	OutcomeUnknown: {
		WaitNotice, "We are checking. Do not pay again.",
		"Stripe did not answer in time, so we cannot say yet whether your card was charged.",
		NotKnownYet, "Not known yet", "At most, once",
	},
	InProgress: {
		WaitNotice, "This payment is already on its way. Do not pay again.",
		"It was sent a moment ago, by an earlier press of Pay or from another tab, and is being carried out now. Check again in a few seconds.",
		NotKnownYet, "Not known yet", "At most, once",
	},
	Processing: {
		PlainNotice, "Your payment is on its way.",
		"Stripe has accepted it and settles it later. You need not do anything. Do not pay again.",
		OnItsWay, "On its way, not settled yet", "On its way, once",
	},
	RequiresAction: {
		PlainNotice, "Your bank asks you to confirm.",
		"Nothing is charged until you do.",
		NotCharged, "Not charged. Your bank is asking you.", "To pay, once",
	},
	Closing: {
		WaitNotice, "This order is being closed. Do not pay for it.",
		"If a payment is still on its way, it is settled first, and this page shows how it ended.",
		NotKnownYet, "Not known yet", "At most, once",
	},
	HandedOver: {
		WaitNotice, "We could not confirm this payment yet. Do not pay again.",
		"", // see handedOver, which names the payment
		NotKnownYet, "Not known yet", "At most, once",
	},
	NeedsPerson: {
		WaitNotice, "We could not confirm this payment yet. Do not pay again.",
		"", // see handedOver
		NotKnownYet, "Not known yet", "At most, once",
	},
}

// open is true while nobody knows whether the card was charged, and nobody is at work on it.
func (s CheckingState) open() bool { return s == OutcomeUnknown || s == HandedOver || s == NeedsPerson }

// words returns the copy of a state. A state that is not known is told as an unknown outcome: that page is the one that
// can do no harm.
func (s CheckingState) words() checkingWords {
	if words, ok := checkingCopy[s]; ok {
		return words
	}
	return checkingCopy[OutcomeUnknown]
}
