package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"payonce/checkout"
	"payonce/idempotency/racelab"
	"payonce/web/view"
)

// The codes of the lab. They are not in the published policy, because no key and
// no money is about them; the lab's own page explains them.
const (
	labUnderWay     = "run_in_progress"
	labBusy         = "lab_busy"
	labNotPermitted = "lab_not_permitted"
	labGone         = "run_gone"
	labUnknown      = "no_experiment"
)

// labCodes are status and title of each code.
var labCodes = map[string]struct {
	status int
	title  string
}{
	labUnderWay:     {http.StatusConflict, "Your last run has not ended yet"},
	labBusy:         {http.StatusServiceUnavailable, "The lab is busy"},
	labNotPermitted: {http.StatusServiceUnavailable, "The lab may not use this database"},
	labGone:         {http.StatusNotFound, "This run is gone"},
	labUnknown:      {http.StatusNotFound, "There is no such experiment"},
}

// labRefusal is an answer of the lab in place of a run.
type labRefusal struct {
	code       string // empty: a fault of ours
	detail     string
	retryAfter int
	ways       []view.Link
	err        error // behind it, for the log
}

func (e *labRefusal) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return "the lab: " + e.detail
}

// Unwrap gives what is behind it.
func (e *labRefusal) Unwrap() error { return e.err }

// failure is the refusal as it is answered.
func (e *labRefusal) failure() failure {
	if e.code == "" {
		f := failure{Problem: checkout.NewProblem("internal"), ways: []view.Link{{Label: "All experiments", URL: labPath}}}
		f.Detail = e.words()
		f.words = &view.Words{Title: "The run failed.", Text: f.Detail}
		return f
	}
	row := labCodes[e.code]
	return failure{
		Problem: checkout.Problem{
			Type: labPath + "#" + e.code, Title: row.title, Status: row.status, Detail: e.detail, Code: e.code, SafeNewKey: true,
		},
		retryAfter: e.retryAfter,
		words:      &view.Words{Title: row.title + ".", Text: e.detail},
		ways:       append(e.ways, view.Link{Label: "All experiments", URL: labPath}),
	}
}

// words say what became of the run, and what to do.
func (e *labRefusal) words() string {
	if e.code == "" {
		return "Something went wrong on our side, and it has been logged. Nothing of the shop was touched. Run it again."
	}
	return e.detail
}

var (
	labIsClosing = &labRefusal{code: labBusy, detail: "The shop is closing, and every run ends with it. Run it again in a minute.", retryAfter: 10}
	labIsBusy    = &labRefusal{code: labBusy, detail: "Other runs hold all the connections that the lab may take. Each ends within seconds: run it again then.", retryAfter: 3}
)

func runUnderWay(other *labRun) error {
	return &labRefusal{
		code: labUnderWay, retryAfter: 2,
		detail: "One run at a time: the figures of two would be each other's noise. Wait until the first has ended.",
		ways:   []view.Link{{Label: "See the run under way", URL: other.path()}},
	}
}

func runIsGone(e *racelab.Experiment) error {
	gone := &labRefusal{code: labGone, detail: "Runs are kept in memory only: the newest ones, while the server lives. Run it again to see the figures of now."}
	if e != nil {
		gone.ways = []view.Link{{Label: e.Title, URL: labPath + "/" + e.Name}}
	}
	return gone
}

func noSuchExperiment(unknown *racelab.UnknownError) error {
	refused := &labRefusal{code: labUnknown, err: unknown, detail: "No experiment is called " + named(unknown.Name) + "."}
	for i, name := range unknown.Suggestions {
		if i == 0 {
			refused.detail += " Did you mean " + strings.Join(unknown.Suggestions, " or ") + "?"
		}
		if e, err := racelab.Find(name); err == nil {
			refused.ways = append(refused.ways, view.Link{Label: e.Title, URL: labPath + "/" + e.Name})
		}
	}
	return refused
}

// labFailure says what a run's error means to whoever asked for it.
func labFailure(err error) *labRefusal {
	refused := &labRefusal{err: err}
	switch {
	case errors.As(err, &refused):
	case errors.Is(err, racelab.ErrNotPermitted):
		refused.code, refused.detail = labNotPermitted, "A run works in a schema of its own, and the database does not let this shop make one. Grant its role CREATE on the database, and see that it is the primary."
	case errors.Is(err, racelab.ErrBusy):
		refused.code, refused.detail, refused.retryAfter = labBusy, "The database has no connections left for the workers. Run it with fewer workers, or again in a moment.", 5
	case errors.Is(err, racelab.ErrDeadline):
		refused.code, refused.detail, refused.retryAfter = labBusy, "The run did not end in its time and was given up: the database is too slow now. Run it with fewer workers, or later.", 30
	case errors.Is(err, context.Canceled):
		closing := *labIsClosing
		closing.err = err
		return &closing
	}
	return refused
}
