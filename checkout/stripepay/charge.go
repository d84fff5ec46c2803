package stripepay

import (
	"context"
	"net/http"

	"github.com/stripe/stripe-go/v79"
)

// maxCharges is more than one PaymentIntent can collect of attempts.
const maxCharges = 1000

// Charges counts the charges of a PaymentIntent that succeeded, as Stripe lists
// them; those that were declined are in that list too. No checkout depends on
// it: it is for whoever wants to hear from Stripe, and not from the shop, how
// often a card was charged. It reads every page, or fails.
func (s *Stripe) Charges(ctx context.Context, intent string) (int, error) {
	if !intentID(intent) {
		return 0, malformed("payment_intent")
	}
	params := &stripe.ChargeListParams{PaymentIntent: stripe.String(intent)}
	params.Limit = stripe.Int64(100)
	x := &exchange{ctx: ctx}
	params.Context = x.context()
	seen, succeeded := 0, 0
	pages := s.api.Charges.List(params)
	for pages.Next() && pages.Err() == nil {
		c := pages.Charge()
		if seen++; seen > maxCharges || c == nil || !chargeID(c.ID) || c.PaymentIntent == nil || c.PaymentIntent.ID != intent {
			return 0, x.strange()
		}
		if c.Status == stripe.ChargeStatusSucceeded {
			succeeded++
		}
	}
	if err := pages.Err(); err != nil {
		return 0, x.judge(err, intent)
	}
	if x.status != http.StatusOK || pages.ChargeList().Data == nil { // {} is not an empty list
		return 0, x.strange()
	}
	return succeeded, nil
}
