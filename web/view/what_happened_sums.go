package view

import (
	"strconv"
	"strings"
)

// Sum is a figure below a drawing, with its label above it and what it covers behind it.
type Sum struct{ Label, Figure, Text string }

// sums are what claim, call, record and replays cost, of the last owner that is known to have done them.
func (m WhatHappened) sums() []Sum {
	o := m.last()
	label := func(phase string) string {
		if len(m.Owners) == 1 {
			return phase
		}
		return phase + ", attempt " + strconv.Itoa(o.Attempt)
	}
	var sums []Sum
	switch {
	case o.local():
		sums = append(sums, Sum{"Claim and record", length(o.Ended - o.start()), "one transaction: the key, the " + m.Noun + " and the answer"})
	case o.Granted != nil:
		sums = append(sums, Sum{label("Claim"), length(*o.Granted - o.start()), "one transaction: the key, and the " + m.Noun + " as pending"})
		if o.RecordBegan != nil {
			sums = append(
				sums,
				Sum{label("Call"), length(*o.RecordBegan - *o.Granted), "no transaction, no connection held" + m.callDetail(o)},
				Sum{label(m.lastPhase()), length(o.Ended - *o.RecordBegan), m.recordDetail(o)},
			)
		}
	}
	if end, answered := m.answered(); answered {
		sums = append(sums, m.replaySum(end))
	}
	return sums
}

func (m WhatHappened) lastPhase() string {
	if m.last().End == EndRecorded {
		return "Record"
	}
	return "Giving up"
}

func (m WhatHappened) callDetail(o KeyOwner) string {
	var parts []string
	for _, p := range o.Points {
		if p.Name == "intent_created" {
			parts = append(parts, "intent created at "+length(p.At))
		}
	}
	if o.Charged {
		parts = append(parts, "the charge known at "+length(*o.RecordBegan))
	}
	return suffix("; ", strings.Join(parts, ", "))
}

func (m WhatHappened) recordDetail(o KeyOwner) string {
	switch {
	case o.End == EndReleased:
		return "one transaction: the key is free, and so is the order"
	case o.End == EndUnknown:
		return "one transaction: the lease is shortened, the key stays in progress"
	case o.Charged && m.Noun == "payment":
		return "one transaction, up to its COMMIT: payment, order, enrolment and the answer"
	case o.Status >= 400:
		return "one transaction, up to its COMMIT: the " + m.Noun + ", the next key and the answer"
	}
	return "one transaction, up to its COMMIT: the " + m.Noun + " and the answer"
}

func (m WhatHappened) replaySum(end float64) Sum {
	n := strconv.Itoa(len(m.Replays))
	if m.MoreReplays {
		n += " or more"
	}
	sum := Sum{Label: "Replays", Figure: n}
	if len(m.Replays) == 0 {
		sum.Text = "the answer is kept, to be given again byte for byte"
		return sum
	}
	last := m.Replays[0].At
	for _, r := range m.Replays {
		last = max(last, r.At)
	}
	sum.Text = "the same answer"
	if m.Bytes > 0 {
		sum.Text = "the same " + strconv.Itoa(m.Bytes) + " bytes"
	}
	if after := last - end; after > 0 && len(m.Replays) == 1 {
		sum.Text += ", " + length(after) + " after the record"
	} else if after > 0 {
		sum.Text += ", the last one " + length(after) + " after the record"
	}
	return sum
}
