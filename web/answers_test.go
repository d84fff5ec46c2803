package web_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/idempotency"
)

// declined is the stored answer of a card that was refused.
func declined() idempotency.Response {
	p := checkout.NewProblem("card_declined")
	p.Order, p.DeclineCode, p.PaymentKey = someOrder, "insufficient_funds", "key_2"
	return p.Response()
}

func notRefundable() idempotency.Response {
	p := checkout.NewProblem("refund_not_possible")
	p.Order = someOrder
	return p.Response()
}

func accepted() idempotency.Response {
	return stored(http.StatusAccepted, checkout.PaymentView{
		ID: somePay, Order: someOrder, Status: checkout.PaymentRequiresAction, Amount: 4900, Currency: "usd", PaymentIntent: "pi_1",
		NextAction: &checkout.NextAction{Type: "redirect_to_url", URL: "/orders/" + someOrder},
	})
}

func existing() idempotency.Response {
	return stored(http.StatusOK, checkout.OrderView{
		ID: someOrder, Course: slug, Amount: 4900, Currency: "usd", Status: checkout.OrderOpen, PaymentKey: "key_1",
	})
}

// TestStoredAnswers: a program gets the stored bytes, a browser is led to the
// order; the first time and on a replay alike.
func TestStoredAnswers(t *testing.T) {
	t.Parallel()
	const (
		order, ordered = `{"course":"a"}`, "course=a&idempotency_key=k"
		pay, payed     = withVisa, "payment_method=a&idempotency_key=k"
		give, given    = `{"amount":4900}`, "amount=4900&idempotency_key=k"
		created        = "/orders/" + someOrder
	)
	for name, row := range map[string]struct {
		stored           idempotency.Response
		path, json, form string
		location         string
		page             string // what the order's page is told beside
	}{
		"a new order":       {placed(), "/orders", order, ordered, created, ""},
		"an open order":     {existing(), "/orders", order, ordered, "", ""},
		"a payment":         {paid(), payments, pay, payed, created, ""},
		"a bank that asks":  {accepted(), payments, pay, payed, "", ""},
		"a declined card":   {declined(), payments, pay, payed, "", "?code=card_declined"},
		"a refund":          {refunded(), refunds, give, given, created, ""},
		"a refund too much": {notRefundable(), refunds, give, given, "", "?code=refund_not_possible"},
	} {
		for how, replayed := range map[string]bool{"first": false, "replayed": true} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				s := open(t)
				answer := row.stored
				answer.Replayed = replayed
				s.fake.answers(answer)
				mark, target := "", "/orders/"+someOrder+row.page
				switch {
				case replayed && row.page != "":
					mark, target = "true", target+"&replayed=1"
				case replayed:
					mark, target = "true", target+"?replayed=1"
				}

				got := s.send(post(row.path, row.json))
				require.Equal(t, answer.Status, got.status)
				require.Equal(t, answer.Type, got.header.Get("Content-Type"))
				require.Equal(t, string(answer.Body), string(got.body), "the bytes as they are stored")
				require.Equal(t, mark, got.header.Get("Idempotent-Replayed"))
				require.Equal(t, row.location, got.header.Get("Location"))
				require.Equal(t, "no-store", got.header.Get("Cache-Control"))

				got = s.send(form(row.path, row.form))
				require.Equal(t, http.StatusSeeOther, got.status)
				require.Equal(t, target, got.header.Get("Location"))
				require.Equal(t, mark, got.header.Get("Idempotent-Replayed"))
			})
		}
	}
}

// TestStoredBytesAreSentAsTheyAre: whatever was stored is sent, also what no
// encoder of today would write.
func TestStoredBytesAreSentAsTheyAre(t *testing.T) {
	t.Parallel()
	s := open(t)
	odd := paid()
	odd.Body = []byte("{\"status\":\"succeeded\",  \"order\":\"" + someOrder + "\",\"id\":\"p\\u0061y_1\",\"amount\":49e2,\"currency\":\"usd\"}\n")
	s.fake.answers(odd)
	require.Equal(t, string(odd.Body), string(s.send(post(payments, withVisa)).body))
}

