package racelab

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Price is what the course costs, in cents.
const Price = 4900

// Result is one run of one experiment: plain data, all of it measured in that
// run.
type Result struct {
	Experiment string   `json:"experiment"`
	Settings   Settings `json:"settings"`
	// HandlerMillis is the length of the handler, with the window Handler.
	HandlerMillis float64 `json:"handler_ms"`
	// Server is PostgreSQL's version, as in "17.6".
	Server   string          `json:"server"`
	Started  time.Time       `json:"started"`
	TookMS   float64         `json:"took_ms"`
	Variants []VariantResult `json:"variants"`
	// OK is true if every check of every variant is.
	OK bool `json:"ok"`
}

// Variant gives the result of the variant of that name, or nil.
func (r *Result) Variant(name string) *VariantResult {
	for i := range r.Variants {
		if r.Variants[i].Variant == name {
			return &r.Variants[i]
		}
	}
	return nil
}

// VariantResult is what the trials of one variant showed.
type VariantResult struct {
	Variant string  `json:"variant"`
	Trials  []Trial `json:"trials"`
	// Cost is that of all trials together.
	Cost Cost `json:"cost"`
	// Checks compare with the expected figures. There are none where the
	// outcome is luck: see Window.
	Checks []Check `json:"checks"`
	// Spread counts how often the trials had each number of charges.
	Spread []Spread `json:"spread"`
}

// OK is true if every check is.
func (v *VariantResult) OK() bool {
	return !slices.ContainsFunc(v.Checks, func(c Check) bool { return !c.OK })
}

// Check gives the check of that figure, or nil.
func (v *VariantResult) Check(figure string) *Check {
	for i := range v.Checks {
		if v.Checks[i].Figure == figure {
			return &v.Checks[i]
		}
	}
	return nil
}

// seen gives a figure of the variant's own as the trials showed it.
func (v *VariantResult) seen(figure string) string {
	var list []string
	for i := range v.Trials {
		list = append(list, expectation{figure: figure}.got(&v.Trials[i]))
	}
	return strings.Join(distinct(list), "; ")
}

// Spread is how many trials had so many charges.
type Spread struct {
	Charges int `json:"charges"`
	Trials  int `json:"trials"`
}

// Trial is one release of the workers.
type Trial struct {
	Number int `json:"number"`
	// Charges is how often the card was charged: rows, counted afterwards on a
	// connection that took no part. Money is their sum in cents.
	Charges int   `json:"charges"`
	Money   int64 `json:"money"`
	// Before is how many of the charges were there before the workers began.
	Before int `json:"before"`
	// Outcomes count the answers by kind and SQLSTATE, in order of frequency of
	// the kinds' list.
	Outcomes []Outcome `json:"outcomes"`
	// Answers has one for each worker, in order.
	Answers []Answer `json:"answers"`
	// Figures are those that the variant names itself.
	Figures []Figure `json:"figures"`
	Cost    Cost     `json:"cost"`
	// Marks are the charges, in order of the moment at which they became real.
	Marks []ChargeMark `json:"marks"`
	// Events are what the workers did, in order of their start.
	Events []Event `json:"events"`
	// EndMS is when the last worker had its answer.
	EndMS float64 `json:"end_ms"`
}

// Figure is a figure with a name of its own.
type Figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Cost is what a variant costs, measured at the run's own connections.
type Cost struct {
	// Statements, Commits and RoundTrips are per request. A commit is a COMMIT
	// that went through, or a statement that wrote outside of a transaction.
	Statements float64 `json:"statements"`
	Commits    float64 `json:"commits"`
	RoundTrips float64 `json:"round_trips"`
	// HeldWaiting is the most connections that were seen at once to be held and
	// do nothing: LockWaits wait for a lock, IdleInTransaction are idle in a
	// transaction while their handler is at work. The last two are each the
	// most at once, so they need not add up. Sampled, every two milliseconds
	// or so.
	HeldWaiting       int `json:"held_waiting"`
	LockWaits         int `json:"lock_waits"`
	IdleInTransaction int `json:"idle_in_transaction"`
	// Times are from the barrier to the answer.
	Times Times `json:"times"`
}

// Times of answers, in milliseconds.
type Times struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

func (c *Cost) seen(waiting, idle, held int) {
	c.LockWaits = max(c.LockWaits, waiting)
	c.IdleInTransaction = max(c.IdleInTransaction, idle)
	c.HeldWaiting = max(c.HeldWaiting, held)
}

