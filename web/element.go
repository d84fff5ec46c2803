package web

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// hasElement is true where cards are typed into Stripe's Payment Element.
func (s *Server) hasElement() bool { return s.cfg.PublishableKey != "" }

// element is the Payment Element for an order, or nil where the page lists
// methods. Its page may load Stripe.js.
func (s *Server) element(c echo.Context, o checkout.Order) *view.Element {
	if !s.hasElement() {
		return nil
	}
	c.Response().Header().Set(echo.HeaderContentSecurityPolicy, elementPolicy)
	return &view.Element{
		PublishableKey: s.cfg.PublishableKey, Minor: strconv.FormatInt(o.Price.Amount, 10), Currency: o.Price.Currency,
	}
}
