package view

import (
	"fmt"
	"strconv"
	"strings"
)

// text tells in words what the drawing shows.
func (m WhatHappened) text() string {
	if m.simple() {
		return m.copiesText()
	}
	return m.ownersText()
}

// copiesText is for a key that one owner saw through.
func (m WhatHappened) copiesText() string {
	o := m.last()
	waited, later := m.together()
	n := 1 + len(waited)
	atLeast := ""
	if m.MoreReplays {
		atLeast = "At least "
	}
	var b strings.Builder
	switch within, known := m.within(waited); {
	case n == 1: // a copy that was told to come back is not in the history
	case known:
		fmt.Fprintf(&b, "%s of this %s reached the shop within %s. ", capital(atLeast+lower(atLeast, several(n, "copy", "copies"))), m.Noun, length(within))
	default:
		fmt.Fprintf(&b, "%s of this %s reached the shop while it was being carried out. ", capital(atLeast+lower(atLeast, several(n, "copy", "copies"))), m.Noun)
	}
	who := "The first"
	for _, r := range waited {
		if o.Arrived == nil || r.Arrived == nil || *r.Arrived < *o.Arrived {
			who = "One of them"
		}
	}
	if n == 1 {
		who = "This " + m.Noun
	}
	b.WriteString(who + " " + o.did() + ".")
	answered := o.End == EndRecorded
	switch len(waited) {
	case 0:
	case 1:
		b.WriteString(" The other waited, and was given the same answer, byte for byte.")
	default:
		fmt.Fprintf(&b, " %s waited, and were given the same answer, byte for byte.", numeral(len(waited)))
	}
	switch {
	case len(later) == 1:
		fmt.Fprintf(&b, " One more came after the answer, and was given it again.")
	case len(later) > 1:
		fmt.Fprintf(&b, " %s more came after the answer, and were given it again.", numeral(len(later)))
	case answered && n == 1:
		b.WriteString(" Nobody has been given it again yet.")
	}
	return b.String()
}

// did is what became of a single owner.
func (o KeyOwner) did() string {
	switch {
	case o.local():
		return "claimed the key, did the work and recorded the answer, in one transaction"
	case o.End == EndRecorded && o.Charged:
		return "claimed the key, called Stripe, which charged the card, and recorded the answer"
	case o.End == EndRecorded && o.Status >= 400:
		return "claimed the key, called Stripe, which charged nothing, and recorded that answer"
	case o.End == EndRecorded:
		return "claimed the key, called Stripe and recorded the answer"
	case o.End == EndReleased:
		return "claimed the key, but Stripe took nothing: the key is free to be tried again"
	case o.End == EndUnknown:
		return "claimed the key and called Stripe, but learned no outcome: who comes next with this key takes over, and asks"
	}
	return "claimed the key and has not ended yet: until its lease lapses, nobody else may call Stripe"
}

// ownersText is for a key that had several owners, or whose outcome was learned from elsewhere.
func (m WhatHappened) ownersText() string {
	var b strings.Builder
	for i, o := range m.Owners {
		if i > 0 {
			b.WriteString(" ")
		}
		another := ""
		if i > 0 && o.Instance != m.Owners[i-1].Instance {
			another = " in another process"
		}
		switch {
		case i == 0:
			b.WriteString("The " + ordinal(o.Attempt) + " owner claimed the key")
		case o.Origin == ClaimRetaken:
			b.WriteString("The same key was then tried again: a " + ordinal(o.Attempt) + " owner" + another + " claimed it")
		default:
			b.WriteString("When its lease had lapsed, a " + ordinal(o.Attempt) + " owner" + another + " took over")
		}
		b.WriteString(m.endText(i))
	}
	if m.Settled != nil {
		b.WriteString(" The outcome came from Stripe by another way, a webhook or a question, and was recorded.")
	}
	switch n := len(m.Replays); {
	case n == 1:
		b.WriteString(" One more copy was given the same answer, byte for byte.")
	case n > 1:
		fmt.Fprintf(&b, " %s more copies were given the same answer, byte for byte.", numeral(n))
	}
	return b.String()
}

