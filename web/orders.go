package web

import (
	"github.com/labstack/echo/v4"

	"payonce/checkout"
)

// placeOrder answers POST /orders.
func (s *Server) placeOrder(c echo.Context) error {
	sent, err := readSubmission(c, "course")
	if err != nil {
		return err
	}
	r, err := sent.orderRequest(visitOf(c).account)
	if err != nil {
		return err
	}
	a, err := s.cfg.Service.PlaceOrder(c.Request().Context(), r)
	if err != nil {
		return err
	}
	return s.answer(c, a)
}

// ordersView is the JSON of an account's orders.
type ordersView struct {
	Orders []checkout.OrderView `json:"orders"`
}

// orders answers GET /orders, newest first.
func (s *Server) orders(c echo.Context) error {
	if wantsHTML(c) {
		return s.ordersPage(c)
	}
	orders, err := s.cfg.Service.Orders(c.Request().Context(), visitOf(c).account)
	if err != nil {
		return err
	}
	v := ordersView{Orders: []checkout.OrderView{}}
	for _, o := range orders {
		v.Orders = append(v.Orders, o.View())
	}
	return s.sendJSON(c, v)
}

// order answers GET /orders/{id}: the checkout page, and later the receipt.
func (s *Server) order(c echo.Context) error {
	id, err := referenced(c, "id")
	if err != nil {
		return err
	}
	order, err := s.cfg.Service.Order(c.Request().Context(), visitOf(c).account, id)
	if err != nil {
		return err
	}
	if wantsHTML(c) {
		return s.orderPage(c, order)
	}
	return s.sendJSON(c, order.View())
}
