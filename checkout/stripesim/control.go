package stripesim

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// control registers the routes by which tests steer the local Stripe. They need no key: the server listens on loopback.
func (s *Server) control(mux *http.ServeMux) {
	mux.HandleFunc("GET /_sim/identity", s.identity)
	mux.HandleFunc("GET /_sim/requests", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.Requests()) })
	mux.HandleFunc("GET /_sim/counts", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.Counts()) })
	mux.HandleFunc("GET /_sim/rules", s.listRules)
	mux.HandleFunc("POST /_sim/rules", s.addRule)
	mux.HandleFunc("GET /_sim/rules/{id}", s.onRule(func(w http.ResponseWriter, _ *http.Request, rule *Active) {
		writeJSON(w, http.StatusOK, rule)
	}))
	mux.HandleFunc("POST /_sim/rules/{id}/wait", s.onRule(waitRule))
	mux.HandleFunc("POST /_sim/rules/{id}/release", s.onRule(func(w http.ResponseWriter, _ *http.Request, rule *Active) {
		rule.Release()
		writeJSON(w, http.StatusOK, rule)
	}))
	mux.HandleFunc("POST /_sim/rules/{id}/break", s.onRule(func(w http.ResponseWriter, _ *http.Request, rule *Active) {
		rule.Break()
		writeJSON(w, http.StatusOK, rule)
	}))
	mux.HandleFunc("DELETE /_sim/rules/{id}", s.onRule(func(w http.ResponseWriter, _ *http.Request, rule *Active) {
		rule.Remove()
		writeJSON(w, http.StatusOK, rule)
	}))
	mux.HandleFunc("POST /_sim/prune", func(w http.ResponseWriter, r *http.Request) {
		pruned, err := s.PruneKeys(r.FormValue("key"))
		writeResult(w, map[string]int{"pruned": pruned}, err)
	})
	mux.HandleFunc("POST /_sim/advance", func(w http.ResponseWriter, r *http.Request) {
		d, err := time.ParseDuration(r.FormValue("by"))
		if err != nil || d <= 0 {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": "by must be a duration such as 25h"})
			return
		}
		writeResult(w, map[string]string{"advanced": d.String()}, s.Advance(d))
	})
	mux.HandleFunc("POST /_sim/reset", func(w http.ResponseWriter, r *http.Request) {
		writeResult(w, map[string]bool{"reset": true}, s.Reset(r.FormValue("account")))
	})
}

// Identity is the answer of GET /_sim/identity.
type Identity struct {
	ID         string `json:"id"`
	Product    string `json:"product"`
	APIVersion string `json:"api_version"`
}

// Product is Identity.Product of every local Stripe.
const Product = "payonce local stripe"

func (s *Server) identity(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Identity{ID: s.config.ID, Product: Product, APIVersion: APIVersion})
}

func (s *Server) listRules(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	rules := append([]*Active{}, s.rules...)
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, rules)
}

func (s *Server) addRule(w http.ResponseWriter, r *http.Request) {
	var rule Rule
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rule); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	active, err := s.Add(rule)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	writeJSON(w, http.StatusCreated, active)
}

func (s *Server) onRule(f func(http.ResponseWriter, *http.Request, *Active)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rule := s.Rule(r.PathValue("id"))
		if rule == nil {
			writeJSON(w, http.StatusNotFound, map[string]string{"error": "no such rule"})
			return
		}
		f(w, r, rule)
	}
}

// waitRule answers when the rule has acted on as many calls as asked for, one by default, or 408 after the timeout.
func waitRule(w http.ResponseWriter, r *http.Request, rule *Active) {
	count, timeout := 1, 30*time.Second
	if n, err := strconv.Atoi(r.FormValue("count")); err == nil {
		count = n
	}
	if d, err := time.ParseDuration(r.FormValue("timeout")); err == nil {
		timeout = d
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	switch err := rule.Wait(ctx, count); {
	case err == nil:
		writeJSON(w, http.StatusOK, rule)
	case errors.Is(err, context.DeadlineExceeded):
		writeJSON(w, http.StatusRequestTimeout, rule)
	default:
		writeJSON(w, http.StatusGone, map[string]string{"error": err.Error()})
	}
}

func writeResult(w http.ResponseWriter, result any, err error) {
	if err != nil {
		writeJSON(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, result)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(render(v))
}
