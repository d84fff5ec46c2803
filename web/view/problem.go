package view

// Problem is a page for an answer that is not about an order's state: what happened, what to do, and the same as the
// machine sees it.
type Problem struct {
	Frame    Frame
	Words    Words
	Actions  []Link // the first is the main one; may be empty
	Document string // the answer as sent to a program: status line, headers and problem+json
	Request  string // the request's id, to be quoted; may be empty
	CodeURL  string // "/docs/idempotency#key_reused"
}

// Words are what a page says about an outcome.
type Words struct {
	Charged Charged // ignored if Money is empty
	Money   string  // the money line; empty on a page that is not about a payment
	Title   string  // what happened, the h1
	Text    string  // why, and what to do
}
