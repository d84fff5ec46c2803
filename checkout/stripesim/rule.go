package stripesim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Point is a moment in the life of a call at which a rule acts.
type Point string

const (
	// Arrival is before every gate: the call is still on its way, and has taken neither key nor object.
	Arrival Point = "arrival"
	// Execution is past the gates: the call holds its key and its object, and nothing is executed.
	Execution Point = "execution"
	// Answer is after everything: executed, stored and on disk; only the answer is not sent. Replays and refusals pass here too.
	Answer Point = "answer"
)

// Action is what a rule does to a call.
type Action string

const (
	Hold  Action = "hold"  // the call waits until the rule is released
	Drop  Action = "drop"  // the connection breaks without an answer
	Delay Action = "delay" // the call waits for Rule.DelayMS
	Fail  Action = "fail"  // the call is answered with Rule.Failure
)

// ErrRule is returned by Add for a rule that says nothing sensible.
var ErrRule = errors.New("invalid rule")

// ErrReset is returned by Wait when the rule is removed, the server reset or stopped.
var ErrReset = errors.New("rule removed")

// Rule makes matching calls to the API misbehave.
type Rule struct {
	Method    string `json:"method,omitempty"`     // empty matches any
	Path      string `json:"path,omitempty"`       // `*` stands for one segment: /v1/payment_intents/*/confirm; empty matches any
	KeyPrefix string `json:"key_prefix,omitempty"` // of the Idempotency-Key; empty matches any call, keyed or not
	Skip      int    `json:"skip,omitempty"`       // how many matching calls to let pass first
	Times     int    `json:"times,omitempty"`      // how many to act on; 0 is 1, negative is all

	Action Action `json:"action"`
	// At is when. Default value Arrival for Delay, Answer for Drop, Execution for Hold. Fail decides for itself: what is
	// neither stored nor executed is answered at the gate of the rate limit, the rest at Execution.
	At      Point    `json:"at,omitempty"`
	DelayMS int64    `json:"delay_ms,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is an answer in place of the right one.
type Failure struct {
	Status   int    `json:"status"`
	Type     string `json:"type,omitempty"` // default api_error from 500 on, else invalid_request_error
	Code     string `json:"code,omitempty"`
	Message  string `json:"message,omitempty"`
	Stored   bool   `json:"stored,omitempty"`   // under the idempotency key, and replayed from then on
	Executed bool   `json:"executed,omitempty"` // the call is executed all the same, and its objects change

	// Body replaces Stripe's error envelope: a proxy's HTML page, or JSON cut short.
	Body        string `json:"body,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	// ShouldRetry is the Stripe-Should-Retry header; absent when empty.
	ShouldRetry string `json:"should_retry,omitempty"`
}

func (f *Failure) answer(c *call) answer {
	if f.Body != "" {
		return answer{status: f.Status, body: []byte(f.Body), contentType: cmp.Or(f.ContentType, "text/html"), shouldRetry: f.ShouldRetry}
	}
	kind := invalidRequest
	if f.Status >= http.StatusInternalServerError {
		kind = internalError
	}
	e := newError(f.Status, cmp.Or(f.Type, kind), f.Code, "", cmp.Or(f.Message, "The local Stripe was told to answer this."))
	e.shouldRetry = f.ShouldRetry
	if f.Code == "rate_limit" {
		e.limited = "global-rate"
	}
	e.begun = f.Stored || f.Executed
	return c.failed(e)
}

// ActiveRule is a rule in force.
type ActiveRule struct {
	server *Server
	id     string
	rule   Rule

	// guarded by the server's mutex
	seen, hits, reached int
	released            chan struct{}
	isOpen, drops       bool
}

