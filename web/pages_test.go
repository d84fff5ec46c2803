package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/web"
)

var usd49 = checkout.Money{Amount: 4900, Currency: "usd"}

// orderOpen is an order that nobody has tried to pay.
func orderOpen() checkout.Order {
	return checkout.Order{
		Account: "acct", ID: someOrder, Price: usd49, Status: checkout.OrderOpen, PaymentKey: "key_1",
		Course:    checkout.Course{Slug: slug, Title: "Idempotency, end to end", Price: usd49},
		CreatedAt: time.Now().Add(-time.Hour), ExpiresAt: time.Now().Add(19 * time.Hour),
	}
}

// attempt is a payment in a state.
func attempt(status checkout.PaymentStatus) checkout.Payment {
	return checkout.Payment{
		ID: somePay, Order: someOrder, Key: "key_of_the_attempt", Status: status, Price: usd49, PaymentMethod: "pm_card_visa",
		CreatedAt: time.Now().Add(-time.Minute), UpdatedAt: time.Now().Add(-time.Minute),
	}
}

func orderWith(payments ...checkout.Payment) checkout.Order {
	o := orderOpen()
	o.Payments = payments
	return o
}

// orderPaid is a paid order, with refunds.
func orderPaid(refunds ...checkout.Refund) checkout.Order {
	p := attempt(checkout.PaymentSucceeded)
	p.Charge, p.Intent = "ch_1", "pi_1"
	o := orderWith(p)
	o.Status, o.PaidAt, o.Refunds = checkout.OrderPaid, time.Now().Add(-time.Minute), refunds
	for _, r := range refunds {
		if r.Status == checkout.RefundSucceeded {
			o.Payments[0].Refunded += r.Price.Amount
		}
	}
	if o.Payments[0].Refunded == usd49.Amount {
		o.Status = checkout.OrderRefunded
	}
	return o
}

func refundOf(status checkout.RefundStatus, amount int64) checkout.Refund {
	return checkout.Refund{
		ID: "ref_1", Payment: somePay, Order: someOrder, Key: "key_of_the_refund", Status: status,
		Price: checkout.Money{Amount: amount, Currency: "usd"},
	}
}

// lateRefund is that of money which arrived for a closed order.
func lateRefund(status checkout.RefundStatus) checkout.Refund {
	r := refundOf(status, 4900)
	r.Origin, r.Key = checkout.RefundLate, ""
	return r
}

const (
	payButton    = `class="button button-pay"`
	payForm      = `action="/orders/` + someOrder + `/payments"`
	refundForm   = `action="/payments/` + somePay + `/refunds"`
	pressedAgain = "Send this same payment again"
)

func hidden(name, value string) string {
	return fmt.Sprintf(`<input type="hidden" name="%s" value="%s" autocomplete="off">`, name, value)
}

