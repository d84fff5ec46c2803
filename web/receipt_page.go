package web

import (
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// receipt is the page of an order that is paid, or was.
func (s *Server) receipt(c echo.Context, o checkout.Order) (view.Receipt, error) {
	m := view.Receipt{
		Frame: s.frame(view.OrdersSection), State: view.Paid, Order: o.ID,
		Course: o.Course.Title, CourseURL: coursePath(o.Course.Slug), LessonURL: readingPath(o.Course.Slug),
		Amount: price(o.Price), Date: moment(o.PaidAt), Stamp: stamp(o.PaidAt),
		Replayed: replayed(c), NotGivenBack: refusedBy(c) == "refund_not_possible",
	}
	switch refusedBy(c) {
	case "order_already_paid", "key_reused": // paid under another key, or under this one with another card
		m.AlreadyPaid = true
	}
	p, paid := o.Slot()
	if !paid {
		m.State = view.TakenFree
		return m, nil
	}
	m.Payment, m.Charge, m.Method, m.Refunds = p.ID, p.Charge, s.methodName(p), refundRows(o)
	disputes, err := s.cfg.Service.Disputes(c.Request().Context(), o.Account, o.ID)
	if err != nil {
		return view.Receipt{}, err
	}
	m.Dispute = dispute(disputes)

	refunded := checkout.Money{Amount: p.Refunded, Currency: p.Price.Currency}
	pending, going := refundIn(o, checkout.RefundPending)
	if o.Status == checkout.OrderRefunded {
		m.LessonURL = ""
	}
	switch {
	case o.Status == checkout.OrderRefunded && p.Refunded == p.Price.Amount:
		m.State, m.Returned = view.RefundedInWhole, refunded.String()
		return m, nil
	case going:
		m.State, m.Returned = view.RefundInProgress, pending.Price.String()
		if pending.Key != "" && pending.ProviderID == "" {
			m.RefundResend = refundForm(pending.Payment, pending.Price, pending.Key)
		}
		return m, nil
	case o.Status == checkout.OrderRefunded:
		m.State = view.RefundUndone
		return m, nil
	case p.Refunded > 0:
		m.State, m.Returned = view.RefundedInPart, refunded.String()
	}
	if n := len(o.Refunds); n > 0 && o.Refunds[n-1].Status == checkout.RefundFailed {
		m.RefundFailed = o.Refunds[n-1].Price.String()
	}
	m.Refund = s.refundOffer(o, p, m.Dispute)
	return m, nil
}

// refundOffer is the form that gives the money back, or what is left of it. Less
// than the whole payment is given back in demo mode only, and nothing while the
// bank decides or has decided for the buyer: it would go back twice.
func (s *Server) refundOffer(o checkout.Order, p checkout.Payment, d *view.Dispute) *view.RefundForm {
	until := o.PaidAt.Add(s.cfg.Policy.RefundWindow)
	left := leftOf(o, p)
	switch {
	case left.Amount <= 0, p.Refunded > 0 && !s.cfg.Demo, !time.Now().Before(until):
		return nil
	case d != nil && d.State != view.DisputeWon:
		return nil
	}
	m := refundForm(p.ID, left, nextRefundKey(o, p))
	m.Until = day(until)
	if s.cfg.Demo && left.Amount > 1 {
		m.Part = typed(checkout.Money{Amount: left.Amount / 2, Currency: left.Currency})
	}
	return m
}

// typed is an amount as checkout.ParseMoney reads it.
func typed(m checkout.Money) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || ('0' <= r && r <= '9') {
			return r
		}
		return -1
	}, m.String())
}

// dispute is what the page says of the newest dispute.
func dispute(list []checkout.Dispute) *view.Dispute {
	if len(list) == 0 {
		return nil
	}
	d := list[len(list)-1]
	m := &view.Dispute{State: view.DisputeOpen, Amount: d.Money.String()}
	switch d.Status {
	case "won", "warning_closed":
		m.State = view.DisputeWon
	case "lost":
		m.State = view.DisputeLost
	}
	return m
}

// refundRows are the order's refunds, as the page lists them.
func refundRows(o checkout.Order) []view.RefundRow {
	var rows []view.RefundRow
	for _, r := range o.Refunds {
		rows = append(rows, view.RefundRow{
			Amount: r.Price.String(), Date: day(r.CreatedAt), State: view.RefundState(r.Status),
			Elsewhere: r.Origin == checkout.RefundElsewhere,
		})
	}
	return rows
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
