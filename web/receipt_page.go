package web

import (
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// receipt is the page of an order that is paid, or was.
func (s *Server) receipt(c echo.Context, o checkout.Order) view.Receipt {
	m := view.Receipt{
		Frame: s.frame(view.OrdersSection), State: view.Paid, Order: o.ID,
		Course: o.Course.Title, CourseURL: coursePath(o.Course.Slug), LessonURL: readingPath(o.Course.Slug),
		Amount: price(o.Price), Date: moment(o.PaidAt), Stamp: stamp(o.PaidAt),
		Replayed: replayed(c), AlreadyPaid: refusedBy(c) == "order_already_paid",
	}
	p, paid := o.Slot()
	if !paid {
		m.State = view.TakenFree
		return m
	}
	m.Payment, m.Charge, m.Method = p.ID, p.Charge, s.methodName(p)
	refunded := checkout.Money{Amount: p.Refunded, Currency: p.Price.Currency}
	pending, going := refundIn(o, checkout.RefundPending)
	switch {
	case o.Status == checkout.OrderRefunded:
		m.State, m.Returned, m.LessonURL = view.RefundedInWhole, refunded.String(), ""
		return m
	case going:
		m.State, m.Returned = view.RefundInProgress, pending.Price.String()
		m.RefundResend = refundForm(pending.Payment, pending.Price, pending.Key)
		return m
	case p.Refunded > 0:
		m.State, m.Returned = view.RefundedInPart, refunded.String()
	}
	m.RefundFailed = len(o.Refunds) > 0 && o.Refunds[len(o.Refunds)-1].Status == checkout.RefundFailed
	until := o.PaidAt.Add(s.cfg.Policy.RefundWindow)
	// Less than the whole payment is given back in demo mode only.
	if (p.Refunded == 0 || s.cfg.Demo) && p.Refunded < p.Price.Amount && time.Now().Before(until) {
		rest := checkout.Money{Amount: p.Price.Amount - p.Refunded, Currency: p.Price.Currency}
		m.Refund = refundForm(p.ID, rest, nextRefundKey(o, p))
		m.Refund.Until = day(until)
	}
	return m
}

func refundForm(payment string, m checkout.Money, key string) *view.RefundForm {
	return &view.RefundForm{Payment: payment, Minor: strconv.FormatInt(m.Amount, 10), Amount: m.String(), Key: key}
}

// nextRefundKey is the key of the next refund of a payment. It follows from the
// rows, so that every copy of the page sends the same one, and a new one only
// after a refund was made or failed.
func nextRefundKey(o checkout.Order, p checkout.Payment) string {
	n := 0
	for _, r := range o.Refunds {
		if r.Payment == p.ID {
			n++
		}
	}
	return "refund:" + p.ID + ":" + strconv.Itoa(n+1)
}

// refundIn gives the newest refund of an order in a state.
func refundIn(o checkout.Order, status checkout.RefundStatus) (checkout.Refund, bool) {
	for i := len(o.Refunds) - 1; i >= 0; i-- {
		if o.Refunds[i].Status == status {
			return o.Refunds[i], true
		}
	}
	return checkout.Refund{}, false
}

// methodName says what was paid with, as the list of methods has it.
func (s *Server) methodName(p checkout.Payment) string {
	for _, m := range s.cfg.Service.Methods() {
		if m.ID == p.PaymentMethod {
			return m.Name
		}
	}
	return ""
}
