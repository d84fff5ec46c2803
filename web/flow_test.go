package web_test

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
	"payonce/checkout/stripesim"
	"payonce/idempotency"
	"payonce/migrations/dbtest"
	"payonce/web"
)

// realShop is the whole shop: the web, the checkout and the ledger on a
// PostgreSQL of its own, and a local Stripe behind them.
type realShop struct {
	shop
	pool     *pgxpool.Pool
	stripe   *stripesim.Server
	base     string // of the local Stripe
	provider *stripepay.Stripe
	service  *checkout.Service
	secret   atomic.Pointer[string] // of the webhook endpoint
}

func openReal(t *testing.T) *realShop {
	t.Helper()
	stripe, err := stripesim.New(stripesim.Config{
		SlowCall: 200 * time.Millisecond, Later: 50 * time.Millisecond, DeliverAfter: time.Millisecond,
		Backoff: []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, time.Second},
	})
	require.NoError(t, err)
	bank := httptest.NewServer(stripe)
	t.Cleanup(func() { _ = stripe.Close(); bank.Close() })
	provider, err := stripepay.New(stripepay.Config{SecretKey: "sk_test_local", Base: bank.URL})
	require.NoError(t, err)

	pool := dbtest.New(t)
	ledger, err := idempotency.New(idempotency.Config{Pool: pool, Instance: t.Name(), Wait: 5 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = ledger.Close(context.Background()) })
	service, err := checkout.New(checkout.Config{
		Pool: pool, Ledger: ledger, Provider: provider, PublicURL: publicURL, PartialRefunds: true,
		// Stripe's card whose charge is questioned is not on the shop's list.
		Methods: append(append(checkout.TestMethods(), checkout.FaultMethods()...), checkout.Method{ID: "pm_card_createDispute", Name: "Visa ending 0259"}),
	})
	require.NoError(t, err)
	s := &realShop{shop: shop{t: t}, pool: pool, stripe: stripe, base: bank.URL, provider: provider, service: service}
	s.secret.Store(new(webhookSecret))
	c := config(service)
	c.Ledger = ledger
	c.Webhook = func(body []byte, signature string) (checkout.Event, error) {
		return stripepay.Verify(body, signature, []string{*s.secret.Load()}, time.Now())
	}
	s.server, err = web.New(c)
	require.NoError(t, err)
	s.cookie = s.newCustomer()
	return s
}

// rows counts what a statement finds.
func (s *realShop) rows(from string) (n int) {
	s.t.Helper()
	require.NoError(s.t, s.pool.QueryRow(s.t.Context(), "SELECT count(*) FROM "+from).Scan(&n))
	return n
}

// lapse ends the lease of every key in progress, as time would.
func (s *realShop) lapse() {
	s.t.Helper()
	_, err := s.pool.Exec(s.t.Context(), `UPDATE idempotency_keys SET lease_until = clock_timestamp() WHERE status = 'in_progress'`)
	require.NoError(s.t, err)
}

// ordered orders a course as a program does.
func (s *realShop) ordered(slug string) (o checkout.OrderView) {
	s.t.Helper()
	got := s.send(post("/orders", `{"course":"`+slug+`"}`, key("order "+slug)))
	require.Equal(s.t, 201, got.status, string(got.body))
	got.decode(&o)
	return o
}

// order reads an order as a program does.
func (s *realShop) order(id string) (o checkout.OrderView) {
	s.t.Helper()
	s.send(get("/orders/" + id)).decode(&o)
	return o
}

// charges counts an order's charges where the money is: at Stripe.
func (s *realShop) charges(order string) int { return s.stripe.Counts().ChargesByOrder[order] }

// browser is a browser without script: it opens pages, submits their forms and
// follows redirects.
type browser struct {
	s  *realShop
	at string // the address of the page
	answer
}

func (s *realShop) browse(path string) *browser {
	s.t.Helper()
	b := &browser{s: s}
	b.open(path)
	return b
}

