package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/web"
)

// give is the form of a partial refund.
func give(payment, key, major string) *http.Request {
	return form("/payments/"+payment+"/refunds", url.Values{"amount_major": {major}, "idempotency_key": {key}}.Encode())
}

// partForm gives what the form of a partial refund would send; it is the second
// of the page, behind the whole refund.
func (b *browser) partForm() url.Values {
	b.s.t.Helper()
	for _, f := range formTag.FindAllStringSubmatch(b.page(), -1) {
		if strings.Contains(f[2], `name="amount_major"`) {
			key := regexp.MustCompile(`name="idempotency_key" value="([^"]+)"`).FindStringSubmatch(f[2])[1]
			return url.Values{"idempotency_key": {key}}
		}
	}
	require.Fail(b.s.t, "no form for a part", b.at)
	return nil
}

// TestPartialRefunds: an amount as a person types it, exactly, and once.
func TestPartialRefunds(t *testing.T) {
	t.Parallel()
	paid := func(t *testing.T, slug string) (*realShop, *browser, string) {
		t.Helper()
		s := openReal(t)
		order := s.ordered(slug)
		got := s.send(post("/orders/"+order.ID+"/payments", withVisa, key(order.PaymentKey)))
		require.Equal(t, 201, got.status, string(got.body))
		return s, s.browse("/orders/" + order.ID), s.order(order.ID).Payments[0].ID
	}

	t.Run("GivesBackWhatIsTypedAndTheCourseStays", func(t *testing.T) {
		t.Parallel()
		s, b, payment := paid(t, slug)
		b.says("Give back $49.00", "Less than $49.00, such as 24.50")
		key := b.partForm().Get("idempotency_key")
		b.follow(s.send(give(payment, key, " 19.00 ")))
		b.says("Charged once, $19.00 refunded", "The course is yours.", "$19.00 given back", "Give back $30.00", "such as 15.00")
		s.browse("/orders").says("Charged once, $19.00 refunded")
		require.Equal(t, 200, s.send(get("/courses/"+slug+"/lessons/1")).status)

		// The page once more, and the same amount in other words: replays.
		for _, same := range []string{"19.00", "19", "19.0", "019.00"} {
			b.follow(s.send(give(payment, key, same)))
			b.says("This was a replay of your first submission.", "$19.00 given back")
		}
		require.Equal(t, 422, s.send(give(payment, key, "20.00")).status)
		replay := s.send(post("/payments/"+payment+"/refunds", `{"amount":1900}`, header("Idempotency-Key", key)))
		require.Equal(t, "true", replay.header.Get("Idempotent-Replayed"), "a form and a program are one request")

		// The rest: the whole is given back, and the course closes.
		b.open("/orders/" + b.order())
		rest := b.partForm().Get("idempotency_key")
		b.follow(s.send(give(payment, rest, "30")))
		b.says("Refunded, $49.00", "$30.00 given back")
		b.follow(s.send(give(payment, rest, "30"))) // nothing is left, and it is a replay all the same
		b.says("This was a replay of your first submission.", "Refunded, $49.00")
		require.Equal(t, 2, s.rows("refunds"))
		require.Equal(t, 404, s.send(get("/courses/"+slug+"/lessons/1")).status)
	})

	t.Run("KnowsTheCurrencyOfThePayment", func(t *testing.T) {
		t.Parallel()
		s, b, payment := paid(t, "postgresql-under-concurrency")
		b.says("Less than ¥7,900, such as 3950")
		key := b.partForm().Get("idempotency_key")
		require.Equal(t, 400, s.send(give(payment, key, "1900.00")).status)
		b.follow(s.send(give(payment, key, "1900")))
		b.says("Charged once, ¥1,900 refunded")
	})

	t.Run("RefusesWhatIsNotClearAndTheKeyStaysGood", func(t *testing.T) {
		t.Parallel()
		s, b, payment := paid(t, slug)
		key := b.partForm().Get("idempotency_key")
		keys := s.rows("idempotency_keys")
		for text, says := range map[string]string{
			"": "empty", "0": "more than nothing", "0.00": "more than nothing", "-1": "figures alone", "1,900": "figures alone", "$19": "figures alone",
			"19.999": "more decimals", "1e2": "figures alone", "nineteen": "figures alone", "49.01": "At most $49.00", "4900": "At most $49.00",
			"999999999999": "too large", strings.Repeat("1", 65): "65 bytes", "\x00": "zero byte",
		} {
			got := s.send(give(payment, key, text))
			require.Equal(t, 400, got.status, text)
			require.Contains(t, got.page(), says, text)
			require.Contains(t, got.page(), "&#34;field&#34;: &#34;amount_major&#34;", text)
		}
		both := s.send(form("/payments/"+payment+"/refunds", "amount=4900&amount_major=19.00&idempotency_key="+key))
		require.Equal(t, 400, both.status)
		twice := s.send(form("/payments/"+payment+"/refunds", "amount_major=1&amount_major=19.00&idempotency_key="+key))
		require.Equal(t, 400, twice.status)
		program := s.send(post("/payments/"+payment+"/refunds", `{"amount_major":"19.00"}`))
		require.Equal(t, "amount_major", program.problem().Field, "a program counts in minor units")
		require.Equal(t, keys, s.rows("idempotency_keys"), "nothing was claimed")
		require.Zero(t, s.rows("refunds"))

		b.follow(s.send(give(payment, key, "19.00")))
		b.says("Charged once, $19.00 refunded")
	})

	t.Run("OfAnotherAccountsPaymentIsNotFound", func(t *testing.T) {
		t.Parallel()
		s, _, payment := paid(t, slug)
		s.cookie = s.newCustomer()
		require.Equal(t, 404, s.send(give(payment, "k", "19.00")).status)
		require.Equal(t, 404, s.send(give(somePay, "k", "19.00")).status)
		require.Equal(t, 404, s.send(give("a%00b", "k", "19.00")).status)
		require.Zero(t, s.rows("refunds"))
	})

	t.Run("InTwoTabsIsOneRefund", func(t *testing.T) {
		t.Parallel()
		s, b, payment := paid(t, slug)
		whole, part := b.fields("/payments/"+payment+"/refunds"), b.partForm()
		require.Equal(t, whole.Get("idempotency_key"), part.Get("idempotency_key"))
		b.follow(s.send(give(payment, part.Get("idempotency_key"), "19.00")))
		stale := s.send(form("/payments/"+payment+"/refunds", whole.Encode()))
		require.Equal(t, 422, stale.status, "the page is out of date")
		require.Equal(t, 1, s.rows("refunds"))
	})
}

