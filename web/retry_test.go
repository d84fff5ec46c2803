package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/idempotency/retry"
)

// TestAProgramThatRetries: the client's half for programs and the shop agree on
// which answers to repeat, with which key, until the outcome is known.
func TestAProgramThatRetries(t *testing.T) {
	t.Parallel()
	for method, ends := range map[string]struct{ status, charges int }{
		"pm_card_visa":           {http.StatusCreated, 1},
		"pm_card_chargeDeclined": {http.StatusPaymentRequired, 0},
		"pm_sim_reply_lost":      {http.StatusCreated, 1},
		"pm_sim_never_arrived":   {http.StatusCreated, 1},
		"pm_sim_rate_limited":    {http.StatusCreated, 1},
		"pm_sim_server_error":    {http.StatusPaymentRequired, 0}, // stored at Stripe: asked, and canceled
		"pm_sim_slow":            {http.StatusCreated, 1},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := openReal(t)
			shop := httptest.NewServer(s.server)
			t.Cleanup(shop.Close)
			order := s.ordered("idempotency-end-to-end")
			client := retry.Client{Pause: func(context.Context, time.Duration) error {
				s.lapse() // in place of waiting for Retry-After
				return nil
			}}
			answer, err := client.Do(t.Context(), retry.Request{
				URL: shop.URL + "/orders/" + order.ID + "/payments", Key: order.PaymentKey,
				Header: http.Header{
					"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Cookie": {s.cookie.Name + "=" + s.cookie.Value},
				},
				Body: []byte(`{"payment_method":"` + method + `"}`),
			})
			require.NoError(t, err)
			require.Equal(t, ends.status, answer.Status, string(answer.Body))
			require.Equal(t, ends.charges, s.charges(order.ID))
			if key, safe := answer.SafeNewKey(); ends.status == http.StatusPaymentRequired {
				require.True(t, safe)
				require.Equal(t, s.order(order.ID).PaymentKey, key)
			}
		})
	}
}
