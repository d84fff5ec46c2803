package web

import (
	"slices"

	"payonce/checkout"
	"payonce/web/view"
)

// closed is the page of an order that expired. Money can arrive all the same,
// after the order had closed; then all of it goes back, and the page says how
// far it is.
func (s *Server) closed(o checkout.Order) view.Closed {
	m := view.Closed{
		Frame: s.frame(view.OrdersSection), Order: summary(o), Date: moment(o.ExpiresAt), Stamp: stamp(o.ExpiresAt),
		Late: late(o), Refunds: refundRows(o),
		// An order is closed only once its intent is canceled, where it has one.
		Canceled: slices.ContainsFunc(o.Payments, func(p checkout.Payment) bool { return p.Intent != "" }),
	}
	if p, charged := o.Slot(); charged {
		m.Payment, m.Charge, m.Method = p.ID, p.Charge, s.methodName(p)
	}
	return m
}

// late is what became of money that arrived for an expired order.
func late(o checkout.Order) view.LateMoney {
	p, charged := o.Slot()
	_, going := refundIn(o, checkout.RefundPending)
	switch {
	case o.Status != checkout.OrderExpired || !charged:
		return view.NoLateMoney
	case p.Refunded == p.Price.Amount:
		return view.LateMoneyBack
	case going:
		return view.LateMoneyGoing
	}
	return view.LateMoneyHere
}