func (b *browser) open(path string) {
	b.s.t.Helper()
	b.at, b.answer = path, b.s.send(get(path, fromBrowser))
	require.Equal(b.s.t, 200, b.status, path)
}

var (
	formTag  = regexp.MustCompile(`(?s)<form[^>]*action="([^"]+)"[^>]*>(.*?)</form>`)
	inputTag = regexp.MustCompile(`<input[^>]*>`)
	nameAttr = regexp.MustCompile(`\sname="([^"]*)"`)
	valAttr  = regexp.MustCompile(`\svalue="([^"]*)"`)
)

// fields are what the form with this action would send as it stands.
func (b *browser) fields(action string) url.Values {
	b.s.t.Helper()
	for _, f := range formTag.FindAllStringSubmatch(b.page(), -1) {
		if f[1] != action {
			continue
		}
		values := url.Values{}
		for _, input := range inputTag.FindAllString(f[2], -1) {
			if strings.Contains(input, `type="radio"`) && !strings.Contains(input, "checked") {
				continue
			}
			values.Set(nameAttr.FindStringSubmatch(input)[1], html.UnescapeString(valAttr.FindStringSubmatch(input)[1]))
		}
		return values
	}
	require.Fail(b.s.t, "no form", "%s on %s:\n%s", action, b.at, b.body)
	return nil
}

// submit sends the form, with changes in pairs, and follows the redirect.
func (b *browser) submit(action string, changes ...string) {
	b.s.t.Helper()
	values := b.fields(action)
	for i := 0; i < len(changes); i += 2 {
		values.Set(changes[i], changes[i+1])
	}
	b.follow(b.s.send(form(action, values.Encode())))
}

func (b *browser) follow(got answer) {
	b.s.t.Helper()
	require.Equal(b.s.t, 303, got.status, string(got.body))
	b.open(got.header.Get("Location"))
}

func (b *browser) says(words ...string) {
	b.s.t.Helper()
	for _, w := range words {
		require.Contains(b.s.t, squeezed(b.page()), w, b.at)
	}
}

func (b *browser) order() string {
	return regexp.MustCompile(`/orders/(\w+)`).FindStringSubmatch(b.at)[1]
}

// TestBuyByProgram is the README's purchase: an order, a payment, the same
// payment again, and a refund.
func TestBuyByProgram(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	order := s.ordered(slug)
	require.Equal(t, checkout.OrderOpen, order.Status)

	pay := func() answer {
		return s.send(post("/orders/"+order.ID+"/payments", withVisa, key(`"`+order.PaymentKey+`"`)))
	}
	first := pay()
	require.Equal(t, 201, first.status, string(first.body))
	require.Equal(t, "/orders/"+order.ID, first.header.Get("Location"))
	require.Empty(t, first.header.Get("Idempotent-Replayed"))
	again := pay()
	require.Equal(t, 201, again.status)
	require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	require.Equal(t, string(first.body), string(again.body))
	require.Equal(t, first.header.Get("Location"), again.header.Get("Location"))
	require.Equal(t, 1, s.charges(order.ID))

	now := s.order(order.ID)
	require.Equal(t, checkout.OrderPaid, now.Status)
	require.Len(t, now.Payments, 1)
	require.Equal(t, 200, s.send(get("/courses/"+slug+"/lessons/1")).status)

	// A new key for a course that is owned: no order, and no charge.
	owned := s.send(post("/orders", `{"course":"`+slug+`"}`, key("another"))).problem()
	require.Equal(t, "already_enrolled", owned.Code)
	require.Equal(t, slug, owned.Course)

	// The payment's key is not the refund's.
	refund := "/payments/" + now.Payments[0].ID + "/refunds"
	reused := s.send(post(refund, `{"amount":4900}`, key(order.PaymentKey)))
	require.Equal(t, 422, reused.status)
	require.Contains(t, reused.problem().Detail, "answered with 201")

	given := s.send(post(refund, `{"amount":4900}`, key("give back")))
	require.Equal(t, 201, given.status, string(given.body))
	same := s.send(post(refund, ` { "amount": 4.9e3 } `, key(`"give back"`)))
	require.Equal(t, "true", same.header.Get("Idempotent-Replayed"))
	require.Equal(t, string(given.body), string(same.body))
	require.Equal(t, checkout.OrderRefunded, s.order(order.ID).Status)
	require.Equal(t, 404, s.send(get("/courses/"+slug+"/lessons/1")).status)
}

