package view

// OrderSummary says what is being paid for, at the left of every page about an unsettled order.
type OrderSummary struct {
	ID        string // as in the URL: the page posts to /orders/{ID}/payments
	Course    string // its title
	CourseURL string
	Amount    string // "$49.00"
}

// Outcome is what became of the last attempt to pay this order, where that leaves it payable.
type Outcome string

// The outcomes after which surely nothing was charged and Pay is offered again.
const (
	NoOutcome       Outcome = ""                 // nobody has tried yet
	Declined        Outcome = "declined"         // the bank said no: 402
	PaymentNotMade  Outcome = "payment_not_made" // the attempt was given up and canceled at Stripe: 402
	ProviderBusy    Outcome = "provider_busy"    // Stripe took nothing and said come back: 503
	ProviderRefused Outcome = "provider_refused" // Stripe refused the request before it ran, our mistake: 503
)

// Checkout is the page of an order that can be paid now.
type Checkout struct {
	Frame   Frame
	Order   OrderSummary
	Key     string // the payment key this page sends: orders.payment_key
	Methods []Method
	Faults  []Method // methods that break the network, in a list of their own; empty outside demo mode
	// Element, where set, takes the card in place of both lists.
	Element *Element
	Outcome Outcome
	Reason  string // after Declined: what the bank says, from DeclineWords
	// Replayed says that the answer the buyer is looking at was the recorded one: the same submission came twice.
	Replayed bool
	Script   Script
	// Try, where set, offers the panel "Try to break it".
	Try *Try
	// Happened, where set, draws the life of the last attempt's key.
	Happened *WhatHappened
}

// Element is Stripe's Payment Element: a frame of Stripe's into which the card is typed, and for which the page is given a
// confirmation token. It needs script.
type Element struct {
	PublishableKey string
	Minor          string // "4900": what the frame says will be charged; the shop charges the order's own amount
	Currency       string // "usd"
}

var outcomeCopy = map[Outcome]struct {
	kind  NoticeKind
	title string
}{
	Declined:        {StopNotice, "Your bank declined the card. Nothing was charged."},
	PaymentNotMade:  {PlainNotice, "The payment was not made. Nothing was charged."},
	ProviderBusy:    {WaitNotice, "Stripe is busy. Nothing was charged."},
	ProviderRefused: {StopNotice, "Stripe did not accept our request. Nothing was charged."},
}

func (o Outcome) kind() NoticeKind { return outcomeCopy[o].kind }
func (o Outcome) title() string    { return outcomeCopy[o].title }

// Method is one way to pay, a row of the list.
type Method struct {
	Token   string // "pm_card_visa": what the form sends as payment_method, and what picks the drawing
	Name    string // "Visa ending 4242"
	Note    string // "Approved"
	Checked bool
}
