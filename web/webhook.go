package web

import (
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
)

// webhookPath is where Stripe delivers events.
const webhookPath = "/webhooks/stripe"

// maxEvent is the most that one delivery may carry, in bytes.
const maxEvent = 1 << 20

// webhook answers POST /webhooks/stripe. The signature is over the raw body, so
// nothing may read it first; and it is the whole protection: no session, no
// origin and no key.
//
// 2xx means that the event is dealt with for good. Whatever may still fail, or
// runs elsewhere at this moment, is answered otherwise, so that it comes again:
// if the one that holds it dies, nobody else would ever hear of it.
func (s *Server) webhook(c echo.Context) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.Response().Writer, c.Request().Body, maxEvent))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return s.delivered(c, http.StatusRequestEntityTooLarge, "too_large")
	case err != nil:
		return s.delivered(c, http.StatusBadRequest, "unreadable")
	}
	event, err := s.cfg.Webhook(body, c.Request().Header.Get("Stripe-Signature"))
	if err != nil {
		s.cfg.Log.WarnContext(c.Request().Context(), "a delivery was refused", slog.String("request", visitOf(c).id), slog.Any("err", err))
		return s.delivered(c, http.StatusBadRequest, "refused")
	}
	result, err := s.cfg.Service.HandleEvent(c.Request().Context(), event)
	if err != nil {
		s.cfg.Log.InfoContext(c.Request().Context(), "an event must come again", slog.String("event", event.ID), slog.Any("err", err))
	}
	switch result {
	case checkout.EventRunning:
		return s.delivered(c, http.StatusConflict, result)
	case checkout.EventNotYet:
		return s.delivered(c, http.StatusServiceUnavailable, result)
	}
	return s.delivered(c, http.StatusOK, result)
}

func (s *Server) delivered(c echo.Context, status int, result checkout.EventResult) error {
	s.metrics.events.WithLabelValues(string(result)).Inc()
	return c.JSON(status, map[string]checkout.EventResult{"result": result})
}
