package stripesim

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"time"
)

// control registers the routes by which tests steer the local Stripe. They need no key: the server listens on loopback.
func (s *Server) control(mux *http.ServeMux) {
	mux.HandleFunc("GET /_sim/identity", s.identity)
	mux.HandleFunc("GET /_sim/requests", show(s.Requests))
	mux.HandleFunc("GET /_sim/counts", show(s.Counts))
	mux.HandleFunc("GET /_sim/deliveries", show(s.Deliveries))
	mux.HandleFunc("POST /_sim/prune", func(w http.ResponseWriter, r *http.Request) {
		pruned, err := s.PruneKeys(r.FormValue("key"))
		writeResult(w, map[string]int{"pruned": pruned}, err)
	})
	mux.HandleFunc("POST /_sim/advance", func(w http.ResponseWriter, r *http.Request) {
		d, err := time.ParseDuration(r.FormValue("by"))
		if err != nil || d <= 0 {
			writeProblem(w, http.StatusBadRequest, errors.New("by must be a duration such as 25h"))
			return
		}
		writeResult(w, map[string]string{"advanced": d.String()}, s.Advance(d))
	})
	mux.HandleFunc("POST /_sim/reset", func(w http.ResponseWriter, r *http.Request) {
		writeResult(w, map[string]bool{"reset": true}, s.Reset(r.FormValue("key")))
	})
	mux.HandleFunc("POST /_sim/payment_intents/{id}/finish", func(w http.ResponseWriter, r *http.Request) {
		outcome := Outcome(r.FormValue("outcome"))
		writeResult(w, map[string]Outcome{"finished": outcome}, s.Finish(r.PathValue("id"), outcome))
	})
	mux.HandleFunc("POST /_sim/emit", s.emitEvent)
	mux.HandleFunc("POST /_sim/events/{id}/resend", func(w http.ResponseWriter, r *http.Request) {
		writeResult(w, map[string]bool{"resent": true}, s.Resend(r.PathValue("id")))
	})
	mux.HandleFunc("POST /_sim/webhook_endpoints/{id}/roll", s.rollSecret)
	s.ruleRoutes(mux)
}

// Identity is the answer of GET /_sim/identity.
type Identity struct {
	ID         string `json:"id"`
	Product    string `json:"product"`
	APIVersion string `json:"api_version"`
	// PID is the process that answers, so that whoever started it can stop it and nothing else.
	PID int `json:"pid"`
}

// Product is Identity.Product of every local Stripe.
const Product = "payonce local stripe"

func (s *Server) identity(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Identity{ID: s.config.ID, Product: Product, APIVersion: APIVersion, PID: os.Getpid()})
}

// show answers what a method returns.
func show[T any](f func() T) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, f()) }
}

func (s *Server) rollSecret(w http.ResponseWriter, r *http.Request) {
	overlap, err := time.ParseDuration(cmp.Or(r.FormValue("overlap"), "24h"))
	if err != nil || overlap < 0 {
		writeProblem(w, http.StatusBadRequest, errors.New("overlap must be a duration such as 1h"))
		return
	}
	secret, err := s.RollSecret(r.PathValue("id"), overlap)
	writeResult(w, map[string]string{"secret": secret}, err)
}

func (s *Server) emitEvent(w http.ResponseWriter, r *http.Request) {
	var wanted Emission
	if !readJSON(w, r, &wanted) {
		return
	}
	id, err := s.Emit(wanted)
	writeResult(w, map[string]string{"event": id}, err)
}

// writeResult answers a result, or the error: 404 for what does not exist, 409 for what its state forbids.
func writeResult(w http.ResponseWriter, result any, err error) {
	switch {
	case err == nil:
		writeJSON(w, http.StatusOK, result)
	case errors.Is(err, ErrNotFound):
		writeProblem(w, http.StatusNotFound, err)
	case errors.Is(err, ErrState):
		writeProblem(w, http.StatusConflict, err)
	case errors.Is(err, ErrRule):
		writeProblem(w, http.StatusBadRequest, err)
	default:
		writeProblem(w, http.StatusInternalServerError, err)
	}
}

func writeProblem(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

// readJSON reads a body whose every member is known, or answers 400 and returns false.
func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		writeProblem(w, http.StatusBadRequest, err)
		return false
	}
	return true
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(render(v))
}
