package view

import (
	"fmt"
	"slices"
	"strconv"
)

// drawing draws the life of the key: a lane a copy while one owner saw it through, or a lane an owner, and one for the
// clients, once there were several.
func (m WhatHappened) drawing() Swimlane {
	clock := m.clock()
	d := Swimlane{First: "Copy", Last: "Answer", Scale: NewScale(clock.of(m.horizon()), clock.unit)}
	over := clock.spell(m.horizon())
	if m.simple() {
		d.Caption = several(1+len(m.Replays), "copy", "copies") + " of one " + m.Noun + " over " + over
		d.Lanes = append([]Lane{m.ownerLane(0, "1", clock)}, m.copyLanes(clock)...)
	} else {
		d.First, d.Last, d.Named = "Owner", "Outcome", true
		d.Caption = several(len(m.Owners), "owner", "owners") + " of one key over " + over
		for i, o := range m.Owners {
			d.Lanes = append(d.Lanes, m.ownerLane(i, o.Name, clock))
		}
		if m.Settled != nil {
			d.Lanes = append(d.Lanes, settledLane(*m.Settled, clock))
		}
		if len(m.Replays) > 0 {
			d.Lanes = append(d.Lanes, m.restLane("client", m.Replays, clock))
		}
	}
	for i := range d.Lanes {
		d.Lanes[i].Labels = place(d.Lanes[i].Labels, d.Scale)
	}
	return d
}

// simple is true for a key that one owner saw through, or is seeing through.
func (m WhatHappened) simple() bool { return len(m.Owners) == 1 && m.Settled == nil }

// horizon is where the drawing ends. A replay that came long after the answer would press everything else together: it
// is told in words.
func (m WhatHappened) horizon() float64 {
	end := 0.0
	for i, o := range m.Owners {
		end = max(end, o.lastSign(), o.Ended)
		if lapse, drawn := m.lapse(i); drawn {
			end = max(end, lapse)
		}
	}
	if m.Settled != nil {
		end = max(end, m.Settled.At)
	}
	horizon := end
	waited, later := m.together()
	for _, r := range waited {
		horizon = max(horizon, r.At)
	}
	for _, r := range later {
		if r.At <= 1.5*end {
			horizon = max(horizon, r.At)
		}
	}
	return horizon
}

// lapse is when the lease of an owner lapsed, or will, where that is known and matters: the owner left no answer. A
// takeover before that time proves only that it was over by then.
func (m WhatHappened) lapse(i int) (at float64, drawn bool) {
	o := m.Owners[i]
	next, followed := m.follows(i)
	if !o.leaves() || followed && next < *o.Lease {
		return 0, false
	}
	return *o.Lease, true
}

// leased is how far the line of a lease goes.
func (m WhatHappened) leased(i int) (to float64, drawn bool) {
	if at, known := m.lapse(i); known {
		return at, true
	}
	next, followed := m.follows(i)
	return next, followed && m.Owners[i].leaves()
}

// leaves is true for an owner that left its lease to run down.
func (o KeyOwner) leaves() bool { return o.Lease != nil && (o.End == NoEnd || o.End == EndUnknown) }

// follows is when somebody else went on after an owner, if anybody did.
func (m WhatHappened) follows(i int) (at float64, followed bool) {
	switch {
	case i+1 < len(m.Owners):
		return m.Owners[i+1].start(), true
	case m.Settled != nil:
		return m.Settled.At, true
	}
	return 0, false
}

// ownerLane is claim, call and record of one owner, as far as it got.
func (m WhatHappened) ownerLane(i int, name string, clock clock) Lane {
	o := m.Owners[i]
	c := clock.of
	lane := Lane{Name: name, Winner: o.End == EndRecorded}
	add := func(kind ShapeKind, from, to float64) {
		lane.Shapes = append(lane.Shapes, Shape{Kind: kind, From: c(from), To: c(to)})
	}
	label := func(at float64, text, anchor string) {
		lane.Labels = append(lane.Labels, LaneLabel{At: c(at), Text: text, Anchor: anchor})
	}

	if i > 0 {
		if at, known := m.lapse(i - 1); known {
			add(Released, at, at)
		}
	}
	if to, drawn := m.leased(i); drawn {
		add(Leased, o.lastSign(), to)
	}
	switch {
	case o.local():
		add(Insert, o.start(), o.Ended)
		label(o.start(), "claim and record", "start")
	default:
		claimed := o.Claimed
		if from, to, known := o.call(); known {
			claimed = from
			add(Call, from, to)
		}
		add(Insert, o.start(), claimed)
		for _, p := range o.Points {
			if p.Name == "intent_created" {
				add(Point, p.At, p.At)
				label(p.At, "intent created", "middle")
			}
		}
		switch {
		case o.End == NoEnd:
		case o.RecordBegan != nil:
			add(Insert, *o.RecordBegan, o.Ended)
		default:
			add(Commit, o.Ended, o.Ended)
		}
		label(o.start(), map[KeyOrigin]string{ClaimedFresh: "claim", ClaimRetaken: "tries again", ClaimedOver: "takes over"}[o.Origin], "start")
		if o.Charged && o.RecordBegan != nil {
			add(Charge, *o.RecordBegan, *o.RecordBegan)
			label(*o.RecordBegan, "charged", "end")
		}
		if o.End == EndRecorded && o.RecordBegan != nil {
			label(*o.RecordBegan, "record", "start")
		}
		if o.End == EndUnknown {
			add(Fail, o.Ended, o.Ended)
			label(o.Ended, "no answer", "end")
		}
	}
	if m.lost(i) {
		add(Fail, o.lastSign(), o.lastSign())
		label(o.lastSign(), "last sign", "middle")
	}
	if at, known := m.lapse(i); known {
		add(Lapse, at, at)
		label(at, "lease lapses", "end")
	}
	slices.SortStableFunc(lane.Labels, func(a, b LaneLabel) int { return compare(a.At, b.At) })
	lane.Outcome, lane.Wrong = m.outcome(i)
	lane.Spoken = m.spokenOwner(i, clock)
	return lane
}

