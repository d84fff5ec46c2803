package racelab

import (
	"fmt"
	"time"
)

// Window says what keeps the window between check and act open.
type Window string

// The windows. Only the first makes a race certain.
const (
	// Barrier: no worker acts before every worker has looked, and a winner does
	// not commit before PostgreSQL has been seen to make the others wait.
	Barrier Window = "barrier"
	// None: the workers start together, and then nothing holds them. What
	// happens is luck, so the run reports a spread and claims nothing, except
	// of variants that do not depend on luck.
	None Window = "none"
	// Handler: the handler takes Settings.Handler between check and act, as
	// real ones do. Nothing is claimed, as with None.
	Handler Window = "handler"
)

// Bounds are the least, the usual and the most of a setting. All three are one
// number where there is nothing to choose.
type Bounds struct {
	Min     int `json:"min"`
	Default int `json:"default"`
	Max     int `json:"max"`
}

// The bounds of every run, whatever the experiment.
const (
	MinWorkers = 2
	MaxWorkers = 32
	MaxTrials  = 20
	// MaxHandler is the longest handler; see HandlerTimes.
	MaxHandler = time.Second
	// runLimit ends a run that hangs, and leaves room for the most that its
	// handlers can take; statementLimit ends each of its statements.
	runLimit       = 100 * time.Second
	statementLimit = 20 * time.Second
)

// HandlerTimes are the usual lengths of a handler: none, a database's, and a
// provider's.
var HandlerTimes = []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond}

var (
	manyWorkers = Bounds{MinWorkers, 8, MaxWorkers}
	fewTrials   = Bounds{1, 3, MaxTrials}
)

// parties is for experiments with their own cast.
func parties(n int) Bounds { return Bounds{n, n, n} }

// Settings are those of one run. The zero value of a field is the experiment's
// default.
type Settings struct {
	Workers int    `json:"workers"`
	Trials  int    `json:"trials"`
	Window  Window `json:"window"`
	// Handler is how long the handler takes, with the window Handler.
	Handler time.Duration `json:"-"`
	// Variants names those to run. Empty: all.
	Variants []string `json:"variants,omitempty"`
}

// settle fills in the defaults and refuses what is outside the bounds.
func (e *Experiment) settle(s Settings) (Settings, error) {
	if s.Workers == 0 {
		s.Workers = e.Workers.Default
	}
	if s.Trials == 0 {
		s.Trials = e.Trials.Default
	}
	if s.Window == "" {
		s.Window = Barrier
	}
	switch {
	case s.Workers < e.Workers.Min || s.Workers > e.Workers.Max:
		return s, &BoundsError{"workers", s.Workers, e.Workers.Min, e.Workers.Max}
	case s.Trials < e.Trials.Min || s.Trials > e.Trials.Max:
		return s, &BoundsError{"trials", s.Trials, e.Trials.Min, e.Trials.Max}
	case s.Window != Barrier && !e.HasWindow:
		return s, ErrNoWindow
	case s.Window == Handler && (s.Handler < 0 || s.Handler > MaxHandler):
		return s, &BoundsError{"milliseconds of handler", int(s.Handler.Milliseconds()), 0, int(MaxHandler.Milliseconds())}
	case s.Window != Barrier && s.Window != None && s.Window != Handler:
		return s, fmt.Errorf("%w: the window is %q: choose %s, %s or %s", ErrBounds, s.Window, Barrier, None, Handler)
	}
	for _, name := range s.Variants {
		if e.Variant(name) == nil {
			return s, &UnknownError{Name: name, Of: e.Name, Suggestions: e.variantNames()}
		}
	}
	return s, nil
}
