// Package stripepay is the checkout's Provider on Stripe, by stripe-go. It is
// the only importer of stripe-go.
//
// It keeps three promises that stripe-go and net/http do not make by
// themselves:
//
//   - One call is one request. The SDK's retries are off, redirects are not
//     followed, and net/http cannot send a POST again on a new connection.
//   - Every error says what it proves (checkout.Fault), judged on the HTTP
//     status, the code and what the transport saw, never on a message.
//   - No error text carries a client secret. The SDK's own text does.
package stripepay

import (
	"context"
	"net/http"

	"github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/client"

	"payonce/checkout"
)

// Config says which Stripe is called, and as whom.
type Config struct {
	// SecretKey is Stripe's secret or restricted key (sk_..., rk_...). Required.
	SecretKey string
	// Base is the address of the API, without /v1. Optional. Default value is
	// Stripe's own, https://api.stripe.com.
	Base string
	// Wrap goes around the transport, for tracing. It must send each request
	// once. Optional.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Stripe is the Provider on Stripe's API. It is safe for concurrent use.
type Stripe struct {
	api *client.API
}

var _ checkout.Provider = (*Stripe)(nil)

// New gives a Provider. It sends nothing. The errors are those of CheckKey.
func New(c Config) (*Stripe, error) {
	if err := CheckKey(c.SecretKey, c.Base); err != nil {
		return nil, err
	}
	if c.Base == "" {
		c.Base = stripe.APIURL
	}
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL:        stripe.String(c.Base),
		HTTPClient: newHTTPClient(c.Wrap),
		// The checkout counts its sends: a refusal ends an attempt only if
		// nothing was sent before it whose outcome is unknown. It also stops by
		// its context, and the SDK's pause between tries does not.
		MaxNetworkRetries: stripe.Int64(0),
		EnableTelemetry:   stripe.Bool(false),
		// The SDK logs undecodable bodies, client secrets included.
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return &Stripe{client.New(c.SecretKey, backends)}, nil
}

// keyed starts a mutating call, which carries a downstream key. The SDK would
// make one up for a missing key, send an empty one as it is, and trim spaces,
// so that two keys become one: such keys are refused here.
func keyed(ctx context.Context, params *stripe.Params, downstreamKey string) (*exchange, error) {
	if len(downstreamKey) > 255 || !graphic(downstreamKey) {
		return nil, malformed("idempotency_key")
	}
	x := &exchange{ctx: ctx}
	params.Context = x.context()
	params.SetIdempotencyKey(downstreamKey)
	return x, nil
}
