package stripesim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Tamper is how the first attempt of a delivery is made wrong. The retries are right.
type Tamper string

const (
	TamperSignature Tamper = "signature" // signed with another secret
	TamperUnsigned  Tamper = "unsigned"  // without the header
	TamperBody      Tamper = "body"      // changed after it was signed
	TamperStale     Tamper = "stale"     // signed an hour ago
	TamperFuture    Tamper = "future"    // signed an hour ahead
	TamperVersion   Tamper = "version"   // rightly signed, of another API version
	TamperLivemode  Tamper = "livemode"  // rightly signed, livemode true
)

var tampers = []Tamper{"", TamperSignature, TamperUnsigned, TamperBody, TamperStale, TamperFuture, TamperVersion, TamperLivemode}

// apply renders the event and its signature header.
func (t Tamper) apply(e event, secrets []string, now time.Time) (body []byte, header string) {
	switch t {
	case TamperVersion:
		e.APIVersion = "2020-08-27"
	case TamperLivemode:
		e.Livemode = true
	case TamperSignature:
		secrets = []string{newSecret()}
	case TamperStale:
		now = now.Add(-time.Hour)
	case TamperFuture:
		now = now.Add(time.Hour)
	}
	body = render(e)
	header = sign(body, secrets, now)
	switch t {
	case TamperUnsigned:
		header = ""
	case TamperBody:
		body = append(body, ' ')
	}
	return body, header
}

// DeliveryRule makes the deliveries of matching events misbehave.
type DeliveryRule struct {
	Event    string `json:"event,omitempty"`    // the event's type; a star at the end stands for anything; empty matches any
	Endpoint string `json:"endpoint,omitempty"` // id of a webhook endpoint; empty matches any
	Skip     int    `json:"skip,omitempty"`     // how many matching deliveries to let pass first
	Times    int    `json:"times,omitempty"`    // how many to act on; 0 is 1, negative is all

	Drop         bool   `json:"drop,omitempty"`          // it is never sent, nor retried
	Hold         bool   `json:"hold,omitempty"`          // it is sent when the rule is released: after events that came later
	BeforeAnswer bool   `json:"before_answer,omitempty"` // it is sent, and answered, before the API's answer to the call that caused it
	Copies       int    `json:"copies,omitempty"`        // how many times more it is sent
	DelayMS      int64  `json:"delay_ms,omitempty"`
	JitterMS     int64  `json:"jitter_ms,omitempty"` // a random delay up to this, so that events change places
	Tamper       Tamper `json:"tamper,omitempty"`
}

// ActiveDelivery is a delivery rule in force.
type ActiveDelivery struct {
	server *Server
	id     string
	rule   DeliveryRule

	// guarded by the server's mutex
	seen, hits int
	released   bool
}

// AddDelivery puts a rule in force for events that happen from now on. The first rule that matches acts. It returns ErrRule.
func (s *Server) AddDelivery(rule DeliveryRule) (*ActiveDelivery, error) {
	if !slices.Contains(tampers, rule.Tamper) {
		return nil, fmt.Errorf("unknown tamper %q: %w", rule.Tamper, ErrRule)
	}
	if rule.Copies < 0 || rule.DelayMS < 0 || rule.JitterMS < 0 {
		return nil, fmt.Errorf("copies, delay_ms and jitter_ms cannot be negative: %w", ErrRule)
	}
	rule.Times = cmp.Or(rule.Times, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ruleCount++
	active := &ActiveDelivery{server: s, id: "delivery_rule_" + strconv.Itoa(s.ruleCount), rule: rule}
	s.deliveryRules = append(s.deliveryRules, active)
	return active, nil
}

// DeliveryRule returns the active rule with an id, nil when there is none.
func (s *Server) DeliveryRule(id string) *ActiveDelivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, active := range s.deliveryRules {
		if active.id == id {
			return active
		}
	}
	return nil
}

// ID names the rule in the control surface.
func (a *ActiveDelivery) ID() string { return a.id }

// Release sends what the rule holds, and ends it. It returns the journal's error.
func (a *ActiveDelivery) Release() error {
	s := a.server
	s.mu.Lock()
	defer s.mu.Unlock()
	a.released = true
	for _, account := range s.accounts {
		tx := s.begin(&call{account: account})
		tx.each("delivery", func(r record) bool {
			if d := r.(*delivery); d.Held == a.id {
				free := *d
				free.Held, free.Due = "", s.now()
				tx.put(&free)
			}
			return true
		})
		if err := tx.commit(nil); err != nil {
			return err
		}
	}
	return nil
}

// Remove ends the rule; what it holds is sent.
func (a *ActiveDelivery) Remove() error {
	err := a.Release()
	s := a.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveryRules = slices.DeleteFunc(s.deliveryRules, func(other *ActiveDelivery) bool { return other == a })
	return err
}

// MarshalJSON shows the rule and how far it is.
func (a *ActiveDelivery) MarshalJSON() ([]byte, error) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	return json.Marshal(map[string]any{"id": a.id, "rule": a.rule, "seen": a.seen, "acted": a.hits, "released": a.released})
}

// heldUntilReleased is when a held delivery would be due if nobody ever released it.
const heldUntilReleased = 100 * 365 * 24 * time.Hour

// deliver stages a delivery as the first matching rule wants it. The caller holds the mutex.
func (s *Server) deliver(tx *tx, d delivery) {
	rule := s.deliveryRuleFor(d)
	if rule == nil {
		tx.put(&d)
		return
	}
	r := rule.rule
	if r.Drop {
		return
	}
	d.Tamper = r.Tamper
	d.Due = d.Due.Add(time.Duration(r.DelayMS) * time.Millisecond)
	if r.JitterMS > 0 {
		d.Due = d.Due.Add(rand.N(time.Duration(r.JitterMS) * time.Millisecond))
	}
	if r.Hold {
		d.Held, d.Due = rule.id, s.now().Add(heldUntilReleased)
	}
	tx.put(&d)
	if r.BeforeAnswer && !r.Hold && tx.call.id != "" {
		s.started[d.ID] = true // kept from the scheduler: the call itself sends it
		tx.call.urgent = append(tx.call.urgent, d.ID)
	}
	for range r.Copies {
		again := d
		again.ID, again.Extra = newID("dlv"), true
		tx.put(&again)
	}
}

func (s *Server) deliveryRuleFor(d delivery) *ActiveDelivery {
	for _, active := range s.deliveryRules {
		r := active.rule
		if active.released || r.Event != "" && !matchKind(r.Event, d.Type) || r.Endpoint != "" && r.Endpoint != d.Endpoint {
			continue
		}
		active.seen++
		if active.seen <= r.Skip || r.Times > 0 && active.hits >= r.Times {
			continue
		}
		active.hits++
		return active
	}
	return nil
}

// deliverUrgent sends what a rule wants to arrive before the call's answer. The call has given back its key and its
// object, as at Stripe: the receiver may act on both.
func (s *Server) deliverUrgent(c *call) {
	for _, id := range c.urgent {
		s.runStarted(c.account, id)
	}
	c.urgent = nil
}