// settledLane is whoever learned the outcome in the owner's place.
func settledLane(o KeySettled, clock clock) Lane {
	lane := Lane{
		Name: "event", Winner: true, Outcome: strconv.Itoa(o.Status),
		Spoken: "Learned from elsewhere, by a webhook or a question to Stripe: recorded at " + clock.spell(o.At),
		Shapes: []Shape{{Kind: Commit, From: clock.of(o.At)}},
		Labels: []LaneLabel{{At: clock.of(o.At), Text: "record", Anchor: "end"}},
	}
	if o.Charged {
		lane.Shapes = append(lane.Shapes, Shape{Kind: Charge, From: clock.of(o.At)})
		lane.Labels[0].Text = "charged, record"
		lane.Spoken += ", charged"
	}
	return lane
}

// outcome is what the last column says of an owner.
func (m WhatHappened) outcome(i int) (text string, wrong bool) {
	o := m.Owners[i]
	switch {
	case o.End == EndUnknown:
		return "unknown", true
	case o.End == EndRecorded:
		return strconv.Itoa(o.Status), false
	case o.End == EndReleased:
		return "retryable", false
	case m.lost(i):
		return "killed", true
	case m.Settled != nil:
		return "no end", false
	}
	return "at work", false
}

// copyLanes are the copies that were given the owner's answer.
func (m WhatHappened) copyLanes(clock clock) (lanes []Lane) {
	end, _ := m.answered()
	own := m.Replays
	if len(own) > drawnCopies-1 {
		own = own[:drawnCopies-2]
	}
	for i, r := range own {
		lanes = append(lanes, m.copyLane(strconv.Itoa(i+2), r, end, clock))
	}
	if rest := m.Replays[len(own):]; len(rest) > 0 {
		lanes = append(lanes, m.restLane("+"+strconv.Itoa(len(rest)), rest, clock))
	}
	return lanes
}

func (m WhatHappened) copyLane(name string, r KeyReplay, end float64, clock clock) Lane {
	lane := Lane{Name: name, Outcome: m.replayOutcome()}
	if r.Arrived != nil {
		lane.Spoken = "Arrived at " + clock.spell(*r.Arrived) + ", "
		if *r.Arrived < end {
			lane.Spoken += "waited for the key, "
			lane.Shapes = append(
				lane.Shapes,
				Shape{Kind: Waiting, From: clock.of(*r.Arrived), To: clock.of(end)},
				Shape{Kind: Released, From: clock.of(end)},
			)
		}
	}
	lane.Spoken += "replayed at " + clock.spell(r.At)
	if r.At <= m.horizon() {
		lane.Shapes = append(lane.Shapes, Shape{Kind: Replayed, From: clock.of(r.At)})
	} else {
		lane.Outcome = "later, replay"
	}
	return lane
}

// restLane draws many replays in one lane.
func (m WhatHappened) restLane(name string, replays []KeyReplay, clock clock) Lane {
	lane := Lane{Name: name, Outcome: m.replayOutcome()}
	horizon, beyond := m.horizon(), 0
	for _, r := range replays {
		if r.At > horizon {
			beyond++
			continue
		}
		lane.Shapes = append(lane.Shapes, Shape{Kind: Replayed, From: clock.of(r.At)})
	}
	first := slices.MinFunc(replays, func(a, b KeyReplay) int { return compare(a.At, b.At) })
	last := slices.MaxFunc(replays, func(a, b KeyReplay) int { return compare(a.At, b.At) })
	lane.Spoken = "One replay, at " + clock.spell(first.At)
	if len(replays) > 1 {
		lane.Spoken = several(len(replays), "replay", "replays") + " between " + clock.spell(first.At) + " and " + clock.spell(last.At)
		lane.Outcome = fmt.Sprintf("%d replays", len(replays))
	}
	if beyond == len(replays) {
		lane.Outcome = "later, replay"
	}
	if beyond > 0 {
		lane.Spoken += "; " + strconv.Itoa(beyond) + " of them after the end of this drawing"
	}
	return lane
}

func (m WhatHappened) replayOutcome() string {
	status := m.last().Status
	if m.Settled != nil {
		status = m.Settled.Status
	}
	if status == 0 {
		return "replay"
	}
	return strconv.Itoa(status) + " replay"
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