// TestBuyInABrowser: the same without a script, by pages and forms alone.
func TestBuyInABrowser(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	b := s.browse("/courses/" + slug)
	b.says("$49.00", "Go to checkout")
	b.submit("/orders")
	b.says("Not charged", "Pay $49.00")
	id := b.order()
	payments := "/orders/" + id + "/payments"

	// Declined: the page has the next key, and another card pays.
	old := b.fields(payments)
	b.submit(payments, "payment_method", "pm_card_chargeDeclinedInsufficientFunds")
	b.says("Your bank declined the card. Nothing was charged.", "insufficient funds")
	require.NotEqual(t, old.Get("idempotency_key"), b.fields(payments).Get("idempotency_key"))

	// The stale page, with the old key and another card: refused, with the way on.
	stale := s.send(form(payments, old.Encode()))
	require.Equal(t, 422, stale.status)
	require.Contains(t, stale.page(), "This page is out of date.")
	require.Contains(t, stale.page(), `href="/orders/`+id+`"`)

	last := b.fields(payments)
	last.Set("payment_method", "pm_card_visa")
	b.submit(payments, "payment_method", "pm_card_visa")
	b.says("Charged once", "The course is yours.", "Visa ending 4242")
	receipt := b.at
	b.follow(s.send(form(payments, last.Encode())))
	b.says("This was a replay of your first submission.")
	require.Equal(t, "/orders/"+id+"?replayed=1", b.at)
	require.Equal(t, 1, s.charges(id))

	b.open("/courses/" + slug + "/lessons/1")
	b.open("/orders")
	b.says("Charged once", "Start lesson 1")

	// The money back, and the same page sent once more.
	b.open(receipt)
	refund := regexp.MustCompile(`action="(/payments/[^"]+)"`).FindStringSubmatch(b.page())[1]
	again := b.fields(refund)
	b.submit(refund)
	b.says("Refunded, $49.00")
	b.follow(s.send(form(refund, again.Encode())))
	b.says("Refunded, $49.00", "replay")
	require.Equal(t, 1, s.rows("refunds"))

	b.open("/courses/" + slug)
	b.submit("/orders")
	b.says("Not charged", "Pay $49.00")
	require.NotEqual(t, id, b.order())
}

// TestAFreeCourse needs no card.
func TestAFreeCourse(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	b := s.browse("/courses/why-select-cannot-answer")
	course := b.fields("/orders")
	b.submit("/orders")
	b.says("The course is yours.", "It is free")
	id := b.order()
	b.open("/courses/why-select-cannot-answer/lessons/1")
	// The same page once more is a replay; an older page, with its own key, leads
	// to the lesson.
	got := s.send(form("/orders", course.Encode()))
	require.Equal(t, "/orders/"+id+"?replayed=1", got.header.Get("Location"))
	course.Set("idempotency_key", "another")
	got = s.send(form("/orders", course.Encode()))
	require.Equal(t, "/courses/why-select-cannot-answer/lessons/1", got.header.Get("Location"))
}

