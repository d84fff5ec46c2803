package web

import (
	"context"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// chargesPath is what "Try to break it" asks.
const chargesPath = "/orders/:id/charges"

// tries is true where the panel "Try to break it" is offered.
func (s *Server) tries() bool { return s.cfg.Demo && s.cfg.Charges != nil && !s.hasElement() }

// try is the panel on the page of an order.
func (s *Server) try(o checkout.Order) *view.Try {
	if !s.tries() {
		return nil
	}
	m := &view.Try{Counted: view.CountedAtStripe, LessonURL: readingPath(o.Course.Slug)}
	if s.cfg.Stripe == StripeLocal {
		m.Counted = view.CountedLocally
	}
	return m
}

// wayMargin is for the way to the shop and back.
const wayMargin = 5 * time.Second

// script tells checkout.js the figures in force.
func (s *Server) script() view.Script {
	return view.Script{Keep: s.cfg.Policy.Retention / 2, Timeout: checkout.LongestAnswer(s.cfg.Policy.Wait, s.cfg.Policy.ProviderTimeout) + wayMargin}
}

// chargesTimeout bounds the questions to Stripe; a page waits for the answer.
const chargesTimeout = 5 * time.Second

// chargesView is the JSON of GET /orders/{id}/charges.
type chargesView struct {
	Order   string   `json:"order"`
	Charges int      `json:"charges"`
	Intents []string `json:"payment_intents"`
}

// charges answers GET /orders/{id}/charges: how many charges Stripe counts for
// the order. The shop hands on what Stripe says, and looks nothing up of its
// own but the PaymentIntents to ask about.
func (s *Server) charges(c echo.Context) error {
	id, err := referenced(c, "id")
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(c.Request().Context(), chargesTimeout)
	defer done()
	order, err := s.cfg.Service.Order(ctx, visitOf(c).account, id)
	if err != nil {
		return err
	}
	v := chargesView{Order: order.ID, Intents: []string{}}
	asked := map[string]bool{"": true} // a payment that has no intent yet cannot be charged
	for _, p := range order.Payments {
		if asked[p.Intent] {
			continue
		}
		asked[p.Intent] = true
		n, err := s.cfg.Charges(ctx, p.Intent)
		if err != nil {
			return fmt.Errorf("counting the charges at Stripe: %w", err)
		}
		v.Charges += n
		v.Intents = append(v.Intents, p.Intent)
	}
	return s.sendJSON(c, v)
}
