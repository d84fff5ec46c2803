package view

// Try is the panel "Try to break it".
type Try struct {
	// Counted says where the charges are counted: CountedLocally or CountedAtStripe.
	Counted   string
	LessonURL string // lesson 1, once the course is paid
}

// Where the charges are counted.
const (
	CountedLocally  = "Counted at the local Stripe, not by the shop."
	CountedAtStripe = "Counted at Stripe, not by the shop."
)

// experiment is one way to send a payment that charges twice elsewhere.
type experiment struct {
	id    string // as try.js names it
	name  string
	words string // what happens, and why
}

var experiments = []experiment{
	{"twice", "Send it twice", "A double click. One answer is new, the other a replay of it."},
	{"eight", "Eight at once", "Eight copies of one press. One claims the key, seven wait for its answer."},
	{"tabs", "Two tabs, two keys", "Another key for the same order. Refused before Stripe hears of it: 409."},
	{"body", "Same key, another body", "The key belongs to the first request. The second one is refused: 422."},
	{"reply", "Lose the reply", "The page sends, and hears nothing. The retry, with the same key, finds the charge."},
}