// TestEightAtOnce: eight copies of one request, as a program and as forms of
// one page. One charge, and the same bytes for all.
func TestEightAtOnce(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	order := s.ordered(slug)
	path := "/orders/" + order.ID + "/payments"
	requests := map[string]func() *http.Request{
		"program": func() *http.Request { return post(path, withVisa, key(order.PaymentKey)) },
		"form": func() *http.Request {
			return form(path, url.Values{"payment_method": {"pm_card_visa"}, "idempotency_key": {order.PaymentKey}}.Encode())
		},
	}
	type result struct {
		how    string
		answer answer
	}
	results := make(chan result, 8)
	var start, done sync.WaitGroup
	start.Add(1)
	for range 4 {
		for how, request := range requests {
			done.Go(func() {
				r := request()
				r.AddCookie(s.cookie)
				w := httptest.NewRecorder()
				start.Wait()
				s.server.ServeHTTP(w, r)
				results <- result{how, answer{t: t, status: w.Code, header: w.Header(), body: w.Body.Bytes()}}
			})
		}
	}
	start.Done()
	done.Wait()
	close(results)

	fresh, body := 0, ""
	for r := range results {
		if r.answer.header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
		if r.how == "form" {
			require.Equal(t, 303, r.answer.status)
			require.Equal(t, "/orders/"+order.ID, strings.TrimSuffix(r.answer.header.Get("Location"), "?replayed=1"))
			continue
		}
		require.Equal(t, 201, r.answer.status, string(r.answer.body))
		if body != "" {
			require.Equal(t, body, string(r.answer.body))
		}
		body = string(r.answer.body)
	}
	require.Equal(t, 1, fresh, "one did the work, seven replayed")
	require.Equal(t, 1, s.charges(order.ID))
	s.browse("/orders/" + order.ID).says("Charged once")
}

// TestTwoKeysForOneOrder: two tabs, each with a key of its own.
func TestTwoKeysForOneOrder(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	order := s.ordered(slug)
	path := "/orders/" + order.ID + "/payments"
	require.Equal(t, 201, s.send(post(path, withVisa, key("one"))).status)

	got := s.send(post(path, withVisa, key("two")))
	require.Equal(t, 409, got.status)
	require.Equal(t, "order_already_paid", got.problem().Code)
	require.False(t, got.problem().SafeNewKey)

	b := s.browse("/orders/" + order.ID)
	b.follow(s.send(form(path, "payment_method=pm_card_visa&idempotency_key=three")))
	b.says("You have already paid for this.")
	require.Equal(t, 1, s.charges(order.ID))
}

// TestTheReplyIsLost: the outcome is unknown, and the same key finds it out.
func TestTheReplyIsLost(t *testing.T) {
	t.Parallel()

	t.Run("ByProgram", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		pay := func() answer {
			return s.send(post("/orders/"+order.ID+"/payments", `{"payment_method":"pm_sim_reply_lost"}`, key(order.PaymentKey)))
		}
		got := pay()
		require.Equal(t, 503, got.status)
		p := got.problem()
		require.Equal(t, "outcome_unknown", p.Code)
		require.False(t, p.SafeNewKey)
		require.Equal(t, order.ID, p.Order)
		require.Equal(t, checkout.PaymentPending, p.Payment.Status)
		require.Equal(t, "2", got.header.Get("Retry-After"))
		require.Empty(t, p.PaymentKey, "no other key is safe")

		s.lapse()
		require.Equal(t, 201, pay().status)
		require.Equal(t, 1, s.charges(order.ID))
	})

	t.Run("InABrowser", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		path := "/orders/" + order.ID + "/payments"
		b := s.browse("/orders/" + order.ID)
		b.submit(path, "payment_method", "pm_sim_reply_lost")
		b.says("We are checking. Do not pay again.", "Not known yet")
		require.NotContains(t, b.page(), payButton)

		s.lapse()
		b.submit(path) // the form that sends this same payment again
		b.says("Charged once")
		require.Equal(t, 1, s.charges(order.ID))
	})
}

// TestStripeIsBusy: nothing was charged, and both the old key and the next one
// may be used.
func TestStripeIsBusy(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	order := s.ordered(slug)
	path := "/orders/" + order.ID + "/payments"
	got := s.send(post(path, `{"payment_method":"pm_sim_rate_limited"}`, key(order.PaymentKey)))
	require.Equal(t, 503, got.status)
	p := got.problem()
	require.Equal(t, "provider_busy", p.Code)
	require.True(t, p.SafeNewKey)
	require.NotEmpty(t, got.header.Get("Retry-After"))
	require.NotEqual(t, order.PaymentKey, p.PaymentKey)

	b := s.browse("/orders/" + order.ID)
	b.says("Stripe is busy. Nothing was charged.")
	require.Equal(t, p.PaymentKey, b.fields(path).Get("idempotency_key"))
	b.submit(path, "payment_method", "pm_card_visa")
	b.says("Charged once")
	require.Equal(t, 1, s.charges(order.ID))
}

