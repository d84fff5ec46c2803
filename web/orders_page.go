package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// ordersPage lists the account's orders, each with the answer to the first
// question: was I charged?
func (s *Server) ordersPage(c echo.Context, orders []checkout.Order) error {
	m := view.Orders{Frame: s.frame(view.OrdersSection), StartOver: s.startsOver()}
	for _, o := range orders {
		if live(o) {
			// A list of orders comes without payments, and an order that looks
			// open may be charged by now. There is one live order a course.
			var err error
			if o, err = s.cfg.Service.Order(c.Request().Context(), o.Account, o.ID); err != nil {
				return err
			}
		}
		row := view.OrderRow{
			URL: orderPath(o.ID), Course: o.Course.Title, Date: day(o.CreatedAt), Stamp: stamp(o.CreatedAt), Amount: price(o.Price),
		}
		row.Charged, row.Words = charged(o)
		row.Next = next(o)
		m.Orders = append(m.Orders, row)
	}
	return s.sendPage(c, http.StatusOK, view.OrdersPage(m))
}

// live is true for an order whose money can still move.
func live(o checkout.Order) bool {
	return o.Price.Amount > 0 && (o.Status == checkout.OrderOpen || o.Status == checkout.OrderPaid)
}

// charged is the money line of an order.
func charged(o checkout.Order) (view.Charged, string) {
	p, taken := o.Slot()
	switch {
	case o.Price.Amount == 0:
		return view.NotCharged, ""
	case o.Status == checkout.OrderRefunded:
		return view.Refunded, "Refunded, " + o.Price.String()
	case o.Status == checkout.OrderPaid:
		if taken && p.Refunded > 0 {
			return view.PartRefunded, "Charged once, " + checkout.Money{Amount: p.Refunded, Currency: p.Price.Currency}.String() + " refunded"
		}
		return view.ChargedOnce, "Charged once"
	case taken && p.Status == checkout.PaymentRequiresAction:
		return view.NotCharged, "Not charged. Your bank is asking you."
	case taken && p.Status == checkout.PaymentProcessing:
		return view.OnItsWay, "On its way, not settled yet"
	case taken, o.Closing:
		return view.NotKnownYet, "Not known yet"
	}
	return view.NotCharged, "Not charged"
}

// next is what can be done with an order.
func next(o checkout.Order) view.Link {
	_, taken := o.Slot()
	switch {
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
