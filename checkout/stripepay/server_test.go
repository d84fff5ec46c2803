package stripepay_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
)

const secret = "pi_1_secret_Hush"

// seen is one request as it arrived.
type seen struct {
	method, path, key string
	form              url.Values
}

// server answers as a test wants it to, and remembers what it was asked.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []seen
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.remember(r)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Request-Id", "req_1")
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) remember(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		panic(err)
	}
	for name, values := range r.URL.Query() {
		form[name] = values
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, seen{r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), form})
}

func (s *server) seen() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.requests...)
}

func provider(t *testing.T, base string) *stripepay.Stripe {
	t.Helper()
	p, err := stripepay.New(stripepay.Config{SecretKey: "sk_test_1", Base: base})
	require.NoError(t, err)
	return p
}

// says answers with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// replays answers as Stripe does under a key that it knows.
func replays(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Idempotent-Replayed", "true")
		w.Header().Set("Original-Request", "req_0")
		next(w, r)
	}
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	conn.Close()
}

// raw writes bytes where an HTTP answer should be.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, text)
		conn.Close()
	}
}

// pi is a PaymentIntent as Stripe writes one, with more members.
func pi(status, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"id":"pi_1","object":"payment_intent","amount":4900,"currency":"usd","client_secret":%q,"livemode":false,"metadata":{"account":"acc_1","order":"ord_1"},"status":%q%s}`, secret, status, more)
}

// failure is Stripe's error envelope. It always carries the intent, client
// secret included, as most errors of a confirm do.
func failure(kind, code, intent string) string {
	if code != "" {
		code = fmt.Sprintf(`"code":%q,`, code)
	}
	return fmt.Sprintf(`{"error":{%s"message":"About %s.","payment_intent":%s,"type":%q}}`, code, secret, intent, kind)
}

func confirm(ctx context.Context, p checkout.Provider) (checkout.Intent, error) {
	return p.ConfirmIntent(ctx, checkout.ConfirmParams{
		DownstreamKey: "pay:pay_1:1", Intent: "pi_1", PaymentMethod: "pm_card_visa", ReturnURL: "https://shop.test/orders/ord_1/return",
	})
}

// calls are all methods of the Provider.
var calls = map[string]func(context.Context, checkout.Provider) error{
	"CreateIntent": func(ctx context.Context, p checkout.Provider) error {
		_, err := p.CreateIntent(ctx, checkout.IntentParams{
			DownstreamKey: "pi:ord_1:1", Money: checkout.Money{Amount: 4900, Currency: "usd"},
			Description: "Idempotency, end to end", Account: "acc_1", Order: "ord_1",
		})
		return err
	},
	"ConfirmIntent": func(ctx context.Context, p checkout.Provider) error {
		_, err := confirm(ctx, p)
		return err
	},
	"ConfirmIntent, token": func(ctx context.Context, p checkout.Provider) error {
		_, err := p.ConfirmIntent(ctx, checkout.ConfirmParams{
			DownstreamKey: "pay:pay_1:1", Intent: "pi_1", ConfirmationToken: "ctoken_1", ReturnURL: "https://shop.test/orders/ord_1/return",
		})
		return err
	},
	"Intent": func(ctx context.Context, p checkout.Provider) error {
		_, err := p.Intent(ctx, "pi_1")
		return err
	},
	"CancelIntent": func(ctx context.Context, p checkout.Provider) error {
		_, err := p.CancelIntent(ctx, "pi_1", "cancel:ord_1:1:owner")
		return err
	},
	"CreateRefund": func(ctx context.Context, p checkout.Provider) error {
		_, err := p.CreateRefund(ctx, checkout.RefundParams{
			DownstreamKey: "refund:ref_1", Intent: "pi_1", Amount: 900, Refund: "ref_1", Payment: "pay_1", Order: "ord_1",
		})
		return err
	},
	"Refunds": func(ctx context.Context, p checkout.Provider) error {
		_, err := p.Refunds(ctx, "ch_1")
		return err
	},
	"Dispute": func(ctx context.Context, p checkout.Provider) error {
		_, err := p.Dispute(ctx, "du_1")
		return err
	},
}

// faulted gives the verdict within err, and holds that nobody who prints the
// error, or anything wrapped in it, prints a client secret.
func faulted(t *testing.T, err error) *checkout.ProviderError {
	t.Helper()
	var verdict *checkout.ProviderError
	require.ErrorAs(t, err, &verdict)
	requireNoSecret(t, err)
	return verdict
}

func requireNoSecret(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
		require.NotContains(t, fmt.Sprintf(verb, err), "_secret_")
	}
	switch wraps := err.(type) {
	case interface{ Unwrap() error }:
		requireNoSecret(t, wraps.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range wraps.Unwrap() {
			requireNoSecret(t, inner)
		}
	}
}

// requireKeyed holds that every mutating request carried a downstream key.
func requireKeyed(t *testing.T, requests []seen) {
	t.Helper()
	for _, r := range requests {
		require.Equal(t, r.method == http.MethodPost, strings.Contains(r.key, ":"), "%s %s has key %q", r.method, r.path, r.key)
	}
}
