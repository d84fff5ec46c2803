package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/static"
)

// observe is the outermost middleware: it gives the request its id, answers the
// errors of all others, and then writes the log line and the metrics.
//
// The line holds the path, which names orders, but never a query, a body, a
// cookie or a whole key.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		v := visitOf(c)
		c.Response().Header().Set(echo.HeaderXRequestID, v.id)
		route := s.routeOf(c)
		if s.cfg.Tracing {
			// otelhttp names the span after the pattern once the handler is done.
			c.Request().Pattern = c.Request().Method + " " + route
		}

		if err := next(c); err != nil {
			c.Error(err)
		}

		took := time.Since(start)
		status := c.Response().Status
		s.metrics.observe(c.Request().Method, route, status, took)

		level := slog.LevelInfo
		switch {
		case v.code == "internal" && !errors.Is(v.err, context.Canceled):
			level = slog.LevelError
		case status >= http.StatusInternalServerError:
			level = slog.LevelWarn
		case status < http.StatusBadRequest && quiet(route):
			level = slog.LevelDebug
		}
		attrs := []slog.Attr{
			slog.String("request", v.id),
			slog.String("method", c.Request().Method),
			slog.String("path", c.Request().URL.Path),
			slog.String("route", route),
			slog.Int("status", status),
			slog.Duration("took", took),
		}
		if v.key != "" {
			attrs = append(attrs, slog.String("key", v.key), slog.Bool("replayed", v.replayed))
		}
		if v.code != "" {
			attrs = append(attrs, slog.String("code", v.code))
		}
		if v.err != nil {
			attrs = append(attrs, slog.Any("error", v.err))
		}
		s.cfg.Log.LogAttrs(context.WithoutCancel(c.Request().Context()), level, "request", attrs...)
		return nil
	}
}

// routeOf names the route without what the client put into it, so that the
// metrics do not grow with every address that somebody tries.
func (s *Server) routeOf(c echo.Context) string {
	if s.paths[c.Path()] {
		return c.Path()
	}
	return "none"
}

// quiet routes are asked all the time and have nothing to tell.
func quiet(route string) bool {
	return route == "/healthz" || route == "/readyz" || strings.HasPrefix(route, static.Prefix)
}

// recovered turns a panic into an error, so that one request does not end the
// shop in the middle of the payments of others.
func (s *Server) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		return next(c)
	}
}
