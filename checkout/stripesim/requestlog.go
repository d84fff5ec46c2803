package stripesim

import (
	"strings"
	"time"
)

// maxRequests is how many requests the log keeps; older ones are only counted.
const maxRequests = 100_000

// Request is one line of the log of requests received.
type Request struct {
	Number        int       `json:"number"`
	At            time.Time `json:"at"`
	Account       string    `json:"account"` // empty until authenticated
	Operation     string    `json:"operation"`
	Method        string    `json:"method"`
	Path          string    `json:"path"`
	PaymentIntent string    `json:"payment_intent"`
	Key           string    `json:"key"`
	RequestID     string    `json:"request_id"`
	Status        int       `json:"status"` // 0 while it runs, and when no answer was sent
	Code          string    `json:"code"`   // of the error
	Replayed      bool      `json:"replayed"`
	Executed      bool      `json:"executed"` // it ran its operation now, and what that did is kept
	Dropped       bool      `json:"dropped"`  // the connection was broken instead of an answer
	Done          bool      `json:"done"`
}

// requestLog is guarded by the server's mutex.
type requestLog struct {
	forgotten int
	entries   []*Request
	counts    map[string]int
	byID      map[string]*Request
}

// log writes down the arrival of a call and finds the rules that it meets.
func (s *Server) log(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.requests
	if l.counts == nil {
		l.counts, l.byID = map[string]int{}, map[string]*Request{}
	}
	operation := c.route.name()
	if c.route.run == nil {
		operation = "unrecognized"
	}
	l.counts[operation]++
	r := &Request{
		Number: l.forgotten + len(l.entries) + 1, At: s.now(), Operation: operation, Method: c.method, Path: c.path,
		Key: c.key, RequestID: c.id,
	}
	if strings.HasPrefix(c.route.pattern, "/v1/payment_intents/{id}") {
		r.PaymentIntent = c.subject
	}
	if len(l.entries) >= maxRequests {
		for _, old := range l.entries[:maxRequests/2] {
			delete(l.byID, old.RequestID)
		}
		l.forgotten += maxRequests / 2
		l.entries = append([]*Request(nil), l.entries[maxRequests/2:]...)
	}
	l.entries = append(l.entries, r)
	l.byID[c.id] = r
	c.rules = s.rulesFor(c)
	s.notify()
}

// note changes the call's line. The caller holds the mutex.
func (l *requestLog) note(c *call, change func(*Request)) {
	if r, found := l.byID[c.id]; found {
		change(r)
	}
}

// finish completes the call's line.
func (s *Server) finish(c *call, a answer) {
	s.mu.Lock()
	s.requests.note(c, func(r *Request) {
		r.Code, r.Replayed, r.Executed, r.Dropped, r.Done = a.code, a.replayed, a.executed, a.dropped, true
		if !a.dropped {
			r.Status = a.status
		}
	})
	s.notify()
	s.mu.Unlock()
	s.config.Logger.Info("call", "method", c.method, "path", c.path, "key", c.key, "status", a.status,
		"replayed", a.replayed, "dropped", a.dropped, "request", c.id)
}

// Requests returns the log, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := make([]Request, len(s.requests.entries))
	for i, r := range s.requests.entries {
		requests[i] = *r
	}
	return requests
}
