package checkout

import (
	"context"
	"errors"
)

// ReturnState is the short answer on the way back from the bank: what became of
// the money, and nothing else about the order.
type ReturnState string

// The states of the way back.
const (
	ReturnPaid     ReturnState = "paid"
	ReturnChecking ReturnState = "checking"
	ReturnNotPaid  ReturnState = "not_paid"
	ReturnRefunded ReturnState = "refunded" // charged once, and all of it goes back
)

// Returned asks and settles for a buyer who comes back from the bank without a
// session, whom the order's token lets see the short answer. It never cancels.
// It returns ErrNotFound if the token is not the order's.
func (s *Service) Returned(ctx context.Context, order, token string) (ReturnState, error) {
	if !ourID.MatchString(order) || len(token) > 64 || !printable(token) {
		return "", ErrNotFound
	}
	var account string
	err := found(s.pool.QueryRow(ctx, `SELECT account FROM orders WHERE id = $1 AND token = $2`, order, token).Scan(&account))
	if err != nil {
		return "", err
	}
	if err := s.Ask(ctx, account, order); err != nil && !errors.Is(err, ErrOutcomeUnknown) {
		return "", err
	}
	o, err := s.Order(ctx, account, order)
	if err != nil {
		return "", err
	}
	p, taken := o.Slot()
	switch {
	case !taken:
		return ReturnNotPaid, nil
	case p.Status != PaymentSucceeded:
		return ReturnChecking, nil
	case o.goesBack(p):
		return ReturnRefunded, nil
	}
	return ReturnPaid, nil
}

// goesBack is true if all of a payment has gone back, or is on its way because
// it came for an order that had closed.
func (o Order) goesBack(p Payment) bool {
	for _, r := range o.Refunds {
		if o.Status != OrderPaid && r.Payment == p.ID && r.Status == RefundPending {
			return true
		}
	}
	return p.Refunded == p.Price.Amount
}
