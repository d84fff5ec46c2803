package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/idempotency/retry"
)

// plainClient opens a connection for every request. On one that is kept,
// net/http itself sends a request with an Idempotency-Key once more when the
// connection turns out to be dead, and a test that counts requests would not
// know.
var plainClient = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true, Proxy: nil},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       patience,
}

// customer is one account: what a program or a browser is to the shop.
type customer struct {
	t   testing.TB
	d   *deployment
	url string // of the shop that is asked
	jar http.CookieJar
}

// customer visits a shop for the first time.
func (d *deployment) customer(t testing.TB, at *shop) *customer {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	c := &customer{t: t, d: d, url: at.url, jar: jar}
	require.Equal(t, http.StatusOK, c.get("/").status)
	return c
}

// at is the same customer at another shop. A browser sends a cookie to every
// port of a host.
func (c *customer) at(other *shop) *customer {
	moved := *c
	moved.url = other.url
	return &moved
}

// answer is what came back, or why nothing did.
type answer struct {
	err    error
	status int
	header http.Header
	body   string
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// retryAfter is how long the answer asks to wait, 0 if it does not.
func (a answer) retryAfter() time.Duration {
	seconds, _ := strconv.Atoi(a.header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second
}

// decoded reads the body as JSON in which every member is known.
func decoded[T any](t testing.TB, a answer) (v T) {
	t.Helper()
	require.NoError(t, a.err)
	d := json.NewDecoder(strings.NewReader(a.body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&v), a.body)
	return v
}

// The shop's JSON, as its published description has it.
type (
	order struct {
		ID         string    `json:"id"`
		Course     string    `json:"course"`
		Amount     int64     `json:"amount"`
		Currency   string    `json:"currency"`
		Status     string    `json:"status"`
		PaymentKey string    `json:"payment_key"`
		Payments   []payment `json:"payments"`
		Refunds    []refund  `json:"refunds"`
	}
	payment struct {
		ID            string `json:"id"`
		Order         string `json:"order"`
		Status        string `json:"status"`
		Amount        int64  `json:"amount"`
		Currency      string `json:"currency"`
		PaymentIntent string `json:"payment_intent"`
		Charge        string `json:"charge"`
		DeclineCode   string `json:"decline_code"`
		NextAction    *struct {
			Type string `json:"type"`
			URL  string `json:"url"`
		} `json:"next_action"`
	}
	refund struct {
		ID       string `json:"id"`
		Payment  string `json:"payment"`
		Order    string `json:"order"`
		Status   string `json:"status"`
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
		Refund   string `json:"refund"`
	}
	problem struct {
		Type        string   `json:"type"`
		Title       string   `json:"title"`
		Status      int      `json:"status"`
		Detail      string   `json:"detail"`
		Code        string   `json:"code"`
		SafeNewKey  bool     `json:"safe_new_key"`
		Field       string   `json:"field"`
		Course      string   `json:"course"`
		Order       string   `json:"order"`
		Payment     *payment `json:"payment"`
		DeclineCode string   `json:"decline_code"`
		PaymentKey  string   `json:"payment_key"`
	}
	course struct {
		Slug     string `json:"slug"`
		Title    string `json:"title"`
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
		Owned    bool   `json:"owned"`
	}
)

// problem requires an error answer of a status and code.
func (a answer) problem(t testing.TB, status int, code string) problem {
	t.Helper()
	require.NoError(t, a.err)
	require.Equal(t, status, a.status, a.body)
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	p := decoded[problem](t, a)
	require.Equal(t, code, p.Code)
	require.Equal(t, status, p.Status)
	require.NotEmpty(t, p.Detail)
	return p
}

// send sends a request as the customer. It may be called by any goroutine.
func (c *customer) send(r *http.Request) answer {
	for _, cookie := range c.jar.Cookies(r.URL) {
		r.AddCookie(cookie)
	}
	got, err := plainClient.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = got.Body.Close() }()
	c.jar.SetCookies(r.URL, got.Cookies())
	body, err := io.ReadAll(got.Body)
	return answer{err: err, status: got.StatusCode, header: got.Header, body: string(body)}
}

func (c *customer) request(method, path string, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), method, c.url+path, body)
	if err != nil {
		panic(err) // a mistake in a test
	}
	return r
}

