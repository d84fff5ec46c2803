package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
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
	// CreatedAt is the provider's clock, in whole seconds: good for telling old
	// from new, not for order.
	CreatedAt time.Time
	// Intent is the object of a payment_intent event.
	Intent *Intent
	// IntentID and Charge name what a charge, refund or dispute event is about.
	IntentID, Charge string
	// Dispute is the object of a dispute event.
	Dispute *Dispute
}

// Dispute is a charge that the buyer's bank questions.
type Dispute struct {
	ID, Charge     string
	Status, Reason string
	Money          Money
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

// eventPatience is how long an event about something of ours that is not known
// yet is sent back to be delivered again. After that it is parked.
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
	case errors.Is(err, ErrNotFound) && time.Since(e.CreatedAt) > eventPatience:
		return s.park(ctx, e, "it is about something of ours that is not known")
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
	if e.Intent == nil || e.Intent.Order == "" || e.Intent.Account == "" {
		return EventIgnored, nil // not made by this shop
	}
	if !ourID.MatchString(e.Intent.Order) || !ourAccount(e.Intent.Account) {
		return EventIgnored, nil
	}
	account, order := e.Intent.Account, e.Intent.Order
	also := func(tx *idempotency.Tx) { queueEvent(tx, e, account, "applied", "") }
	if e.Type != "payment_intent.succeeded" {
		_, err := s.askAndSettle(ctx, account, order, also)
		return EventApplied, err
	}
	intent := *e.Intent
	if e.Hint {
		var err error
		if intent, err = s.provider.Intent(ctx, intent.ID); err != nil {
			return "", fmt.Errorf("asking about an event's intent: %w", err)
		}
	}
	for range hintTries {
		v, err := s.look(ctx, account, order)
		if err != nil {
			return "", err
		}
		if v.payment.ID == "" {
			return "", ErrNotFound // no attempt of ours yet: deliver it again
		}
		result, err := s.settleHint(ctx, v, intent, also)
		if errors.Is(err, errStale) {
			continue
		}
		if err == nil && result.alarm {
			s.log.Error("an event was settled with an alarm", slog.String("event", e.ID))
		}
		return EventApplied, err
	}
	return "", errStale
}

// ourAccount is true for a text that can be an account's id.
func ourAccount(account string) bool { return len(account) <= 255 && printable(account) }

func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return s != ""
}

// queueEvent claims the event in its transaction. The primary key makes a
// second delivery of a running event wait, shortly: it must not be answered
// 200, since the first one may still fail. Of an event that is there the
// callback says so.
func queueEvent(tx *idempotency.Tx, e Event, account, status, detail string) {
	tx.Queue(`SET LOCAL lock_timeout = '500ms'`)
	tx.Queue(`
		INSERT INTO events (id, type, account, status, detail) VALUES ($1, $2, nullif($3, ''), $4, nullif($5, ''))
		    ON CONFLICT DO NOTHING`, e.ID, short(e.Type), account, status, short(detail)).
		Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return errDuplicate
			}
			return nil
		})
	tx.Queue(`SET LOCAL lock_timeout = '5s'`)
}

// short bounds a text that somebody else wrote.
func short(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
}

// park writes an event that can never work where a person sees it.
func (s *Service) park(ctx context.Context, e Event, why string) (EventResult, error) {
	s.log.Error("an event was parked", slog.String("event", e.ID), slog.String("type", short(e.Type)), slog.String("why", why))
	err := s.ledger.Transact(ctx, func(_ context.Context, tx *idempotency.Tx) error {
		queueEvent(tx, e, "", "parked", why)
		return nil
	})
	if errors.Is(err, errDuplicate) {
		return EventDuplicate, nil
	}
	if err != nil {
		return EventNotYet, err
	}
	return EventParked, nil
}

// charged finds the payment of a charge: by its id, or by asking for the
// metadata of its intent. It returns ErrNotFound for a charge of ours that is
// not recorded yet, and an empty payment for one that is not ours.
func (s *Service) charged(ctx context.Context, charge, intent string) (v view, err error) {
	err = found(v.payment.scan(s.pool.QueryRow(ctx,
		`SELECT`+paymentColumns+`FROM payments WHERE charge = $1 AND status = 'succeeded'`, charge)))
	if err == nil {
		err = found(v.order.scan(s.pool.QueryRow(ctx,
			`SELECT`+orderColumns+`FROM orders WHERE account = $1 AND id = $2`, v.payment.Account, v.payment.Order)))
		return v, err
	}
	if !errors.Is(err, ErrNotFound) || !providerID.MatchString(intent) {
		return view{}, err
	}
	in, askErr := s.provider.Intent(ctx, intent)
	switch {
	case askErr != nil && judged(askErr).HTTPStatus == 404:
		return view{}, nil
	case askErr != nil:
		return view{}, fmt.Errorf("asking about a charge: %w", askErr)
	case in.Order == "" || in.Account == "":
		return view{}, nil
	}
	return view{}, ErrNotFound
}