// TestErrorsForBrowsers: what says something about the order leads to the order,
// the rest is a page with the error's own status.
func TestErrorsForBrowsers(t *testing.T) {
	t.Parallel()
	pay := "payment_method=pm_card_visa&idempotency_key=k"
	about := func(err error) error {
		return &checkout.ConflictError{Err: err, Order: someOrder, Course: slug}
	}
	for name, row := range map[string]struct {
		err    error
		when   *http.Request
		status int
		leads  string // where to, or what the page links to
	}{
		"running":             {about(idempotency.ErrInProgress), form(payments, pay), 303, "/orders/" + someOrder + "?code=request_in_progress"},
		"running, bare":       {idempotency.ErrInProgress, form(payments, pay), 303, "/orders/" + someOrder + "?code=request_in_progress"},
		"contended":           {idempotency.ErrClaimContended, form(payments, pay), 303, "/orders/" + someOrder + "?code=claim_contended"},
		"another payment":     {about(checkout.ErrPaymentInProgress), form(payments, pay), 303, "/orders/" + someOrder + "?code=payment_in_progress"},
		"paid already":        {about(checkout.ErrOrderAlreadyPaid), form(payments, pay), 303, "/orders/" + someOrder + "?code=order_already_paid"},
		"closed":              {about(checkout.ErrOrderClosed), form(payments, pay), 303, "/orders/" + someOrder + "?code=order_closed"},
		"unknown":             {about(checkout.ErrOutcomeUnknown), form(payments, pay), 303, "/orders/" + someOrder + "?code=outcome_unknown"},
		"busy":                {about(checkout.ErrProviderBusy), form(payments, pay), 303, "/orders/" + someOrder + "?code=provider_busy"},
		"refused":             {about(checkout.ErrProviderRefused), form(payments, pay), 303, "/orders/" + someOrder + "?code=provider_refused"},
		"refund unknown":      {about(checkout.ErrOutcomeUnknown), form(refunds, "amount=4900&idempotency_key=k"), 303, "/orders/" + someOrder + "?code=outcome_unknown"},
		"owned":               {about(checkout.ErrAlreadyEnrolled), form("/orders", "course="+slug+"&idempotency_key=k"), 303, "/courses/" + slug + "/lessons/1"},
		"refund running":      {idempotency.ErrInProgress, form(refunds, "amount=4900&idempotency_key=k"), 409, "/orders"},
		"ordering, contended": {idempotency.ErrClaimContended, form("/orders", "course="+slug+"&idempotency_key=k"), 409, "/"},
		"overloaded":          {idempotency.ErrOverloaded, form(payments, pay), 503, "/orders/" + someOrder},
		"reused":              {about(&idempotency.ReusedError{Status: idempotency.Completed, ResponseStatus: 201}), form(payments, pay), 422, "/orders/" + someOrder},
		"another customer's":  {checkout.ErrNotFound, form(payments, pay), 404, "/orders"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.fake.fails(row.err)
			got := s.send(row.when)
			require.Equal(t, row.status, got.status)
			if row.status == http.StatusSeeOther {
				require.Equal(t, row.leads, got.header.Get("Location"))
				require.Empty(t, got.header.Get("Retry-After"), "a browser would wait before it follows")
				return
			}
			require.Contains(t, got.page(), `href="`+row.leads+`"`)
			require.Contains(t, got.page(), got.header.Get("X-Request-Id"))
		})
	}
}

// TestNegotiation: who names text/html gets pages, everybody else JSON.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	s := open(t)
	for accept, html := range map[string]bool{
		"":                                  false,
		"*/*":                               false,
		"application/json":                  false,
		"text/*":                            false,
		"application/json, text/plain, */*": false,
		"text/html;q=0":                     false,
		"application/json, text/html;q=0.5": false,
		"text/htmlx":                        false,
		"text/html":                         true,
		"TEXT/HTML; charset=utf-8":          true,
		"text/html, */*; q=0.01":            true,
		"text/html;q=0.9, application/json;q=0.8":                         true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
	} {
		for _, r := range []*http.Request{get("/"), get("/nothing"), get("/docs/idempotency"), request("PUT", "/orders", "", nil)} {
			r.Header.Set("Accept", accept)
			if accept == "" {
				r.Header.Del("Accept")
			}
			got := s.send(r)
			require.Equal(t, html, got.header.Get("Content-Type") == "text/html; charset=UTF-8", "%q %s", accept, r.URL)
			require.Equal(t, "Accept", got.header.Get("Vary"))
		}
	}
}

// TestHeadIsGetWithoutABody holds what HTTP asks of a server for every read.
func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, path := range []string{"/", "/courses/" + slug, "/orders", "/docs/idempotency", "/openapi.json", "/healthz", "/readyz"} {
		head := s.send(request(http.MethodHead, path, "", nil))
		got := s.send(get(path))
		require.Equal(t, got.status, head.status, path)
		require.Equal(t, got.header.Get("Content-Type"), head.header.Get("Content-Type"), path)
	}
}
