package web

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// readyLimit bounds the question whether the shop can sell: who asks wants an
// answer, also from a database that hangs.
const readyLimit = 2 * time.Second

// healthy answers GET /healthz: the process serves.
func (s *Server) healthy(c echo.Context) error {
	return c.JSONBlob(http.StatusOK, []byte(`{"status":"ok"}`))
}

// ready answers GET /readyz: the shop can sell. Why it cannot is for the log.
func (s *Server) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyLimit)
	defer cancel()
	if err := s.cfg.Ready(ctx); err != nil {
		visitOf(c).code, visitOf(c).err = "not_ready", err
		return c.JSONBlob(http.StatusServiceUnavailable, []byte(`{"status":"not_ready"}`))
	}
	return c.JSONBlob(http.StatusOK, []byte(`{"status":"ok"}`))
}
