package web_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
	"payonce/idempotency"
	"payonce/web"
)

const (
	publicURL = "http://shop.test"
	someKey   = "01JDZ8M4T6QK9V3X7C2N5R0HBE"
	someOrder = "ord_aaaaaaaaaaaaaaaaaaaaaaaa"
	somePay   = "pay_aaaaaaaaaaaaaaaaaaaaaaaa"
	slug      = "idempotency-end-to-end"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// fake is a Service whose answers a test chooses, and which remembers what it
// was asked.
type fake struct {
	mu       sync.Mutex
	writes   []any // OrderRequest, PaymentRequest, RefundRequest
	offers   []checkout.Offer
	orders   map[string]checkout.Order
	methods  []checkout.Method
	answer   func() (idempotency.Response, error)
	readErr  error
	disputes []checkout.Dispute
	// disputeErr fails the reading of disputes alone.
	disputeErr error
}

func (f *fake) Catalogue(context.Context, string) ([]checkout.Offer, error) {
	return f.offers, f.readErr
}

func (f *fake) Offer(_ context.Context, _, slug string) (checkout.Offer, error) {
	for _, o := range f.offers {
		if o.Course.Slug == slug {
			return o, f.readErr
		}
	}
	return checkout.Offer{}, checkout.ErrNotFound
}

func (f *fake) Order(_ context.Context, _, id string) (checkout.Order, error) {
	if f.readErr != nil {
		return checkout.Order{}, f.readErr
	}
	o, ok := f.orders[id]
	if !ok {
		return checkout.Order{}, checkout.ErrNotFound
	}
	return o, nil
}

func (f *fake) Orders(context.Context, string) ([]checkout.Order, error) {
	var list []checkout.Order
	for _, o := range f.orders {
		o.Payments, o.Refunds = nil, nil // as the contract has it
		list = append(list, o)
	}
	return list, f.readErr
}

func (f *fake) OrdersOf(_ context.Context, accounts ...string) ([]checkout.Order, error) {
	var list []checkout.Order
	for _, o := range f.orders {
		list = append(list, o)
	}
	return list, f.readErr
}

func (f *fake) OrderOfPayment(_ context.Context, _, payment string) (checkout.Order, error) {
	for _, o := range f.orders {
		for _, p := range o.Payments {
			if p.ID == payment {
				return o, f.readErr
			}
		}
	}
	return checkout.Order{}, checkout.ErrNotFound
}

func (f *fake) Disputes(context.Context, string, string) ([]checkout.Dispute, error) {
	return f.disputes, cmp.Or(f.disputeErr, f.readErr)
}

func (f *fake) Methods() []checkout.Method { return f.methods }

func (f *fake) write(r any) (idempotency.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes = append(f.writes, r)
	if f.answer != nil {
		return f.answer()
	}
	switch r.(type) {
	case checkout.OrderRequest:
		return placed(), nil
	case checkout.PaymentRequest:
		return paid(), nil
	}
	return refunded(), nil
}

func (f *fake) PlaceOrder(_ context.Context, r checkout.OrderRequest) (idempotency.Response, error) {
	return f.write(r)
}

func (f *fake) Pay(_ context.Context, r checkout.PaymentRequest) (idempotency.Response, error) {
	return f.write(r)
}

func (f *fake) Cancel(_ context.Context, r checkout.CancelRequest) (checkout.CancelView, error) {
	_, err := f.write(r)
	return checkout.CancelView{PaymentView: checkout.PaymentView{ID: r.Payment, Order: "ord_7iknwfxycmq4jhpyt4lhqcle", Status: checkout.PaymentCanceled, Amount: 4900, Currency: "usd"}}, err
}

func (f *fake) Ask(_ context.Context, _, order string) error {
	_, err := f.Order(context.Background(), "", order)
	return err
}

func (f *fake) Returned(_ context.Context, _, token string) (checkout.ReturnState, error) {
	if token != "right" {
		return "", checkout.ErrNotFound
	}
	return checkout.ReturnPaid, nil
}

func (f *fake) HandleEvent(_ context.Context, e checkout.Event) (checkout.EventResult, error) {
	_, err := f.write(e)
	return checkout.EventApplied, err
}

func (f *fake) Refund(_ context.Context, r checkout.RefundRequest) (idempotency.Response, error) {
	return f.write(r)
}

// shop is the web in front of a Service, and one customer.
type shop struct {
	t      *testing.T
	fake   *fake
	server *web.Server
	cookie *http.Cookie
	log    *bytes.Buffer
}

var figures = web.Policy{
	Wait: time.Second, Lease: time.Minute, ProviderTimeout: 15 * time.Second, ResendWindow: 15 * time.Minute,
	Retention: 72 * time.Hour, OrderExpiry: 20 * time.Hour, RefundWindow: 336 * time.Hour,
	ActionTimeout: 15 * time.Minute, EventRetention: 1080 * time.Hour, CompleterInterval: 5 * time.Second,
}

func config(service web.Service) web.Config {
	return web.Config{
		Service: service, Ledger: noKeys{}, SessionSecret: secret, PublicURL: publicURL, Stripe: web.StripeLocal, Demo: true, Policy: figures,
		Facts:   []string{"PostgreSQL 17.6"},
		Webhook: verify, Completes: true,
		Charges: func(context.Context, string) (int, error) { return 1, nil },
		Lab:     &handLab{},
		ClientSecret: func(_ context.Context, intent string) (string, error) {
			return intent + "_secret_1", nil
		},
	}
}

// webhookSecret signs the deliveries of these tests.
const webhookSecret = "whsec_0123456789abcdef0123456789abcdef"

func verify(body []byte, signature string) (checkout.Event, error) {
	return stripepay.Verify(body, signature, []string{webhookSecret}, time.Now())
}

// open starts a shop with a customer who has been on its front page.
func open(t *testing.T, settings ...func(*web.Config)) *shop {
	t.Helper()
	f := &fake{
		orders: map[string]checkout.Order{},
		methods: []checkout.Method{
			{ID: "pm_card_visa", Name: "Visa ending 4242", Note: "Approved"},
			{ID: "pm_card_chargeDeclined", Name: "Visa ending 0002", Note: "Declined"},
			{ID: "pm_sim_reply_lost", Name: "Reply lost", Note: "Charges, then drops the line", Fault: true},
		},
		offers: []checkout.Offer{
			{Course: checkout.Course{Slug: "why-select-cannot-answer", Title: "Why a SELECT cannot answer", Price: checkout.Money{Currency: "usd"}}},
			{Course: checkout.Course{Slug: slug, Title: "Idempotency, end to end", Price: checkout.Money{Amount: 4900, Currency: "usd"}}},
		},
	}
	s := &shop{t: t, fake: f, log: &bytes.Buffer{}}
	c := config(f)
	c.Log = slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, set := range settings {
		set(&c)
	}
	var err error
	s.server, err = web.New(c)
	require.NoError(t, err)
	s.cookie = s.newCustomer()
	return s
}

// newCustomer is a browser without a cookie that opens the front page.
func (s *shop) newCustomer() *http.Cookie {
	s.t.Helper()
	was := s.cookie
	s.cookie = nil
	defer func() { s.cookie = was }()
	for _, c := range s.send(get("/")).cookies {
		if strings.HasSuffix(c.Name, "payonce") {
			return c
		}
	}
	return nil // the shop has a login of its own
}

// answer is what came back.
type answer struct {
	t       *testing.T
	status  int
	header  http.Header
	body    []byte
	cookies []*http.Cookie
}

func (a answer) decode(v any) {
	a.t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	require.NoError(a.t, d.Decode(v), string(a.body))
}

// problem demands an error in its media type.
func (a answer) problem() (p checkout.Problem) {
	a.t.Helper()
	require.Equal(a.t, checkout.ProblemType, a.header.Get("Content-Type"), string(a.body))
	a.decode(&p)
	require.Equal(a.t, a.status, p.Status)
	return p
}

// page demands HTML.
func (a answer) page() string {
	a.t.Helper()
	require.Equal(a.t, "text/html; charset=UTF-8", a.header.Get("Content-Type"), string(a.body))
	return templatePattern.ReplaceAllString(string(a.body), "")
}

// templatePattern matches what is not on the page until a script puts it there.
var templatePattern = regexp.MustCompile(`(?s)<template\b.*?</template>`)

// send sends a request as the customer, and holds the answer against the
// description of the API.
func (s *shop) send(r *http.Request) answer {
	s.t.Helper()
	if s.cookie != nil && r.Header.Get("Cookie") == "" {
		r.AddCookie(s.cookie)
	}
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	result := w.Result()
	body, err := io.ReadAll(result.Body)
	require.NoError(s.t, err)
	a := answer{s.t, result.StatusCode, result.Header, body, result.Cookies()}
	validate(s.t, r, a)
	return a
}

// with changes a request.
type with func(*http.Request)

func header(name string, values ...string) with {
	return func(r *http.Request) {
		r.Header.Del(name)
		for _, v := range values {
			r.Header.Add(name, v)
		}
	}
}

func key(values ...string) with { return header("Idempotency-Key", values...) }

// fromBrowser asks as a browser does that submits a form.
func fromBrowser(r *http.Request) {
	r.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
}

func get(path string, changes ...with) *http.Request {
	return request(http.MethodGet, path, "", changes)
}

func request(method, path, body string, changes []with) *http.Request {
	r := httptest.NewRequest(method, publicURL+path, strings.NewReader(body))
	r.Header.Set("Accept", "*/*")
	for _, change := range changes {
		change(r)
	}
	return r
}

// post sends JSON under someKey, unless it is changed.
func post(path, body string, changes ...with) *http.Request {
	return request(http.MethodPost, path, body, append([]with{
		header("Content-Type", "application/json"), key(`"` + someKey + `"`),
	}, changes...))
}

// form sends a form as a browser does, with the key among its fields.
func form(path, body string, changes ...with) *http.Request {
	return request(http.MethodPost, path, body, append([]with{
		header("Content-Type", "application/x-www-form-urlencoded"), fromBrowser,
	}, changes...))
}

// placed is the stored answer of a new order.
func placed() idempotency.Response {
	return stored(http.StatusCreated, checkout.OrderView{
		ID: someOrder, Course: slug, Amount: 4900, Currency: "usd", Status: checkout.OrderOpen, PaymentKey: "key_1",
	})
}

// refunded is the stored answer of a refund that succeeded.
func refunded() idempotency.Response {
	return stored(http.StatusCreated, checkout.RefundView{
		ID: "ref_1", Payment: somePay, Order: someOrder, Status: checkout.RefundSucceeded, Amount: 4900, Currency: "usd", Refund: "re_1",
	})
}

// paid is the stored answer of a payment that succeeded.
func paid() idempotency.Response {
	return stored(http.StatusCreated, checkout.PaymentView{
		ID: somePay, Order: someOrder, Status: checkout.PaymentSucceeded, Amount: 4900, Currency: "usd", PaymentIntent: "pi_1", Charge: "ch_1",
	})
}

func stored(status int, v any) idempotency.Response {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return idempotency.Response{Status: status, Type: "application/json", Body: body}
}

// fails lets the Service fail.
func (f *fake) fails(err error) {
	f.answer = func() (idempotency.Response, error) { return idempotency.Response{}, err }
}

// answers lets the Service answer.
func (f *fake) answers(a idempotency.Response) {
	f.answer = func() (idempotency.Response, error) { return a, nil }
}
