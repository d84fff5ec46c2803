package view

// DisputeState is how far the buyer's bank is with a charge that it questions.
type DisputeState string

// The states of a dispute.
const (
	DisputeOpen DisputeState = "open" // the bank has not decided, and may hold the money
	DisputeWon  DisputeState = "won"  // the charge stands
	DisputeLost DisputeState = "lost" // the bank gave the money back itself
)

// Dispute is a charge that the buyer's bank questions.
type Dispute struct {
	State  DisputeState
	Amount string // what is questioned: "$49.00"
}

func (d Dispute) words() string {
	switch d.State {
	case DisputeWon:
		return "Your bank questioned this charge of " + d.Amount + ", and decided that it stands."
	case DisputeLost:
		return "Your bank questioned this charge, and gave you " + d.Amount + " back itself."
	}
	return "Your bank questions this charge of " + d.Amount + ". Until it has decided, nothing can be given back here."
}
