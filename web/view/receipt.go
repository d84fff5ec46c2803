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
	// RefundUndone is an order that was refunded in whole until its refund failed, days later: the money is with the shop
	// again, and the course is closed.
	RefundUndone ReceiptState = "refund_undone"
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
	// RefundFailed, where set, is the amount of the last refund, which did not go through: it is still with the shop.
	RefundFailed string
	// Refunds are all of them, oldest first.
	Refunds []RefundRow
	// Refund, where set, offers to give the money back.
	Refund *RefundForm
	// RefundResend, where set with RefundInProgress, sends the same refund again with the same key. Where it is nil,
	// Stripe has accepted the refund, and nothing is left to send.
	RefundResend *RefundForm
	// Dispute, where set, is what the buyer's bank does about the charge.
	Dispute *Dispute
	// Replayed says that the answer was the recorded one: this submission had been made before.
	Replayed bool
	// AlreadyPaid says that the buyer comes from a payment that was refused because the order was paid before.
	AlreadyPaid bool
	// NotGivenBack says that the buyer comes from a refund that was refused: it gave nothing back.
	NotGivenBack bool
	// Happened, where set, draws the life of the payment's key.
	Happened *WhatHappened
}

// RefundForm is POST /payments/{id}/refunds.
type RefundForm struct {
	Payment string // the payment to refund
	Minor   string // the amount in minor units, as the field sends it: "4900"
	Amount  string // the same for people: "$49.00"
	Key     string // the refund's key
	Until   string // the last day it is offered: "28 November 2026"; may be empty
	// Part, where set, offers to give back less: an amount as people write it in this currency, such as "19.00".
	Part string
}

// RefundRow is one refund of the receipt.
type RefundRow struct {
	Amount string // "$19.00"
	Date   string // "14 November 2026"
	State  RefundState
	// Elsewhere says that the shop's people made it, in Stripe's dashboard.
	Elsewhere bool
}

// RefundState is how far a refund is.
type RefundState string

// The states of a refund.
const (
	RefundPending RefundState = "pending"
	RefundMade    RefundState = "succeeded"
	RefundFailed  RefundState = "failed"
)
