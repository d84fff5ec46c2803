package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"payonce/idempotency"
)

// replayedHeader marks an answer that was read from the ledger.
const replayedHeader = "Idempotent-Replayed"

// links are the members of a stored answer that say where it leads. Whoever
// sends it reads them from the bytes, so that a replay leads where the first
// answer led.
type links struct {
	ID    string `json:"id"`
	Order string `json:"order"`
	Code  string `json:"code"`
}

// answer sends what the Service answered: the stored bytes as they are, never
// encoded again, or for a page the redirect that follows from them.
func (s *Server) answer(c echo.Context, a idempotency.Response) error {
	var l links
	if err := json.Unmarshal(a.Body, &l); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	order := l.Order
	if order == "" && l.Code == "" {
		order = l.ID // the answer is an order
	}
	v := visitOf(c)
	v.code, v.replayed = l.Code, a.Replayed
	if a.Replayed {
		c.Response().Header().Set(replayedHeader, "true")
	}
	if wantsHTML(c) {
		return s.answerPage(c, a, l, order)
	}
	if a.Status == http.StatusCreated {
		c.Response().Header().Set(echo.HeaderLocation, orderPath(order))
	}
	return c.Blob(a.Status, a.Type, a.Body)
}

// answerPage leads a browser to the order, whose page says how things stand now:
// after a refund, the replay of an old payment still leads to the refund. A
// redirect also makes a refresh harmless.
func (s *Server) answerPage(c echo.Context, a idempotency.Response, l links, order string) error {
	if order == "" || !leadsToOrder(a.Status) {
		var f failure
		if err := json.Unmarshal(a.Body, &f.Problem); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		return s.problemPage(c, f)
	}
	return c.Redirect(http.StatusSeeOther, answered(order, l.Code, a.Replayed))
}

// answered is the page of an order after an answer about it: with the code of a
// refusal, which not every state of an order tells by itself, and marked if the
// answer was a replay.
func answered(order, code string, replayed bool) string {
	query := url.Values{}
	if code != "" {
		query.Set("code", code)
	}
	if replayed {
		query.Set("replayed", "1")
	}
	if len(query) == 0 {
		return orderPath(order)
	}
	return orderPath(order) + "?" + query.Encode()
}

// leadsToOrder is true for the answers whose page is the order's own.
func leadsToOrder(status int) bool {
	switch status {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted,
		http.StatusPaymentRequired, http.StatusConflict, http.StatusServiceUnavailable:
		return true
	}
	return false
}

func orderPath(id string) string { return "/orders/" + id }

// sendJSON answers a read.
func (s *Server) sendJSON(c echo.Context, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
}
