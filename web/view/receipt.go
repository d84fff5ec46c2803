package view

// ReceiptState is how a settled order ended.
type ReceiptState string

// The ends of an order in which the course was taken.
const (
	Paid             ReceiptState = "paid"
	TakenFree        ReceiptState = "free" // paid without a payment
	RefundInProgress ReceiptState = "refunding"
	RefundedInPart   ReceiptState = "part_refunded"
	RefundedInWhole  ReceiptState = "refunded"
)

// Receipt is the page of an order that is paid, or was.
type Receipt struct {
	Frame     Frame
	State     ReceiptState
	Order     string // its id
	Course    string
	CourseURL string
	LessonURL string // lesson 1; empty once the enrolment is revoked
	Amount    string // "$49.00"; ignored if free
	Method    string // "Visa ending 4242"; may be empty
	Date      string // "14 November 2026, 10:42"
	Stamp     string // RFC 3339
	Statement string // what the card's statement will say; may be empty
	Charge    string // Stripe's id of the charge; empty if free
	Payment   string // the id of our payment row; empty if free
	Returned  string // what went back or is going back: "$19.00"; with the refund states
	// RefundFailed says that the last refund did not go through: the money is still with the shop.
	RefundFailed bool
	// Refund, where set, offers to give the money back.
	Refund *RefundForm
	// RefundResend, where set with RefundInProgress, sends the same refund again with the same key.
	RefundResend *RefundForm
	// Replayed says that the answer was the recorded one: this submission had been made before.
	Replayed bool
	// AlreadyPaid says that the buyer comes from a payment that was refused because the order was paid before.
	AlreadyPaid bool
}

// RefundForm is POST /payments/{id}/refunds.
type RefundForm struct {
	Payment string // the payment to refund
	Minor   string // the amount in minor units, as the field sends it: "4900"
	Amount  string // the same for people: "$49.00"
	Key     string // the refund's key
	Until   string // the last day it is offered: "28 November 2026"; may be empty
}
