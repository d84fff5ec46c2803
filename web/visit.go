package web

import (
	"crypto/rand"

	"github.com/labstack/echo/v4"

	"payonce/idempotency"
)

// visit is what is known of one request, for its handler and for its log line.
type visit struct {
	id      string // told to the client, to be quoted
	account string
	key     string // shortened
	code    string // of the problem that was answered
	err     error  // behind it
	// replayed is true if the answer was read from the ledger.
	replayed bool
}

const visitKey = "payonce.visit"

// visitOf gives the request's visit; the outermost middleware started it.
func visitOf(c echo.Context) *visit {
	if v, ok := c.Get(visitKey).(*visit); ok {
		return v
	}
	v := &visit{id: "req_" + rand.Text()}
	c.Set(visitKey, v)
	return v
}

// shortened gives enough of a key to find it in the ledger, and too little to
// send it. Keys are no secrets, but a log is read by more people than a ledger.
func shortened(key idempotency.Key) string {
	return string(key[:min(8, len(key)/2)]) + "..."
}