// Add puts a rule in force for calls that arrive from now on. The rules of a call act in the order they were added.
// It returns ErrRule.
func (s *Server) Add(rule Rule) (*ActiveRule, error) {
	switch rule.Action {
	case Hold:
		rule.At = cmp.Or(rule.At, Execution)
	case Drop:
		rule.At = cmp.Or(rule.At, Answer)
	case Delay:
		rule.At = cmp.Or(rule.At, Arrival)
		if rule.DelayMS < 1 {
			return nil, fmt.Errorf("delay_ms is missing: %w", ErrRule)
		}
	case Fail:
		if rule.Failure == nil || rule.Failure.Status < 200 || rule.Failure.Status > 599 || rule.At != "" {
			return nil, fmt.Errorf("a failure needs a status, and no point: %w", ErrRule)
		}
	default:
		return nil, fmt.Errorf("unknown action %q: %w", rule.Action, ErrRule)
	}
	if rule.Action != Fail && !slices.Contains([]Point{Arrival, Execution, Answer}, rule.At) {
		return nil, fmt.Errorf("unknown point %q: %w", rule.At, ErrRule)
	}
	rule.Times = cmp.Or(rule.Times, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ruleCount++
	active := &ActiveRule{server: s, id: "rule_" + strconv.Itoa(s.ruleCount), rule: rule, released: make(chan struct{})}
	s.rules = append(s.rules, active)
	return active, nil
}

// Rule returns the active rule with an id, nil when there is none.
func (s *Server) Rule(id string) *ActiveRule {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, active := range s.rules {
		if active.id == id {
			return active
		}
	}
	return nil
}

// ID names the rule in the control surface.
func (a *ActiveRule) ID() string { return a.id }

// Wait returns when the rule has acted on n calls: they are held, or were dropped, delayed or failed. It returns
// ErrReset, or the context's error.
func (a *ActiveRule) Wait(ctx context.Context, n int) error {
	for {
		a.server.mu.Lock()
		reached, gone, changed := a.reached, !slices.Contains(a.server.rules, a), a.server.changed
		a.server.mu.Unlock()
		switch {
		case reached >= n:
			return nil
		case gone:
			return ErrReset
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-a.server.stopping:
			return ErrReset
		}
	}
}

// Release lets every call go that the rule holds, and holds no more.
func (a *ActiveRule) Release() {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	a.open(false)
}

// Break drops every call that the rule holds, and holds no more.
func (a *ActiveRule) Break() {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	a.open(true)
}

// Remove ends the rule; calls that it holds go on.
func (a *ActiveRule) Remove() {
	s := a.server
	s.mu.Lock()
	defer s.mu.Unlock()
	a.open(false)
	s.rules = slices.DeleteFunc(s.rules, func(other *ActiveRule) bool { return other == a })
	s.notify()
}

func (a *ActiveRule) open(drops bool) {
	if !a.isOpen {
		a.isOpen, a.drops = true, drops
		close(a.released)
	}
}

// MarshalJSON shows the rule and how far it is.
func (a *ActiveRule) MarshalJSON() ([]byte, error) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	return json.Marshal(map[string]any{"id": a.id, "rule": a.rule, "seen": a.seen, "reached": a.reached, "released": a.isOpen})
}

// rulesFor takes the call's share of every rule that matches it. The caller holds the mutex.
func (s *Server) rulesFor(c *call) []*ActiveRule {
	var mine []*ActiveRule
	for _, active := range s.rules {
		r := active.rule
		if r.Method != "" && r.Method != c.method || !matchPath(r.Path, c.path) || !strings.HasPrefix(c.key, r.KeyPrefix) {
			continue
		}
		active.seen++
		if active.isOpen || active.seen <= r.Skip || r.Times > 0 && active.hits >= r.Times {
			continue
		}
		active.hits++
		mine = append(mine, active)
	}
	return mine
}

func matchPath(pattern, path string) bool {
	if pattern == "" {
		return true
	}
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == "*" || w == h })
}

// meet lets the call's rules act at a point. It returns true when the connection is to be dropped.
func (s *Server) meet(c *call, at Point) bool {
	for _, active := range c.rules {
		if active.rule.Action == Fail || active.rule.At != at {
			continue
		}
		active.reach()
		switch active.rule.Action {
		case Drop:
			return true
		case Delay:
			s.pause(time.Duration(active.rule.DelayMS) * time.Millisecond)
		case Hold:
			if active.hold() {
				return true
			}
		}
	}
	return false
}

// hold waits for the release. It returns true when the call is to be dropped instead of going on.
func (a *ActiveRule) hold() bool {
	select {
	case <-a.released:
	case <-a.server.stopping:
		return true
	}
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	return a.drops
}

func (a *ActiveRule) reach() {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	a.reached++
	a.server.notify()
}

// failure returns what the call's first failing rule wants it to be answered.
func (s *Server) failure(c *call) *Failure {
	for _, active := range c.rules {
		if active.rule.Action == Fail {
			active.reach()
			return active.rule.Failure
		}
	}
	return nil
}
