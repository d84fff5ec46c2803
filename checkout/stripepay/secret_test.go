package stripepay_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
)

// TestClientSecretIsGivenForAChallengeWithoutAPage: of every other intent it stays
// with Stripe.
func TestClientSecretIsGivenForAChallengeWithoutAPage(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	secret := func(id string) string {
		t.Helper()
		got, err := l.ClientSecret(t.Context(), id)
		require.NoError(t, err)
		return got
	}
	id := l.create(t, "ord_1").ID
	require.Empty(t, secret(id), "nothing was confirmed")

	// A confirm that does not say use_stripe_sdk=false gets what a token asks for.
	form := url.Values{"confirmation_token": {l.token(t, "pm_card_authenticationRequired")}, "return_url": {"https://shop.test/"}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.base+"/v1/payment_intents/"+id+"/confirm", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer sk_test_1")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	asked, err := l.Intent(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, checkout.IntentRequiresAction, asked.Status)
	require.Empty(t, asked.NextActionURL)
	require.Regexp(t, `^`+id+`_secret_\w+$`, secret(id))

	linked := l.create(t, "ord_2").ID
	_, err = l.confirm(t, linked, "pay:pay_2:1", "pm_card_authenticationRequired")
	require.NoError(t, err)
	require.Empty(t, secret(linked), "it has a page to link to")
	paid := l.create(t, "ord_3").ID
	_, err = l.confirm(t, paid, "pay:pay_3:1", "pm_card_visa")
	require.NoError(t, err)
	require.Empty(t, secret(paid))

	for _, wrong := range []string{"", "pi_nobody", "../charges", "ch_1"} {
		_, err := l.ClientSecret(t.Context(), wrong)
		require.Error(t, err)
	}
}