// TestPartialRefundsAreForTheDemo: elsewhere the buyer's button is the whole
// payment.
func TestPartialRefundsAreForTheDemo(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *web.Config) { c.Demo = false })
	s.fake.orders[someOrder] = orderPaid()
	page := s.send(get("/orders/"+someOrder, fromBrowser)).page()
	require.Contains(t, page, "Give back $49.00")
	require.NotContains(t, page, "amount_major")
}

// TestTheReceiptTellsWhatOthersDid: refunds made elsewhere and what the bank questions reach the receipt by
// events, without a request of the buyer's.
func TestTheReceiptTellsWhatOthersDid(t *testing.T) {
	t.Parallel()

	t.Run("ARefundOfTheDashboard", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		s.listen()
		order := s.ordered(slug)
		require.Equal(t, 201, s.send(post("/orders/"+order.ID+"/payments", withVisa, key(order.PaymentKey))).status)
		s.dashboard("/v1/refunds", url.Values{"payment_intent": {s.order(order.ID).Payments[0].PaymentIntent}, "amount": {"1900"}})
		s.until("the event has told", func() bool { return len(s.order(order.ID).Refunds) == 1 })
		b := s.browse("/orders/" + order.ID)
		b.says("Charged once, $19.00 refunded", "made elsewhere", "$19.00 given back", "Give back $30.00")
		b.submit("/payments/" + s.order(order.ID).Payments[0].ID + "/refunds")
		b.says("Refunded, $49.00")
		require.Equal(t, checkout.OrderRefunded, s.order(order.ID).Status)
	})

	t.Run("ADispute", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		paid := s.send(post("/orders/"+order.ID+"/payments", `{"payment_method":"pm_card_createDispute"}`, key(order.PaymentKey)))
		require.Equal(t, 201, paid.status, string(paid.body))
		p := s.order(order.ID).Payments[0]
		var dispute string
		s.until("Stripe has the dispute", func() bool {
			list := s.object("/v1/disputes?payment_intent=" + p.PaymentIntent)["data"].([]any)
			if len(list) == 1 {
				dispute = list[0].(map[string]any)["id"].(string)
			}
			return dispute != ""
		})
		// What the event says is not used: it makes the shop ask.
		told := func(id string) {
			t.Helper()
			s.deliver(stripeEvent(id, "charge.dispute.updated", map[string]any{"id": dispute, "object": "dispute"})).result(200, "applied")
		}
		told("evt_1")
		b := s.browse("/orders/" + order.ID)
		b.says("Charged once", "Your bank questions this charge of $49.00.")
		require.NotContains(t, b.page(), "Give back", "it would go back twice")
		require.NotContains(t, b.page(), "fraudulent", "the bank's word is for the shop")
		s.dashboard("/v1/disputes/"+dispute, url.Values{"evidence[uncategorized_text]": {"losing_evidence"}, "submit": {"true"}})
		told("evt_2")
		b.open(b.at)
		b.says("Charged once, given back by your bank", "gave you $49.00 back itself")
		require.NotContains(t, b.page(), "Give back")
	})

	t.Run("ADisputeThatWasWon", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.orders[someOrder] = orderPaid()
		s.fake.disputes = []checkout.Dispute{{ID: "dp_1", Status: "won", Money: usd49}}
		page := s.send(get("/orders/"+someOrder, fromBrowser)).page()
		require.Contains(t, page, "decided that it stands")
		require.Contains(t, page, "Give back $49.00")
	})

	t.Run("NoDisputeThatCannotBeRead", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.orders[someOrder] = orderPaid()
		s.fake.disputeErr = http.ErrAbortHandler
		require.Equal(t, 500, s.send(get("/orders/"+someOrder, fromBrowser)).status)
	})
}

