package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// ordersPage lists the account's orders, each with the answer to the first
// question: was I charged?
//
// It reads them with their payments and refunds: an order that looks open may
// be charged by now, and an expired one may have been charged late.
func (s *Server) ordersPage(c echo.Context) error {
	orders, err := s.cfg.Service.OrdersOf(c.Request().Context(), visitOf(c).account)
	if err != nil {
		return err
	}
	m := view.Orders{Frame: s.frame(view.OrdersSection), StartOver: s.startsOver()}
	for _, o := range orders {
		row := view.OrderRow{
			URL: orderPath(o.ID), Course: o.Course.Title, Date: day(o.CreatedAt), Stamp: stamp(o.CreatedAt), Amount: price(o.Price),
		}
		row.Charged, row.Words = charged(o)
		row.Next = next(o)
		m.Orders = append(m.Orders, row)
	}
	return s.sendPage(c, http.StatusOK, view.OrdersPage(m))
}

// charged is the money line of an order.
func charged(o checkout.Order) (view.Charged, string) {
	p, taken := o.Slot()
	switch {
	case o.Price.Amount == 0:
		return view.NotCharged, ""
	case taken && p.Status == checkout.PaymentSucceeded:
		return chargedOnce(o, p)
	case taken && p.Status == checkout.PaymentRequiresAction:
		return view.NotCharged, "Not charged. Your bank is asking you."
	case taken && p.Status == checkout.PaymentProcessing:
		return view.OnItsWay, "On its way, not settled yet"
	case taken, o.Closing:
		return view.NotKnownYet, "Not known yet"
	}
	return view.NotCharged, "Not charged"
}

// chargedOnce is the money line of an order that was charged: what went back of
// it, and what is on its way.
func chargedOnce(o checkout.Order, p checkout.Payment) (view.Charged, string) {
	refund, going := refundIn(o, checkout.RefundPending)
	switch {
	case p.Refunded == p.Price.Amount:
		return view.Refunded, "Refunded, " + p.Price.String()
	case going:
		return view.OnItsWay, "Refund on its way, " + refund.Price.String()
	case o.Status != checkout.OrderPaid:
		return view.ChargedOnce, "Charged once. The refund did not go through"
	case p.Refunded > 0:
		return view.PartRefunded, "Charged once, " + checkout.Money{Amount: p.Refunded, Currency: p.Price.Currency}.String() + " refunded"
	}
	return view.ChargedOnce, "Charged once"
}

// next is what can be done with an order.
func next(o checkout.Order) view.Link {
	_, taken := o.Slot()
	switch {
	case late(o) != view.NoLateMoney:
		return view.Link{Label: "See what happened", URL: orderPath(o.ID)}
	case o.Status == checkout.OrderPaid:
		return view.Link{Label: "Start lesson 1", URL: readingPath(o.Course.Slug)}
	case o.Status == checkout.OrderRefunded:
		return view.Link{Label: "Receipt", URL: orderPath(o.ID)}
	case o.Status == checkout.OrderExpired:
		return view.Link{Label: "Back to the course", URL: coursePath(o.Course.Slug)}
	case taken, o.Closing:
		return view.Link{Label: "See what happened", URL: orderPath(o.ID)}
	}
	return view.Link{Label: "Continue to checkout", URL: orderPath(o.ID)}
}
