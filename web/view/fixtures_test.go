package view_test

import (
	"github.com/a-h/templ"

	"payonce/web/view"
)

// codes are all codes of the API, and one of Stripe's own.
var codes = []string{
	"key_missing", "key_malformed", "invalid_request", "no_session", "payment_not_made", "cross_site", "not_found",
	"method_not_allowed", "request_in_progress", "claim_contended", "payment_in_progress", "order_already_paid",
	"already_enrolled", "order_closed", "refund_not_possible", "too_large", "media_type", "key_reused", "internal",
	"outcome_unknown", "provider_busy", "provider_refused", "overloaded", "insufficient_funds",
}

func catalogue() view.Catalogue {
	return view.Catalogue{
		Frame: frame(view.CoursesSection),
		Start: view.Link{Label: "Start with idempotency", URL: "/courses/idempotency-end-to-end"},
		Courses: []view.CatalogueCourse{
			{Slug: "why-select-cannot-answer", Title: "Why a SELECT cannot answer", Summary: "Two requests ask whether a key was used, and both are told no. See the race in psql, the repairs that do not help, and the statement that does.", Lessons: "3 lessons", Time: "55 min", Price: "Free", Owned: true},
			{Slug: "idempotency-end-to-end", Title: "Idempotency, end to end", Summary: "From a card charged eight times to a checkout that charges once: claim, call, record, and what to do when the reply never comes.", Lessons: "5 lessons", Time: "1 h 40 min", Price: "$49.00"},
			{Slug: "postgresql-under-concurrency", Title: "PostgreSQL under concurrency", Summary: "What isolation levels, row locks and pools really do when eight requests arrive together. Every claim is one you can repeat in psql.", Lessons: "4 lessons", Time: "1 h 20 min", Price: "¥7,900"},
			{Slug: "stripe-in-production", Title: "Stripe in production", Summary: "What Stripe stores under a key, which answers are final, and what an unknown outcome asks of you.", Lessons: "4 lessons", Time: "1 h 15 min", Price: "$75.00"},
			{Slug: "webhooks-are-a-different-ledger", Title: "Webhooks are a different ledger", Summary: "Events come twice, late and out of order, and sometimes before your own answer.", Lessons: "4 lessons", Time: "1 h 10 min", Price: "€59.00"},
			{Slug: "proof-by-exhaustion", Title: "Proof by exhaustion", Summary: "Stop hoping that the tests met the bad interleaving.", Lessons: "4 lessons", Time: "1 h 30 min", Price: "$129.00"},
			{Slug: "payments-platform-team", Title: "The payments platform, for a team", Summary: "For the people who build and run payments for others.", Price: "$9,000.00"},
			{Slug: "a-course-without-a-drawing", Title: "A course without a drawing", Summary: "Its plate follows from its slug.", Price: "$1.00"},
		},
	}
}

func course(state view.CourseState) view.Course {
	m := view.Course{
		Frame: frame(view.CoursesSection), Slug: "idempotency-end-to-end", Title: "Idempotency, end to end",
		Summary: "From a card charged eight times to a checkout that charges once: claim, call, record, and what to do when the reply never comes.",
		Price:   "$49.00", State: state, OrderKey: "01JDZ8ORDERKEY", OrderURL: "/orders/" + order.ID,
		Facts: []view.Fact{{Label: "Time", Value: "1 h 40 min"}, {Label: "Lessons", Value: "5, with exercises"}, {Label: "Access", Value: "For good"}},
		Outcomes: []string{
			"say, for any line of a checkout, what happens if the power goes there",
			"choose between a unique index, a lock and an isolation level, with figures",
			"answer a timeout without charging twice and without giving up",
		},
		Needs: "An evening, basic SQL and Go, and psql with a database in which you may create a table.",
	}
	for i, title := range []string{"A card charged eight times", "Let the unique index be the referee", "Same key, another request", "Claim, call, record", "The reply that never came"} {
		lesson := view.LessonLink{Number: i + 1, Title: title, Time: "20 min"}
		if state == view.CourseOwned {
			lesson.URL = "/courses/idempotency-end-to-end/lessons/" + string(rune('1'+i))
		}
		m.Lessons = append(m.Lessons, lesson)
	}
	if state == view.CourseFree {
		m.Price = "Free"
	}
	return m
}

