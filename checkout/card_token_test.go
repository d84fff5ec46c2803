package checkout_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/idempotency"
)

// tokensOnly is a shop whose buyers type their cards into the Payment Element.
func tokensOnly(c *checkout.Config, _ *idempotency.Config) {
	c.ConfirmationTokens, c.Methods = true, nil
}

// cardToken makes a confirmation token of a card, as the Payment Element does.
func (s *shop) cardToken(method string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.base+"/v1/test_helpers/confirmation_tokens",
		strings.NewReader(url.Values{"payment_method": {method}}.Encode()))
	require.NoError(s.t, err)
	r.SetBasicAuth("sk_test_local", "")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer answer.Body.Close()
	var token struct{ ID string }
	require.NoError(s.t, json.NewDecoder(answer.Body).Decode(&token))
	require.NotEmpty(s.t, token.ID)
	return token.ID
}

func (s *shop) payByToken(order, key, token string) (idempotency.Response, error) {
	return s.Pay(s.t.Context(), checkout.PaymentRequest{
		Account: account, Key: idempotency.Key(key), Order: order, ConfirmationToken: token,
	})
}

// TestToken: a confirmation token in place of a payment method.
func TestToken(t *testing.T) {
	t.Parallel()

	t.Run("PaysOnceAndReplays", func(t *testing.T) {
		t.Parallel()
		s := open(t, tokensOnly)
		o, token := s.order(course), s.cardToken(visa)
		first, err := s.payByToken(o.ID, o.PaymentKey, token)
		require.NoError(t, err)
		require.Equal(t, 201, first.Status, string(first.Body))
		again, err := s.payByToken(o.ID, o.PaymentKey, token)
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.Equal(t, first.Body, again.Body)
		require.Equal(t, 1, s.confirms())
		s.agree(o.ID, 1)
	})

	t.Run("AnotherTokenUnderTheSameKeyIsRefused", func(t *testing.T) {
		t.Parallel()
		s := open(t, tokensOnly)
		o := s.order(course)
		_, err := s.payByToken(o.ID, o.PaymentKey, s.cardToken(visa))
		require.NoError(t, err)
		_, err = s.payByToken(o.ID, o.PaymentKey, s.cardToken(visa))
		var reused *idempotency.ReusedError
		require.ErrorAs(t, err, &reused)
		s.agree(o.ID, 1)
	})

	t.Run("AfterADeclineANewTokenPaysOnTheSameIntent", func(t *testing.T) {
		t.Parallel()
		s := open(t, tokensOnly)
		o := s.order(course)
		refused, err := s.payByToken(o.ID, o.PaymentKey, s.cardToken("pm_card_chargeDeclined"))
		require.NoError(t, err)
		require.Equal(t, 402, refused.Status, string(refused.Body))
		next := decode[checkout.Problem](t, refused).PaymentKey
		require.NotEqual(t, o.PaymentKey, next)
		paid, err := s.payByToken(o.ID, next, s.cardToken(visa))
		require.NoError(t, err)
		require.Equal(t, 201, paid.Status, string(paid.Body))
		payments := s.now(o.ID).Payments
		require.Len(t, payments, 2)
		require.Equal(t, payments[0].Intent, payments[1].Intent)
		s.agree(o.ID, 1)
	})

	// The confirm that is repeated carries the token that was frozen at the claim,
	// under the downstream key of the first: Stripe answers it as it answered that.
	t.Run("ReplyLostIsFoundByTheSameKeyAndToken", func(t *testing.T) {
		t.Parallel()
		s := open(t, tokensOnly)
		o, token := s.order(course), s.cardToken("pm_sim_reply_lost")
		_, err := s.payByToken(o.ID, o.PaymentKey, token)
		conflict(t, err, checkout.ErrOutcomeUnknown)
		s.lapse()
		found, err := s.payByToken(o.ID, o.PaymentKey, token)
		require.NoError(t, err)
		require.Equal(t, 201, found.Status, string(found.Body))
		s.agree(o.ID, 1)
	})

	t.Run("IsAllThatSuchAShopTakes", func(t *testing.T) {
		t.Parallel()
		s := open(t, tokensOnly)
		o := s.order(course)
		for _, method := range []string{visa, "pm_sim_reply_lost", "4242424242424242", ""} {
			_, err := s.pay(o.ID, o.PaymentKey, method)
			var invalid *checkout.InvalidError
			require.ErrorAs(t, err, &invalid, method)
		}
		require.Zero(t, s.count("payments"))
		require.Zero(t, s.count("idempotency_keys WHERE key = $1", o.PaymentKey), "nothing was claimed")
		require.Zero(t, s.confirms())
	})
}
