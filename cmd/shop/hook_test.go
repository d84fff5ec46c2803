package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripepay"
	"payonce/checkout/stripesim"
)

// addresses are where this shop's endpoints deliver.
func (s *shop) addresses() (list []string) {
	s.t.Helper()
	endpoints, err := s.pay.Endpoints(s.t.Context())
	require.NoError(s.t, err)
	for _, e := range endpoints {
		list = append(list, e.URL)
	}
	return list
}

func TestHook(t *testing.T) {
	t.Parallel()
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	const mine, theirs = "http://127.0.0.1:8080/webhooks/stripe", "http://127.0.0.1:8081/webhooks/stripe"
	log := slog.New(slog.DiscardHandler)

	t.Run("ReplacesWhatAKilledShopLeftAndGoesWithTheShop", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		for i, address := range []string{mine, theirs, mine} {
			_, err := s.pay.CreateEndpoint(t.Context(), address, fmt.Sprintf("endpoint:%d", i))
			require.NoError(t, err)
		}
		h := newHook(nil)
		remove, err := h.register(t.Context(), s.pay, here, log)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{mine, theirs}, s.addresses(), "another shop's is left alone")
		remove()
		require.Equal(t, []string{theirs}, s.addresses())
	})

	t.Run("VerifiesWithTheSecretOfItsOwnEndpoint", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		h := newHook([]string{"whsec_of_the_configuration"})
		_, err := h.register(t.Context(), s.pay, here, log)
		require.NoError(t, err)
		secret := (*h.secrets.Load())[0]
		body := fmt.Appendf(nil, `{"id":"evt_1","object":"event","api_version":"2024-06-20","created":%d,"livemode":false,"type":"x","data":{"object":{"object":"x"}}}`, time.Now().Unix())
		event, err := h.verify(body, signed(body, secret))
		require.NoError(t, err)
		require.Equal(t, "evt_1", event.ID)
		_, err = h.verify(body, signed(body, "whsec_of_the_configuration"))
		require.ErrorIs(t, err, stripepay.ErrSignature)
	})

	t.Run("StandsWhereTheListCannotBeRead", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		_, err := s.stripe.Add(stripesim.Rule{Method: http.MethodGet, Path: "/v1/webhook_endpoints", Action: stripesim.Drop})
		require.NoError(t, err)
		_, err = newHook(nil).register(t.Context(), s.pay, here, log)
		require.NoError(t, err, "what is left behind costs refused deliveries, and nothing else")
		require.Equal(t, []string{mine}, s.addresses())
	})

	t.Run("IsReachedOnThisMachineWhereverTheShopListens", func(t *testing.T) {
		t.Parallel()
		for address, want := range map[string]string{
			"0.0.0.0:8080": "127.0.0.1:8080", "[::]:8080": "127.0.0.1:8080", "127.0.0.1:8080": "127.0.0.1:8080", "[::1]:8080": "[::1]:8080", "192.0.2.1:80": "192.0.2.1:80",
		} {
			addr, err := net.ResolveTCPAddr("tcp", address)
			require.NoError(t, err)
			require.Equal(t, want, reachable(addr))
		}
	})
}

func signed(body []byte, secret string) string {
	now := time.Now().Unix()
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%d.%s", now, body)
	return fmt.Sprintf("t=%d,v1=%s", now, hex.EncodeToString(mac.Sum(nil)))
}

// TestWebhookSecretIsRequired: with an empty one anybody could sign.
func TestWebhookSecretIsRequired(t *testing.T) {
	t.Parallel()
	const good = "whsec_0123456789abcdef"
	for _, row := range []struct{ secret, says string }{
		{"", "STRIPE_WEBHOOK_SECRET is empty"},
		{" ", "STRIPE_WEBHOOK_SECRET is empty"},
		{",", "STRIPE_WEBHOOK_SECRET is empty"},
		{"hunter2", "whsec_"},
		{"whsec_", "whsec_"},
		{"whsec_short", "whsec_"},
		{"whsec_0123456789abc\x00ef", "whsec_"},
		{good + ",hunter2", "whsec_"},
		{good + " " + good, "whsec_"},
	} {
		// A database that is not there: if the secret were taken, that would be said.
		status, _, says := program(t, "serve", "--addr", "127.0.0.1:0", "--database-url", "postgres://127.0.0.1:1/none", "--stripe-secret-key", "sk_test_x", "--session-secret", "0123456789abcdef0123456789abcdef", "--stripe-webhook-secret", row.secret)
		require.Equal(t, 1, status, "%q", row.secret)
		require.Contains(t, says, "STRIPE_WEBHOOK_SECRET", "%q", row.secret)
		require.Contains(t, says, row.says, "%q", row.secret)
		require.NotContains(t, says, "hunter2")
	}
	for _, text := range []string{good, " " + good + " ", good + "," + good + "2", good + ","} {
		require.NoError(t, provider{StripeSecretKey: "sk_test_x", StripeWebhookSecret: text}.checkWebhookSecrets(), text)
	}
	require.NoError(t, provider{}.checkWebhookSecrets(), "the local Stripe's is made at start")
	require.Equal(t, []string{good, good + "2"}, provider{StripeWebhookSecret: good + ", " + good + "2,"}.webhookSecrets())
}
