package view

// Orders is the list of this account's orders, newest first.
type Orders struct {
	Frame  Frame
	Orders []OrderRow
	// StartOver offers to become a new customer (POST /session): in demo mode only.
	StartOver bool
}

// OrderRow is one order of the list.
type OrderRow struct {
	URL     string
	Course  string
	Date    string // "14 November 2026"
	Stamp   string // RFC 3339
	Amount  string // "$49.00", "Free"
	Charged Charged
	Words   string // the money line: "Charged once"; empty for a free course
	Next    Link   // what can be done with it: "Continue to checkout", "Start lesson 1", "See what happened"
}

// Link is a place to go, in words.
type Link struct {
	Label string
	URL   string
}
