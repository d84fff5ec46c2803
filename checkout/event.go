package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"payonce/idempotency"
)

// Event is an event of the provider whose signature was verified.
type Event struct {
	// ID is the key of the ledger of events: one payment arrives as several
	// events, and one event as several deliveries.
	ID   string
	Type string
	// Hint is true for an event whose object cannot be taken at its word,
	// because it has another API version's shape.
	Hint bool
	Live bool
	// CreatedAt is the provider's clock, in whole seconds: for people to read,
	// not for order.
	CreatedAt time.Time
	// Intent is the object of a payment_intent event; nil in a hint.
	Intent *Intent
	// IntentID, Charge and DisputeID name what the event is about, as far as it
	// says.
	IntentID, Charge, DisputeID string
}

// EventResult is what became of a delivery.
type EventResult string

// The results of a delivery. All but the last two are answered 200; for those
// the provider must deliver again.
const (
	EventApplied   EventResult = "applied"   // its effect and its row are written
	EventDuplicate EventResult = "duplicate" // it was written before
	EventIgnored   EventResult = "ignored"   // not ours, the wrong mode, or of no interest
	EventParked    EventResult = "parked"    // it can never work: a person sees it
	EventRunning   EventResult = "running"   // another delivery of it is being handled now
	EventNotYet    EventResult = "not_yet"   // ours, but not known yet, or the provider could not be asked
)

// eventPatience is how long after its first delivery an event about something of
// ours that is not known yet is sent back to be delivered again. After that it is
// parked. The event's own age says nothing: after an outage each one is old when
// it comes first, and it may well come before the one that explains it.
const eventPatience = time.Hour

// errDuplicate ends the transaction of an event that is in the ledger already.
var errDuplicate = errors.New("duplicate event")

// HandleEvent applies an event: its row, its effect and the settlement are one
// transaction, keyed on the event's id. Only "succeeded" is taken at its word;
// any other payment event makes us ask, before the transaction.
//
// The result says what to answer. An error is for an event that must be
// delivered again, with its result EventRunning or EventNotYet.
func (s *Service) HandleEvent(ctx context.Context, e Event) (EventResult, error) {
	if e.Live != s.Live || !providerID.MatchString(e.ID) {
		return EventIgnored, nil
	}
	ctx, cancel := detach(ctx, s.ProviderTimeout+recordTimeout)
	defer cancel()
	result, err := s.handleEvent(ctx, e)
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, errDuplicate):
		return EventDuplicate, nil
	case errors.As(err, &refused) && refused.Code == "55P03": // lock_timeout: see queueEvent
		return EventRunning, err
	case errors.Is(err, errMismatch):
		return s.park(ctx, e, "the amount, currency, mode, order or charge is not the payment's")
	case errors.Is(err, ErrNotFound):
		return s.postpone(ctx, e, err)
	case err != nil:
		return EventNotYet, err
	}
	return result, nil
}

func (s *Service) handleEvent(ctx context.Context, e Event) (EventResult, error) {
	switch {
	case strings.HasPrefix(e.Type, "payment_intent."):
		return s.intentEvent(ctx, e)
	case strings.HasPrefix(e.Type, "charge.dispute."):
		return s.disputeEvent(ctx, e)
	case e.Type == "charge.refunded" || e.Type == "charge.refund.updated" || strings.HasPrefix(e.Type, "refund."):
		return s.refundEvent(ctx, e)
	}
	return EventIgnored, nil
}