// TestOrderPage: what the page of an order says and offers, in every state.
// Pay is offered only where a payment could be taken.
func TestOrderPage(t *testing.T) {
	t.Parallel()
	with := func(o checkout.Order, changes ...func(*checkout.Order)) checkout.Order {
		for _, change := range changes {
			change(&o)
		}
		return o
	}
	declined := attempt(checkout.PaymentFailed)
	declined.Code, declined.DeclineCode = "card_declined", "insufficient_funds"
	atStripe := declined
	atStripe.Intent = "pi_1"
	stolen := declined
	stolen.DeclineCode = "stolen_card"
	asked := attempt(checkout.PaymentRequiresAction)
	asked.NextAction = "https://bank.test/3ds"
	made := time.Now()
	fresh := attempt(checkout.PaymentPending)
	fresh.UpdatedAt = made
	old := attempt(checkout.PaymentPending)
	old.UpdatedAt = time.Now().Add(-2 * time.Minute)
	token := attempt(checkout.PaymentPending)
	token.PaymentMethod, token.ConfirmationToken = "", "ctoken_1"
	closing := func(o *checkout.Order) { o.Closing = true }
	ended := func(s checkout.OrderStatus) func(*checkout.Order) { return func(o *checkout.Order) { o.Status = s } }
	free := func(o *checkout.Order) {
		o.Price, o.Course.Price, o.Payments, o.PaidAt = checkout.Money{Currency: "usd"}, checkout.Money{Currency: "usd"}, nil, time.Now()
	}
	accepted := refundOf(checkout.RefundPending, 4900)
	accepted.ProviderID = "re_1"
	elsewhere := accepted
	elsewhere.Origin, elsewhere.Key = checkout.RefundElsewhere, ""
	long := func(o *checkout.Order) { o.PaidAt = time.Now().Add(-figures.RefundWindow - time.Minute) }

	for _, row := range []struct {
		given string
		order checkout.Order
		query string
		has   []string
		lacks []string
	}{
		{"open", orderOpen(), "", []string{"Not charged", payButton, payForm, "Pay $49.00", hidden("idempotency_key", "key_1"), `value="pm_card_visa" required checked`, "pm_sim_reply_lost"}, []string{"declined the card"}},
		{"declined", orderWith(declined), "", []string{"Your bank declined the card", "insufficient funds", payButton, hidden("idempotency_key", "key_1")}, []string{"key_of_the_attempt", "replay"}},
		{"declined, replayed", orderWith(declined), "?replayed=1", []string{"Your bank declined the card", "This was a replay of your first submission.", payButton}, nil},
		{"declined as stolen", orderWith(stolen), "", []string{"Your bank declined the card", payButton}, []string{"stolen"}},
		{"declined, and then another", orderWith(declined, attempt(checkout.PaymentPending)), "", []string{pressedAgain}, []string{payButton, "declined the card"}},
		{"not made", orderWith(attempt(checkout.PaymentCanceled)), "", []string{"The payment was not made. Nothing was charged.", payButton}, nil},
		{"busy", orderWith(attempt(checkout.PaymentReleased)), "?code=provider_busy", []string{"Stripe is busy. Nothing was charged.", payButton, hidden("idempotency_key", "key_1")}, nil},
		{"refused", orderWith(attempt(checkout.PaymentReleased)), "?code=provider_refused", []string{"Stripe did not accept our request. Nothing was charged.", payButton}, nil},
		{"busy, and no code", orderWith(attempt(checkout.PaymentReleased)), "", []string{"Stripe is busy. Nothing was charged.", payButton}, nil},
		{"a code that is not true", orderOpen(), "?code=order_already_paid", []string{"Not charged", payButton}, []string{"already paid"}},

		{"unknown", orderWith(attempt(checkout.PaymentPending)), "", []string{"We are checking. Do not pay again.", "Not known yet", pressedAgain, hidden("idempotency_key", "key_of_the_attempt"), hidden("payment_method", "pm_card_visa"), somePay}, []string{payButton, "key_1"}},
		{"unknown, just told", orderWith(fresh), "?code=outcome_unknown", []string{"We are checking. Do not pay again.", pressedAgain}, []string{payButton}},
		{"unknown for two minutes", orderWith(old), "", []string{"We could not confirm this payment yet. Do not pay again.", "Two minutes did not settle payment", somePay, "Nobody is charged twice", pressedAgain}, []string{payButton}},
		{"unknown for two minutes, just told", orderWith(old), "?code=request_in_progress", []string{"We could not confirm this payment yet. Do not pay again."}, []string{payButton, "a moment ago"}},
		{"on its way", orderWith(fresh), "", []string{"This payment is already on its way. Do not pay again."}, []string{payButton}},
		{"on its way, just told", orderWith(attempt(checkout.PaymentPending)), "?code=payment_in_progress", []string{"This payment is already on its way. Do not pay again."}, []string{payButton}},
		{"unknown, by a token", orderWith(token), "", []string{"We are checking. Do not pay again.", pressedAgain, hidden("idempotency_key", "key_of_the_attempt"), hidden("confirmation_token", "ctoken_1")}, []string{payButton, `name="payment_method"`}},
		{"the bank asks", orderWith(asked), "", []string{"Your bank asks you to confirm.", `href="https://bank.test/3ds"`}, []string{payButton, pressedAgain}},
		{"processing", orderWith(attempt(checkout.PaymentProcessing)), "", []string{"Your payment is on its way."}, []string{payButton, pressedAgain}},
		{"closing", with(orderOpen(), closing), "", []string{"This order is being closed. Do not pay for it."}, []string{payButton, payForm}},
		{"closing, with a payment", with(orderWith(attempt(checkout.PaymentPending)), closing), "", []string{"This order is being closed. Do not pay for it."}, []string{payButton, payForm}},
		{"expired", with(orderOpen(), ended(checkout.OrderExpired)), "", []string{"This order is closed.", "$49.00 was not charged.", "/courses/" + slug}, []string{payButton, payForm, "Stripe."}},
		{"expired, with a payment that never got to Stripe", with(orderWith(attempt(checkout.PaymentReleased)), ended(checkout.OrderExpired)), "", []string{"$49.00 was not charged."}, []string{payButton, "canceled at Stripe"}},
		{"expired, with a declined payment", with(orderWith(atStripe), ended(checkout.OrderExpired)), "", []string{"This order is closed.", "was not charged, and cannot be: the payment was canceled at Stripe."}, []string{payButton}},

		{"paid", orderPaid(), "", []string{"Charged once", "The course is yours.", "Visa ending 4242", "ch_1", "/courses/" + slug + "/lessons/1", refundForm, hidden("idempotency_key", "refund:"+somePay+":1"), hidden("amount", "4900")}, []string{payButton, payForm, "replay"}},
		{"paid, replayed", orderPaid(), "?replayed=1", []string{"This was a replay of your first submission.", "Charged once"}, []string{payButton}},
		{"paid before", orderPaid(), "?code=order_already_paid", []string{"Charged once, earlier. Not charged again.", "You have already paid for this."}, []string{payButton}},
		{"paid under the key of this page, with another card", orderPaid(), "?code=key_reused", []string{"Charged once, earlier. Not charged again.", "You have already paid for this."}, []string{payButton}},
		{"paid, and a refund refused", orderPaid(), "?code=refund_not_possible", []string{"This amount cannot be given back.", "gave nothing back", "Charged once"}, []string{payButton}},
		{"refunded, and another refund refused", orderPaid(refundOf(checkout.RefundSucceeded, 4900)), "?code=refund_not_possible&replayed=1", []string{"This amount cannot be given back.", "Refunded, $49.00"}, []string{payButton}},
		{"paid long ago", with(orderPaid(), long), "", []string{"Charged once"}, []string{refundForm}},
		{"free", with(orderOpen(), free, ended(checkout.OrderPaid)), "", []string{"The course is yours.", "It is free"}, []string{payButton, refundForm, "Charged once"}},
		{"refund on its way", orderPaid(refundOf(checkout.RefundPending, 4900)), "", []string{"Your refund is not confirmed yet.", hidden("idempotency_key", "key_of_the_refund"), hidden("amount", "4900")}, []string{payButton, "refund:" + somePay}},
		{"refund failed", orderPaid(refundOf(checkout.RefundFailed, 4900)), "", []string{"The refund did not go through.", hidden("idempotency_key", "refund:"+somePay+":2")}, []string{payButton}},
		{"refunded in part", orderPaid(refundOf(checkout.RefundSucceeded, 1900)), "", []string{"Charged once, $19.00 refunded", hidden("amount", "3000"), hidden("idempotency_key", "refund:"+somePay+":2")}, []string{payButton}},
		{"refund accepted by Stripe", orderPaid(accepted), "", []string{"Refund on its way, $49.00", "Stripe has accepted the refund of $49.00", "$49.00 on its way"}, []string{payButton, refundForm}},
		{"refund made elsewhere, pending", orderPaid(elsewhere), "", []string{"Refund on its way, $49.00", "made elsewhere"}, []string{payButton, refundForm}},
		{"refund of a part failed", orderPaid(refundOf(checkout.RefundSucceeded, 1900), refundOf(checkout.RefundFailed, 500)), "", []string{"The refund did not go through.", "$5.00 is still with us", "Charged once, $19.00 refunded", hidden("amount", "3000")}, []string{payButton, "$49.00 is still with us"}},
		{"refunded, and the refund failed later", with(orderPaid(refundOf(checkout.RefundFailed, 4900)), ended(checkout.OrderRefunded)), "", []string{"Charged once. The refund did not go through", "$49.00 did not go through"}, []string{payButton, refundForm, "Refunded, ", "/lessons/1"}},
		{"expired, charged late", with(orderPaid(lateRefund(checkout.RefundPending)), ended(checkout.OrderExpired)), "", []string{"This order is closed.", "Refund on its way, $49.00", "ch_1"}, []string{payButton, refundForm, "Not charged", "/lessons/1"}},
		{"expired, charged late and given back", with(orderPaid(lateRefund(checkout.RefundSucceeded)), ended(checkout.OrderExpired)), "", []string{"This order is closed.", "Refunded, $49.00"}, []string{payButton, refundForm, "Not charged"}},
		{"refunded", orderPaid(refundOf(checkout.RefundSucceeded, 4900)), "", []string{"Refunded, $49.00", "The money goes back."}, []string{payButton, refundForm, "/lessons/1"}},
	} {
		t.Run(row.given, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			for i := range row.order.Payments { // as old as the row says, however long it waited for its turn
				row.order.Payments[i].UpdatedAt = row.order.Payments[i].UpdatedAt.Add(time.Since(made))
			}
			s.fake.orders[someOrder] = row.order
			got := s.send(get("/orders/"+someOrder+row.query, fromBrowser))
			require.Equal(t, 200, got.status)
			require.Equal(t, "no-store", got.header.Get("Cache-Control"))
			html := squeezed(got.page())
			for _, want := range row.has {
				require.Contains(t, html, want)
			}
			for _, not := range row.lacks {
				require.NotContains(t, html, not)
			}
			list := s.send(get("/orders", fromBrowser))
			require.Equal(t, 200, list.status)

			// The JSON of the same order offers a key where the page offers Pay.
			var view checkout.OrderView
			s.send(get("/orders/" + someOrder)).decode(&view)
			require.Equal(t, row.order.View(), view)
		})
	}
}

