package stripepay

import (
	"context"
	"net/http"

	"github.com/stripe/stripe-go/v79"

	"payonce/checkout"
)

// Dispute implements checkout.Provider.
func (s *Stripe) Dispute(ctx context.Context, id string) (checkout.Dispute, error) {
	if !disputeID(id) {
		return checkout.Dispute{}, malformed("dispute")
	}
	params := &stripe.DisputeParams{}
	x := &exchange{ctx: ctx}
	params.Context = x.context()
	answer, err := s.api.Disputes.Get(id, params)
	if err != nil {
		return checkout.Dispute{}, x.judge(err, "")
	}
	if x.status != http.StatusOK || answer == nil || answer.ID != id || answer.Charge == nil || printable(string(answer.Status)) == "" {
		return checkout.Dispute{}, x.strange()
	}
	d := checkout.Dispute{
		ID: id, Charge: printable(answer.Charge.ID), Status: printable(string(answer.Status)), Reason: printable(string(answer.Reason)),
		Money: checkout.Money{Amount: answer.Amount, Currency: printable(string(answer.Currency))},
	}
	if answer.PaymentIntent != nil {
		d.Intent = printable(answer.PaymentIntent.ID)
	}
	return d, nil
}