// TestFormAndJSONShareOneLedger: what a program has done, a form replays.
func TestFormAndJSONShareOneLedger(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	order := s.ordered(slug)
	got := s.send(form("/orders", url.Values{"course": {slug}, "idempotency_key": {"order " + slug}, "csrf": {"x"}}.Encode()))
	require.Equal(t, "/orders/"+order.ID+"?replayed=1", got.header.Get("Location"))
	require.Equal(t, "true", got.header.Get("Idempotent-Replayed"))

	another := s.send(form("/orders", url.Values{"course": {"stripe-in-production"}, "idempotency_key": {"order " + slug}}.Encode()))
	require.Equal(t, 422, another.status)
	require.Equal(t, 1, s.rows("orders"))
}

// TestAnotherCustomer sees nothing, and cannot block anybody.
func TestAnotherCustomer(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	order := s.ordered(slug)
	path := "/orders/" + order.ID + "/payments"
	first := s.cookie
	s.cookie = s.newCustomer()
	require.Equal(t, 404, s.send(get("/orders/"+order.ID)).status)
	require.Equal(t, 404, s.send(post(path, withVisa, key(order.PaymentKey))).status)
	require.Equal(t, 201, s.send(post("/orders", `{"course":"`+slug+`"}`, key("order "+slug))).status, "the key is this customer's own")
	require.Equal(t, 0, s.rows("payments"))

	s.cookie = first
	require.Equal(t, 201, s.send(post(path, withVisa, key(order.PaymentKey))).status)
}

// TestBadInputStoresNothing: every bad input, before the real checkout. No row,
// and no call to Stripe.
func TestBadInputStoresNothing(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	stranger := s.newCustomer()
	order := s.ordered(slug)
	pay := "/orders/" + order.ID + "/payments"
	inputs := append(badInputs(),
		badInput{"an unknown course", post("/orders", `{"course":"nope"}`, key("k")), 400, "invalid_request", "course"},
		badInput{"a course that cannot be", post("/orders", `{"course":"a/../b"}`, key("k")), 400, "invalid_request", "course"},
		badInput{"another account's order", post(pay, withVisa, key("k"), header("Cookie", stranger.String())), 404, "not_found", ""},
		badInput{"an order that is not there", post(payments, withVisa, key("k")), 404, "not_found", ""},
		badInput{"a payment that is not there", post(refunds, `{"amount":4900}`, key("k")), 404, "not_found", ""},
		badInput{"a method off the list", post(pay, `{"payment_method":"pm_card_amex"}`, key("k")), 400, "invalid_request", "payment_method"},
		badInput{"a token that the shop does not take", post(pay, `{"confirmation_token":"ctoken_1"}`, key("k")), 400, "invalid_request", "confirmation_token"},
		badInput{"an amount in the body", post(pay, `{"payment_method":"pm_card_visa","amount":1}`, key("k")), 400, "invalid_request", "amount"},
		badInput{"a post from another site", post(pay, withVisa, header("Sec-Fetch-Site", "cross-site")), 403, "cross_site", ""},
		badInput{"a post without a session", post(pay, withVisa, header("Cookie", "other=1")), 401, "no_session", ""},
	)
	count := func() [4]int {
		return [4]int{s.rows("idempotency_keys"), s.rows("orders"), s.rows("payments"), s.rows("refunds")}
	}
	before := count()
	for _, row := range inputs {
		row.when.Header.Set("Accept", "application/json")
		got := s.send(row.when)
		p := got.problem()
		require.Equal(t, row.expect, got.status, row.given)
		require.Equal(t, row.code, p.Code, row.given)
		require.Equal(t, row.field, p.Field, row.given)
		require.Equal(t, before, count(), row.given)
	}
	require.Empty(t, s.stripe.Counts().Requests)
}
