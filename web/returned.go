package web

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// returned answers GET /orders/{id}/return, the way back from the buyer's bank.
// It asks what became of the payment, settles it, and shows the truth; what the
// address says (redirect_status and the like) anybody could have written. It
// never cancels.
//
// Who comes back in another browser has no session; the order's token then
// shows the short answer, and nothing else about the order.
func (s *Server) returned(c echo.Context) error {
	id, err := referenced(c, "id")
	if err != nil {
		return err
	}
	ctx, account := c.Request().Context(), visitOf(c).account
	if account != "" {
		err := s.cfg.Service.Ask(ctx, account, id)
		if errors.Is(err, checkout.ErrOutcomeUnknown) {
			s.cfg.Log.WarnContext(ctx, "asking on the way back", slog.String("order", id), slog.Any("err", err))
			err = nil // the order's page says that it is not known yet
		}
		if err == nil {
			return c.Redirect(http.StatusSeeOther, orderPath(id))
		}
		if !errors.Is(err, checkout.ErrNotFound) {
			return err
		}
	}
	state, err := s.cfg.Service.Returned(ctx, id, c.QueryParam("token"))
	if err != nil {
		return err
	}
	if wantsHTML(c) {
		return s.sendPage(c, http.StatusOK, view.ReturnPage(view.Return{Frame: s.frame(view.NoSection), State: view.ReturnState(state), Again: c.Request().URL.RequestURI()}))
	}
	return s.sendJSON(c, map[string]checkout.ReturnState{"status": state})
}
