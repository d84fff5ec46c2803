package stripesim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// defaultBackoff tries at once, then more and more seldom for three days, as Stripe does in live mode.
var defaultBackoff = []time.Duration{
	time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour,
	12 * time.Hour, 24 * time.Hour, 28 * time.Hour,
}

// maxSenders is how many deliveries are under way at once.
const maxSenders = 32

// maxAttempts is how many attempts the log keeps.
const maxAttempts = 20_000

// delivery is one event on its way to one endpoint. It is a record until the endpoint answered 2xx or it is given up.
type delivery struct {
	ID       string    `json:"id"`
	Event    string    `json:"event"`
	Type     string    `json:"type"` // of the event
	Endpoint string    `json:"endpoint"`
	Attempt  int       `json:"attempt"` // how many were made
	Due      time.Time `json:"due"`
	Tamper   Tamper    `json:"tamper,omitempty"` // of the first attempt
	Held     string    `json:"held,omitempty"`   // id of the rule that holds it back
	Extra    bool      `json:"extra,omitempty"`  // a duplicate or a resend: its success is not the event's
}

func (d *delivery) ident() string    { return d.ID }
func (d *delivery) kind() string     { return "delivery" }
func (d *delivery) createdAt() int64 { return seconds(d.Due) }
func (d *delivery) shown() any       { return d }

// Attempt is one line of the log of deliveries.
type Attempt struct {
	At       time.Time `json:"at"`
	Event    string    `json:"event"`
	Type     string    `json:"type"`
	Endpoint string    `json:"endpoint"`
	URL      string    `json:"url"`
	Attempt  int       `json:"attempt"` // 1 is the first
	Status   int       `json:"status"`  // 0 without an answer
	Error    string    `json:"error,omitempty"`
	Tamper   Tamper    `json:"tamper,omitempty"`
	Extra    bool      `json:"extra,omitempty"`
}

// Deliveries returns the log of delivery attempts, oldest first.
func (s *Server) Deliveries() []Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Attempt{}, s.attempts...)
}

func newSender(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:   timeout,
		Transport: &http.Transport{DisableKeepAlives: true}, // no proxy, and no resending on a connection that broke
		// Stripe follows no redirect: 3xx is a failed delivery.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// dispatch stages the deliveries of a new event and returns how many endpoints are to get it.
func (tx *tx) dispatch(e *eventRecord) int {
	count := 0
	tx.each("webhook_endpoint", func(r record) bool {
		endpoint := r.(*endpointRecord)
		if !endpoint.wants(e.Type) {
			return true
		}
		count++
		d := delivery{
			ID: newID("dlv"), Event: e.ID, Type: e.Type, Endpoint: endpoint.ID, Due: tx.server.now().Add(tx.server.config.DeliverAfter),
		}
		tx.server.deliver(tx, d)
		return true
	})
	return count
}

// runDelivery sends one delivery and writes down what became of it.
func (s *Server) runDelivery(a *account, d *delivery) error {
	select {
	case s.senders <- struct{}{}:
		defer func() { <-s.senders }()
	case <-s.stopping:
		return errStopping
	}
	s.mu.Lock()
	endpoint, known := a.records[d.Endpoint].(*endpointRecord)
	e, kept := a.records[d.Event].(*eventRecord)
	now := s.now()
	s.mu.Unlock()
	if !known || !kept {
		return s.settleDelivery(a, d, true)
	}
	attempt := Attempt{
		At: now, Event: d.Event, Type: d.Type, Endpoint: d.Endpoint, URL: endpoint.URL, Attempt: d.Attempt + 1, Extra: d.Extra,
	}
	if d.Attempt == 0 {
		attempt.Tamper = d.Tamper
	}
	var err error
	if attempt.Status, err = s.post(endpoint, e, attempt.Tamper, now); err != nil {
		attempt.Error = err.Error()
	}
	s.mu.Lock()
	if len(s.attempts) >= maxAttempts {
		s.attempts = slices.Delete(s.attempts, 0, maxAttempts/2)
	}
	s.attempts = append(s.attempts, attempt)
	s.notify()
	s.mu.Unlock()
	return s.settleDelivery(a, d, attempt.Status >= 200 && attempt.Status < 300)
}

// post sends the event once. Each attempt has its own time and signature, by the machine's clock and not the moved one:
// the receiver's is not moved either.
func (s *Server) post(endpoint *endpointRecord, e *eventRecord, tamper Tamper, now time.Time) (int, error) {
	body, header := tamper.apply(e.event, endpoint.active(now), time.Now())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("making a delivery: %w", err)
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	if header != "" {
		request.Header.Set("Stripe-Signature", header)
	}
	answer, err := s.sender.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.CopyN(io.Discard, answer.Body, maxBody)
	return answer.StatusCode, nil
}

// settleDelivery ends a delivery that is done or given up, or puts it off to its next attempt.
func (s *Server) settleDelivery(a *account, d *delivery, done bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten(a) {
		return nil
	}
	tx := s.begin(&call{account: a})
	if _, waiting := tx.get(d.ID).(*delivery); !waiting {
		return nil // the endpoint was deleted meanwhile
	}
	next := *d
	next.Attempt++
	switch {
	case done:
		tx.remove(d.ID)
		if e, kept := tx.get(d.Event).(*eventRecord); kept && !d.Extra {
			delivered := *e
			delivered.PendingWebhooks = max(0, delivered.PendingWebhooks-1)
			tx.put(&delivered)
		}
	case next.Attempt > len(s.config.Backoff):
		tx.remove(d.ID)
	default:
		next.Due = s.now().Add(s.config.Backoff[next.Attempt-1])
		tx.put(&next)
	}
	return tx.commit(nil)
}

// ErrNotFound is returned by the methods that name an object which does not exist.
var ErrNotFound = errors.New("no such object")

// Resend sends an event once more to every endpoint that wants its type, as the dashboard's button does: the automatic
// retries go on regardless. It returns ErrNotFound.
func (s *Server) Resend(event string) error {
	a, found := s.find(event)
	e, ok := found.(*eventRecord)
	if !ok {
		return ErrNotFound
	}
	return s.transactWithoutCall(a, "", func(tx *tx) {
		tx.each("webhook_endpoint", func(r record) bool {
			if r.(*endpointRecord).wants(e.Type) {
				tx.put(&delivery{ID: newID("dlv"), Event: e.ID, Type: e.Type, Endpoint: r.ident(), Due: s.now(), Extra: true})
			}
			return true
		})
	})
}
