package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"payonce/idempotency/racelab"
)

// The limits of the lab. The connections of all runs together stay well below
// what a PostgreSQL offers by default, which is 100, so that the shop finds its
// own; and what is kept of them fits into a small machine.
const (
	maxLabRuns  = 3
	maxLabConns = 40
	keptRuns    = 200
	keptBytes   = 64 << 20
)

// labRuns holds the runs that are under way, and those that can still be read.
// Nothing of it is on disk: a figure of the lab is measured by the server that
// shows it.
type labRuns struct {
	lab    Lab
	log    *slog.Logger
	closed context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu     sync.Mutex
	runs   map[string]*labRun
	order  []*labRun          // the oldest first
	active map[string]*labRun // by account
	conns  int
	bytes  int
}

func newLabRuns(lab Lab, log *slog.Logger) *labRuns {
	l := &labRuns{lab: lab, log: log, runs: map[string]*labRun{}, active: map[string]*labRun{}}
	l.closed, l.cancel = context.WithCancel(context.Background())
	return l
}

// close ends all runs, waits until each has dropped its schema, and takes no
// more.
func (l *labRuns) close() {
	l.mu.Lock()
	l.cancel()
	l.mu.Unlock()
	l.group.Wait()
}

// start begins a run for an account, or refuses it: one at a time for each
// account, and a few in all. e is nil for a run over all experiments.
func (l *labRuns) start(account string, e *racelab.Experiment, s racelab.Settings) (*labRun, error) {
	r := newLabRun(newRunID(), account, e, s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Err() != nil {
		return nil, labIsClosing
	}
	if other := l.active[account]; other != nil {
		return nil, runUnderWay(other)
	}
	if len(l.active) >= maxLabRuns || l.conns+r.conns > maxLabConns {
		return nil, labIsBusy
	}
	l.active[account] = r
	l.conns += r.conns
	l.keep(r)
	l.group.Go(func() { l.work(r) })
	return r, nil
}

func newRunID() string { return "run_" + rand.Text() }

// work runs a run to its end. Its context is not a request's: the run belongs
// to its address, and whoever asked for it may have gone.
func (l *labRuns) work(r *labRun) {
	ctx, cancel := context.WithTimeoutCause(l.closed, r.limit(), racelab.ErrDeadline)
	defer cancel()
	var result *racelab.Result
	var err error
	if r.experiment != nil {
		result, err = l.run(ctx, r.experiment.Name, r.settings, r.trialEnded)
	} else {
		err = l.sweep(ctx, r)
	}
	l.leave(r) // before it is seen to have ended, so that the next run is not refused
	l.end(r, result, err)
}

// run runs one experiment. A bug of the lab must not end the shop.
func (l *labRuns) run(ctx context.Context, name string, s racelab.Settings, progress func(racelab.Progress)) (result *racelab.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	result, err = l.lab.Run(ctx, name, s, progress)
	if err != nil && errors.Is(context.Cause(ctx), racelab.ErrDeadline) {
		err = fmt.Errorf("%w: %w", racelab.ErrDeadline, err)
	}
	return result, err
}

// sweep runs every experiment, and keeps each as a run of its own.
func (l *labRuns) sweep(ctx context.Context, r *labRun) error {
	all := racelab.All()
	for i, e := range all {
		r.advance(labProgress{Done: i, Of: len(all), Now: e.Title})
		s := r.settings
		s.Workers = e.Workers.Default
		part := newLabRun(newRunID(), r.account, e, s)
		result, err := l.run(ctx, e.Name, s, part.trialEnded)
		switch {
		case err == nil:
			l.mu.Lock()
			l.keep(part)
			l.mu.Unlock()
			l.end(part, result, nil)
			r.addPart(part)
		case ctx.Err() != nil, errors.Is(err, racelab.ErrNotPermitted), errors.Is(err, racelab.ErrBusy):
			return err // the next would end alike
		default:
			r.mu.Lock()
			r.missed[e.Name] = err
			r.mu.Unlock()
			l.log.Warn("running an experiment", slog.String("experiment", e.Name), slog.Any("err", err))
		}
	}
	r.advance(labProgress{Done: len(all), Of: len(all)})
	return nil
}

// leave frees what a run held.
func (l *labRuns) leave(r *labRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.active, r.account)
	l.conns -= r.conns
}

// end notes how a run ended, and makes room for what it showed.
func (l *labRuns) end(r *labRun, result *racelab.Result, err error) {
	size := 0
	if result != nil {
		drawOnlyTheFirst(result)
		body, _ := json.Marshal(result) // plain data
		size = len(body)
	}
	if err != nil && labFailure(err).code == "" {
		l.log.Error("running an experiment", slog.String("run", r.id), slog.Any("err", err))
	}
	r.end(result, size, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes += size
	l.forget()
}

// drawOnlyTheFirst drops the time lines that nobody will see: a page draws the
// first trial, and twenty of them with 32 workers are megabytes.
func drawOnlyTheFirst(result *racelab.Result) {
	for _, v := range result.Variants {
		for i := 1; i < len(v.Trials); i++ {
			v.Trials[i].Events = []racelab.Event{}
		}
	}
}

// keep adds a run. The caller holds the lock.
func (l *labRuns) keep(r *labRun) {
	l.runs[r.id] = r
	l.order = append(l.order, r)
	l.forget()
}

// forget drops the oldest runs that have ended, while there are too many. The
// caller holds the lock.
func (l *labRuns) forget() {
	kept := l.order[:0]
	surplus := len(l.order) - keptRuns
	for _, r := range l.order {
		if r.hasEnded() && (surplus > 0 || l.bytes > keptBytes) {
			surplus--
			l.bytes -= r.size
			delete(l.runs, r.id)
			continue
		}
		kept = append(kept, r)
	}
	clear(l.order[len(kept):])
	l.order = kept
}

// find gives a run, or nil if there is none or it was forgotten.
func (l *labRuns) find(id string) *labRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[id]
}

// parts gives the runs that a run over all experiments is made of, as far as it
// has come and they are kept.
func (l *labRuns) parts(sweep *labRun) map[string]*labRun {
	parts := map[string]*labRun{}
	for experiment, id := range sweep.partIDs() {
		if part := l.find(id); part != nil {
			parts[experiment] = part
		}
	}
	return parts
}

// answers tells whether a run can answer a claim.
func (r *labRun) answers() bool { return r.experiment.Answers(r.settings) }

// latest gives the newest run of each experiment that ended with a result. One
// with the settings that the articles speak of comes before newer ones with
// others, which answer no claim.
func (l *labRuns) latest() map[string]*labRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	newest := map[string]*labRun{}
	for _, r := range l.order {
		if r.experiment == nil || !r.hasEnded() {
			continue
		}
		name := r.experiment.Name
		if before := newest[name]; before != nil && before.answers() && !r.answers() {
			continue
		}
		if result, _ := r.outcome(); result != nil {
			newest[name] = r
		}
	}
	return newest
}
