package web

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
)

// fail is the one place where an error becomes an answer. Strangers are told
// the code's own words and the request's id; what really happened stands in the
// log beside that id.
func (s *Server) fail(err error, c echo.Context) {
	v := visitOf(c)
	v.err = err
	if c.Response().Committed {
		return
	}
	f := failureOf(err)
	v.code = f.Code
	s.place(c, &f)
	if err := s.sendFailure(c, f); err != nil {
		s.cfg.Log.ErrorContext(c.Request().Context(), "answering an error", "request", v.id, "error", err)
	}
}

// place adds what only the request tells.
func (s *Server) place(c echo.Context, f *failure) {
	id := c.Param("id")
	switch {
	case c.Request().Method != http.MethodPost:
		if f.Code == "internal" {
			f.Detail = "Nothing was changed. Load the address again in a moment."
		}
	case f.Code == "internal":
		f.retryAfter = 1
	}
	switch c.Path() {
	case refundPath:
		f.Problem = f.ForRefund()
	case cancelPath:
		f.Problem = f.ForCancel()
	}
	if c.Path() == payPath && f.Order == "" && f.Status >= http.StatusPaymentRequired && f.Code != "not_found" && reference.MatchString(id) {
		f.Order = id
	}
}

func (s *Server) sendFailure(c echo.Context, f failure) error {
	h := c.Response().Header()
	h.Set(echo.HeaderCacheControl, "no-store")
	if wantsHTML(c) {
		return s.failurePage(c, f)
	}
	f.setRetryAfter(h)
	return c.Blob(f.Status, checkout.ProblemType, f.Response().Body)
}

// setRetryAfter says when the same request with the same key is worth sending
// again, in whole seconds (RFC 9110, section 10.2.3). Not with a redirect, where
// it would tell the browser to wait before it follows.
func (f failure) setRetryAfter(h http.Header) {
	if f.retryAfter > 0 {
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(f.retryAfter))
	}
}

// failurePage leads to the order where the order's own page says it better, and
// is a page with the error's status otherwise.
func (s *Server) failurePage(c echo.Context, f failure) error {
	if c.Request().Method != http.MethodPost {
		return s.problemPage(c, f)
	}
	switch {
	case f.Code == "already_enrolled" && f.Course != "":
		return c.Redirect(http.StatusSeeOther, readingPath(f.Course))
	case f.Code == "overloaded":
		// Nothing was claimed, so the order's page could say nothing about it.
	case f.Order != "" && leadsToOrder(f.Status):
		return c.Redirect(http.StatusSeeOther, answered(f.Order, f.Code, false))
	}
	return s.problemPage(c, f)
}
