package stripesim

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Outcome is how something ends that Stripe decides by itself.
type Outcome string

const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
)

// ErrState is returned by the methods that the state of an object forbids.
var ErrState = errors.New("state forbids it")

// Finish ends a payment without any call: a customer passes or fails the challenge that is open, the network decides
// about what is processing, or Stripe completes the work of a confirm that it had answered with 500 (then it is paid
// with pm_card_visa). It returns ErrNotFound, ErrState for a PaymentIntent that is succeeded, canceled or to be captured
// and for an unknown outcome, or an error when another call holds the PaymentIntent.
func (s *Server) Finish(paymentIntent string, outcome Outcome) error {
	a, found := s.find(paymentIntent)
	if _, ok := found.(*intent); !ok {
		return ErrNotFound
	}
	if outcome != Succeeded && outcome != Failed {
		return fmt.Errorf("unknown outcome %q: %w", outcome, ErrState)
	}
	var forbidden error
	failed := s.change(a, paymentIntent, s.config.URL, func(tx *tx) {
		pi := *tx.get(paymentIntent).(*intent)
		forbidden = tx.finish(&pi, outcome)
	})
	if failed != nil {
		return errors.New(failed.body.Message)
	}
	return forbidden
}

func (tx *tx) finish(pi *intent, outcome Outcome) error {
	switch pi.Status {
	case succeeded, canceled, requiresCapture:
		return fmt.Errorf("%s is %s: %w", pi.ID, pi.Status, ErrState)
	case requiresAction:
		if outcome == Succeeded {
			tx.passChallenge(pi)
		} else {
			tx.failChallenge(pi)
		}
		return nil
	}
	m, known := tx.get(pi.PaymentMethod.id).(*method)
	if !known {
		m = tx.newMethod("pm_card_visa")
		pi.PaymentMethod = refer(m.ID)
	}
	if outcome == Succeeded {
		tx.charged(pi, m)
	} else {
		_, _ = tx.declined(pi, m, genericDecline)
	}
	return nil
}

// Emission is an event that did not happen.
type Emission struct {
	Type string `json:"type"`
	// ObjectID names the object the event is about, as it is now, in whatever account.
	ObjectID string `json:"object_id,omitempty"`
	// Object is the event's object as it stands, when ObjectID is empty: one that does not exist here. It goes to the
	// endpoints of Account.
	Object json.RawMessage `json:"object,omitempty"`
	// Account is the secret key whose endpoints get an event with Object. Default value sk_test_local.
	Account string `json:"account,omitempty"`
}

// Emit records an event and delivers it like any other. It returns the event's id, ErrNotFound, or ErrRule.
func (s *Server) Emit(e Emission) (string, error) {
	if e.Type == "" || (e.ObjectID == "") == (len(e.Object) == 0) {
		return "", fmt.Errorf("an event needs a type and one of object_id and object: %w", ErrRule)
	}
	var shown any = e.Object
	var a *account
	if e.ObjectID != "" {
		owner, r := s.find(e.ObjectID)
		if r == nil {
			return "", ErrNotFound
		}
		a, shown = owner, r.shown()
	} else {
		if e.Account == "" {
			e.Account = testKeyPrefix + "local"
		}
		s.mu.Lock()
		a = s.account(accountID(e.Account))
		s.mu.Unlock()
	}
	var id string
	err := s.transactWithoutCall(a, s.config.URL, func(tx *tx) { id = tx.emit(e.Type, shown, nil) })
	return id, err
}
