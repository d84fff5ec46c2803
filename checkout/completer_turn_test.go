package checkout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
)

// TestCompleterLeavesTheNextChallengeAlone: while it waits for a slow Stripe the
// buyer gives the overdue challenge up and is at a fresh one.
func TestCompleterLeavesTheNextChallengeAlone(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]stripesim.Rule{
		"WhileItAsks":  {Path: "/v1/payment_intents/*", Method: "GET", Action: stripesim.Hold, At: stripesim.Answer},
		"BeforeItAsks": {Path: "/v1/payment_intents/*", Method: "GET", Action: stripesim.Hold, At: stripesim.Arrival},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			order := s.order(course)
			first := s.asked(order)
			_, err := s.pool.Exec(t.Context(), `UPDATE payments SET ask_at = clock_timestamp() - interval '1 second'`)
			require.NoError(t, err)
			slow, err := s.stripe.Add(at)
			require.NoError(t, err)
			pass := make(chan error, 1)
			go func() {
				_, err := s.CompleteOnce(t.Context())
				pass <- err
			}()
			require.NoError(t, slow.Wait(t.Context(), 1))

			given, err := s.Cancel(t.Context(), checkout.CancelRequest{Account: account, Payment: first.ID})
			require.NoError(t, err)
			answer, err := s.pay(order.ID, given.PaymentKey, "pm_card_authenticationRequired")
			require.NoError(t, err)
			require.Equal(t, 202, answer.Status)
			second := decode[checkout.PaymentView](t, answer)
			slow.Release()
			require.NoError(t, <-pass)

			p, _ := s.now(order.ID).Last()
			require.Equal(t, second.ID, p.ID)
			require.Equal(t, checkout.PaymentRequiresAction, p.Status)
			require.NoError(t, s.stripe.Finish(second.PaymentIntent, stripesim.Succeeded))
			require.NoError(t, s.Ask(t.Context(), account, order.ID))
			s.agree(order.ID, 1)
		})
	}
}
