package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"payonce/idempotency/racelab"
)

const (
	labPath           = "/lab"
	labExperimentPath = "/lab/:experiment"
	labRunsPath       = "/lab/:experiment/runs"
	labSweepPath      = "/lab/runs"
	labEventsPath     = "/lab/runs/:id/events"
)

// Lab runs experiments. *racelab.Lab is the real one, and the contract is there.
// It opens connections of its own and works in schemas of its own, so that no
// run takes a connection from the shop's pool or touches one of its tables.
type Lab interface {
	Run(ctx context.Context, name string, s racelab.Settings, progress func(racelab.Progress)) (*racelab.Result, error)
}

// hasLab is true where the race lab is open: anyone can make it hold
// connections and burn time, which no shop with real customers should offer.
func (s *Server) hasLab() bool { return s.lab != nil }

// labIndex answers GET /lab.
func (s *Server) labIndex(c echo.Context) error {
	sweep, err := s.sweepOf(c)
	if err != nil {
		return err
	}
	if wantsHTML(c) {
		return s.labIndexPage(c, sweep)
	}
	return s.sendJSON(c, s.lab.index(sweep))
}

// labExperiment answers GET /lab/{experiment}, with ?run= also what a run
// showed.
func (s *Server) labExperiment(c echo.Context) error {
	e, err := experimentOf(c)
	if err != nil {
		return err
	}
	var r *labRun
	if id := c.QueryParam("run"); id != "" {
		if r = s.lab.find(id); r == nil || r.experiment == nil || r.experiment.Name != e.Name {
			return runIsGone(e)
		}
	}
	if wantsHTML(c) {
		return s.labExperimentPage(c, e, r)
	}
	return s.sendJSON(c, s.experimentView(e, r))
}

// sweepOf is the run over all experiments that the request names, or nil.
func (s *Server) sweepOf(c echo.Context) (*labRun, error) {
	id := c.QueryParam("run")
	if id == "" {
		return nil, nil
	}
	r := s.lab.find(id)
	if r == nil || r.experiment != nil {
		return nil, runIsGone(nil)
	}
	return r, nil
}

// experimentOf finds the experiment that the path names.
func experimentOf(c echo.Context) (*racelab.Experiment, error) {
	e, err := racelab.Find(c.Param("experiment"))
	var unknown *racelab.UnknownError
	if errors.As(err, &unknown) {
		return nil, noSuchExperiment(unknown)
	}
	return e, err
}

// labStart answers POST /lab/{experiment}/runs.
func (s *Server) labStart(c echo.Context) error {
	e, err := experimentOf(c)
	if err != nil {
		return err
	}
	settings, err := readLabSettings(c, e)
	if err != nil {
		return err
	}
	return s.labRun(c, e, settings)
}

// labSweep answers POST /lab/runs: every experiment, one after the other, with
// one trial each.
func (s *Server) labSweep(c echo.Context) error {
	if _, err := readLabFields(c); err != nil {
		return err
	}
	return s.labRun(c, nil, racelab.Settings{Trials: 1, Window: racelab.Barrier})
}

// labRun starts a run. A browser is led to its page, and finds most runs ended
// there; a program gets the result.
func (s *Server) labRun(c echo.Context, e *racelab.Experiment, settings racelab.Settings) error {
	r, err := s.lab.start(visitOf(c).account, e, settings)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if wantsHTML(c) {
		r.await(ctx, labPatience)
		return c.Redirect(http.StatusSeeOther, r.path())
	}
	outlive(c, r.limit())
	r.await(ctx, r.limit())
	if err := r.failure(); err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, r.path())
	return s.sendLabRun(c, r)
}
