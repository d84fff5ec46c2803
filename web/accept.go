package web

import (
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

// wantsHTML is true for a client that names text/html, as every browser does,
// and does not like JSON better. Everybody else gets JSON, */* too: a program
// that does not care must not have to read pages.
func wantsHTML(c echo.Context) bool {
	c.Response().Header().Set(echo.HeaderVary, echo.HeaderAccept)
	html, json := 0.0, 0.0
	for _, line := range c.Request().Header.Values(echo.HeaderAccept) {
		for part := range strings.SplitSeq(line, ",") {
			name, q := accepted(part)
			switch name {
			case "text/html":
				html = max(html, q)
			case "application/json", "application/problem+json":
				json = max(json, q)
			}
		}
	}
	return html > 0 && html >= json
}

// accepted reads one element of an Accept header (RFC 9110, section 12.5.1). A
// weight that cannot be read counts as none.
func accepted(part string) (mediaType string, q float64) {
	name, params, _ := strings.Cut(part, ";")
	q = 1
	for param := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(key, "q") {
			continue
		}
		weight, err := strconv.ParseFloat(value, 64)
		if err == nil && weight >= 0 && weight <= 1 {
			q = weight
		}
	}
	return strings.ToLower(strings.TrimSpace(name)), q
}
