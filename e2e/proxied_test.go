package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// balancer stands between customers and two shops, as many do in front of
// shops: of a POST that its shop has not answered in time it gives up the
// connection, and sends a copy to the other shop. (nginx does so with
// proxy_next_upstream and non_idempotent.) When the time is up is for the test
// to say.
type balancer struct {
	shops    []*shop
	tired    chan struct{} // closed by the test: the first shop has had its time
	copied   chan struct{} // closed when the other one has been sent the copy
	answered chan int      // the status of the copy's answer
}

// balance starts a balancer, and gives the customer behind it.
func (c *customer) balance(t *testing.T, shops ...*shop) (*balancer, *customer) {
	b := &balancer{shops: shops, tired: make(chan struct{}), copied: make(chan struct{}), answered: make(chan int, 1)}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	behind := *c
	behind.url = server.URL
	return b, &behind
}

// ServeHTTP implements http.Handler.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var got answer
	if closed(b.tired) { // from now on the other shop has all
		got = pass(r.Context(), r, b.shops[1], body)
	} else {
		got = b.repeat(r, body)
	}
	if got.err != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range got.header {
		w.Header()[name] = values
	}
	w.WriteHeader(got.status)
	_, _ = io.WriteString(w, got.body)
}

// repeat asks the first shop, loses patience, and asks the other one.
func (b *balancer) repeat(r *http.Request, body []byte) answer {
	ctx, giveUp := context.WithCancel(r.Context())
	defer giveUp()
	first := later(func() answer { return pass(ctx, r, b.shops[0], body) })
	select {
	case a := <-first:
		return a
	case <-b.tired:
	}
	giveUp()
	<-first
	a := pass(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { close(b.copied) },
	}), r, b.shops[1], body)
	b.answered <- a.status
	return a
}

// pass sends a request on to a shop as it came.
func pass(ctx context.Context, r *http.Request, to *shop, body []byte) answer {
	on, err := http.NewRequestWithContext(ctx, r.Method, to.url+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	on.Header = r.Header.Clone()
	got, err := plainClient.Do(on)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	return answer{err: err, status: got.StatusCode, header: got.Header, body: string(text)}
}

// TestRepeatedByAProxy: a proxy loses patience with a slow POST and repeats it
// at the other shop, of which the customer knows nothing. The copy is answered
// with the first one's outcome.
func TestRepeatedByAProxy(t *testing.T) {
	t.Parallel()
	// The copy waits for the first one's answer, or is told to come back.
	for name, wait := range map[string]string{"AndTheCopyWaits": "WAIT=30s", "AndTheCopyIsToldToComeBack": "WAIT=1ms"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t, wait, "PROVIDER_TIMEOUT=50s", "LEASE=60s", clientsOnly)
			shops := []*shop{d.open(t), d.open(t)}
			c := d.customer(t, shops[0])
			d.stripe.keepToItself(t)

			repeated := func(t *testing.T, stripePath, path, key string, body any) answer {
				t.Helper()
				held := d.stripe.add(t, stripesim.Rule{Method: http.MethodPost, Path: stripePath, Action: stripesim.Hold, At: stripesim.Answer})
				b, behind := c.balance(t, shops...)
				running := later(func() answer { return behind.postUntilKnown(path, key, body) })
				held.reached(t)
				close(b.tired)
				<-b.copied
				if wait == "WAIT=1ms" {
					require.Equal(t, http.StatusConflict, <-b.answered)
				}
				held.release(t)
				return <-running
			}

			o := c.place("idempotency-end-to-end")
			paid := repeated(t, confirmPath, paymentsOf(o), o.PaymentKey, paymentBody("pm_card_visa"))
			p := c.paid(paid)
			require.True(t, paid.replayed(), "the copy charged nothing of its own")
			require.Equal(t, 1, d.stripe.confirms(t, p.PaymentIntent).Received)
			d.stripe.requireOneCharge(t, o)

			key := newKey()
			back := repeated(t, refundPath, refundsOf(p), key, refundBody(o.Amount))
			require.Equal(t, http.StatusCreated, back.status, back.body)
			require.True(t, back.replayed(), "the copy gave nothing back of its own")
			require.Equal(t, o.Amount, d.stripe.requireOneCharge(t, o).AmountRefunded)
			require.Len(t, c.order(o.ID).Refunds, 1)
			require.Equal(t, 2, sql[int](t, d, `SELECT count(*) FROM idempotency_keys WHERE attempt = 1 AND key IN ($1, $2)`, o.PaymentKey, key), "nobody took over")
		})
	}
}
