package web

import (
	_ "embed"
	"net/http"

	"github.com/labstack/echo/v4"
)

// openAPI is the description of the API. The tests validate every answer
// against it, and compare its routes and codes with those of the program.
//
//go:embed openapi.json
var openAPI []byte

// description answers GET /openapi.json.
func (s *Server) description(c echo.Context) error {
	private(c)
	return c.JSONBlob(http.StatusOK, openAPI)
}
