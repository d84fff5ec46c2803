package view

import "time"

// CheckingState is why an order can neither be paid now nor is settled.
type CheckingState string

// The states in which Pay is off.
const (
	OutcomeUnknown CheckingState = "unknown"         // Stripe did not answer: it may have charged
	InProgress     CheckingState = "in_progress"     // a live owner is on it: 409 request_in_progress or payment_in_progress
	Processing     CheckingState = "processing"      // Stripe accepted it and settles it later
	RequiresAction CheckingState = "requires_action" // the bank asks the buyer first (3-D Secure)
	Closing        CheckingState = "closing"         // the order is being closed, its payment intent canceled
	HandedOver     CheckingState = "handed_over"     // unknown for two minutes: it may take long, and is named
	NeedsPerson    CheckingState = "needs_person"    // the shop has asked as often as it does: somebody looks at it
)

// Checking is the page of an order while its payment is not settled. It says so first, and never offers Pay.
type Checking struct {
	Frame   Frame
	Order   OrderSummary
	State   CheckingState
	Payment string   // its id, named so that the buyer can quote it; may be empty
	Trail   []Moment // what has happened so far, in order
	BankURL string   // with RequiresAction: the bank's page
	// Challenge, where set with RequiresAction, lets Stripe.js show the bank's question on this page: there is no page of the
	// bank's to link to.
	Challenge *Challenge
	// CanCancel, with RequiresAction, offers to give this payment up so that another card can be used.
	CanCancel bool
	// Unanswered, with RequiresAction, says that Stripe did not answer what the buyer asked for last: giving the payment up.
	Unanswered bool
	// Asking says that the shop itself keeps asking, also when the buyer is away: only then may the page promise it.
	Asking bool
	// GivenUp, where set with RequiresAction, is how long the bank may wait before the shop gives the payment up: "15 minutes".
	GivenUp string
	// Resend, where set, offers to send this same payment again: the same key and method or token, so that a lapsed claim is taken
	// over and its outcome found. With Asking it is for a buyer who does not want to wait.
	Resend   *Resend
	Replayed bool
	// Age is how long the payment has been on its way: after two minutes the script hands it over.
	Age    time.Duration
	Script Script
	// Happened, where set, draws the life of the payment's key so far.
	Happened *WhatHappened
}

// Challenge is what the script needs to show the bank's question.
type Challenge struct{ PublishableKey string }

// Moment is one line of the trail.
type Moment struct {
	Clock string // "10:42:07"
	Stamp string // RFC 3339, for machines; may be empty
	Text  string
	Now   bool // the moment we are in
}

// Resend is the submission that is sent again as it was.
type Resend struct {
	Key    string
	Method string // payment_method; or
	Token  string // confirmation_token
}