// get reads something as JSON.
func (c *customer) get(path string) answer {
	r := c.request(http.MethodGet, path, nil)
	r.Header.Set("Accept", "application/json")
	return c.send(r)
}

// post sends JSON under a key, once.
func (c *customer) post(path, key string, body any) answer {
	a := c.send(c.keyed(path, key, body))
	c.d.note(key, a)
	return a
}

func (c *customer) keyed(path, key string, body any) *http.Request {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // a mistake in a test
	}
	r := c.request(http.MethodPost, path, bytes.NewReader(text))
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	return r
}

// postUntilKnown sends a request with the same key until its outcome is known:
// what a program does that uses the client's half, idempotency/retry. It gives
// an answer's error if the outcome is unknown in the end.
func (c *customer) postUntilKnown(path, key string, body any) answer {
	r := c.keyed(path, key, body)
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err) // a mistake in a test
	}
	asCustomer := *plainClient
	asCustomer.Jar = c.jar
	client := retry.Client{HTTP: &asCustomer, For: patience}
	known, err := client.Do(r.Context(), retry.Request{URL: r.URL.String(), Key: key, Header: r.Header, Body: text})
	if err != nil {
		return answer{err: fmt.Errorf("no final answer: %w", err)}
	}
	a := answer{status: known.Status, header: known.Header, body: string(known.Body)}
	c.d.note(key, a)
	return a
}

func orderBody(course string) any   { return map[string]string{"course": course} }
func paymentBody(method string) any { return map[string]string{"payment_method": method} }
func refundBody(amount int64) any   { return map[string]int64{"amount": amount} }

func paymentsOf(o order) string  { return "/orders/" + o.ID + "/payments" }
func refundsOf(p payment) string { return "/payments/" + p.ID + "/refunds" }

// place orders a course.
func (c *customer) place(slug string) order {
	c.t.Helper()
	a := c.post("/orders", newKey(), orderBody(slug))
	require.NoError(c.t, a.err)
	require.Equal(c.t, http.StatusCreated, a.status, a.body)
	return decoded[order](c.t, a)
}

// pay pays an order under a key with a method, and sends it once.
func (c *customer) pay(o order, key, method string) answer {
	return c.post(paymentsOf(o), key, paymentBody(method))
}

// buy orders a course and pays for it.
func (c *customer) buy(slug string) (order, payment) {
	c.t.Helper()
	o := c.place(slug)
	return o, c.paid(c.pay(o, o.PaymentKey, "pm_card_visa"))
}

// paid requires that an answer says that the payment succeeded.
func (c *customer) paid(a answer) payment {
	c.t.Helper()
	require.NoError(c.t, a.err)
	require.Equal(c.t, http.StatusCreated, a.status, a.body)
	p := decoded[payment](c.t, a)
	require.Equal(c.t, "succeeded", p.Status)
	return p
}

// order reads an order.
func (c *customer) order(id string) order {
	c.t.Helper()
	a := c.get("/orders/" + id)
	require.Equal(c.t, http.StatusOK, a.status, a.body)
	return decoded[order](c.t, a)
}

// owns is true if the customer has the course.
func (c *customer) owns(slug string) bool {
	c.t.Helper()
	a := c.get("/courses/" + slug)
	require.Equal(c.t, http.StatusOK, a.status, a.body)
	return decoded[course](c.t, a).Owned
}

// forget loses the customer's cookies.
func (c *customer) forget() {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err)
	}
	c.jar = jar
}

// setCookie gives the customer a cookie of somebody's making.
func (c *customer) setCookie(name, value string) {
	c.t.Helper()
	u, err := url.Parse(c.url)
	require.NoError(c.t, err)
	c.jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

// raw sends a body as it is, with headers given as names and values in turn.
func (c *customer) raw(method, path, body string, headers ...string) answer {
	r := c.request(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return c.send(r)
}
