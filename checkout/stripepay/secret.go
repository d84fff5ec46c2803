package stripepay

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/stripe/stripe-go/v79"
)

// secretPattern is a client secret of a PaymentIntent: its id, and the secret.
var secretPattern = regexp.MustCompile(`^pi_[A-Za-z0-9_]{1,250}_secret_[A-Za-z0-9]{1,250}$`)

// ClientSecret gives the client secret of a PaymentIntent that waits for the
// buyer's bank, and whose next action names no page to link to: Stripe.js is to
// show the bank's question, and needs the secret for that. Of any other intent
// it gives nothing. It is asked for when the buyer's browser wants it, so that it
// is stored nowhere; no error holds it.
func (s *Stripe) ClientSecret(ctx context.Context, intent string) (string, error) {
	if !intentID(intent) {
		return "", malformed("payment_intent")
	}
	x := &exchange{ctx: ctx}
	params := &stripe.PaymentIntentParams{}
	params.Context = x.context()
	pi, err := s.api.PaymentIntents.Get(intent, params)
	if err != nil {
		return "", x.judge(err, intent)
	}
	if pi == nil || pi.ID != intent || x.status != http.StatusOK {
		return "", x.strange()
	}
	if pi.Status != stripe.PaymentIntentStatusRequiresAction || nextActionURL(pi.NextAction) != "" {
		return "", nil
	}
	if !strings.HasPrefix(pi.ClientSecret, intent+"_secret_") || !secretPattern.MatchString(pi.ClientSecret) {
		return "", x.strange()
	}
	return pi.ClientSecret, nil
}
