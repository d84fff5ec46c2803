package stripesim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// answer is what goes back, or does not.
type answer struct {
	status      int
	body        []byte
	contentType string // application/json when empty
	code        string // of the error, for the log
	original    string // id of the request that executed
	replayed    bool
	executed    bool
	shouldRetry string
	limited     string
	dropped     bool
}

var droppedAnswer = answer{dropped: true}

// answered renders an object or an error.
func (c *call) answered(shown any, err *apiError) answer {
	if err != nil {
		return c.failed(err)
	}
	return answer{status: http.StatusOK, body: render(shown), original: c.id, shouldRetry: "false"}
}

func (c *call) failed(err *apiError) answer {
	a := answer{
		status: err.status, code: err.body.Code, shouldRetry: err.shouldRetry, limited: err.limited,
		body: render(map[string]any{"error": err.body}),
	}
	if err.begun {
		a.original = c.id
	}
	return a
}

// render writes JSON as Stripe does: indented, and with <, > and & as they are.
func render(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("stripesim: rendering %T: %v", v, err)) // our own types: cannot happen
	}
	return b.Bytes()
}

func (c *call) write(w http.ResponseWriter, a answer) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if a.contentType != "" {
		h.Set("Content-Type", a.contentType)
	}
	h.Set("Cache-Control", "no-cache, no-store")
	h.Set("Request-Id", c.id)
	h.Set("Stripe-Version", APIVersion)
	if c.key != "" {
		h.Set("Idempotency-Key", c.key)
	}
	if c.method == http.MethodPost && a.original != "" {
		h.Set("Original-Request", a.original)
	}
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if c.method == http.MethodPost && a.shouldRetry != "" {
		h.Set("Stripe-Should-Retry", a.shouldRetry)
	}
	if a.limited != "" {
		h.Set("Stripe-Rate-Limited-Reason", a.limited)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}