// ChargeMark is a charge in the drawing.
type ChargeMark struct {
	Worker int     `json:"worker"` // from 1
	At     float64 `json:"at"`
	Number int     `json:"number"` // from 1, in order of At
	// TooMany is true for charges beyond those that there ought to be.
	TooMany bool `json:"too_many"`
}

// What an event is.
type What string

// The kinds of events, by which a lane is drawn.
const (
	EventSelect   What = "select"
	EventInsert   What = "insert"
	EventUpdate   What = "update"
	EventDelete   What = "delete"
	EventLock     What = "lock" // an advisory lock
	EventBegin    What = "begin"
	EventCommit   What = "commit"
	EventRollback What = "rollback"
	EventOther    What = "other"
	EventCall     What = "call"    // of the provider
	EventHandler  What = "handler" // the handler's own time between check and act
	EventBarrier  What = "barrier" // stopped by the lab until the others have come as far
	EventKilled   What = "killed"  // the process died here
	EventHungUp   What = "hung_up" // the client went away here
	EventLapse    What = "lapse"   // the lab moved the lease into the past
	EventSwept    What = "swept"   // the lab's sweeper deleted the key
	EventAnswer   What = "answer"
)

// Event is one thing on a worker's lane. Times are milliseconds after the
// barrier.
type Event struct {
	Worker int     `json:"worker"` // from 1
	What   What    `json:"what"`
	Start  float64 `json:"start"`
	End    float64 `json:"end"`
	// SQL is the statement, or the statements of one round trip.
	SQL string `json:"sql,omitempty"`
	// Statements is how many there were in this round trip.
	Statements int `json:"statements,omitempty"`
	// Rows is what the statement says it affected or returned.
	Rows     int64  `json:"rows"`
	SQLSTATE string `json:"sqlstate,omitempty"`
	// Commits is true if the transaction was committed at End: by a COMMIT in
	// this round trip, or since the statement wrote outside of a transaction.
	Commits bool `json:"commits,omitempty"`
	// Backend is the PostgreSQL process, so that one can see who shared one.
	Backend uint32 `json:"backend,omitempty"`
	Note    string `json:"note,omitempty"`
	// Wait is set if PostgreSQL was seen to make the statement wait.
	Wait *Wait `json:"wait,omitempty"`
}

// Wait is a statement's wait for a lock, as pg_stat_activity and
// pg_blocking_pids showed it.
type Wait struct {
	// For are the workers that stood in the way, in the order in which they
	// were seen there. 0 is the lab itself.
	For []int `json:"for"`
	// SeenFrom and SeenTo are the first and the last look that showed it.
	SeenFrom float64 `json:"seen_from"`
	SeenTo   float64 `json:"seen_to"`
	// EndedBy is the worker whose COMMIT or ROLLBACK ended it, at Until. 0 if
	// none was seen.
	EndedBy int     `json:"ended_by"`
	Until   float64 `json:"until"`
}

// Outcome says how the trial ended, as in "1 charged, 7 replayed".
func (t *Trial) Outcome() string {
	var parts []string
	for _, o := range t.Outcomes {
		parts = append(parts, o.String())
	}
	return strings.Join(parts, ", ")
}

// Dollars writes cents as in "$9,000.00".
func Dollars(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	whole := fmt.Sprint(cents / 100)
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return fmt.Sprintf("%s$%s.%02d", sign, whole, cents%100)
}

// milliseconds rounds to whole microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// summary adds up what the trials showed.
func summary(v *Variant, s Settings, trials []Trial) VariantResult {
	result := VariantResult{Variant: v.Name, Trials: trials, Checks: v.check(v.parties(s), s.Window, trials)}
	counts := map[int]int{}
	var times []float64
	for i := range trials {
		t := &trials[i]
		counts[t.Charges]++
		n := float64(len(trials))
		result.Cost.Statements += t.Cost.Statements / n
		result.Cost.Commits += t.Cost.Commits / n
		result.Cost.RoundTrips += t.Cost.RoundTrips / n
		result.Cost.seen(t.Cost.LockWaits, t.Cost.IdleInTransaction, t.Cost.HeldWaiting)
		for _, a := range t.Answers {
			times = append(times, a.TookMS)
		}
	}
	result.Cost.Times = timesOf(times)
	for charges := 0; len(counts) > 0; charges++ {
		if n, ok := counts[charges]; ok {
			result.Spread = append(result.Spread, Spread{charges, n})
			delete(counts, charges)
		}
	}
	return result
}

func timesOf(times []float64) Times {
	if len(times) == 0 {
		return Times{}
	}
	slices.Sort(times)
	middle := (times[(len(times)-1)/2] + times[len(times)/2]) / 2
	return Times{times[0], middle, times[len(times)-1]}
}
