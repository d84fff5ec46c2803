package checkout_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
	"payonce/checkout/stripesim"
	"payonce/idempotency"
	"payonce/migrations/dbtest"
)

const (
	account = "acc_test"
	course  = "idempotency-end-to-end"
	yenBook = "postgresql-under-concurrency"
	gift    = "why-select-cannot-answer"
	visa    = "pm_card_visa"
)

// methods are what the shops of these tests offer.
var methods = []checkout.Method{
	{ID: visa},
	{ID: "pm_card_mastercard"},
	{ID: "pm_card_chargeDeclined"},
	{ID: "pm_card_chargeDeclinedInsufficientFunds"},
	{ID: "pm_card_visa_chargeDeclinedStolenCard"},
	{ID: "pm_card_authenticationRequired"},
	{ID: "pm_sim_reply_lost"},
	{ID: "pm_sim_never_arrived"},
	{ID: "pm_sim_rate_limited"},
	{ID: "pm_sim_server_error"},
	{ID: "pm_sim_slow"},
	{ID: "pm_sim_always_500"},
	{ID: "pm_card_not_at_stripe"},
	{ID: "pm_sim_processing"},
	{ID: "pm_card_createDispute"},
	{ID: "pm_card_pendingRefund"},
	{ID: "pm_card_refundFail"},
}

// shop is a checkout on a database of its own, with a local Stripe of its own.
type shop struct {
	*checkout.Service
	t      *testing.T
	pool   *pgxpool.Pool
	ledger *idempotency.Ledger
	stripe *stripesim.Server
	base   string
}

type setting func(*checkout.Config, *idempotency.Config)

func open(t *testing.T, settings ...setting) *shop {
	t.Helper()
	return openOn(t, dbtest.New(t, dbtest.MaxConns(8)), settings...)
}

func openOn(t *testing.T, pool *pgxpool.Pool, settings ...setting) *shop {
	t.Helper()
	return openLater(t, pool, 50*time.Millisecond, settings...)
}

// openLater opens a shop whose local Stripe takes its time for what it does by
// itself, such as settling a payment.
func openLater(t *testing.T, pool *pgxpool.Pool, later time.Duration, settings ...setting) *shop {
	t.Helper()
	stripe, err := stripesim.New(stripesim.Config{
		SlowCall: 200 * time.Millisecond, DeliverAfter: time.Millisecond, Later: later,
		Backoff: []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, time.Second},
	})
	require.NoError(t, err)
	server := httptest.NewServer(stripe)
	t.Cleanup(func() { _ = stripe.Close(); server.Close() })
	s := &shop{t: t, pool: pool, stripe: stripe, base: server.URL}
	s.Service, s.ledger = s.instance("one", settings...)
	return s
}

// instance opens one more checkout on the same database and Stripe.
func (s *shop) instance(name string, settings ...setting) (*checkout.Service, *idempotency.Ledger) {
	s.t.Helper()
	lc := idempotency.Config{Pool: s.pool, Instance: name, Wait: 5 * time.Second}
	cc := checkout.Config{
		Pool: s.pool, Methods: methods, PublicURL: "http://shop.test", ProviderTimeout: 10 * time.Second, PartialRefunds: true,
	}
	provider, err := stripepay.New(stripepay.Config{SecretKey: "sk_test_local", Base: s.base})
	require.NoError(s.t, err)
	cc.Provider = provider
	for _, set := range settings {
		set(&cc, &lc)
	}
	ledger, err := idempotency.New(lc)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = ledger.Close(context.Background()) })
	cc.Ledger = ledger
	service, err := checkout.New(cc)
	require.NoError(s.t, err)
	return service, ledger
}

// order places an order and gives it.
func (s *shop) order(slug string) checkout.OrderView {
	s.t.Helper()
	answer, err := s.PlaceOrder(s.t.Context(), checkout.OrderRequest{Account: account, Key: freshKey(), Course: slug})
	require.NoError(s.t, err)
	require.Contains(s.t, []int{200, 201}, answer.Status)
	return decode[checkout.OrderView](s.t, answer)
}

func (s *shop) pay(order string, key string, method string) (idempotency.Response, error) {
	return s.Pay(s.t.Context(), checkout.PaymentRequest{
		Account: account, Key: idempotency.Key(key), Order: order, PaymentMethod: method,
	})
}

// paid pays and demands a 201.
func (s *shop) paid(order, key, method string) checkout.PaymentView {
	s.t.Helper()
	answer, err := s.pay(order, key, method)
	require.NoError(s.t, err)
	require.Equal(s.t, 201, answer.Status, string(answer.Body))
	return decode[checkout.PaymentView](s.t, answer)
}

// now reads the order.
func (s *shop) now(order string) checkout.Order {
	s.t.Helper()
	o, err := s.Order(s.t.Context(), account, order)
	require.NoError(s.t, err)
	return o
}

// lapse makes the lease of every key in progress end now.
func (s *shop) lapse() {
	s.t.Helper()
	_, err := s.pool.Exec(s.t.Context(), `
		UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '1 second' WHERE status = 'in_progress'`)
	require.NoError(s.t, err)
}

// charges counts the order's charges at Stripe, not in our tables.
func (s *shop) charges(order string) int { return s.stripe.Counts().ChargesByOrder[order] }

// confirms counts what Stripe saw of an order's confirms.
func (s *shop) confirms() (received int) {
	for _, c := range s.stripe.Counts().ConfirmsByKey {
		received += c.Received
	}
	return received
}

func (s *shop) count(sql string, args ...any) (n int) {
	s.t.Helper()
	require.NoError(s.t, s.pool.QueryRow(s.t.Context(), "SELECT count(*) FROM "+sql, args...).Scan(&n))
	return n
}

// agree demands what must hold after everything: money, order and page agree.
func (s *shop) agree(order string, charges int) {
	s.t.Helper()
	o := s.now(order)
	require.Equal(s.t, charges, s.charges(order), "charges at Stripe")
	require.Equal(s.t, charges > 0, o.Status == checkout.OrderPaid || o.Status == checkout.OrderRefunded, "paid if and only if charged: %s", o.Status)
	succeeded := 0
	for _, p := range o.Payments {
		if p.Status == checkout.PaymentSucceeded {
			succeeded++
		}
	}
	require.Equal(s.t, charges, succeeded, "succeeded payments")
	if o.Status == checkout.OrderPaid {
		require.Equal(s.t, 1, s.count("enrolments WHERE order_id = $1 AND status = 'active'", order))
	}
}

func freshKey() idempotency.Key {
	return idempotency.Key("test_" + strings.ReplaceAll(time.Now().Format("150405.000000000"), ".", "") + randomSuffix())
}

func decode[T any](t testing.TB, answer idempotency.Response) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(answer.Body, &v), string(answer.Body))
	return v
}

// conflict demands a refusal that is stored nowhere.
func conflict(t *testing.T, err error, sentinel error) *checkout.ConflictError {
	t.Helper()
	require.ErrorIs(t, err, sentinel)
	var c *checkout.ConflictError
	require.ErrorAs(t, err, &c)
	return c
}
