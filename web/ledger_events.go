package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/idempotency"
)

const (
	// ledgerAlive is how often a page is told that it is still being kept up to
	// date, so that neither it nor a proxy takes silence for an end.
	ledgerAlive = 5 * time.Second
	// ledgerWrite is how long one message may take to be sent.
	ledgerWrite = 10 * time.Second
)

// ledgerEvents answers GET /ledger/events: server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). "keys" is
// the part of the page that changes, sent when its content is another than the
// one that after names; "alive" says that nothing has changed. The stream ends
// when the client goes or the shop closes.
func (s *Server) ledgerEvents(c echo.Context) error {
	h := c.Response().Header()
	if c.Request().Method == http.MethodHead {
		h.Set(echo.HeaderContentType, "text/event-stream")
		return c.NoContent(http.StatusOK)
	}
	seen := c.Request().Header.Get("Last-Event-Id") // sent by a browser that connects again
	if seen == "" {
		seen = c.QueryParam("after")
	}
	v := s.watch.join(visitOf(c).account, seen)
	if v == nil {
		return fmt.Errorf("%w: too many pages are being kept up to date", idempotency.ErrOverloaded)
	}
	defer s.watch.leave(v)

	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep the events to itself
	stream := &eventStream{w: c.Response(), control: http.NewResponseController(c.Response())}
	c.Response().WriteHeader(http.StatusOK)
	if stream.send("retry: 2000\n\n") != nil {
		return nil // they have left; there is nobody to tell
	}
	alive := time.NewTicker(ledgerAlive)
	defer alive.Stop()
	for {
		var err error
		select {
		case f := <-v.frames:
			err = stream.event("keys", f.mark, f.html)
		case <-alive.C:
			err = stream.event("alive", "", nil)
		case <-c.Request().Context().Done():
			return nil
		case <-s.watch.closed.Done():
			return nil
		}
		if err != nil {
			return nil
		}
	}
}

// eventStream writes events, each with a deadline of its own: the server's write
// timeout counts from the request, and would end every stream.
type eventStream struct {
	w       io.Writer
	control *http.ResponseController
}

func (s *eventStream) event(name, id string, content []byte) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\n", name)
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	for line := range bytes.SplitSeq(content, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(bytes.TrimSuffix(line, []byte("\r")))
		b.WriteString("\n")
	}
	b.WriteString("\n")
	return s.send(b.String())
}

func (s *eventStream) send(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(ledgerWrite)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.control.Flush()
}