func checkout(outcome view.Outcome) view.Checkout {
	m := view.Checkout{
		Frame: frame(view.OrdersSection), Order: order, Key: paymentKey, Outcome: outcome,
		Methods: []view.Method{
			{Token: "pm_card_visa", Name: "Visa ending 4242", Note: "Approved", Checked: true},
			{Token: "pm_card_mastercard", Name: "Mastercard ending 4444", Note: "Approved"},
			{Token: "pm_card_chargeDeclinedInsufficientFunds", Name: "Visa ending 9995", Note: "Declined: insufficient funds"},
			{Token: "pm_card_chargeDeclinedExpiredCard", Name: "Visa ending 0069", Note: "Declined: the card has expired"},
		},
		Faults: []view.Method{
			{Token: "pm_sim_reply_lost", Name: "Reply lost", Note: "Charges, then the line drops before the answer"},
			{Token: "pm_sim_never_arrived", Name: "Never arrived", Note: "The line drops before Stripe hears of it"},
			{Token: "pm_sim_slow", Name: "Slow", Note: "Charges after 5 s"},
			{Token: "pm_sim_rate_limited", Name: "Rate limited", Note: "429 once, then charges"},
			{Token: "pm_sim_server_error", Name: "Server error", Note: "500 once, and Stripe stores it under the key"},
			{Token: "pm_sim_always_500", Name: "Always failing", Note: "500 every time"},
			{Token: "pm_sim_processing", Name: "Processing", Note: "Accepted now, settled by webhook 3 s later"},
		},
	}
	if outcome == view.Declined {
		declined := lives()["declined"]
		m.Happened = &declined
		m.Reason = view.DeclineWords("insufficient_funds")
	}
	return m
}

func element() *view.Element {
	return &view.Element{PublishableKey: "pk_test_1", Minor: "4900", Currency: "usd"}
}

func checking(state view.CheckingState) view.Checking {
	m := view.Checking{
		Frame: frame(view.OrdersSection), Order: order, State: state, Payment: "pay_4QN8W1ZC6J",
		Trail: []view.Moment{
			{Clock: "10:42:07", Stamp: "2026-11-14T10:42:07Z", Text: "You pressed Pay. The key was claimed and the payment sent to Stripe."},
			{Clock: "10:42:22", Stamp: "2026-11-14T10:42:22Z", Text: "No answer within 15 s."},
			{Clock: "10:42:24", Text: "The claim can be taken over now.", Now: true},
		},
	}
	if state == view.InProgress {
		working := lives()["working"]
		m.Happened = &working
	}
	if state == view.RequiresAction {
		m.BankURL, m.CanCancel, m.GivenUp = "http://127.0.0.1:12111/3ds/pi_1", true, "15 minutes"
	}
	return m
}

func receipt(state view.ReceiptState) view.Receipt {
	m := view.Receipt{
		Frame: frame(view.OrdersSection), State: state, Order: order.ID, Course: order.Course, CourseURL: order.CourseURL,
		LessonURL: order.CourseURL + "/lessons/1", Amount: "$49.00", Method: "Visa ending 4242",
		Date: "14 November 2026, 10:42", Stamp: "2026-11-14T10:42:00Z", Statement: "PAY ONCE COURSES",
		Charge: "ch_3QKz9mLkdIwHu7ix0001", Payment: "pay_4QN8W1ZC6J",
	}
	refund := &view.RefundForm{Payment: "pay_4QN8W1ZC6J", Minor: "4900", Amount: "$49.00", Key: "01JDZ8REFUNDKEY", Until: "28 November 2026"}
	switch state {
	case view.Paid:
		m.Refund = refund
	case view.TakenFree:
		m.Amount, m.Method, m.Charge, m.Payment, m.Statement = "", "", "", "", ""
	case view.RefundInProgress:
		m.Returned, m.RefundResend = "$49.00", refund
	case view.RefundedInPart:
		m.Returned = "$19.00"
	case view.RefundedInWhole:
		m.Returned, m.LessonURL = "$49.00", ""
	}
	return m
}

