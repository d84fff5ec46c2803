package web

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/idempotency"
	"payonce/web/view"
)

// whatHappened draws the life of the key of an order's payment: the one in the
// slot, else the newest. It gives nil if there is none. A history that cannot be
// read does not take the page with it, since the page says whether the card was
// charged.
func (s *Server) whatHappened(c echo.Context, o checkout.Order) *view.WhatHappened {
	p, taken := o.Slot()
	if !taken {
		var tried bool
		if p, tried = o.Last(); !tried {
			return nil
		}
	}
	history, err := s.cfg.Ledger.History(c.Request().Context(), o.Account, idempotency.Key(p.Key))
	if err != nil {
		s.cfg.Log.WarnContext(c.Request().Context(), "reading what happened", slog.String("request", visitOf(c).id), slog.Any("err", err))
		return nil
	}
	m := life(history, "payment", p.Charge != "")
	if m != nil {
		m.LedgerURL = ledgerPath
	}
	return m
}

// life turns the history of one key into its drawing, or nil if there is none.
// charged says that the recorded answer is a charge.
func life(history []idempotency.Entry, noun string, charged bool) *view.WhatHappened {
	m := &view.WhatHappened{Noun: noun}
	clock := newStopwatch(history)
	owners := map[string]int{}
	owner := func(e idempotency.Entry) *view.KeyOwner {
		if i, known := owners[e.Owner]; known {
			return &m.Owners[i]
		}
		return nil
	}
	for _, e := range history {
		switch o := owner(e); {
		case e.What.Grants() && o == nil:
			owners[e.Owner] = len(m.Owners)
			m.Owners = append(m.Owners, view.KeyOwner{
				Name: ownerName(e.Owner), Instance: e.Instance, Attempt: e.Attempt, Origin: view.KeyOrigin(e.What),
				Arrived: clock.before(e.At, e.Took, e.Waited), Began: clock.before(e.At, e.Took),
				Claimed: clock.at(e.At), Lease: clock.after(e.At, e.Lease),
			})
		case e.What == idempotency.WhatReplayed:
			m.Replays = append(m.Replays, view.KeyReplay{Arrived: clock.before(e.At, e.Waited), At: clock.at(e.At)})
		case o == nil: // its claim is not in the history
		case e.What == idempotency.WhatCompleted && e.Settled:
			m.Settled = &view.KeySettled{At: clock.at(e.At), Status: e.Status, Charged: charged && e.Status == http.StatusCreated}
			m.Bytes = e.Bytes
		case e.What == idempotency.WhatCheckpoint:
			o.Points = append(o.Points, view.KeyPoint{Name: e.Point, At: clock.at(e.At)})
			o.Granted = earlier(o.Granted, clock.before(e.At, e.Took, e.Held))
		case e.What.Ends():
			o.End, o.Ended, o.Status = view.KeyEnd(e.What), clock.at(e.At), e.Status
			o.RecordBegan = clock.before(e.At, e.Took)
			o.Granted = earlier(o.Granted, clock.before(e.At, e.Took, e.Held))
			if e.Lease > 0 {
				o.Lease = clock.after(e.At, e.Lease)
			}
			if e.What == idempotency.WhatCompleted {
				m.Bytes, o.Charged = e.Bytes, charged && e.Status == http.StatusCreated
			}
		}
	}
	if len(m.Owners) == 0 {
		return nil
	}
	m.MoreReplays = len(m.Replays) >= idempotency.MaxReplays
	slices.SortStableFunc(m.Replays, func(a, b view.KeyReplay) int { return cmp.Compare(arrival(a), arrival(b)) })
	return m
}

// stopwatch counts milliseconds from the first arrival of a history.
type stopwatch struct{ zero time.Time }

func newStopwatch(history []idempotency.Entry) stopwatch {
	var w stopwatch
	for _, e := range history {
		first := e.At
		switch {
		case e.What.Grants():
			first = e.At.Add(-e.Took - e.Waited)
		case e.What == idempotency.WhatReplayed:
			first = e.At.Add(-e.Waited)
		}
		if w.zero.IsZero() || first.Before(w.zero) {
			w.zero = first
		}
	}
	return w
}

func (w stopwatch) at(t time.Time) float64 { return float64(t.Sub(w.zero).Microseconds()) / 1000 }

// before gives when some spans before t began, or nil if one of them is not
// known.
func (w stopwatch) before(t time.Time, spans ...time.Duration) *float64 {
	for _, d := range spans {
		if d == 0 {
			return nil
		}
		t = t.Add(-d)
	}
	ms := w.at(t)
	return &ms
}

func (w stopwatch) after(t time.Time, d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	ms := w.at(t.Add(d))
	return &ms
}

// earlier gives the earlier of two moments, of which either may not be known. A
// process learns of its COMMIT once; the messages that say when differ by their
// way to the database.
func earlier(a, b *float64) *float64 {
	if a == nil || (b != nil && *b < *a) {
		return b
	}
	return a
}

// arrival is when a replay came, as far as that is known.
func arrival(r view.KeyReplay) float64 {
	if r.Arrived != nil {
		return *r.Arrived
	}
	return r.At
}

// ownerName is enough of an owner's token to tell it from others.
func ownerName(token string) string { return token[:min(4, len(token))] }