// squeezed takes out the white space that templ may or may not write.
func squeezed(html string) string {
	return regexp.MustCompile(`\s+`).ReplaceAllString(html, " ")
}

// TestFaultsAreForTheDemo: what makes the network misbehave is offered in demo mode
// only.
func TestFaultsAreForTheDemo(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *web.Config) { c.Demo = false })
	s.fake.orders[someOrder] = orderOpen()
	html := s.send(get("/orders/"+someOrder, fromBrowser)).page()
	require.Contains(t, html, "pm_card_visa")
	require.NotContains(t, html, "pm_sim_reply_lost")

	s.fake.orders[someOrder] = orderPaid(refundOf(checkout.RefundSucceeded, 1900))
	require.NotContains(t, s.send(get("/orders/"+someOrder, fromBrowser)).page(), refundForm, "the rest of a payment")
}

func TestOrdersPage(t *testing.T) {
	t.Parallel()
	expired := func(o checkout.Order) checkout.Order {
		o.Status = checkout.OrderExpired
		return o
	}
	for given, row := range map[string]struct {
		order checkout.Order
		says  string
		next  string
	}{
		"open":             {orderOpen(), "Not charged", "Continue to checkout"},
		"unknown":          {orderWith(attempt(checkout.PaymentPending)), "Not known yet", "See what happened"},
		"the bank asks":    {orderWith(attempt(checkout.PaymentRequiresAction)), "Your bank is asking you", "See what happened"},
		"processing":       {orderWith(attempt(checkout.PaymentProcessing)), "On its way, not settled yet", "See what happened"},
		"paid":             {orderPaid(), "Charged once", "Start lesson 1"},
		"refunded in part": {orderPaid(refundOf(checkout.RefundSucceeded, 1900)), "Charged once, $19.00 refunded", "Start lesson 1"},
		"refunded":         {orderPaid(refundOf(checkout.RefundSucceeded, 4900)), "Refunded, $49.00", "Receipt"},
		"being refunded":   {orderPaid(refundOf(checkout.RefundPending, 4900)), "Refund on its way, $49.00", "Start lesson 1"},
		"charged late":     {expired(orderPaid(lateRefund(checkout.RefundPending))), "Refund on its way, $49.00", "See what happened"},
		"expired":          {expired(orderOpen()), "Not charged", "Back to the course"},
	} {
		t.Run(given, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.fake.orders[someOrder] = row.order
			html := s.send(get("/orders", fromBrowser)).page()
			require.Contains(t, html, row.says)
			require.Contains(t, html, row.next)
			require.Contains(t, html, "/orders/"+someOrder)
		})
	}

	t.Run("none", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		require.Contains(t, s.send(get("/orders", fromBrowser)).page(), "Nothing has been charged.")
		require.JSONEq(t, `{"orders":[]}`, string(s.send(get("/orders")).body))
	})
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	s := open(t)
	html := s.send(get("/", fromBrowser)).page()
	for _, want := range []string{"Idempotency, end to end", "$49.00", "Free", "Start with the first course", modeWords} {
		require.Contains(t, html, want)
	}
	require.JSONEq(t, `{"courses":[
		{"slug":"why-select-cannot-answer","title":"Why a SELECT cannot answer","amount":0,"currency":"usd","owned":false},
		{"slug":"idempotency-end-to-end","title":"Idempotency, end to end","amount":4900,"currency":"usd","owned":false}
	]}`, string(s.send(get("/")).body))

	s.fake.offers[0].Owned = true
	html = s.send(get("/", fromBrowser)).page()
	require.Contains(t, html, "Go on with the next course")
	require.Contains(t, html, "Yours")

	s.fake.offers = nil
	require.JSONEq(t, `{"courses":[]}`, string(s.send(get("/")).body))
}

