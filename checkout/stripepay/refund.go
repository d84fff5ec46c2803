package stripepay

import (
	"context"
	"net/http"

	"github.com/stripe/stripe-go/v79"

	"payonce/checkout"
)

// maxRefunds is more than anyone makes of one charge. A list that does not end
// is an error, not a short list: a refund that is not found may be sent again.
const maxRefunds = 1000

// CreateRefund implements checkout.Provider.
func (s *Stripe) CreateRefund(ctx context.Context, p checkout.RefundParams) (checkout.ProviderRefund, error) {
	if !intentID(p.Intent) {
		return checkout.ProviderRefund{}, malformed("payment_intent")
	}
	params := &stripe.RefundParams{
		PaymentIntent: stripe.String(p.Intent),
		Amount:        stripe.Int64(p.Amount),
		Metadata:      map[string]string{"refund": p.Refund, "payment": p.Payment, "order": p.Order},
	}
	x, err := keyed(ctx, &params.Params, p.DownstreamKey)
	if err != nil {
		return checkout.ProviderRefund{}, err
	}
	answer, err := s.api.Refunds.New(params)
	if err != nil {
		return checkout.ProviderRefund{}, x.judge(err, p.Intent)
	}
	said, ok := refund(answer)
	if !ok || x.status != http.StatusOK {
		return checkout.ProviderRefund{}, x.strange()
	}
	said.Replayed = x.replayed
	return said, nil
}

// Refunds implements checkout.Provider. It reads every page, or fails.
func (s *Stripe) Refunds(ctx context.Context, charge string) ([]checkout.ProviderRefund, error) {
	if !chargeID(charge) {
		return nil, malformed("charge")
	}
	params := &stripe.RefundListParams{Charge: stripe.String(charge)}
	params.Limit = stripe.Int64(100)
	x := &exchange{ctx: ctx}
	params.Context = x.context()
	list := []checkout.ProviderRefund{}
	pages := s.api.Refunds.List(params)
	// The error is looked at on every round: after a page that was decoded in
	// part the iterator goes on, and forgets it.
	for pages.Next() && pages.Err() == nil {
		said, ok := refund(pages.Refund())
		if !ok || said.Charge != charge || x.status != http.StatusOK || len(list) == maxRefunds {
			return nil, x.strange()
		}
		list = append(list, said)
	}
	if err := pages.Err(); err != nil {
		return nil, x.judge(err, "")
	}
	if x.status != http.StatusOK || pages.RefundList().Data == nil { // {} is not an empty list
		return nil, x.strange()
	}
	return list, nil
}

// refund reads a refund. One without id or status is not an answer.
func refund(r *stripe.Refund) (checkout.ProviderRefund, bool) {
	if r == nil || !refundID(r.ID) || printable(string(r.Status)) == "" {
		return checkout.ProviderRefund{}, false
	}
	said := checkout.ProviderRefund{
		ID:     r.ID,
		Status: string(r.Status),
		Money:  checkout.Money{Amount: r.Amount, Currency: printable(string(r.Currency))},
		Refund: printable(r.Metadata["refund"]),
	}
	if r.Charge != nil && chargeID(r.Charge.ID) {
		said.Charge = r.Charge.ID
	}
	return said, true
}