// dashboard does at Stripe what a person does there.
func (s *realShop) dashboard(path string, values url.Values) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.base+path, strings.NewReader(values.Encode()))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("sk_test_local", "")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	require.NoError(s.t, answer.Body.Close())
	require.Equal(s.t, 200, answer.StatusCode)
}

// TestLateMoney: an order that was charged after it had closed says so, and how
// far the money is on its way back.
func TestLateMoney(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	order, object := s.lost()
	// Closed here, and charged there: what the order's expiry prevents, and an
	// intervention by hand does not.
	for _, statement := range []string{`UPDATE payments SET status = 'canceled'`, `UPDATE orders SET status = 'expired'`} {
		_, err := s.pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	b := s.browse("/orders/" + order.ID)
	b.says("This order is closed.", "Not charged")

	s.deliver(stripeEvent("evt_1", succeeded, object)).result(200, "applied")
	b.open(b.at)
	b.says("This order is closed.", "Refund on its way, $49.00", "Your payment arrived after the order had closed", "$49.00 on its way")
	require.NotContains(t, b.page(), "was not charged")
	s.browse("/orders").says("Refund on its way, $49.00", "See what happened")

	_, err := s.service.CompleteOnce(t.Context())
	require.NoError(t, err)
	b.open(b.at)
	b.says("Refunded, $49.00", "$49.00 given back")
	s.browse("/orders").says("Refunded, $49.00")
	require.Zero(t, s.rows("enrolments"))

	_, err = s.pool.Exec(t.Context(), `UPDATE refunds SET status = 'failed'; UPDATE payments SET refunded = 0`)
	require.NoError(t, err)
	b.open(b.at)
	b.says("Charged once. The refund did not go through", "the money is still with us")
	s.browse("/orders").says("Charged once. The refund did not go through")
}

// TestTheCompleterFinishesWhileTheBuyerIsAway: the reply was lost, the browser
// is closed, and the order's page says how it ended.
func TestTheCompleterFinishesWhileTheBuyerIsAway(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	order, _ := s.lost()
	b := s.browse("/orders/" + order.ID + "?code=outcome_unknown")
	b.says("We keep asking until we know.", "Send this same payment again")
	_, err := s.pool.Exec(t.Context(), `UPDATE idempotency_keys SET lease_until = lease_until - interval '1 hour' WHERE status = 'in_progress'`)
	require.NoError(t, err)
	done, err := s.service.CompleteOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, done.Keys)
	b.open("/orders/" + order.ID)
	b.says("Charged once")
	require.Equal(t, 1, s.charges(order.ID))
}
