package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// problemPage says what happened and what to do, under the error's own status,
// and shows the same answer as a program gets it.
func (s *Server) problemPage(c echo.Context, f failure) error {
	f.setRetryAfter(c.Response().Header())
	words := view.ProblemWords(f.Code, paying(c))
	if c.Path() == refundPath {
		words = view.RefundProblemWords(f.Code)
	}
	if f.Code == "invalid_request" {
		words.Text = f.Detail + " " + words.Text // what is wrong with what was typed
	}
	if f.words != nil {
		words = *f.words
	}
	return s.sendPage(c, f.Status, view.ProblemPage(view.Problem{
		Frame:    s.frame(view.NoSection),
		Words:    words,
		Actions:  waysOn(c, f),
		Document: f.document(),
		Request:  visitOf(c).id,
		CodeURL:  f.Type,
	}))
}

// paying is true for a request about money: only then does its page answer
// whether anything was charged.
func paying(c echo.Context) bool {
	return c.Request().Method == http.MethodPost && (c.Path() == payPath || c.Path() == refundPath || c.Path() == cancelPath)
}

// waysOn are the places from where somebody can go on, the best one first.
func waysOn(c echo.Context, f failure) []view.Link {
	if len(f.ways) > 0 {
		return f.ways
	}
	var ways []view.Link
	if f.Order != "" {
		ways = append(ways, view.Link{Label: "See the order", URL: orderPath(f.Order)})
	}
	if slug := c.Param("slug"); f.Course == "" && strings.HasPrefix(c.Path(), "/courses/:slug/") && reference.MatchString(slug) {
		f.Course = slug
	}
	if f.Course != "" {
		ways = append(ways, view.Link{Label: "See the course", URL: coursePath(f.Course)})
	}
	if len(ways) == 0 && paying(c) && f.Code != "no_session" {
		ways = append(ways, view.Link{Label: "See your orders", URL: "/orders"})
	}
	return append(ways, view.Link{Label: "All courses", URL: "/"})
}

// document is the answer as a program gets it.
func (f failure) document() string {
	var body bytes.Buffer
	if err := json.Indent(&body, f.Response().Body, "", "  "); err != nil {
		panic("web: bug: a problem that is not JSON: " + err.Error())
	}
	text := fmt.Sprintf("HTTP/1.1 %d %s\nContent-Type: %s\n", f.Status, http.StatusText(f.Status), checkout.ProblemType)
	if f.retryAfter > 0 {
		text += fmt.Sprintf("Retry-After: %d\n", f.retryAfter)
	}
	return text + "\n" + body.String()
}
