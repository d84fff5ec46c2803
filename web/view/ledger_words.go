package view

import (
	"math"
	"strconv"
)

// words are the same that ledger.js writes as it counts on.
func (e Elapsed) words() string {
	switch s := math.Max(float64(e), 0); {
	case s < 60:
		return strconv.Itoa(int(s)) + " s"
	case s < 3600:
		return strconv.Itoa(int(s/60)) + " min"
	case s < 86400:
		return strconv.Itoa(int(s/3600)) + " h"
	case s < 2*86400:
		return "1 day"
	default:
		return strconv.Itoa(int(s/86400)) + " days"
	}
}

// words are the same that ledger.js writes as it counts on.
func (l KeyLease) words() string {
	if l.Left <= 0 {
		return "lapsed " + Elapsed(-l.Left).words() + " ago"
	}
	return strconv.Itoa(int(math.Ceil(l.Left))) + " s left"
}

// share is what is left of the lease, from 0 to 1.
func (l KeyLease) share() float64 {
	if l.Total <= 0 {
		return 0
	}
	return l.Left / l.Total
}

// tallyItem is one figure above the keys.
type tallyItem struct {
	label, figure string
	money, wrong  bool
}

func (t LedgerTally) items() []tallyItem {
	replays := strconv.Itoa(t.Replays)
	if t.MoreReplays {
		replays += "+"
	}
	items := []tallyItem{
		{label: "keys", figure: strconv.Itoa(t.Keys)},
		{label: "completed", figure: strconv.Itoa(t.Completed)},
		{label: "in progress", figure: strconv.Itoa(t.InProgress)},
		{label: "retryable", figure: strconv.Itoa(t.Retryable)},
		{label: "need a person", figure: strconv.Itoa(t.NeedPerson)},
		{label: "replays served", figure: replays},
		{label: "charged twice", figure: strconv.Itoa(t.ChargedTwice), money: true, wrong: t.ChargedTwice > 0},
	}
	if t.Replays == 1 {
		items[5].label = "replay served"
	}
	return items
}

// seconds writes a number of seconds for the script.
func seconds(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
