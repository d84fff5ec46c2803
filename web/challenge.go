package web

import (
	"context"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// challengePath is what a page asks before Stripe.js shows the bank's question.
const challengePath = "/orders/:id/challenge"

// secretTimeout bounds the question to Stripe; somebody waits who pressed a button.
const secretTimeout = 10 * time.Second

// challengeView is the JSON of GET /orders/{id}/challenge.
type challengeView struct {
	ClientSecret string `json:"client_secret"`
}

// challenge answers GET /orders/{id}/challenge, for the order's own account. The
// secret is asked of Stripe for this answer, which no cache may keep, and is
// neither stored nor logged: whoever has it can go on with the payment.
func (s *Server) challenge(c echo.Context) error {
	id, err := referenced(c, "id")
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(c.Request().Context(), secretTimeout)
	defer done()
	order, err := s.cfg.Service.Order(ctx, visitOf(c).account, id)
	if err != nil {
		return err
	}
	p, _ := order.Slot()
	if !challenged(p) {
		return checkout.ErrNotFound
	}
	secret, err := s.cfg.ClientSecret(ctx, p.Intent)
	if err != nil {
		return fmt.Errorf("asking Stripe about a challenge: %w", err)
	}
	if secret == "" {
		return checkout.ErrNotFound // it is over, or has got a page to link to
	}
	return s.sendJSON(c, challengeView{secret})
}

// challenged is true if the bank asks, and there is no page of its own to link to.
func challenged(p checkout.Payment) bool {
	return p.Status == checkout.PaymentRequiresAction && p.NextAction == "" && p.Intent != ""
}

// challengeOf lets the order's page show the bank's question by Stripe.js, where
// there is no other way. The page may load it then.
func (s *Server) challengeOf(c echo.Context, p checkout.Payment) *view.Challenge {
	if !challenged(p) || !s.hasElement() || s.cfg.ClientSecret == nil {
		return nil
	}
	c.Response().Header().Set(echo.HeaderContentSecurityPolicy, elementPolicy)
	return &view.Challenge{PublishableKey: s.cfg.PublishableKey}
}