const modeWords = "Local Stripe: no real money"

func TestCoursePage(t *testing.T) {
	t.Parallel()
	orderKey := regexp.MustCompile(`name="idempotency_key" value="([^"]+)"`)

	t.Run("ForSale", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		first := s.send(get("/courses/"+slug, fromBrowser)).page()
		require.Contains(t, first, "Go to checkout")
		require.Contains(t, first, hidden("course", slug))
		require.NotContains(t, first, "/lessons/1")
		second := s.send(get("/courses/"+slug, fromBrowser)).page()
		one, two := orderKey.FindStringSubmatch(first), orderKey.FindStringSubmatch(second)
		require.GreaterOrEqual(t, len(one[1]), 26, "130 bits in base32")
		require.NotEqual(t, one[1], two[1], "a new key each time")
		require.JSONEq(t, `{"slug":"`+slug+`","title":"Idempotency, end to end","amount":4900,"currency":"usd","owned":false}`,
			string(s.send(get("/courses/"+slug)).body))
	})

	t.Run("Free", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		require.Contains(t, s.send(get("/courses/why-select-cannot-answer", fromBrowser)).page(), "Take the course")
	})

	t.Run("WithAnOpenOrder", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.offers[1].OpenOrder = someOrder
		html := s.send(get("/courses/"+slug, fromBrowser)).page()
		require.Contains(t, html, `href="/orders/`+someOrder+`"`)
		require.NotContains(t, html, "<form")
	})

	t.Run("Owned", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.offers[1].Owned = true
		s.fake.orders[someOrder] = orderPaid()
		html := s.send(get("/courses/"+slug, fromBrowser)).page()
		require.Contains(t, html, `href="/courses/`+slug+`/lessons/1"`)
		require.Contains(t, html, `href="/orders/`+someOrder+`"`, "the receipt")
		require.NotContains(t, html, "<form")
	})

	t.Run("Unknown", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		require.Equal(t, 404, s.send(get("/courses/nope", fromBrowser)).status)
		require.Equal(t, 404, s.send(get("/courses/%00")).status)
	})
}

