package web

import (
	"cmp"
	"context"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/idempotency"
	"payonce/web/view"
)

func (s *Server) ledgerPage(c echo.Context, b *book) error {
	read := time.Now()
	if len(b.keys) > 0 {
		read = b.keys[0].ReadAt
	}
	return s.sendPage(c, http.StatusOK, view.LedgerPage(view.Ledger{
		Frame: s.frame(view.LedgerSection), Clock: clock(read) + " UTC", Stamp: stamp(read), Mark: b.mark(), Content: s.ledgerContent(b),
	}))
}

// writeLedger writes the part of the page that changes.
func (s *Server) writeLedger(ctx context.Context, w io.Writer, b *book) error {
	return view.LedgerKeys(s.ledgerContent(b)).Render(ctx, w)
}

// ledgerContent groups an account's keys by order, the order with the newest key
// first.
func (s *Server) ledgerContent(b *book) view.LedgerContent {
	t := b.tally()
	m := view.LedgerContent{
		Tally: view.LedgerTally{
			Keys: t.Keys, Completed: t.Completed, InProgress: t.InProgress, Retryable: t.Retryable, NeedPerson: t.NeedPerson,
			Replays: t.Replays, ChargedTwice: t.ChargedTwice,
		},
		More: len(b.keys) == ledgerKeys,
	}
	at := map[string]int{}
	for _, k := range b.keys {
		m.Tally.MoreReplays = m.Tally.MoreReplays || k.Replays >= idempotency.MaxReplays
		id := b.orderOf(k)
		i, begun := at[id]
		if !begun {
			i = len(m.Groups)
			at[id] = i
			m.Groups = append(m.Groups, b.group(id))
		}
		m.Groups[i].Keys = append(m.Groups[i].Keys, s.ledgerKey(b, k))
	}
	return m
}

func (b *book) group(order string) view.KeyGroup {
	o, listed := b.orders[order]
	if !listed {
		if order == "" {
			return view.KeyGroup{}
		}
		return view.KeyGroup{Title: "Order " + order, URL: orderPath(order), Order: order}
	}
	g := view.KeyGroup{Title: o.Course.Title, URL: orderPath(o.ID), Order: o.ID, Amount: price(o.Price)}
	g.Charged, g.Words = charged(o)
	return g
}

func (s *Server) ledgerKey(b *book, k idempotency.KeyState) view.LedgerKey {
	a := readAnswer(k)
	history := b.history[k.Key]
	m := view.LedgerKey{
		ID: elementOf(k), Key: shortKey(string(k.Key)), Operation: shortOperation(k.Operation), State: string(k.Status),
		Attempt: strconv.Itoa(k.Attempt), Took: tookOver(history), Instance: k.Instance,
		Replays: strconv.Itoa(k.Replays), Age: view.Elapsed(k.ReadAt.Sub(k.CreatedAt).Seconds()),
		Facts: s.keyFacts(k), History: entryRows(history),
		Charged: a.Charge != "", Code: cmp.Or(a.Reason, a.Code),
	}
	if k.Replays >= idempotency.MaxReplays {
		m.Replays += "+"
	}
	if checkout.NeedsPerson(k) {
		m.State = "parked"
	}
	if k.Status == idempotency.InProgress {
		m.Lease = &view.KeyLease{Left: k.LeaseLeft.Seconds(), Total: s.cfg.Policy.Lease.Seconds()}
	}
	if k.Status == idempotency.Completed {
		m.Answer = strconv.Itoa(k.Response.Status)
	}
	if k.Attempt > 1 || k.Replays > 0 {
		m.Happened = life(history, nounOf(k.Operation), a.Charge != "")
	}
	return m
}

// tookOver says who had the key before its owner.
func tookOver(history []idempotency.Entry) string {
	before, text, n := "", "", 0
	for _, e := range history {
		switch e.What {
		case idempotency.WhatTakenOver:
			n++
			text = "took over from " + before
			if n > 1 {
				text = "taken over " + times(n)
			}
		case idempotency.WhatRetaken:
			n, text = 0, "tried again after "+before
		}
		if e.What.Grants() {
			before = ownerName(e.Owner)
		}
	}
	return text
}