// intentEvent settles a success, or asks.
func (s *Service) intentEvent(ctx context.Context, e Event) (EventResult, error) {
	switch e.Type {
	case "payment_intent.succeeded", "payment_intent.payment_failed", "payment_intent.canceled",
		"payment_intent.requires_action", "payment_intent.processing":
	default:
		return EventIgnored, nil
	}
	var intent Intent
	switch {
	case e.Hint:
		var err error
		if intent, err = s.askIntent(ctx, e.IntentID); err != nil {
			return "", err
		}
	case e.Intent != nil:
		intent = *e.Intent
	}
	if !ours(intent) {
		return EventIgnored, nil
	}
	also := func(tx *idempotency.Tx) { queueEvent(tx, e, intent.Account, "applied", "") }
	if intent.Status != IntentSucceeded || !e.Hint && e.Type != "payment_intent.succeeded" {
		_, err := s.askAndSettle(ctx, intent.Account, intent.Order, also)
		return EventApplied, err
	}
	return EventApplied, s.settleSuccess(ctx, intent, also)
}

// ours is true for an intent that carries the name of an order, as each of this
// shop's does.
func ours(in Intent) bool {
	return ourID.MatchString(in.Order) && len(in.Account) <= 255 && printable(in.Account)
}

// askIntent asks about an intent that an event names. What the provider does not
// have is not ours: the empty intent.
func (s *Service) askIntent(ctx context.Context, id string) (Intent, error) {
	if !providerID.MatchString(id) {
		return Intent{}, nil
	}
	intent, err := s.provider.Intent(ctx, id)
	switch {
	case err == nil:
		return intent, nil
	case notThere(err):
		return Intent{}, nil
	}
	return Intent{}, fmt.Errorf("asking about an event's intent: %w", err)
}

// notThere is true if the provider has no object of the id, or the id cannot
// even be one, which is refused before it is sent.
func notThere(err error) bool {
	fault := judged(err)
	return fault.Fault == FaultRefused && (fault.HTTPStatus == http.StatusNotFound || fault.HTTPStatus == 0)
}

// settleSuccess settles an intent that took money, which is final, on the
// payment that it belongs to. It returns ErrNotFound if its order or an attempt
// to pay it is not known yet.
func (s *Service) settleSuccess(ctx context.Context, intent Intent, also func(tx *idempotency.Tx)) error {
	for range hintTries {
		v, err := s.look(ctx, intent.Account, intent.Order)
		if err != nil {
			return err
		}
		if v.payment.ID == "" {
			return ErrNotFound // no attempt of ours yet: deliver it again
		}
		result, err := s.settleHint(ctx, v, intent, also)
		if errors.Is(err, errStale) {
			continue
		}
		if err == nil && result.alarm {
			s.log.Error("an event was settled with an alarm", slog.String("order", intent.Order), slog.String("intent", intent.ID))
		}
		return err
	}
	return errStale
}

func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return s != ""
}

// charged finds the payment of a charge, by its id. An event about a charge may
// come before the one that tells of its success: then its intent is asked, and
// settled. It returns ErrNotFound for a charge of ours that is not recorded yet,
// and an empty payment for one that is not ours; this shop charges through
// intents alone.
func (s *Service) charged(ctx context.Context, charge, intent string) (view, error) {
	v, err := s.paidBy(ctx, charge)
	if !errors.Is(err, ErrNotFound) {
		return v, err
	}
	in, err := s.askIntent(ctx, intent)
	if err != nil || !ours(in) {
		return view{}, err
	}
	if in.Status != IntentSucceeded {
		return view{}, ErrNotFound
	}
	if err := s.settleSuccess(ctx, in, nil); err != nil {
		return view{}, err
	}
	return s.paidBy(ctx, charge)
}

// paidBy reads the payment that a charge paid, and its order. It returns
// ErrNotFound if there is none.
func (s *Service) paidBy(ctx context.Context, charge string) (v view, err error) {
	if err := found(v.payment.scan(s.pool.QueryRow(ctx,
		`SELECT`+paymentColumns+`FROM payments WHERE charge = $1 AND status = 'succeeded'`, charge))); err != nil {
		return view{}, err
	}
	err = found(v.order.scan(s.pool.QueryRow(ctx,
		`SELECT`+orderColumns+`FROM orders WHERE account = $1 AND id = $2`, v.payment.Account, v.payment.Order)))
	return v, err
}
