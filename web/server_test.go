package web_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/web"
)

// TestNewRefuses: a mistake in the configuration is found at the start, and
// named.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		mistake func(*web.Config)
		says    string
	}{
		"no service":              {func(c *web.Config) { c.Service = nil }, "Service"},
		"no ledger":               {func(c *web.Config) { c.Ledger = nil }, "Ledger"},
		"no secret":               {func(c *web.Config) { c.SessionSecret = nil }, "SessionSecret"},
		"a short secret":          {func(c *web.Config) { c.SessionSecret = secret[:31] }, "SessionSecret"},
		"no address":              {func(c *web.Config) { c.PublicURL = "" }, "PublicURL"},
		"an address without one":  {func(c *web.Config) { c.PublicURL = "shop.test" }, "PublicURL"},
		"an address with a path":  {func(c *web.Config) { c.PublicURL = "https://shop.test/courses" }, "PublicURL"},
		"an address of a file":    {func(c *web.Config) { c.PublicURL = "file:///etc" }, "PublicURL"},
		"a password":              {func(c *web.Config) { c.PublicURL = "https://a:b@shop.test" }, "PublicURL"},
		"no kind of money":        {func(c *web.Config) { c.Stripe = "" }, "Stripe"},
		"another kind of money":   {func(c *web.Config) { c.Stripe = "paypal" }, "Stripe"},
		"a demo with real money":  {func(c *web.Config) { c.Stripe = web.StripeLive }, "Demo"},
		"a secret for all to see": {func(c *web.Config) { c.PublishableKey = "sk_test_hunter2" }, "PublishableKey"},
		"no lease":                {func(c *web.Config) { c.Policy.Lease = 0 }, "Policy.Lease"},
		"a negative retention":    {func(c *web.Config) { c.Policy.Retention = -time.Hour }, "Policy.Retention"},
		"no action timeout":       {func(c *web.Config) { c.Policy.ActionTimeout = 0 }, "Policy.ActionTimeout"},
		"no event retention":      {func(c *web.Config) { c.Policy.EventRetention = 0 }, "Policy.EventRetention"},
		"a negative interval":     {func(c *web.Config) { c.Policy.CompleterInterval = -1 }, "Policy.CompleterInterval"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config(&fake{})
			row.mistake(&c)
			_, err := web.New(c)
			require.ErrorContains(t, err, row.says)
			require.NotContains(t, err.Error(), "a:b@", "a password")
			require.NotContains(t, err.Error(), "hunter2", "a secret key")
		})
	}
}

func TestNewFillsInWhatIsOptional(t *testing.T) {
	t.Parallel()
	server, err := web.New(web.Config{
		Service: &fake{}, Ledger: noKeys{}, SessionSecret: secret, PublicURL: "https://shop.test/", Stripe: web.StripeLive, Policy: figures,
	})
	require.NoError(t, err)
	require.Contains(t, server.Routes(), "POST /orders/:id/payments")
	require.NotContains(t, server.Routes(), "POST /session")
}