func TestLesson(t *testing.T) {
	t.Parallel()

	t.Run("ForThoseWhoHaveTheCourse", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.offers[1].Owned = true
		html := s.send(get("/courses/"+slug+"/lessons/2", fromBrowser)).page()
		require.Contains(t, html, "Lesson 2 of")
		var lesson struct {
			Course, Title, HTML string
			Number, Minutes     int
		}
		s.send(get("/courses/" + slug + "/lessons/2")).decode(&lesson)
		require.Equal(t, 2, lesson.Number)
		require.NotEmpty(t, lesson.HTML)
		require.Contains(t, html, lesson.HTML, "the page has the same text")
	})

	t.Run("NotForOthers", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		got := s.send(get("/courses/" + slug + "/lessons/1"))
		require.Equal(t, 404, got.status)
		require.Contains(t, got.problem().Detail, "Take the course")
		page := s.send(get("/courses/"+slug+"/lessons/1", fromBrowser))
		require.Equal(t, 404, page.status)
		require.Contains(t, page.page(), `href="/courses/`+slug+`"`, "the way to get it")
	})

	t.Run("WhichThereIs", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.offers[1].Owned = true
		for _, n := range []string{"0", "-1", "99", "01", "+1", "1.0", "one", "9999999999999999999999"} {
			require.Equal(t, 404, s.send(get("/courses/"+slug+"/lessons/"+n)).status, n)
		}
	})
}

