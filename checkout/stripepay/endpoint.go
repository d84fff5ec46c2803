package stripepay

import (
	"context"
	"errors"

	"github.com/stripe/stripe-go/v79"
)

// events are the types that the checkout handles. With the SDK's API version
// refunds are told by charge.refunded and charge.refund.updated; later versions
// tell them by refund.*.
var events = []string{
	"payment_intent.succeeded", "payment_intent.payment_failed", "payment_intent.canceled",
	"payment_intent.requires_action", "payment_intent.processing",
	"charge.refunded", "charge.refund.updated", "refund.created", "refund.updated", "refund.failed",
	"charge.dispute.created", "charge.dispute.updated", "charge.dispute.closed",
	"charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated",
}

// Endpoint is a webhook endpoint at Stripe.
type Endpoint struct {
	ID string
	// Secret signs its deliveries. Stripe tells it once.
	Secret string
}

// CreateEndpoint registers address for the events that the checkout handles,
// in the SDK's API version: an endpoint at the account's default version would
// send objects of another shape. downstreamKey is new for each address and start.
func (s *Stripe) CreateEndpoint(ctx context.Context, address, downstreamKey string) (Endpoint, error) {
	params := &stripe.WebhookEndpointParams{
		URL: stripe.String(address), APIVersion: stripe.String(stripe.APIVersion), EnabledEvents: stripe.StringSlice(events),
	}
	x, err := keyed(ctx, &params.Params, downstreamKey)
	if err != nil {
		return Endpoint{}, err
	}
	answer, err := s.api.WebhookEndpoints.New(params)
	if err != nil {
		return Endpoint{}, x.judge(err, "")
	}
	if err := CheckWebhookSecret(answer.Secret); err != nil {
		return Endpoint{}, errors.New("creating a webhook endpoint: the answer holds no secret")
	}
	return Endpoint{ID: answer.ID, Secret: answer.Secret}, nil
}

// DeleteEndpoint removes a webhook endpoint.
func (s *Stripe) DeleteEndpoint(ctx context.Context, id string) error {
	x := &exchange{ctx: ctx}
	params := &stripe.WebhookEndpointParams{}
	params.Context = x.context()
	if _, err := s.api.WebhookEndpoints.Del(id, params); err != nil {
		return x.judge(err, "")
	}
	return nil
}
