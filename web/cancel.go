package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
)

// cancelPath gives up a payment that waits for the buyer's bank.
const cancelPath = "/payments/:id/cancel"

// cancel answers POST /payments/{id}/cancel, so that another card can be used.
// It needs no key, since it is idempotent by nature, and reads no body.
func (s *Server) cancel(c echo.Context) error {
	payment, err := referenced(c, "id")
	if err != nil {
		return err
	}
	view, err := s.cfg.Service.Cancel(c.Request().Context(), checkout.CancelRequest{Account: visitOf(c).account, Payment: payment})
	if err != nil {
		return err
	}
	if wantsHTML(c) {
		return c.Redirect(http.StatusSeeOther, orderPath(view.Order))
	}
	answer := view.Response()
	return c.Blob(answer.Status, answer.Type, answer.Body)
}
