package web

import "github.com/labstack/echo/v4"

// The routes of what moves money.
const (
	payPath    = "/orders/:id/payments"
	refundPath = "/payments/:id/refunds"
)

// pay answers POST /orders/{id}/payments.
func (s *Server) pay(c echo.Context) error {
	order, err := referenced(c, "id")
	if err != nil {
		return err
	}
	sent, err := readSubmission(c, "payment_method", "confirmation_token")
	if err != nil {
		return err
	}
	r, err := sent.paymentRequest(visitOf(c).account, order)
	if err != nil {
		return err
	}
	a, err := s.cfg.Service.Pay(c.Request().Context(), r)
	if err != nil {
		return err
	}
	return s.answer(c, a)
}

// refund answers POST /payments/{id}/refunds.
func (s *Server) refund(c echo.Context) error {
	payment, err := referenced(c, "id")
	if err != nil {
		return err
	}
	sent, err := readTyped(c, []string{"amount"}, []string{majorField})
	if err != nil {
		return err
	}
	r, err := s.refundRequest(c.Request().Context(), sent, visitOf(c).account, payment)
	if err != nil {
		return err
	}
	a, err := s.cfg.Service.Refund(c.Request().Context(), r)
	if err != nil {
		return err
	}
	return s.answer(c, a)
}
