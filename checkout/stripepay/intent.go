package stripepay

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/stripe/stripe-go/v79"

	"payonce/checkout"
)

// CreateIntent implements checkout.Provider.
//
// The intent takes cards, wallets on cards included, and names them itself.
// automatic_payment_methods would leave the choice to a setting in Stripe's
// dashboard: the methods could change between an order's attempts, and a
// delayed one (a bank debit, days in processing) outlives the day within which
// every intent of the protocol has to be final. It is the same in every mode,
// since parameters that differ between deployments are an idempotency_error on
// the next attempt.
func (s *Stripe) CreateIntent(ctx context.Context, p checkout.IntentParams) (checkout.Intent, error) {
	params := &stripe.PaymentIntentParams{
		Amount:             stripe.Int64(p.Money.Amount),
		Currency:           stripe.String(p.Money.Currency),
		Description:        stripe.String(p.Description),
		PaymentMethodTypes: []*string{stripe.String("card")},
		Metadata:           map[string]string{"account": p.Account, "order": p.Order},
	}
	x, err := keyed(ctx, &params.Params, p.DownstreamKey)
	if err != nil {
		return checkout.Intent{}, err
	}
	answer, err := s.api.PaymentIntents.New(params)
	return x.intent(answer, err, "")
}

// ConfirmIntent implements checkout.Provider. Which bank asks for 3-D Secure is
// not known before, so the return address is always sent.
func (s *Stripe) ConfirmIntent(ctx context.Context, p checkout.ConfirmParams) (checkout.Intent, error) {
	if !intentID(p.Intent) {
		return checkout.Intent{}, malformed("intent")
	}
	if (p.PaymentMethod == "") == (p.ConfirmationToken == "") {
		return checkout.Intent{}, malformed("payment_method")
	}
	params := &stripe.PaymentIntentConfirmParams{ReturnURL: stripe.String(p.ReturnURL)}
	if p.PaymentMethod != "" {
		params.PaymentMethod = stripe.String(p.PaymentMethod)
	} else {
		params.ConfirmationToken = stripe.String(p.ConfirmationToken)
		// A token asks for the challenge to be run by Stripe.js; the request's
		// word counts for more, and the order's page links to the bank.
		params.UseStripeSDK = stripe.Bool(false)
	}
	x, err := keyed(ctx, &params.Params, p.DownstreamKey)
	if err != nil {
		return checkout.Intent{}, err
	}
	answer, err := s.api.PaymentIntents.Confirm(p.Intent, params)
	return x.intent(answer, err, p.Intent)
}

// Intent implements checkout.Provider. It asks for the latest charge whole, so
// that a failed one is told from a paid one.
func (s *Stripe) Intent(ctx context.Context, id string) (checkout.Intent, error) {
	if !intentID(id) {
		return checkout.Intent{}, malformed("intent")
	}
	params := &stripe.PaymentIntentParams{}
	params.AddExpand("latest_charge")
	x := &exchange{ctx: ctx}
	params.Context = x.context()
	answer, err := s.api.PaymentIntents.Get(id, params)
	return x.intent(answer, err, id)
}

// CancelIntent implements checkout.Provider.
func (s *Stripe) CancelIntent(ctx context.Context, id, downstreamKey string) (checkout.Intent, error) {
	if !intentID(id) {
		return checkout.Intent{}, malformed("intent")
	}
	params := &stripe.PaymentIntentCancelParams{}
	x, err := keyed(ctx, &params.Params, downstreamKey)
	if err != nil {
		return checkout.Intent{}, err
	}
	answer, err := s.api.PaymentIntents.Cancel(id, params)
	return x.intent(answer, err, id)
}

// intent ends a call that was answered with a PaymentIntent, or with an error.
func (x *exchange) intent(answer *stripe.PaymentIntent, err error, id string) (checkout.Intent, error) {
	if err != nil {
		return checkout.Intent{}, x.judge(err, id)
	}
	said, err := intent(answer, id)
	if err != nil || x.status != http.StatusOK {
		return checkout.Intent{}, x.strange()
	}
	said.Replayed = x.replayed
	return said, nil
}

var errNotAsked = errors.New("not the object that was asked for")

// intent reads a PaymentIntent. One without id or status, or another than the
// one asked for, is not an answer.
func intent(pi *stripe.PaymentIntent, id string) (checkout.Intent, error) {
	if pi == nil || !intentID(pi.ID) || (id != "" && pi.ID != id) || printable(string(pi.Status)) == "" {
		return checkout.Intent{}, errNotAsked
	}
	said := checkout.Intent{
		ID:            pi.ID,
		Status:        checkout.IntentStatus(pi.Status),
		Money:         checkout.Money{Amount: pi.Amount, Currency: printable(string(pi.Currency))},
		Live:          pi.Livemode,
		Charge:        paidCharge(pi),
		Account:       printable(pi.Metadata["account"]),
		Order:         printable(pi.Metadata["order"]),
		NextActionURL: nextActionURL(pi.NextAction),
	}
	if last := pi.LastPaymentError; last != nil {
		said.Code, said.DeclineCode = printable(string(last.Code)), printable(string(last.DeclineCode))
	}
	return said, nil
}

// paidCharge gives the charge that took the money. After a decline latest_charge
// is the failed one, and it stays so while the next confirm is under way.
func paidCharge(pi *stripe.PaymentIntent) string {
	charge := pi.LatestCharge
	if pi.Status != stripe.PaymentIntentStatusSucceeded || charge == nil || !chargeID(charge.ID) {
		return ""
	}
	if charge.Object != "" && !charge.Paid { // expanded, and it says no
		return ""
	}
	return charge.ID
}

// nextActionURL gives the bank's page. It becomes a link, so it must be a web
// address.
func nextActionURL(next *stripe.PaymentIntentNextAction) string {
	if next == nil || next.RedirectToURL == nil {
		return ""
	}
	u, err := url.Parse(next.RedirectToURL.URL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return ""
	}
	return u.String()
}
