package web_test

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
)

const (
	asks       = "pm_card_authenticationRequired"
	withAsking = `{"payment_method":"` + asks + `"}`
)

// asked pays by a program with a card whose bank asks the buyer.
func (s *realShop) asked(order checkout.OrderView) (p checkout.PaymentView) {
	s.t.Helper()
	got := s.send(post("/orders/"+order.ID+"/payments", withAsking, key(order.PaymentKey)))
	require.Equal(s.t, 202, got.status, string(got.body))
	got.decode(&p)
	return p
}

var bankLink = regexp.MustCompile(`<a class="button" href="([^"]+)">Go to your bank’s page</a>`)

// bank follows the order page's link to the bank, answers its question there as
// a browser does, and gives the address that the bank sends the buyer back to.
func (b *browser) bank(outcome string) (back *url.URL) {
	b.s.t.Helper()
	t := b.s.t
	link := bankLink.FindStringSubmatch(b.page())
	require.NotNil(t, link, "no link to the bank on %s", b.at)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	page, err := client.Get(html.UnescapeString(link[1]))
	require.NoError(t, err)
	body, err := io.ReadAll(page.Body)
	require.NoError(t, err)
	require.NoError(t, page.Body.Close())
	require.Equal(t, 200, page.StatusCode)
	require.Contains(t, string(body), "$49.00")
	action := regexp.MustCompile(`action="([^"]+)"`).FindSubmatch(body)[1]
	source := regexp.MustCompile(`name="source" value="([^"]+)"`).FindSubmatch(body)[1]

	at, err := page.Request.URL.Parse(string(action))
	require.NoError(t, err)
	sent, err := client.PostForm(at.String(), url.Values{"source": {string(source)}, "outcome": {outcome}})
	require.NoError(t, err)
	require.NoError(t, sent.Body.Close())
	require.Equal(t, 303, sent.StatusCode)
	back, err = sent.Location()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(back.String(), publicURL+"/orders/"), back)
	return back
}

// back opens the address that the bank sends the buyer to, and follows it.
func (b *browser) back(from *url.URL) {
	b.s.t.Helper()
	b.follow(b.s.send(get(from.RequestURI(), fromBrowser)))
}

// tokenOnly keeps the shop's own part of the way back.
func tokenOnly(from *url.URL) string {
	return from.Path + "?token=" + url.QueryEscape(from.Query().Get("token"))
}

