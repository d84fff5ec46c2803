package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"payonce/checkout"
	"payonce/checkout/stripepay"
)

// webhookPath is where Stripe delivers events.
const webhookPath = "/webhooks/stripe"

// hook is this shop's webhook endpoint: the secrets that its deliveries are
// signed with.
type hook struct{ secrets atomic.Pointer[[]string] }

func newHook(secrets []string) *hook {
	h := &hook{}
	h.secrets.Store(&secrets)
	return h
}

// verify checks a delivery and reads its event.
func (h *hook) verify(body []byte, signature string) (checkout.Event, error) {
	return stripepay.Verify(body, signature, *h.secrets.Load(), time.Now())
}

// register makes an endpoint at the local Stripe for as long as this shop runs,
// through Stripe's own API. Two shops see each event twice, as in life.
//
// Endpoints of the same address are those of a shop that was killed: it listened
// where this one does. Their secrets died with it, so that their deliveries
// could only be refused, again and again. They go after the new one is there,
// and no event falls between the two.
func (h *hook) register(ctx context.Context, stripe *stripepay.Stripe, listener net.Addr, log *slog.Logger) (remove func(), err error) {
	address := "http://" + reachable(listener) + webhookPath
	endpoint, err := stripe.CreateEndpoint(ctx, address, "endpoint:"+rand.Text())
	if err != nil {
		return nil, fmt.Errorf("registering a webhook endpoint at the local Stripe: %w", err)
	}
	h.secrets.Store(&[]string{endpoint.Secret})
	if err := removeOthers(ctx, stripe, address, endpoint.ID); err != nil {
		// They cost deliveries that are refused, and nothing else.
		log.Warn("removing the webhook endpoints of a shop that was killed", slog.Any("err", err))
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := stripe.DeleteEndpoint(ctx, endpoint.ID); err != nil {
			log.Warn("removing the webhook endpoint", slog.Any("err", err))
		}
	}, nil
}

// removeOthers removes the endpoints of an address but one.
func removeOthers(ctx context.Context, stripe *stripepay.Stripe, address, keep string) error {
	endpoints, err := stripe.Endpoints(ctx)
	for _, e := range endpoints {
		if e.URL == address && e.ID != keep {
			err = errors.Join(err, stripe.DeleteEndpoint(ctx, e.ID))
		}
	}
	return err
}

// reachable gives an address of this machine for a listener.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// webhookSecrets are those of STRIPE_WEBHOOK_SECRET: one, or two while rolling.
func (p provider) webhookSecrets() []string {
	var secrets []string
	for _, secret := range strings.Split(p.StripeWebhookSecret, ",") {
		if secret = strings.TrimSpace(secret); secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// checkWebhookSecrets refuses what anybody could sign with.
func (p provider) checkWebhookSecrets() error {
	secrets := p.webhookSecrets()
	if !p.local() && len(secrets) == 0 {
		return fmt.Errorf("STRIPE_WEBHOOK_SECRET is empty and STRIPE_SECRET_KEY is set: set the endpoint's secret (whsec_...), or two with a comma while rolling it")
	}
	for _, secret := range secrets {
		if err := stripepay.CheckWebhookSecret(secret); err != nil {
			return fmt.Errorf("STRIPE_WEBHOOK_SECRET: %w", err)
		}
	}
	return nil
}