func closed(late view.LateMoney) view.Closed {
	m := view.Closed{
		Frame: frame(view.OrdersSection), Order: order, Date: "14 November 2026, 10:42", Stamp: "2026-11-14T10:42:00Z", Late: late,
	}
	if late != view.NoLateMoney {
		state := map[view.LateMoney]view.RefundState{
			view.LateMoneyGoing: view.RefundPending, view.LateMoneyBack: view.RefundMade, view.LateMoneyHere: view.RefundFailed,
		}[late]
		m.Method, m.Payment, m.Charge = "Visa ending 4242", "pay_4QN8W1ZC6J", "ch_3QKz9mLkdIwHu7ix0001"
		m.Refunds = []view.RefundRow{{Amount: "$49.00", Date: "14 November 2026", State: state}}
	}
	return m
}

func orders() view.Orders {
	row := func(charged view.Charged, words, amount, next string) view.OrderRow {
		return view.OrderRow{
			URL: "/orders/" + order.ID, Course: order.Course, Date: "14 November 2026", Stamp: "2026-11-14T10:42:00Z",
			Amount: amount, Charged: charged, Words: words, Next: view.Link{Label: next, URL: "/orders/" + order.ID},
		}
	}
	return view.Orders{
		Frame: frame(view.OrdersSection), StartOver: true,
		Orders: []view.OrderRow{
			row(view.NotCharged, "Not charged", "$49.00", "Continue to checkout"),
			row(view.NotKnownYet, "Not known yet", "$9,000.00", "See what happened"),
			row(view.OnItsWay, "On its way, not settled yet", "¥7,900", "See what happened"),
			row(view.ChargedOnce, "Charged once", "$49.00", "Start lesson 1"),
			row(view.PartRefunded, "Charged once, $19.00 refunded", "$49.00", "Start lesson 1"),
			row(view.Refunded, "Refunded, $49.00", "$49.00", "Receipt"),
			row(view.NotCharged, "", "Free", "Start lesson 1"),
		},
	}
}

func reading(number int) view.Reading {
	const slug = "why-select-cannot-answer"
	m := view.Reading{
		Frame: frame(view.CoursesSection), Course: "Why a SELECT cannot answer", CourseURL: "/courses/" + slug,
		Number: number, Time: "20 min",
	}
	for _, lesson := range view.Lessons(slug) {
		m.Contents = append(m.Contents, view.LessonLink{Number: lesson.Number, Title: lesson.Title, Time: "20 min", URL: "/courses/" + slug + "/lessons/1"})
		if lesson.Number == number {
			m.Title, m.Content = lesson.Title, lesson.Body
		}
	}
	return m
}

func problem(code string) view.Problem {
	return view.Problem{
		Frame: frame(view.NoSection), Words: view.ProblemWords(code, true),
		Actions: []view.Link{{Label: "See the order", URL: "/orders/" + order.ID}, {Label: "All courses", URL: "/"}},
		Request: "4f1c09d2", CodeURL: "/docs/idempotency#" + code,
		Document: "HTTP/1.1 409 Conflict\nContent-Type: application/problem+json\n\n{\n  \"type\": \"/docs/idempotency#" + code +
			"\",\n  \"title\": \"The order is already paid\",\n  \"status\": 409,\n  \"code\": \"" + code + "\",\n  \"safe_new_key\": false,\n  \"order\": \"ord_7K2MQ9XA4T\"\n}",
	}
}

func policy() view.Policy {
	return view.Policy{
		Frame:     frame(view.PolicySection),
		Retention: "72 hours", Wait: "1 second", Lease: "60 seconds", ProviderTimeout: "15 seconds", ResendWindow: "15 minutes", OrderExpiry: "20 hours",
		CompleterInterval: "5 seconds", ActionTimeout: "15 minutes", RefundWindow: "336 hours", EventRetention: "1080 hours",
		Operations: []view.PolicyOperation{
			{Operation: "POST /orders", Fields: "course", Shape: "local"},
			{Operation: "POST /orders/{id}/payments", Fields: "payment_method", Shape: "remote"},
			{Operation: "POST /payments/{id}/refunds", Fields: "amount", Shape: "remote"},
		},
		Answers: []view.PolicyAnswer{
			{Code: "succeeded", Status: "201", Sticks: true, SafeNewKey: "not needed", Do: "It is done. The same key gets this answer again."},
			{Code: "card_declined", Status: "402", Sticks: true, SafeNewKey: "yes", Do: "Nothing was charged. Choose another card, or try this one again, with the next key."},
			{Code: "payment_not_made", Status: "402", Sticks: true, SafeNewKey: "yes", Do: "Nothing was charged by this attempt and nothing can be. Pay again with the next key."},
			{Code: "key_missing", Status: "400", SafeNewKey: "yes", Do: "Send a key: the Idempotency-Key header, or the field idempotency_key of a form. One key per purchase, made before the first send."},
			{Code: "request_in_progress", Status: "409", SafeNewKey: "no", Do: "Send the same request with the same key again after Retry-After."},
			{Code: "key_reused", Status: "422", SafeNewKey: "no, while the first runs or is unknown; else yes", Do: "A key stands for one request and cannot carry another one. Nothing was sent to Stripe."},
			{Code: "outcome_unknown", Status: "503", SafeNewKey: "no", Do: "The card may or may not have been charged. Send the same request with the same key again after Retry-After; never a new key."},
		},
	}
}

