package main

import (
	"bytes"
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

// shop is the database and the Stripe that the program's commands are pointed
// at, and a checkout on them that makes something to see.
type shop struct {
	*checkout.Service
	t      *testing.T
	pool   *pgxpool.Pool
	ledger *idempotency.Ledger
	stripe *stripesim.Server
	pay    *stripepay.Stripe
	base   string
}

const account = "acct_1"

func openShop(t *testing.T) *shop {
	t.Helper()
	stripe, err := stripesim.New(stripesim.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(stripe)
	t.Cleanup(func() { _ = stripe.Close(); server.Close() })
	s := &shop{t: t, pool: dbtest.New(t), stripe: stripe, base: server.URL}
	s.pay, err = stripepay.New(stripepay.Config{SecretKey: localStripeKey, Base: s.base})
	require.NoError(t, err)
	s.ledger, err = idempotency.New(idempotency.Config{Pool: s.pool, Instance: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.ledger.Close(context.Background()) })
	s.Service, err = checkout.New(checkout.Config{
		Pool: s.pool, Ledger: s.ledger, Provider: s.pay, PublicURL: "http://shop.test", PartialRefunds: true,
		Methods: append(checkout.TestMethods(), checkout.FaultMethods()...),
	})
	require.NoError(t, err)
	return s
}

// order orders the course of $49.00 and tries to pay it.
func (s *shop) order(method string) (checkout.Order, error) {
	s.t.Helper()
	answer, err := s.PlaceOrder(s.t.Context(), checkout.OrderRequest{Account: account, Key: "order", Course: "idempotency-end-to-end"})
	require.NoError(s.t, err)
	var placed checkout.OrderView
	require.NoError(s.t, json.Unmarshal(answer.Body, &placed))
	_, failed := s.Pay(s.t.Context(), checkout.PaymentRequest{
		Account: account, Key: idempotency.Key(placed.PaymentKey), Order: placed.ID, PaymentMethod: method,
	})
	return s.now(placed.ID), failed
}

func (s *shop) now(order string) checkout.Order {
	s.t.Helper()
	o, err := s.Order(s.t.Context(), account, order)
	require.NoError(s.t, err)
	return o
}

func (s *shop) paid() checkout.Order {
	s.t.Helper()
	o, err := s.order("pm_card_visa")
	require.NoError(s.t, err)
	require.Equal(s.t, checkout.OrderPaid, o.Status)
	return o
}

func (s *shop) exec(sql string) {
	s.t.Helper()
	_, err := s.pool.Exec(s.t.Context(), sql)
	require.NoError(s.t, err)
}

// until polls a condition.
func (s *shop) until(what string, condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, 20*time.Second, 5*time.Millisecond, what)
}

// command runs a command of the program against this database and Stripe.
func (s *shop) command(args ...string) (status int, stdout, stderr string) {
	s.t.Helper()
	args = append(args[:1:1], append([]string{
		"--database-url", s.pool.Config().ConnString(), "--stripe-secret-key", localStripeKey, "--stripe-api-base", s.base,
	}, args[1:]...)...)
	return program(s.t, args...)
}

// program runs the program. What it says on stderr beside its log is at most
// one line.
func program(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, &out, &errs)
	var said []string
	for line := range strings.Lines(errs.String()) {
		if !strings.HasPrefix(line, "time=") {
			said = append(said, line)
		}
	}
	require.LessOrEqual(t, len(said), 1, errs.String())
	require.Equal(t, status != 0, len(said) == 1, "a failure says why: %s", errs.String())
	return status, out.String(), strings.Join(said, "")
}
