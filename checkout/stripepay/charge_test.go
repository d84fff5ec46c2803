package stripepay_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
)

// TestChargesCountsWhatTookMoney: a declined attempt is a charge in Stripe's
// list, and took none.
func TestChargesCountsWhatTookMoney(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	intent, other := l.create(t, "ord_1").ID, l.create(t, "ord_2").ID
	count := func(want int) {
		t.Helper()
		n, err := l.Charges(t.Context(), intent)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	count(0)
	_, err := l.confirm(t, intent, "pay:pay_1:1", "pm_card_chargeDeclined")
	require.Equal(t, checkout.FaultDeclined, faulted(t, err).Fault)
	count(0)
	for range 2 {
		_, err = l.confirm(t, intent, "pay:pay_2:1", "pm_card_visa")
		require.NoError(t, err)
	}
	_, err = l.confirm(t, other, "pay:pay_3:1", "pm_card_visa")
	require.NoError(t, err)
	count(1)
}

func TestChargesCountsEveryPageOrFails(t *testing.T) {
	t.Parallel()
	ch := func(n int, status, intent string) string {
		return fmt.Sprintf(`{"id":"ch_%d","object":"charge","status":%q,"payment_intent":%q}`, n, status, intent)
	}
	page := func(more bool, charges ...string) string {
		return fmt.Sprintf(`{"object":"list","has_more":%t,"data":[%s]}`, more, strings.Join(charges, ","))
	}
	pages := func(first, second string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("starting_after") == "" {
				says(200, first)(w, r)
				return
			}
			says(200, second)(w, r)
		}
	}

	s := serve(t, pages(page(true, ch(1, "succeeded", "pi_1"), ch(2, "failed", "pi_1")), page(false, ch(3, "succeeded", "pi_1"))))
	n, err := provider(t, s.URL).Charges(t.Context(), "pi_1")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	asked := s.seen()
	require.Len(t, asked, 2)
	require.Equal(t, seen{method: "GET", path: "/v1/charges", form: url.Values{"payment_intent": {"pi_1"}, "limit": {"100"}}}, asked[0])

	for name, answer := range map[string]http.HandlerFunc{
		"another intent's charge": says(200, page(false, ch(1, "succeeded", "pi_2"))),
		"a charge without an id":  says(200, page(false, `{"object":"charge","status":"succeeded","payment_intent":"pi_1"}`)),
		"not a list":              says(200, `{}`),
		"an error":                says(500, `{"error":{"type":"api_error"}}`),
		"an error on page two":    pages(page(true, ch(1, "succeeded", "pi_1")), `{"data":3}`),
		"a list that never ends":  pages(page(true, ch(1, "succeeded", "pi_1")), page(true, ch(1, "succeeded", "pi_1"))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := provider(t, serve(t, answer).URL).Charges(t.Context(), "pi_1")
			require.Error(t, err)
		})
	}
	_, err = provider(t, s.URL).Charges(t.Context(), "../v1/balance")
	require.Equal(t, checkout.FaultRefused, faulted(t, err).Fault)
	require.Len(t, s.seen(), 2, "nothing was sent")
}