func (m WhatHappened) endText(i int) string {
	o := m.Owners[i]
	asked := " and called Stripe"
	if i > 0 && o.Origin == ClaimedOver {
		asked = ", cleared it up with Stripe"
	}
	switch {
	case o.local():
		return ", did the work and recorded the answer, in one transaction."
	case o.End == EndRecorded && o.Charged && i > 0:
		return asked + ", and recorded the one charge."
	case o.End == EndRecorded && o.Charged:
		return asked + ", which charged the card, and recorded it."
	case o.End == EndRecorded:
		return asked + ", and recorded the answer."
	case o.End == EndReleased:
		return asked + ", which took nothing: the key was free to be tried again."
	case o.End == EndUnknown:
		return asked + ", but learned no outcome."
	case m.lost(i):
		return ", and wrote no end: it was killed, or cut off."
	case m.Settled != nil:
		return ", and wrote no end."
	}
	return ", and has not ended yet."
}

// within is how far apart copies arrived that came together.
func (m WhatHappened) within(waited []KeyReplay) (ms float64, known bool) {
	first := m.Owners[0].Arrived
	if first == nil {
		return 0, false
	}
	from, to := *first, *first
	for _, r := range waited {
		if r.Arrived == nil {
			return 0, false
		}
		from, to = min(from, *r.Arrived), max(to, *r.Arrived)
	}
	return to - from, true
}

// legend explains the shapes that the drawing has, and no others.
func (m WhatHappened) legend(d Swimlane) []LegendItem {
	drawn := map[ShapeKind]bool{}
	for _, lane := range d.Lanes {
		for _, shape := range lane.Shapes {
			drawn[shape.Kind] = true
		}
	}
	var items []LegendItem
	for _, item := range []LegendItem{
		{Insert, "claim, record"},
		{Call, "call to Stripe"},
		{Point, "intent created"},
		{Charge, "charge known"},
		{Commit, "recorded"},
		{Waiting, "waiting for the key"},
		{Leased, "lease, no end written"},
		{Lapse, "lease lapses"},
		{Fail, "no answer, or killed"},
		{Replayed, "replayed"},
	} {
		if drawn[item.Kind] {
			items = append(items, item)
		}
	}
	return items
}

// spokenOwner tells the events of an owner in order.
func (m WhatHappened) spokenOwner(i int, clock clock) string {
	o := m.Owners[i]
	parts := []string{}
	say := func(text string) { parts = append(parts, text) }
	span := func(what string, from, to float64) {
		say(what + " " + figures(clock.of(from)) + " to " + clock.spell(to))
	}
	name := map[KeyOrigin]string{ClaimedFresh: "claim", ClaimRetaken: "claim again", ClaimedOver: "takeover"}[o.Origin]
	switch {
	case o.local():
		span("claim and record", o.start(), o.Ended)
	case o.Granted != nil:
		span(name, o.start(), *o.Granted)
	default:
		say(name + " at " + clock.spell(o.Claimed))
	}
	if o.Granted != nil && o.RecordBegan != nil {
		span("call to Stripe", *o.Granted, *o.RecordBegan)
	}
	for _, p := range o.Points {
		if p.Name == "intent_created" {
			say("intent created at " + clock.spell(p.At))
		}
	}
	if o.Charged && o.RecordBegan != nil {
		say("charge known at " + clock.spell(*o.RecordBegan))
	}
	switch {
	case o.End == EndRecorded && o.local():
		say("answered " + strconv.Itoa(o.Status))
	case o.End == EndRecorded && o.RecordBegan != nil:
		span("record", *o.RecordBegan, o.Ended)
		say("answered " + strconv.Itoa(o.Status))
	case o.End == EndRecorded:
		say("recorded at " + clock.spell(o.Ended) + ", answered " + strconv.Itoa(o.Status))
	case o.End == EndReleased:
		say("released at " + clock.spell(o.Ended))
	case o.End == EndUnknown:
		say("gave up without an outcome at " + clock.spell(o.Ended))
	case m.lost(i):
		say("last sign at " + clock.spell(o.lastSign()) + ", no end written")
	}
	if at, known := m.lapse(i); known {
		say("lease lapses at " + clock.spell(at))
	}
	return capital(strings.Join(parts, ", "))
}

// several is count for a noun whose plural is not an s.
func several(n int, one, many string) string {
	if n == 1 {
		return "One " + one
	}
	return numeral(n) + " " + many
}

// numeral begins a sentence with a number.
func numeral(n int) string {
	if n >= 0 && n < len(numerals) {
		return numerals[n]
	}
	return strconv.Itoa(n)
}

// lower writes text in small letters if something stands before it.
func lower(before, text string) string {
	if before == "" {
		return text
	}
	return strings.ToLower(text)
}

func ordinal(n int) string {
	words := [...]string{"", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"}
	if n > 0 && n < len(words) {
		return words[n]
	}
	return strconv.Itoa(n) + "th"
}
