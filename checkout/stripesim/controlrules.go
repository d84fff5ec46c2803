package stripesim

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

func (s *Server) ruleRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /_sim/rules", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		rules := append([]*ActiveRule{}, s.rules...)
		s.mu.Unlock()
		writeJSON(w, http.StatusOK, rules)
	})
	mux.HandleFunc("POST /_sim/rules", func(w http.ResponseWriter, r *http.Request) {
		var rule Rule
		if readJSON(w, r, &rule) {
			active, err := s.Add(rule)
			writeResult(w, active, err)
		}
	})
	mux.HandleFunc("GET /_sim/rules/{id}", s.onRule(func(*ActiveRule) {}))
	mux.HandleFunc("POST /_sim/rules/{id}/wait", s.waitRule)
	mux.HandleFunc("POST /_sim/rules/{id}/release", s.onRule((*ActiveRule).Release))
	mux.HandleFunc("POST /_sim/rules/{id}/break", s.onRule((*ActiveRule).Break))
	mux.HandleFunc("DELETE /_sim/rules/{id}", s.onRule((*ActiveRule).Remove))

	mux.HandleFunc("GET /_sim/delivery_rules", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		rules := append([]*ActiveDelivery{}, s.deliveryRules...)
		s.mu.Unlock()
		writeJSON(w, http.StatusOK, rules)
	})
	mux.HandleFunc("POST /_sim/delivery_rules", func(w http.ResponseWriter, r *http.Request) {
		var rule DeliveryRule
		if readJSON(w, r, &rule) {
			active, err := s.AddDelivery(rule)
			writeResult(w, active, err)
		}
	})
	mux.HandleFunc("POST /_sim/delivery_rules/{id}/release", s.onDeliveryRule((*ActiveDelivery).Release))
	mux.HandleFunc("DELETE /_sim/delivery_rules/{id}", s.onDeliveryRule((*ActiveDelivery).Remove))
}

var errNoRule = errors.New("no such rule")

// onRule does something to the rule named in the path, then answers the rule.
func (s *Server) onRule(f func(*ActiveRule)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rule := s.Rule(r.PathValue("id"))
		if rule == nil {
			writeProblem(w, http.StatusNotFound, errNoRule)
			return
		}
		f(rule)
		writeJSON(w, http.StatusOK, rule)
	}
}

func (s *Server) onDeliveryRule(f func(*ActiveDelivery) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rule := s.DeliveryRule(r.PathValue("id"))
		if rule == nil {
			writeProblem(w, http.StatusNotFound, errNoRule)
			return
		}
		writeResult(w, rule, f(rule))
	}
}

// waitRule answers when the rule has acted on `count` calls (1), or 408 after `timeout` (30s).
func (s *Server) waitRule(w http.ResponseWriter, r *http.Request) {
	rule := s.Rule(r.PathValue("id"))
	if rule == nil {
		writeProblem(w, http.StatusNotFound, errNoRule)
		return
	}
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
		writeProblem(w, http.StatusGone, err)
	}
}