// kit shows the parts that no page of the shop uses yet, inside the frame of a lesson.
func kit() view.Reading {
	m := reading(1)
	m.Title = "Parts"
	m.Content = templ.Join(
		view.Figure("$392.00", "charged for one $49.00 course", view.Wrong),
		view.Figure("1", "charge at Stripe", view.Right),
		view.KeyState("completed"), view.KeyState("in_progress"), view.KeyState("failed_retryable"), view.KeyState("parked"),
		view.Lease(.68, "41 s left"), view.Lease(0, "lapsed 9 s ago"),
		view.SwimlaneTable(twoCopies()), view.SwimlaneTable(takeover()),
		view.Legend([]view.LegendItem{
			{Kind: view.Select, Text: "SELECT"},
			{Kind: view.Insert, Text: "INSERT, claim, record"},
			{Kind: view.Call, Text: "call to Stripe"},
			{Kind: view.Waiting, Text: "waiting"},
			{Kind: view.Commit, Text: "COMMIT"},
			{Kind: view.Released, Text: "end of the wait"},
			{Kind: view.Point, Text: "a point inside a call"},
			{Kind: view.Leased, Text: "lease, its owner dead"},
			{Kind: view.Lapse, Text: "lease lapses"},
			{Kind: view.Charge, Text: "a charge"},
			{Kind: view.Extra, Text: "a charge too many"},
			{Kind: view.Replayed, Text: "replayed"},
			{Kind: view.Told, Text: "told 409"},
			{Kind: view.Fail, Text: "error, or killed"},
		}),
	)
	return m
}

// takeover is a key with two owners, and the client that kept asking.
func takeover() view.Swimlane {
	return view.Swimlane{
		Caption: "Two owners of one key over 80 seconds", First: "Owner", Last: "Outcome", Scale: view.NewScale(68, "s"), Named: true,
		Lanes: []view.Lane{
			{
				Name: "7f3a", Spoken: "Attempt 1: claimed at 0 s, charged at 1.2 s, killed at 11 s; its lease lapsed at 60 s", Outcome: "killed", Wrong: true,
				Shapes: []view.Shape{
					{Kind: view.Leased, From: 11, To: 60},
					{Kind: view.Call, From: 0, To: 11},
					{Kind: view.Insert, From: 0, To: .1},
					{Kind: view.Charge, From: 1.2},
					{Kind: view.Fail, From: 11},
					{Kind: view.Lapse, From: 60},
				},
				Labels: []view.LaneLabel{{At: 0, Text: "charged", Anchor: "start"}, {At: 11, Text: "killed", Anchor: "middle", Wide: true}, {At: 60, Text: "lease lapses", Anchor: "end"}},
			},
			{
				Name: "c81e", Spoken: "Attempt 2: took over at 63 s, asked Stripe, recorded at 63.3 s", Outcome: "201", Winner: true,
				Shapes: []view.Shape{{Kind: view.Released, From: 60}, {Kind: view.Insert, From: 63, To: 63.1}, {Kind: view.Call, From: 63.1, To: 63.3}, {Kind: view.Insert, From: 63.3, To: 63.4}},
				Labels: []view.LaneLabel{{At: 63, Text: "takes over", Anchor: "start", Wide: true}},
			},
			{
				Name: "client", Spoken: "Retried at 16 s and 32 s and was told 409; at 68 s it was replayed", Outcome: "201 replay",
				Shapes: []view.Shape{{Kind: view.Told, From: 16}, {Kind: view.Told, From: 32}, {Kind: view.Replayed, From: 68}},
			},
		},
	}
}
