package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/web"
)

func TestChargesAreAskedFromStripe(t *testing.T) {
	t.Parallel()
	var asked []string
	s := open(t, func(c *web.Config) {
		c.Charges = func(_ context.Context, intent string) (int, error) {
			asked = append(asked, intent)
			if intent == "pi_broken" {
				return 0, errors.New("no answer")
			}
			return map[string]int{"pi_2": 1}[intent], nil
		}
	})
	on := func(intents ...string) answer {
		asked = nil
		var payments []checkout.Payment
		for _, intent := range intents {
			p := attempt(checkout.PaymentFailed)
			p.Intent = intent
			payments = append(payments, p)
		}
		s.fake.orders[someOrder] = orderWith(payments...)
		return s.send(get("/orders/" + someOrder + "/charges"))
	}
	counted := func(a answer) (charges int, intents []string) {
		t.Helper()
		require.Equal(t, http.StatusOK, a.status, string(a.body))
		require.Equal(t, "no-store", a.header.Get("Cache-Control"))
		var v struct {
			Charges int      `json:"charges"`
			Intents []string `json:"payment_intents"`
		}
		require.NoError(t, json.Unmarshal(a.body, &v))
		return v.Charges, v.Intents
	}

	n, intents := counted(on())
	require.Zero(t, n)
	require.Empty(t, intents)

	n, intents = counted(on("", "pi_1", "pi_1", "pi_2"))
	require.Equal(t, 1, n)
	require.Equal(t, []string{"pi_1", "pi_2"}, intents)
	require.Equal(t, intents, asked, "each PaymentIntent once, and nothing else")

	require.Equal(t, http.StatusInternalServerError, on("pi_broken").status, "no answer is not a count")

	require.Equal(t, http.StatusNotFound, s.send(get("/orders/ord_bbbbbbbbbbbbbbbbbbbbbbbb/charges")).status)
}

func TestTheBenchIsThereInDemoModeOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  func(*web.Config)
		want bool
	}{
		"demo":                          {func(*web.Config) {}, true},
		"not demo":                      {func(c *web.Config) { c.Demo = false }, false},
		"demo that cannot count":        {func(c *web.Config) { c.Charges = nil }, false},
		"demo with Stripe's test money": {func(c *web.Config) { c.Stripe = web.StripeTest }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, test.set)
			s.fake.orders[someOrder] = orderOpen()
			page := string(s.send(get("/orders/"+someOrder, fromBrowser)).body)
			require.Equal(t, test.want, strings.Contains(page, "Try to break it"))
			status := http.StatusNotFound
			if test.want {
				status = http.StatusOK
			}
			require.Equal(t, status, s.send(get("/orders/"+someOrder+"/charges")).status)
		})
	}
}

func TestScriptIsToldTheFiguresInForce(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.fake.orders[someOrder] = orderOpen()
	page := s.send(get("/orders/"+someOrder, fromBrowser)).page()
	require.Contains(t, page, `data-keep="129600000"`, "half of the retention")
	require.Contains(t, page, `data-timeout="43000"`, "above the longest checkout")

	s.fake.orders[someOrder] = orderWith(attempt(checkout.PaymentPending))
	page = s.send(get("/orders/"+someOrder, fromBrowser)).page()
	require.Contains(t, page, `data-standing="pending"`)
	require.Regexp(t, `data-age="6[0-9]{4}"`, page)
	require.Contains(t, page, `data-payment="`+somePay+`"`)
}
