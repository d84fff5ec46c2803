package view

// WhatHappened is the life of one key, to be drawn: who claimed it, called the provider and recorded the answer, and who
// was given that answer again. Nothing in it is guessed. Times are milliseconds after the first copy arrived; a nil one is
// not known, and is not drawn.
type WhatHappened struct {
	Noun   string // what was asked for: "payment", "refund", "order"
	Owners []KeyOwner
	// Settled, where set, says that somebody else than an owner learned the outcome and recorded it: a webhook, or a
	// question to Stripe.
	Settled *KeySettled
	// Replays are in the order in which they arrived.
	Replays []KeyReplay
	// MoreReplays says that the history keeps no more replays than these: there may have been others.
	MoreReplays bool
	Bytes       int    // of the recorded answer
	LedgerURL   string // where all keys stand; empty on the ledger itself
}

// KeyOwner is one claim of a key: one request, for as long as it was the owner.
type KeyOwner struct {
	Name     string // the first characters of its token: "7f3a"
	Instance string // the process
	Attempt  int
	Origin   KeyOrigin

	Arrived *float64 // the request reached the ledger
	Began   *float64 // the claim's transaction began
	Claimed float64  // the claim was written
	Granted *float64 // the owner knew that it was committed: here the call begins
	Points  []KeyPoint
	// Lease is when the lease that the claim gave, or that an unknown outcome left, would lapse.
	Lease *float64

	End         KeyEnd
	RecordBegan *float64 // the transaction that ended it began: here the call ends
	Ended       float64  // with an End
	Status      int      // with EndRecorded
	// Charged says that the answer it recorded is a charge.
	Charged bool
}

// KeySettled is an answer that no owner recorded.
type KeySettled struct {
	At      float64
	Status  int
	Charged bool
}

// KeyPoint is a recovery point that was stored.
type KeyPoint struct {
	Name string // "intent_created"
	At   float64
}

// KeyReplay is one copy of the request that was given the recorded answer.
type KeyReplay struct {
	Arrived *float64
	At      float64 // the answer was read
}

// KeyOrigin is how a claim was won.
type KeyOrigin string

// The origins of a claim, in the ledger's words.
const (
	ClaimedFresh KeyOrigin = "claimed"
	ClaimRetaken KeyOrigin = "retaken"
	ClaimedOver  KeyOrigin = "taken_over"
)

// KeyEnd is what an owner wrote last, in the ledger's words.
type KeyEnd string

// The ends of a claim. An owner without an end is at work, or was killed or cut off.
const (
	NoEnd       KeyEnd = ""
	EndRecorded KeyEnd = "completed"
	EndReleased KeyEnd = "released"
	EndUnknown  KeyEnd = "unknown"
)

// drawnCopies is how many copies have a lane each; the others share one.
const drawnCopies = 8

// last is the last owner. A history always begins with a claim.
func (m WhatHappened) last() KeyOwner { return m.Owners[len(m.Owners)-1] }

// lost is true for an owner that wrote no end and was taken over: killed, or cut off.
func (m WhatHappened) lost(i int) bool {
	return m.Owners[i].End == NoEnd && i+1 < len(m.Owners)
}

// local is true for an owner that claimed, worked and recorded in one transaction.
func (o KeyOwner) local() bool {
	return o.End == EndRecorded && o.RecordBegan != nil && *o.RecordBegan <= o.Claimed
}

// lastSign is the last moment at which the owner is known to have been there.
func (o KeyOwner) lastSign() float64 {
	switch {
	case o.End != NoEnd:
		return o.Ended
	case len(o.Points) > 0:
		return o.Points[len(o.Points)-1].At
	case o.Granted != nil:
		return *o.Granted
	}
	return o.Claimed
}

// start is the first moment of an owner that is known.
func (o KeyOwner) start() float64 {
	switch {
	case o.Began != nil:
		return *o.Began
	case o.Arrived != nil:
		return *o.Arrived
	}
	return o.Claimed
}

// call is from when to when the owner is known to have called the provider: it ends with the record, or with the owner's
// last sign where it wrote no end.
func (o KeyOwner) call() (from, to float64, known bool) {
	if o.Granted == nil {
		return 0, 0, false
	}
	switch {
	case o.RecordBegan != nil:
		return *o.Granted, *o.RecordBegan, true
	case o.End == NoEnd:
		return *o.Granted, o.lastSign(), true
	}
	return 0, 0, false
}

// answered is when the answer was recorded, if it was.
func (m WhatHappened) answered() (float64, bool) {
	if m.Settled != nil {
		return m.Settled.At, true
	}
	o := m.last()
	return o.Ended, o.End == EndRecorded
}

// together are the replays that came before the answer was recorded, and waited for it; later are the others.
func (m WhatHappened) together() (waited, later []KeyReplay) {
	end, _ := m.answered()
	for _, r := range m.Replays {
		if r.Arrived != nil && *r.Arrived <= end || r.At <= end {
			waited = append(waited, r)
		} else {
			later = append(later, r)
		}
	}
	return waited, later
}
