package stripepay

import (
	"context"
	"errors"
	"net/http"

	"github.com/stripe/stripe-go/v79"
)

// events are the types that the checkout handles. With the SDK's API version
// refunds are told by charge.refunded and charge.refund.updated; later versions
// tell them by refund.*. Stripe refuses a type that the version does not have,
// such as refund.failed, which came later and which the checkout would handle.
var events = []string{
	"payment_intent.succeeded", "payment_intent.payment_failed", "payment_intent.canceled",
	"payment_intent.requires_action", "payment_intent.processing",
	"charge.refunded", "charge.refund.updated", "refund.created", "refund.updated",
	"charge.dispute.created", "charge.dispute.updated", "charge.dispute.closed",
	"charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated",
}

// Endpoint is a webhook endpoint at Stripe.
type Endpoint struct {
	ID string
	// URL is where its deliveries go.
	URL string
	// Secret signs its deliveries. Stripe tells it once, in the answer to the
	// creation.
	Secret string
}

// maxEndpoints is more than Stripe lets an account have (16). A list that does
// not end is an error.
const maxEndpoints = 1000

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
	if !endpointID(answer.ID) || CheckWebhookSecret(answer.Secret) != nil {
		return Endpoint{}, errors.New("creating a webhook endpoint: the answer holds no id or no secret")
	}
	return Endpoint{ID: answer.ID, URL: address, Secret: answer.Secret}, nil
}

// Endpoints lists the webhook endpoints of the account, without their secrets.
// It reads every page, or fails.
func (s *Stripe) Endpoints(ctx context.Context) ([]Endpoint, error) {
	params := &stripe.WebhookEndpointListParams{}
	params.Limit = stripe.Int64(100)
	x := &exchange{ctx: ctx}
	params.Context = x.context()
	list := []Endpoint{}
	pages := s.api.WebhookEndpoints.List(params)
	for pages.Next() && pages.Err() == nil {
		e := pages.WebhookEndpoint()
		if e == nil || !endpointID(e.ID) || x.status != http.StatusOK || len(list) == maxEndpoints {
			return nil, x.strange()
		}
		list = append(list, Endpoint{ID: e.ID, URL: printable(e.URL)})
	}
	if err := pages.Err(); err != nil {
		return nil, x.judge(err, "")
	}
	if x.status != http.StatusOK || pages.WebhookEndpointList().Data == nil { // {} is not an empty list
		return nil, x.strange()
	}
	return list, nil
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