// disputeEvent writes the dispute beside the payment, which stays succeeded.
func (s *Service) disputeEvent(ctx context.Context, e Event) (EventResult, error) {
	d := e.Dispute
	if d == nil || !providerID.MatchString(d.ID) || !providerID.MatchString(d.Charge) {
		return EventIgnored, nil
	}
	v, err := s.charged(ctx, d.Charge, e.IntentID)
	if err != nil || v.payment.ID == "" {
		return EventIgnored, err
	}
	return EventApplied, s.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {
		queueEvent(tx, e, v.payment.Account, "applied", "")
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		tx.Queue(`
			INSERT INTO disputes (id, account, payment_id, charge, status, reason, amount, currency)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			    ON CONFLICT (account, id) DO UPDATE SET status = excluded.status, updated_at = clock_timestamp()
			 WHERE disputes.status NOT IN ('won', 'lost', 'warning_closed')`,
			d.ID, v.payment.Account, v.payment.ID, d.Charge, short(d.Status), short(d.Reason), d.Money.Amount, d.Money.Currency)
		return nil
	})
}

// refundEvent reads the charge's refunds and applies them one by one.
func (s *Service) refundEvent(ctx context.Context, e Event) (EventResult, error) {
	if !providerID.MatchString(e.Charge) {
		return EventIgnored, nil
	}
	v, err := s.charged(ctx, e.Charge, e.IntentID)
	if err != nil || v.payment.ID == "" {
		return EventIgnored, err
	}
	return EventApplied, s.applyRefunds(ctx, v, func(tx *idempotency.Tx) { queueEvent(tx, e, v.payment.Account, "applied", "") })
}

// applyRefunds lists what Stripe gave back of a payment and writes each refund
// by its id: never as a difference of totals, which would count one of ours that
// is pending twice.
func (s *Service) applyRefunds(ctx context.Context, v view, also func(tx *idempotency.Tx)) error {
	list, err := s.provider.Refunds(ctx, v.payment.Charge)
	if err != nil {
		return fmt.Errorf("%w: listing the refunds of a charge: %w", ErrOutcomeUnknown, err)
	}
	keys, err := s.refundKeys(ctx, v.payment, list)
	if err != nil {
		return err
	}
	return s.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {
		if also != nil {
			also(tx)
			if err := tx.Flush(ctx); err != nil {
				return err
			}
		}
		g := &giving{window: s.RefundWindow}
		for _, key := range keys {
			idempotency.LockKey(tx, v.payment.Account, idempotency.Key(key))
		}
		queueLockRefunded(tx, v.payment.Account, v.payment.ID, g)
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		for _, said := range list {
			if said.Charge != v.payment.Charge || said.Money.Currency != v.payment.Price.Currency || !providerID.MatchString(said.ID) {
				continue
			}
			if err := s.applyRefund(ctx, tx, g, said); err != nil {
				return err
			}
		}
		queueRefunded(tx, g)
		return nil
	})
}

// refundKeys lists the keys under which these refunds were asked for, in their
// order, since keys are locked before the order.
func (s *Service) refundKeys(ctx context.Context, p paymentRow, list []ProviderRefund) ([]string, error) {
	ids := make([]string, 0, len(list))
	for _, said := range list {
		ids = append(ids, said.Refund)
	}
	rows, _ := s.pool.Query(ctx, `
		SELECT key FROM refunds WHERE account = $1 AND payment_id = $2 AND id = ANY ($3) AND key IS NOT NULL ORDER BY key`,
		p.Account, p.ID, ids)
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("reading the keys of refunds: %w", err)
	}
	return keys, nil
}

// applyRefund writes one refund: ours is settled, and its key completed; one
// that was made elsewhere gets a row.
func (s *Service) applyRefund(ctx context.Context, tx *idempotency.Tx, g *giving, said ProviderRefund) error {
	account := g.payment.Account
	err := found(g.refund.scan(tx.QueryRow(ctx, `
		SELECT`+refundColumns+`FROM refunds
		 WHERE account = $1 AND payment_id = $2 AND (refund = $3 OR id = $4)
		 ORDER BY refund = $3 DESC NULLS LAST LIMIT 1 FOR UPDATE`, account, g.payment.ID, said.ID, said.Refund)))
	status := refundStatus(said.Status)
	if errors.Is(err, ErrNotFound) {
		tx.Queue(`
			INSERT INTO refunds (account, id, payment_id, order_id, origin, status, amount, currency, refund, ask_at)
			VALUES ($1, $2, $3, $4, 'elsewhere', $5, $6, $7, $8, clock_timestamp() + $9::interval)
			    ON CONFLICT DO NOTHING`,
			account, newID("ref_"), g.payment.ID, g.order.ID, string(status), said.Money.Amount, said.Money.Currency, said.ID, refundSchedule[0])
		return nil
	}
	if err != nil {
		return err
	}
	if g.refund.Status == status && g.refund.ProviderID == said.ID {
		return nil
	}
	tx.Queue(`
		UPDATE refunds SET status = $3, refund = $4, updated_at = clock_timestamp()
		 WHERE account = $1 AND id = $2 AND (status <> 'failed' OR $3 = 'failed')`, account, g.refund.ID, string(status), said.ID)
	g.refund.Status, g.refund.ProviderID = status, said.ID
	if g.refund.Key != "" {
		s.ledger.Settle(tx, account, idempotency.Key(g.refund.Key), refundAnswer(g))
	}
	return nil
}
