package web

import (
	"context"
	"strings"

	"payonce/checkout"
)

// majorField is the amount of a partial refund as a person types it: "19.00".
const majorField = "amount_major"

// refundRequest reads POST /payments/{id}/refunds. The amount is in minor
// units; a form may have it in major units instead, under another name, so that
// nobody can take the one for the other.
func (s *Server) refundRequest(ctx context.Context, sent submission, account, payment string) (checkout.RefundRequest, error) {
	r := checkout.RefundRequest{Account: account, Key: sent.key, Payment: payment}
	_, minor := sent.fields["amount"]
	_, major := sent.fields[majorField]
	var err error
	switch {
	case minor && major:
		err = invalid(majorField, "Send amount or amount_major, and not both.")
	case major:
		r.Amount, err = s.typedAmount(ctx, sent, account, payment)
	default:
		r.Amount, err = sent.amount("amount")
	}
	return r, err
}

// typedAmount reads the amount in the payment's own currency, and no other: the
// page's word for it would be the client's.
//
// More than is left is refused here, before the key is claimed. The Service
// would store that refusal under the page's key, and the buyer who mistyped
// could not use the page again. A key that has a refund already is left to the
// Service, which replays its answer.
func (s *Server) typedAmount(ctx context.Context, sent submission, account, payment string) (int64, error) {
	text, err := sent.text(majorField, 64)
	if err != nil {
		return 0, err
	}
	order, err := s.cfg.Service.OrderOfPayment(ctx, account, payment)
	if err != nil {
		return 0, err
	}
	for _, p := range order.Payments {
		if p.ID != payment {
			continue
		}
		amount, err := checkout.ParseMoney(majorField, strings.TrimSpace(text), p.Price.Currency)
		if err != nil {
			return 0, err
		}
		if left := leftOf(order, p); amount.Amount > left.Amount && !asked(order, string(sent.key)) {
			return 0, invalid(majorField, "At most "+left.String()+" of this payment can be given back.")
		}
		return amount.Amount, nil
	}
	return 0, checkout.ErrNotFound
}

// leftOf is what can still be given back of a payment: what has gone back or is
// on its way is not there twice.
func leftOf(o checkout.Order, p checkout.Payment) checkout.Money {
	left := checkout.Money{Amount: p.Price.Amount - p.Refunded, Currency: p.Price.Currency}
	for _, r := range o.Refunds {
		if r.Payment == p.ID && r.Status == checkout.RefundPending {
			left.Amount -= r.Price.Amount
		}
	}
	return left
}

// asked is true if a refund was asked for under the key.
func asked(o checkout.Order, key string) bool {
	for _, r := range o.Refunds {
		if r.Key == key {
			return true
		}
	}
	return false
}
