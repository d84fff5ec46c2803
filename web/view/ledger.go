package view

// Ledger is the page of an account's keys.
type Ledger struct {
	Frame   Frame
	Clock   string // when it was read: "10:42:07 UTC"
	Stamp   string // RFC 3339
	Mark    string // names the content, so that the page is told only of another one
	Content LedgerContent
}

// LedgerContent is what changes while one watches.
type LedgerContent struct {
	Tally  LedgerTally
	Groups []KeyGroup
	// More says that there are older keys than these.
	More bool
}

// LedgerTally counts the keys that are shown.
type LedgerTally struct {
	Keys, Completed, InProgress, Retryable, NeedPerson, Replays, ChargedTwice int
	// MoreReplays says that some replays were too many to keep.
	MoreReplays bool
}

// KeyGroup is the keys of one order, which are seen together: two keys for one intent stand below each other.
type KeyGroup struct {
	Title   string // the course; empty if no order is known
	URL     string // of the order
	Order   string // its id
	Amount  string
	Charged Charged
	Words   string // the money line; empty if nothing was to pay
	Keys    []LedgerKey
}

// LedgerKey is one key as it stands.
type LedgerKey struct {
	ID        string // of its element
	Key       string // shortened
	Operation string
	State     string // completed, in_progress, failed_retryable or parked
	Attempt   string // "1"
	Took      string // "took over from 7f3a"; empty at the first attempt
	Instance  string // of the owner
	Lease     *KeyLease
	Answer    string // "201"; empty if none is stored
	Code      string // of a problem
	Charged   bool   // the answer is a charge
	Replays   string // "7", "64 or more"
	Age       Elapsed
	Facts     []Fact
	History   []KeyEntry
	// Happened, where set, draws the key's life: where it was taken over, or asked for again.
	Happened *WhatHappened
}

// KeyLease is what is left of a lease, in seconds: negative once it lapsed.
type KeyLease struct {
	Left  float64
	Total float64
}

// KeyEntry is one line of a key's history.
type KeyEntry struct {
	Clock    string // "10:42:07.123"
	Stamp    string
	What     string
	Attempt  string
	Owner    string
	Instance string
	Detail   string
}

// Elapsed is how long ago something was, in seconds. The page counts on by itself.
type Elapsed float64
