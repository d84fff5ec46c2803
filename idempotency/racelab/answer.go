package racelab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"payonce/idempotency"
)

// Kind is what a worker was told.
type Kind string

// The kinds of answers, in the order in which outcomes are listed.
const (
	Charged    Kind = "charged"    // 201: the work was done, and the card charged
	Done       Kind = "done"       // the work was done, which was not a charge
	Replayed   Kind = "replayed"   // the stored answer
	Declined   Kind = "declined"   // 402
	Conflict   Kind = "conflict"   // 409: still in progress, or refused beside another
	Mismatch   Kind = "mismatch"   // 422: the key belongs to another request
	Overloaded Kind = "overloaded" // 503: no connection became free, or the provider was busy
	Unknown    Kind = "unknown"    // 503: nobody knows what became of it
	Failed     Kind = "error"      // an error of PostgreSQL, raw
	Undone     Kind = "undone"     // the handler failed and its transaction was rolled back
	HungUp     Kind = "hung_up"    // the client had gone, and the handler with it
	Killed     Kind = "killed"     // the process died before it could answer
	Ignored    Kind = "ignored"    // 200, without doing anything
)

var kinds = []Kind{Charged, Done, Replayed, Ignored, Declined, Conflict, Mismatch, Overloaded, Unknown, Failed, Undone, HungUp, Killed}

var kindWords = map[Kind]string{
	Conflict: "409", Mismatch: "422", Declined: "402", Overloaded: "503", Unknown: "503 unknown", HungUp: "hung up",
}

// Word is how an outcome is written, as in "7 replayed".
func (k Kind) Word() string {
	if word, ok := kindWords[k]; ok {
		return word
	}
	return string(k)
}

// Answer is what one worker was told.
type Answer struct {
	Worker int  `json:"worker"` // from 1
	Kind   Kind `json:"kind"`
	// Status is the HTTP status of it; 0 if nobody was left to send one.
	Status int `json:"status"`
	// SQLSTATE is PostgreSQL's code, of Failed and where another answer was
	// caused by one.
	SQLSTATE string `json:"sqlstate,omitempty"`
	// Charge is the charge that the answer speaks of, 0 if none.
	Charge int64 `json:"charge,omitempty"`
	// Amount is what the answer says was charged, in cents.
	Amount int64 `json:"amount,omitempty"`
	// Body is the body of the answer.
	Body string `json:"body,omitempty"`
	// Attempts is how often the worker ran its transaction.
	Attempts int `json:"attempts"`
	// TookMS is from the barrier to the answer.
	TookMS float64 `json:"took_ms"`
	Note   string  `json:"note,omitempty"`
}

// Told says in a few words what the client was told.
func (a Answer) Told() string {
	text := a.Kind.Word()
	if a.Kind == Failed && a.SQLSTATE != "" {
		text = a.SQLSTATE
	}
	if a.Charge != 0 {
		text += fmt.Sprintf(", charge %d, %s", a.Charge, Dollars(a.Amount))
	}
	if a.Note != "" {
		text += " (" + a.Note + ")"
	}
	return text
}

// Outcome is how many workers were told the same.
type Outcome struct {
	Kind     Kind   `json:"kind"`
	SQLSTATE string `json:"sqlstate,omitempty"`
	Count    int    `json:"count"`
}

func (o Outcome) String() string {
	if o.Kind == Failed && o.SQLSTATE != "" {
		return fmt.Sprintf("%d × %s", o.Count, o.SQLSTATE)
	}
	word := o.Kind.Word()
	if word[0] >= '0' && word[0] <= '9' {
		return fmt.Sprintf("%d × %s", o.Count, word)
	}
	return fmt.Sprintf("%d %s", o.Count, word)
}

func outcomesOf(answers []Answer) []Outcome {
	var list []Outcome
	for _, a := range answers {
		state := ""
		if a.Kind == Failed {
			state = a.SQLSTATE
		}
		i := slices.IndexFunc(list, func(o Outcome) bool { return o.Kind == a.Kind && o.SQLSTATE == state })
		if i < 0 {
			i, list = len(list), append(list, Outcome{Kind: a.Kind, SQLSTATE: state})
		}
		list[i].Count++
	}
	slices.SortStableFunc(list, func(a, b Outcome) int {
		if d := slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind); d != 0 {
			return d
		}
		return strings.Compare(a.SQLSTATE, b.SQLSTATE)
	})
	return list
}

// errUndone is a handler's own failure.
var errUndone = errors.New("the handler failed")

// answerTo says what a handler that ended with err told its client, and returns
// an error itself if no handler should end so.
func answerTo(ctx context.Context, err error) (Answer, error) {
	var reused *idempotency.ReusedError
	state := sqlState(err)
	switch {
	case errors.Is(err, errUndone):
		return Answer{Kind: Undone, Status: 500}, nil
	case errors.As(err, &reused):
		return Answer{Kind: Mismatch, Status: 422}, nil
	case errors.Is(err, idempotency.ErrInProgress), errors.Is(err, idempotency.ErrClaimContended):
		return Answer{Kind: Conflict, Status: 409, Note: err.Error()}, nil
	case errors.Is(err, errSlotTaken):
		return Answer{Kind: Conflict, Status: 409, Note: err.Error()}, nil
	case errors.Is(err, idempotency.ErrOverloaded):
		return Answer{Kind: Overloaded, Status: 503, SQLSTATE: state}, nil
	case errors.Is(err, idempotency.ErrCommitUnknown):
		return Answer{Kind: Unknown, Status: 503}, nil
	case ctx.Err() != nil:
		return Answer{}, ctx.Err() // the run was given up: what PostgreSQL says of it is no finding
	case state != "" && state != idleInTransaction && !strings.HasPrefix(state, "57"): // 57: canceled or shut down, from outside
		return Answer{Kind: Failed, Status: 500, SQLSTATE: state}, nil
	}
	return Answer{}, err
}
