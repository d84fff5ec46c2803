package web_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/web"
)

// TestChallenge: when a page may have the client secret of a payment.
func TestChallenge(t *testing.T) {
	t.Parallel()
	const path = "/orders/" + someOrder + "/challenge"
	asked := attempt(checkout.PaymentRequiresAction)
	asked.Intent = "pi_1"
	linked := asked
	linked.NextAction = "https://bank.test/3ds"

	t.Run("IsGivenAndKeptNowhere", func(t *testing.T) {
		t.Parallel()
		s := open(t, withElement)
		s.fake.orders[someOrder] = orderWith(asked)
		got := s.send(get(path))
		require.Equal(t, 200, got.status)
		require.JSONEq(t, `{"client_secret":"pi_1_secret_1"}`, string(got.body))
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
		require.NotContains(t, s.log.String(), "_secret_", "it is not logged")
	})

	t.Run("NotWhereNoBankAsksOrHasAPageOfItsOwn", func(t *testing.T) {
		t.Parallel()
		s := open(t, withElement, func(c *web.Config) {
			c.ClientSecret = func(context.Context, string) (string, error) { panic("Stripe was asked") }
		})
		for _, o := range []checkout.Order{
			orderOpen(), orderPaid(), orderWith(attempt(checkout.PaymentPending)), orderWith(attempt(checkout.PaymentProcessing)), orderWith(linked),
		} {
			s.fake.orders[someOrder] = o
			require.Equal(t, 404, s.send(get(path)).status)
		}
		delete(s.fake.orders, someOrder) // another account's order is none
		require.Equal(t, 404, s.send(get(path)).status)
	})

	t.Run("NotOnceItIsOver", func(t *testing.T) {
		t.Parallel()
		s := open(t, withElement, func(c *web.Config) {
			c.ClientSecret = func(context.Context, string) (string, error) { return "", nil }
		})
		s.fake.orders[someOrder] = orderWith(asked)
		require.Equal(t, 404, s.send(get(path)).status)
	})

	t.Run("AStripeThatDoesNotAnswerIsNoAnswer", func(t *testing.T) {
		t.Parallel()
		s := open(t, withElement, func(c *web.Config) {
			c.ClientSecret = func(context.Context, string) (string, error) { return "", errors.New("away") }
		})
		s.fake.orders[someOrder] = orderWith(asked)
		require.Equal(t, 500, s.send(get(path)).status)
	})
}