func times(n int) string {
	if n == 2 {
		return "twice"
	}
	return strconv.Itoa(n) + " times"
}

// keyFacts is what a closer look at a key shows.
func (s *Server) keyFacts(k idempotency.KeyState) []view.Fact {
	facts := []view.Fact{
		{Label: "Scope", Value: shortKey(k.Scope), Machine: true},
		{Label: "Fingerprint", Value: "sha256 " + shortHash(k.Fingerprint), Machine: true},
		{Label: "Recovery point", Value: k.RecoveryPoint, Machine: true},
		{Label: "Owner", Value: ownerName(k.Owner) + " in " + k.Instance, Machine: true},
	}
	if shape := downstreamKey(k.Operation); shape != "" {
		facts = append(facts, view.Fact{Label: "Downstream key", Value: shape, Machine: true})
	}
	if k.Status == idempotency.Completed {
		facts = append(facts, view.Fact{Label: "Stored answer", Value: strconv.Itoa(len(k.Response.Body)) + " bytes of " + k.Response.Type})
	}
	return append(facts, view.Fact{Label: "Removed after", Value: span(s.cfg.Policy.Retention)})
}

// downstreamKey is the shape of the key under which Stripe is asked for the
// money. It comes from our rows, not from the client's key.
func downstreamKey(operation string) string {
	switch {
	case strings.HasSuffix(operation, "/payments"):
		return "pay:<payment>:<generation>"
	case strings.HasSuffix(operation, "/refunds"):
		return "refund:<refund>"
	}
	return ""
}

func nounOf(operation string) string {
	switch {
	case strings.HasSuffix(operation, "/payments"):
		return "payment"
	case strings.HasSuffix(operation, "/refunds"):
		return "refund"
	}
	return "order"
}

// shortOperation shortens the id in a path, which the page shows elsewhere.
func shortOperation(operation string) string {
	parts := strings.Split(operation, "/")
	for i, part := range parts {
		if len(part) > 16 {
			parts[i] = part[:8] + "…" + part[len(part)-4:]
		}
	}
	return strings.Join(parts, "/")
}

// drawnReplays is how many replays have a line each in a history.
const drawnReplays = 8

func entryRows(history []idempotency.Entry) []view.KeyEntry {
	var rows []view.KeyEntry
	replays := 0
	for _, e := range history {
		if e.What == idempotency.WhatReplayed {
			if replays++; replays > drawnReplays {
				continue
			}
		}
		rows = append(rows, view.KeyEntry{
			Clock: e.At.UTC().Format("15:04:05.000"), Stamp: e.At.UTC().Format(time.RFC3339Nano), What: string(e.What),
			Attempt: strconv.Itoa(e.Attempt), Owner: ownerName(e.Owner), Instance: e.Instance, Detail: entryDetail(e),
		})
	}
	if more := replays - drawnReplays; more > 0 {
		rows = append(rows, view.KeyEntry{What: string(idempotency.WhatReplayed), Detail: "and " + strconv.Itoa(more) + " more"})
	}
	return rows
}

func entryDetail(e idempotency.Entry) string {
	var parts []string
	add := func(text string) { parts = append(parts, text) }
	if e.Status != 0 {
		add(strconv.Itoa(e.Status))
	}
	if e.Bytes != 0 {
		add(strconv.Itoa(e.Bytes) + " bytes")
	}
	if e.Point != "" {
		add(e.Point)
	}
	if e.Settled {
		add("learned from elsewhere")
	}
	if e.Waited != 0 {
		add("waited " + brief(e.Waited))
	}
	if e.Held != 0 {
		add("held for " + brief(e.Held))
	}
	if e.Took != 0 {
		add("transaction " + brief(e.Took))
	}
	if e.Lease != 0 {
		add("lease " + brief(e.Lease))
	}
	return strings.Join(parts, ", ")
}

// brief writes a length with three figures at most.
func brief(d time.Duration) string {
	digits := func(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
	switch {
	case d >= time.Minute:
		return digits(d.Minutes()) + " min"
	case d >= time.Second:
		return digits(d.Seconds()) + " s"
	case d >= time.Millisecond:
		return digits(inMS(d)) + " ms"
	}
	return strconv.FormatFloat(inMS(d), 'f', 2, 64) + " ms"
}
