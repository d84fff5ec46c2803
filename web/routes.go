package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"payonce/static"
)

// route is the whole route table.
//
// Whatever a POST needs before its handler may run stands in one line here:
// it does not come from another site (for all), it belongs to an account, and
// it says what it wants in its body alone.
func (s *Server) route(e *echo.Echo) {
	e.Use(s.observe, s.recovered, s.headers, s.sameSite)

	read := func(path string, h echo.HandlerFunc, m ...echo.MiddlewareFunc) {
		e.Match([]string{http.MethodGet, http.MethodHead}, path, h, m...)
	}
	write := func(path string, h echo.HandlerFunc) {
		e.POST(path, h, s.knownAccount, withoutQuery)
	}

	read("/", s.catalogue, s.anyAccount)
	read("/courses/:slug", s.course, s.anyAccount)
	read("/courses/:slug/lessons/:n", s.lesson, s.anyAccount, ownAccount)
	read("/orders", s.orders, s.anyAccount, ownAccount)
	read("/orders/:id", s.order, s.anyAccount, ownAccount)
	read(ledgerPath, s.ledger, s.anyAccount, ownAccount)
	read(ledgerEventsPath, s.ledgerEvents, s.knownAccount)
	read("/docs/idempotency", s.idempotencyPolicy, s.anyAccount)
	read("/openapi.json", s.description, s.anyAccount)

	write("/orders", s.placeOrder)
	write(payPath, s.pay)
	write(refundPath, s.refund)
	write(cancelPath, s.cancel)
	read("/orders/:id/return", s.returned, s.anyAccount)
	if s.cfg.Webhook != nil {
		e.POST(webhookPath, s.webhook) // its signature is its protection
	}
	if s.cfg.ClientSecret != nil {
		read(challengePath, s.challenge, s.anyAccount, ownAccount)
	}
	if s.tries() {
		read(chargesPath, s.charges, s.anyAccount)
	}
	if s.hasLab() {
		read(labPath, s.labIndex, s.anyAccount)
		read(labExperimentPath, s.labExperiment, s.anyAccount)
		read(labEventsPath, s.labEvents, s.anyAccount)
		write(labSweepPath, s.labSweep)
		write(labRunsPath, s.labStart)
	}
	if s.startsOver() {
		e.POST("/session", s.startOver, withoutQuery)
	}

	read("/healthz", s.healthy)
	read("/readyz", s.ready)
	read(static.Prefix+"*", echo.WrapHandler(static.Handler()))
}
