package web

import (
	"fmt"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/idempotency/racelab"
)

// The fields of POST /lab/{experiment}/runs, as a form and as JSON.
const (
	labWorkers = "workers"
	labTrials  = "trials"
	labWindow  = "window"
	labHandler = "handler_ms"
)

// readLabFields reads a body that carries no key: a run moves no money, and
// doing it again is what it is for.
func readLabFields(c echo.Context, declared ...string) (submission, error) {
	form, err := isForm(c.Request())
	if err != nil {
		return submission{}, err
	}
	body, err := readBody(c.Response().Writer, c.Request())
	if err != nil {
		return submission{}, err
	}
	s := submission{form: form}
	if form {
		s.fields, _, err = readForm(body, declared)
	} else {
		s.fields, err = readJSON(body, declared)
	}
	return s, err
}

// readLabSettings reads the settings of a run, each with the experiment's
// default, and refuses what is out of its bounds.
func readLabSettings(c echo.Context, e *racelab.Experiment) (s racelab.Settings, err error) {
	sent, err := readLabFields(c, labWorkers, labTrials, labWindow, labHandler)
	if err != nil {
		return s, err
	}
	if s.Workers, err = sent.within(labWorkers, e.Workers); err != nil {
		return s, err
	}
	if s.Trials, err = sent.within(labTrials, e.Trials); err != nil {
		return s, err
	}
	s.Window = racelab.Barrier
	if _, given := sent.fields[labWindow]; given {
		text, err := sent.text(labWindow, 64)
		if err != nil {
			return s, err
		}
		s.Window = racelab.Window(text)
	}
	switch s.Window {
	case racelab.Barrier:
	case racelab.None, racelab.Handler:
		if !e.HasWindow {
			return s, invalid(labWindow, "Here one step follows the other, so there is no barrier to take away.")
		}
	default:
		return s, invalid(labWindow, "Choose barrier, none or handler.")
	}
	handler, err := sent.within(labHandler, racelab.Bounds{Max: int(racelab.MaxHandler.Milliseconds())})
	if s.Window == racelab.Handler { // a form sends its choice along with the others
		s.Handler = time.Duration(handler) * time.Millisecond
	}
	return s, err
}

// within reads a whole number within bounds.
func (s submission) within(name string, b racelab.Bounds) (int, error) {
	v, given := s.fields[name]
	if !given {
		return b.Default, nil
	}
	refused := invalid(name, fmt.Sprintf("Choose a whole number from %d to %d.", b.Min, b.Max))
	if b.Min == b.Max {
		refused = invalid(name, fmt.Sprintf("The experiment has its own %s: %d. Leave the field out.", name, b.Min))
	}
	if !s.form && !v.number {
		return 0, refused
	}
	n, ok := wholeNumber(v.text)
	if !ok || n < int64(b.Min) || n > int64(b.Max) {
		return 0, refused
	}
	return int(n), nil
}

// durationWords writes the length of a handler.
func durationWords(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10) + "\u00a0ms"
}