// TestStalePages: whatever an old page sends, its customer ends on a page that
// says how things stand.
func TestStalePages(t *testing.T) {
	t.Parallel()
	follow := func(s *shop, got answer) answer {
		s.t.Helper()
		require.Equal(s.t, http.StatusSeeOther, got.status)
		return s.send(get(got.header.Get("Location"), fromBrowser))
	}
	pay := "payment_method=pm_card_visa&idempotency_key=an_old_key"

	t.Run("OfAnOrderThatIsPaid", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.orders[someOrder] = orderPaid()
		s.fake.fails(&checkout.ConflictError{Err: checkout.ErrOrderAlreadyPaid, Order: someOrder})
		got := follow(s, s.send(form(payments, pay)))
		require.Contains(t, got.page(), "You have already paid for this.")
		require.NotContains(t, got.page(), payButton)
	})

	t.Run("OfASessionThatIsOver", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.cookie = nil
		got := s.send(form(payments, pay))
		require.Equal(t, 401, got.status)
		require.Contains(t, got.page(), `href="/"`)
	})

	t.Run("OfAnotherCustomer", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.fails(checkout.ErrNotFound)
		got := s.send(form(payments, pay))
		require.Equal(t, 404, got.status)
		require.Contains(t, got.page(), "Not charged by this request")
		require.Equal(t, 404, s.send(get("/orders/"+someOrder, fromBrowser)).status)
	})

	t.Run("OfACourseThatIsOwned", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.offers[1].Owned = true
		s.fake.fails(&checkout.ConflictError{Err: checkout.ErrAlreadyEnrolled, Course: slug})
		got := follow(s, s.send(form("/orders", "course="+slug+"&idempotency_key=k")))
		require.Equal(t, 200, got.status)
		require.Contains(t, got.page(), "Lesson 1 of")
	})
}

// TestPagesEscape: what comes from elsewhere is text on a page, never markup.
func TestPagesEscape(t *testing.T) {
	t.Parallel()
	const evil = `"><script>alert(1)</script>`
	s := open(t)
	o := orderPaid()
	o.Course.Title, o.Payments[0].Charge, o.Payments[0].PaymentMethod = evil, evil, evil
	s.fake.orders[someOrder] = o
	s.fake.offers[1].Course.Title = evil
	for _, r := range []*http.Request{
		get("/orders/"+someOrder, fromBrowser), get("/orders", fromBrowser), get("/", fromBrowser), get("/courses/"+slug, fromBrowser),
		form("/orders?"+`%22%3E%3Cscript%3E=1`, "", fromBrowser), get("/orders/"+`%22%3E%3Cscript%3E`, fromBrowser),
	} {
		require.NotContains(t, strings.ToLower(s.send(r).page()), "<script", r.URL)
	}
}