func TestTheBankAsks(t *testing.T) {
	t.Parallel()

	t.Run("TheAnswerHoldsNoSecretAndNoAddressOfTheBank", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		path := "/orders/" + order.ID + "/payments"
		first := s.send(post(path, withAsking, key(order.PaymentKey)))
		require.Equal(t, 202, first.status, string(first.body))
		require.Empty(t, first.header.Get("Location"), "nothing is made yet")
		var p checkout.PaymentView
		first.decode(&p)
		require.Equal(t, checkout.PaymentRequiresAction, p.Status)
		require.Equal(t, &checkout.NextAction{Type: "redirect_to_url", URL: "/orders/" + order.ID}, p.NextAction)

		again := s.send(post(path, withAsking, key(order.PaymentKey)))
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		require.Equal(t, string(first.body), string(again.body))

		var stored string
		require.NoError(t, s.pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(k::text, ' ') || convert_from(string_agg(k.response_body, ''), 'UTF8'), '')
			FROM idempotency_keys k`).Scan(&stored))
		require.Contains(t, stored, "redirect_to_url")
		for _, secret := range []string{"_secret_", "3d_secure", "http://127.0.0.1"} {
			require.NotContains(t, stored, secret)
			require.NotContains(t, string(first.body), secret)
			require.NotContains(t, string(s.send(get("/orders/"+order.ID)).body), secret)
		}
		require.Zero(t, s.charges(order.ID))
	})

	t.Run("AndTheBuyerConfirms", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		b := s.browse("/orders/" + s.ordered(slug).ID)
		b.submit("/orders/"+b.order()+"/payments", "payment_method", asks)
		b.says("Your bank asks you to confirm.", "Not charged. Your bank is asking you.", "Use another card",
			"this payment is given up after 15 minutes, and nothing is charged")
		require.NotContains(t, b.page(), payButton)
		s.browse("/orders").says("Not charged. Your bank is asking you.")

		back := b.bank("succeeded")
		require.Equal(t, 1, s.charges(b.order()))
		b.back(back)
		b.says("Charged once", "The course is yours.", "Visa ending 3184")
		b.back(back) // a reload
		b.says("Charged once")
		require.Equal(t, 1, s.charges(b.order()))
		require.Equal(t, checkout.OrderPaid, s.order(b.order()).Status)
	})

	t.Run("AndTheBuyerFails", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		payments := "/orders/" + order.ID + "/payments"
		b := s.browse("/orders/" + order.ID)
		b.submit(payments, "payment_method", asks)
		b.back(b.bank("failed"))
		b.says("Your bank declined the card. Nothing was charged.", "Not charged")
		require.NotEqual(t, order.PaymentKey, b.fields(payments).Get("idempotency_key"), "the next key")
		require.Equal(t, s.order(order.ID).PaymentKey, b.fields(payments).Get("idempotency_key"))
		require.Zero(t, s.charges(order.ID))
		b.submit(payments, "payment_method", "pm_card_visa")
		b.says("Charged once")
		require.Equal(t, 1, s.charges(order.ID))
	})

	t.Run("AndTheBuyerWalksAwayAndComesBack", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		b := s.browse("/orders/" + s.ordered(slug).ID)
		b.submit("/orders/"+b.order()+"/payments", "payment_method", asks)
		before := s.order(b.order())
		for range 2 {
			b.follow(s.send(get("/orders/"+b.order()+"/return", fromBrowser))) // "Check now", and nothing has changed
			b.says("Your bank asks you to confirm.")
		}
		require.Equal(t, before, s.order(b.order()), "asking changes nothing, and cancels nothing")
		b.back(b.bank("succeeded"))
		b.says("Charged once")
	})
}

// TestTheWayBack: what the address says is not believed; only what Stripe says
// when it is asked.
func TestTheWayBack(t *testing.T) {
	t.Parallel()

	t.Run("WithInventedParametersChangesNothing", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		paid := s.ordered("stripe-in-production")
		require.Equal(t, 201, s.send(post("/orders/"+paid.ID+"/payments", withVisa, key(paid.PaymentKey))).status)
		order := s.ordered(slug)
		s.asked(order)
		before := s.order(order.ID)
		theirs := s.order(paid.ID).Payments[0].PaymentIntent
		for _, query := range []string{
			"?redirect_status=succeeded",
			"?payment_intent=" + theirs + "&payment_intent_client_secret=" + theirs + "_secret_x&redirect_status=succeeded",
			"?redirect_status=failed", "?status=paid&code=order_already_paid", "?token=wrong", "?%ff=%00", "?a;b",
		} {
			b := &browser{s: s}
			b.follow(s.send(get("/orders/"+order.ID+"/return"+query, fromBrowser)))
			require.Equal(t, "/orders/"+order.ID, b.at)
			b.says("Your bank asks you to confirm.")
			require.Equal(t, before, s.order(order.ID), query)
		}
		require.Zero(t, s.charges(order.ID))
	})

	t.Run("InAnotherBrowserShowsTheShortAnswerAndNothingElse", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		b := s.browse("/orders/" + s.ordered(slug).ID)
		b.submit("/orders/"+b.order()+"/payments", "payment_method", asks)
		own := s.cookie
		link := tokenOnly(b.bankReturn())
		secrets := []string{s.order(b.order()).Payments[0].ID, "Idempotency, end to end", "$49.00", own.Value, "idempotency_key"}

		short := func(words, status string) {
			t.Helper()
			for _, who := range []*http.Cookie{nil, s.newCustomer()} {
				s.cookie = who
				page := s.send(get(link, fromBrowser))
				require.Equal(t, 200, page.status)
				require.Contains(t, page.page(), words)
				require.Equal(t, "no-store", page.header.Get("Cache-Control"))
				for _, secret := range secrets {
					require.NotContains(t, string(page.body), secret)
				}
				require.JSONEq(t, `{"status":"`+status+`"}`, string(s.send(get(link)).body))
			}
			s.cookie = own
		}
		short("We are checking. Do not pay again.", "checking")
		back := b.bank("succeeded")
		require.Equal(t, link, tokenOnly(back))
		short("It is paid.", "paid")
		require.Equal(t, checkout.OrderPaid, s.order(b.order()).Status, "settled by the stranger's visit")

		for _, wrong := range []string{"", "?token=", "?token=wrong", "?token=%00", "?token=%ff", "?token=" + strings.Repeat("x", 9000), "?redirect_status=succeeded"} {
			for _, who := range []*http.Cookie{nil, s.newCustomer()} {
				s.cookie = who
				require.Equal(t, 404, s.send(get("/orders/"+b.order()+"/return"+wrong, fromBrowser)).status, wrong)
				require.Equal(t, "not_found", s.send(get("/orders/"+b.order()+"/return"+wrong)).problem().Code)
			}
		}
		s.cookie = nil
		require.Equal(t, 404, s.send(get("/orders/"+someOrder+"/return?token="+back.Query().Get("token"))).status, "another order's token")
		s.cookie = own

		refund := s.order(b.order()).Payments[0]
		require.Equal(t, 201, s.send(post("/payments/"+refund.ID+"/refunds", `{"amount":4900}`, key("give back"))).status)
		short("The money goes back.", "refunded")
	})

	t.Run("WhileStripeCannotBeAskedSaysThatItIsNotKnown", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		p := s.asked(order)
		require.NoError(t, s.stripe.Finish(p.PaymentIntent, stripesim.Succeeded))
		_, err := s.stripe.Add(stripesim.Rule{Method: "GET", Path: "/v1/payment_intents/*", Action: stripesim.Drop, Times: -1})
		require.NoError(t, err)
		b := &browser{s: s}
		b.follow(s.send(get("/orders/"+order.ID+"/return", fromBrowser)))
		b.says("Your bank asks you to confirm.")
		require.NotContains(t, b.page(), payButton)
	})
}

// bankReturn reads where the bank will send the buyer back to.
func (b *browser) bankReturn() *url.URL {
	b.s.t.Helper()
	var address string
	require.NoError(b.s.t, b.s.pool.QueryRow(b.s.t.Context(), `SELECT return_url FROM payments WHERE order_id = $1`, b.order()).Scan(&address))
	u, err := url.Parse(address)
	require.NoError(b.s.t, err)
	return u
}

// TestCancel: another card during 3-D Secure. The bank's question is withdrawn
// first, so that it cannot be answered later.
func TestCancel(t *testing.T) {
	t.Parallel()

	t.Run("InABrowser", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		payments := "/orders/" + order.ID + "/payments"
		b := s.browse("/orders/" + order.ID)
		b.submit(payments, "payment_method", asks)
		bank := html.UnescapeString(bankLink.FindStringSubmatch(b.page())[1])
		cancel := "/payments/" + s.order(order.ID).Payments[0].ID + "/cancel"
		for range 2 { // and the same form once more
			got := s.send(form(cancel, ""))
			require.Empty(t, got.header.Get("Idempotent-Replayed"))
			b.follow(got)
			b.says("The payment was not made. Nothing was charged.", "Pay $49.00")
		}
		require.NotEqual(t, order.PaymentKey, b.fields(payments).Get("idempotency_key"))
		gone, err := http.Get(bank)
		require.NoError(t, err)
		require.NoError(t, gone.Body.Close())
		require.Equal(t, 410, gone.StatusCode, "the bank asks no more")

		b.submit(payments, "payment_method", "pm_card_visa")
		b.says("Charged once", "Visa ending 4242")
		require.Equal(t, 1, s.charges(order.ID))
		b.follow(s.send(form(cancel, ""))) // an old page: it shows the truth, and cancels nothing
		b.says("Charged once")
	})

	t.Run("ByProgram", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		p := s.asked(order)
		var first, second checkout.CancelView
		got := s.send(request(http.MethodPost, "/payments/"+p.ID+"/cancel", "", nil))
		require.Equal(t, 200, got.status, string(got.body))
		got.decode(&first)
		require.Equal(t, checkout.PaymentCanceled, first.Status)
		require.Equal(t, s.order(order.ID).PaymentKey, first.PaymentKey)
		require.NotEqual(t, order.PaymentKey, first.PaymentKey)
		s.send(post("/payments/"+p.ID+"/cancel", `{"ignored":true}`)).decode(&second)
		require.Equal(t, first, second)
		require.Equal(t, 201, s.send(post("/orders/"+order.ID+"/payments", withVisa, key(first.PaymentKey))).status)
		require.Equal(t, 1, s.charges(order.ID))
	})

	t.Run("OfAPaymentThatSucceededMeanwhileIsTheReceipt", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		p := s.asked(order)
		require.NoError(t, s.stripe.Finish(p.PaymentIntent, stripesim.Succeeded))
		b := &browser{s: s}
		b.follow(s.send(form("/payments/"+p.ID+"/cancel", "")))
		b.says("Charged once", "The course is yours.")
		var view checkout.CancelView
		s.send(post("/payments/"+p.ID+"/cancel", "")).decode(&view)
		require.Equal(t, checkout.PaymentSucceeded, view.Status)
		require.Empty(t, view.PaymentKey)
		require.Equal(t, 1, s.charges(order.ID))
	})

	t.Run("OfAPaymentWhoseOwnerIsAtWorkIsRefused", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		require.Equal(t, 503, s.send(post("/orders/"+order.ID+"/payments", `{"payment_method":"pm_sim_reply_lost"}`, key(order.PaymentKey))).status)
		cancel := "/payments/" + s.order(order.ID).Payments[0].ID + "/cancel"
		got := s.send(post(cancel, ""))
		require.Equal(t, 409, got.status)
		require.Equal(t, "payment_in_progress", got.problem().Code)
		require.False(t, got.problem().SafeNewKey)
		require.NotEmpty(t, got.header.Get("Retry-After"))
		b := &browser{s: s}
		b.follow(s.send(form(cancel, "")))
		b.says("Do not pay again.")
	})

	t.Run("ThatStripeDoesNotCarryOutSaysSo", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		cancel := "/payments/" + s.asked(order).ID + "/cancel"
		const words = "Stripe did not answer our last request, so this payment still waits for you."
		b := s.browse("/orders/" + order.ID)
		require.NotContains(t, b.page(), words)
		lost, err := s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents/*/cancel", Action: stripesim.Drop, At: stripesim.Arrival, Times: -1})
		require.NoError(t, err)
		b.follow(s.send(form(cancel, "")))
		b.says("Your bank asks you to confirm.", words)
		lost.Remove()
		b.follow(s.send(form(cancel, "")))
		b.says("The payment was not made. Nothing was charged.")
	})

	t.Run("IsRefused", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		p := s.asked(order)
		cancel := "/payments/" + p.ID + "/cancel"
		stranger := s.newCustomer().String()
		before := s.order(order.ID)
		for _, row := range []struct {
			given  string
			when   *http.Request
			status int
			code   string
		}{
			{"another account's", post(cancel, "", header("Cookie", stranger)), 404, "not_found"},
			{"one that is not there", post("/payments/"+somePay+"/cancel", ""), 404, "not_found"},
			{"an id that is none", post("/payments/a%00b/cancel", ""), 404, "not_found"},
			{"an order's id", post("/payments/"+order.ID+"/cancel", ""), 404, "not_found"},
			{"without a session", post(cancel, "", header("Cookie", "other=1")), 401, "no_session"},
			{"from another site", post(cancel, "", header("Sec-Fetch-Site", "cross-site")), 403, "cross_site"},
			{"from another origin", post(cancel, "", header("Origin", "https://evil.test")), 403, "cross_site"},
			{"with a query", post(cancel+"?payment="+p.ID, ""), 400, "invalid_request"},
		} {
			row.when.Header.Set("Accept", "application/json")
			got := s.send(row.when)
			require.Equal(t, row.status, got.status, row.given)
			require.Equal(t, row.code, got.problem().Code, row.given)
			require.Equal(t, before, s.order(order.ID), row.given)
		}
		require.Equal(t, 405, s.send(get(cancel)).status)
		page := s.send(form(cancel, "", header("Cookie", stranger)))
		require.Equal(t, 404, page.status)
		require.Contains(t, page.page(), "Not charged by this request")
	})
}

// TestProcessing: Stripe has accepted the payment, and an event settles it.
func TestProcessing(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	s.listen()
	// All of them: any event about the payment makes the shop ask.
	held, err := s.stripe.AddDelivery(stripesim.DeliveryRule{Event: "payment_intent.*", Hold: true, Times: -1})
	require.NoError(t, err)
	order := s.ordered(slug)
	b := s.browse("/orders/" + order.ID)
	b.submit("/orders/"+order.ID+"/payments", "payment_method", "pm_sim_processing")
	b.says("Your payment is on its way.", "On its way, not settled yet", "Do not pay again.")
	require.NotContains(t, b.page(), payButton)
	s.browse("/orders").says("On its way, not settled yet")
	refused := s.send(post("/orders/"+order.ID+"/payments", withVisa, key("another")))
	require.Equal(t, "payment_in_progress", refused.problem().Code)
	require.NoError(t, held.Release())
	s.until("the event has settled it", func() bool { return s.order(order.ID).Status == checkout.OrderPaid })
	b.open(b.at)
	b.says("Charged once")
	require.Equal(t, 1, s.charges(order.ID))
}

// until polls a condition.
func (s *realShop) until(what string, condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, 20*time.Second, 5*time.Millisecond, what)
}
