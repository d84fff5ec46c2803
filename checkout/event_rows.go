package checkout

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"payonce/idempotency"
)

// queueEvent claims the event in its transaction. The primary key makes a
// second delivery of a running event wait, shortly: it must not be answered
// 200, since the first one may still fail. A row that only says that the event
// waits, or was parked, is claimed like none: the event has had no effect yet.
// Of an event that was handled the callback says so.
func queueEvent(tx *idempotency.Tx, e Event, account, status, detail string) {
	queueEventLockTimeout(tx)
	tx.Queue(`
		INSERT INTO events (id, type, account, status, detail, intent, charge, dispute)
		VALUES ($1, $2, nullif($3, ''), $4, nullif($5, ''), nullif($6, ''), nullif($7, ''), nullif($8, ''))
		    ON CONFLICT (id) DO UPDATE SET account = excluded.account, status = excluded.status, detail = excluded.detail
		 WHERE events.status IN ('waiting', 'parked')`,
		e.ID, short(e.Type), account, status, short(detail), known(e.IntentID), known(e.Charge), known(e.DisputeID)).
		Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return errDuplicate
			}
			return nil
		})
	tx.Queue(`SET LOCAL lock_timeout = '5s'`)
}

// queueEventLockTimeout bounds the wait for another delivery of the event.
func queueEventLockTimeout(tx *idempotency.Tx) { tx.Queue(`SET LOCAL lock_timeout = '500ms'`) }

// known gives an id of the provider's, or nothing.
func known(id string) string {
	if !providerID.MatchString(id) {
		return ""
	}
	return id
}

// short bounds a text that somebody else wrote.
func short(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
}

// postpone notes when an event about something of ours that is not known yet
// came first, and sends it back to be delivered again; or parks it, once that
// is too long ago. Should it never come again, its row stays for a person.
func (s *Service) postpone(ctx context.Context, e Event, cause error) (EventResult, error) {
	overdue := false
	err := s.ledger.Transact(ctx, func(_ context.Context, tx *idempotency.Tx) error {
		queueEventLockTimeout(tx)
		tx.Queue(`
			INSERT INTO events (id, type, status, intent, charge, dispute)
			VALUES ($1, $2, 'waiting', nullif($3, ''), nullif($4, ''), nullif($5, ''))
			    ON CONFLICT DO NOTHING`, e.ID, short(e.Type), known(e.IntentID), known(e.Charge), known(e.DisputeID))
		tx.Queue(`
			SELECT status IN ('waiting', 'parked') AND received_at < clock_timestamp() - $2::interval
			  FROM events WHERE id = $1`, e.ID, eventPatience).
			QueryRow(func(from pgxRow) error {
				if err := from.Scan(&overdue); !errors.Is(err, pgx.ErrNoRows) {
					return err
				}
				return nil // removed a moment ago
			})
		return nil
	})
	if err != nil {
		return EventNotYet, errors.Join(cause, err)
	}
	if overdue {
		return s.park(ctx, e, notKnown)
	}
	return EventNotYet, cause
}

// notKnown is why an event was parked that is about something of ours.
const notKnown = "it is about something of ours that is not known"

// park writes an event that can never work where a person sees it.
func (s *Service) park(ctx context.Context, e Event, why string) (EventResult, error) {
	s.log.Error("an event was parked", slog.String("event", e.ID), slog.String("type", short(e.Type)),
		slog.Time("created", e.CreatedAt), slog.String("why", why))
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
