package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// labEvents answers GET /lab/runs/{id}/events: server-sent events. "progress"
// says how far the run is, "ended" that its page has the result, "alive" that
// nothing has changed. The stream ends with the run.
func (s *Server) labEvents(c echo.Context) error {
	r := s.lab.find(c.Param("id"))
	if r == nil {
		return runIsGone(nil)
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep the events to itself
	if c.Request().Method == http.MethodHead {
		return c.NoContent(http.StatusOK)
	}
	outlive(c, r.limit())
	c.Response().WriteHeader(http.StatusOK)
	stream := &eventStream{w: c.Response(), control: http.NewResponseController(c.Response())}
	alive := time.NewTicker(ledgerAlive)
	defer alive.Stop()
	for {
		progress, news := r.seen()
		body, err := json.Marshal(progress)
		if err != nil {
			return fmt.Errorf("encoding progress: %w", err)
		}
		if stream.event("progress", "", body) != nil {
			return nil // they have left; there is nobody to tell
		}
		for waiting := true; waiting; {
			select {
			case <-r.ended:
				_ = stream.event("ended", "", []byte(r.id))
				return nil
			case <-news:
				waiting = false
			case <-alive.C:
				if stream.event("alive", "", nil) != nil {
					return nil
				}
			case <-c.Request().Context().Done():
				return nil
			}
		}
	}
}
