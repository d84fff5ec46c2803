package web

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"payonce/web/view"
)

// page is what the view package makes of a model.
type page interface {
	Render(ctx context.Context, w io.Writer) error
}

// sendPage renders a page to memory and then sends it, so that a page that
// fails in the middle does not leave half of itself under a 200.
func (s *Server) sendPage(c echo.Context, status int, p page) error {
	var html bytes.Buffer
	if err := p.Render(c.Request().Context(), &html); err != nil {
		visitOf(c).code, visitOf(c).err = "internal", err
		return c.HTMLBlob(http.StatusInternalServerError, view.LastResort)
	}
	return c.HTMLBlob(status, html.Bytes())
}

// frame is what every page carries around its content.
func (s *Server) frame(section view.Section) view.Frame {
	f := view.Frame{Section: section, Facts: s.cfg.Facts, Lab: s.hasLab()}
	switch s.cfg.Stripe {
	case StripeLocal:
		f.Mode = view.LocalStripe
	case StripeTest:
		f.Mode = view.StripeTest
	}
	return f
}
