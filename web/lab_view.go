package web

import (
	"time"

	"github.com/labstack/echo/v4"

	"payonce/idempotency/racelab"
)

// labIndexView is the JSON of GET /lab.
type labIndexView struct {
	Experiments []*racelab.Experiment `json:"experiments"`
	Claims      []claimView           `json:"claims"`
	Run         *labRunView           `json:"run,omitempty"`
}

// labExperimentView is the JSON of GET /lab/{experiment}.
type labExperimentView struct {
	Experiment *racelab.Experiment `json:"experiment"`
	Expected   []expectedView      `json:"expected"`
	Run        *labRunView         `json:"run,omitempty"`
}

// expectedView is what a variant must show with the default number of workers.
type expectedView struct {
	Variant string             `json:"variant"`
	Figures []racelab.Expected `json:"figures"`
}

// claimView is one claim of an article, with what a run shows of it.
type claimView struct {
	racelab.Claim
	// Measured is the claim's figure, or nothing if it was not run.
	Measured string          `json:"measured,omitempty"`
	Verdict  racelab.Verdict `json:"verdict"`
	// Run is the id of the run that showed it.
	Run string `json:"run,omitempty"`
	// Unanswered is true of a run whose settings, or whose choice of variants,
	// answer no claim.
	Unanswered bool `json:"unanswered,omitempty"`
}

// labRunView is the JSON of a run.
type labRunView struct {
	ID string `json:"id"`
	// Experiment is empty for a run over all of them.
	Experiment string          `json:"experiment,omitempty"`
	Status     string          `json:"status"`
	StartedAt  time.Time       `json:"started_at"`
	Progress   labProgress     `json:"progress"`
	Result     *racelab.Result `json:"result,omitempty"`
	// Claims are those of a run over all experiments.
	Claims []claimView `json:"claims,omitempty"`
	// Problem says in words why there is no result.
	Problem string `json:"problem,omitempty"`
}

// The states of a run.
const (
	labRunning = "running"
	labDone    = "done"
	labFailed  = "failed"
)

func (l *labRuns) index(sweep *labRun) labIndexView {
	v := labIndexView{Experiments: racelab.All(), Claims: claimsBy(racelab.Claims(), l.runsOf(sweep))}
	if sweep != nil {
		v.Run = sweep.view()
	}
	return v
}

// runsOf are the runs by which a page judges the claims: the parts of a run over
// all experiments, so that its address keeps its figures, or the newest ones.
func (l *labRuns) runsOf(sweep *labRun) map[string]*labRun {
	if sweep != nil {
		return l.parts(sweep)
	}
	return l.latest()
}

// claimsBy adds to claims what runs show, which are given by experiment.
func claimsBy(claims []racelab.Claim, runs map[string]*labRun) []claimView {
	list := make([]claimView, 0, len(claims))
	for _, c := range claims {
		v := claimView{Claim: c}
		var result *racelab.Result
		if r := runs[c.Experiment]; r != nil {
			result, _ = r.outcome()
			v.Run = r.id
		}
		v.Measured, v.Verdict = c.Measured(result)
		if v.Verdict == racelab.ByTest {
			v.Measured = ""
		}
		v.Unanswered = result != nil && v.Verdict == racelab.Unproven
		list = append(list, v)
	}
	return list
}

func (s *Server) experimentView(e *racelab.Experiment, r *labRun) labExperimentView {
	v := labExperimentView{Experiment: e}
	for i := range e.Variants {
		variant := &e.Variants[i]
		v.Expected = append(v.Expected, expectedView{variant.Name, variant.Expected(partiesOf(variant, e.Workers.Default))})
	}
	if r != nil {
		v.Run = r.view()
	}
	return v
}

// partiesOf is how many workers a variant has: its own cast, or what is chosen.
func partiesOf(v *racelab.Variant, workers int) int {
	if len(v.Lanes) > 0 {
		return len(v.Lanes)
	}
	return workers
}

func (r *labRun) view() *labRunView {
	v := &labRunView{ID: r.id, Status: labRunning, StartedAt: r.started.UTC()}
	if r.experiment != nil {
		v.Experiment = r.experiment.Name
	}
	v.Progress, _ = r.seen()
	if !r.hasEnded() {
		return v
	}
	var err error
	v.Status = labDone
	if v.Result, err = r.outcome(); err != nil {
		v.Status, v.Problem = labFailed, labFailure(err).words()
	}
	return v
}

// sendLabRun answers a program with the run that it asked for.
func (s *Server) sendLabRun(c echo.Context, r *labRun) error {
	v := r.view()
	if r.experiment == nil {
		v.Claims = claimsBy(racelab.Claims(), s.lab.parts(r))
	}
	return c.JSON(201, v)
}
