package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/idempotency/racelab"
)

const (
	// labPatience is how long a form's POST waits before it leads to the page of
	// the run. Most have ended by then, so that a browser without script sees
	// the result at once.
	labPatience = 750 * time.Millisecond
	// labRunLimit is how long one run may take, which the lab itself holds; and
	// labSweepLimit how long all of them together.
	labRunLimit   = 2 * time.Minute
	labSweepLimit = 6 * time.Minute
)

// labRun is one run, or with no experiment a run over all of them.
type labRun struct {
	id         string
	account    string
	experiment *racelab.Experiment
	settings   racelab.Settings
	conns      int // that it may hold at once
	started    time.Time
	ended      chan struct{}

	mu       sync.Mutex
	news     chan struct{} // closed when there is something new
	progress labProgress
	result   *racelab.Result
	err      error
	endedAt  time.Time
	size     int // of the result as JSON, in bytes
	// missed are the experiments of a run over all that showed nothing.
	missed map[string]error
	// parts are the ids of its runs that showed something, by experiment. Not the
	// runs themselves, which are forgotten like any other.
	parts map[string]string
}

// labProgress is how far a run has come.
type labProgress struct {
	Done int    `json:"done"`
	Of   int    `json:"of"`
	Now  string `json:"now"`
}

func newLabRun(id, account string, e *racelab.Experiment, s racelab.Settings) *labRun {
	r := &labRun{
		id: id, account: account, experiment: e, settings: s, started: time.Now(),
		ended: make(chan struct{}), news: make(chan struct{}), missed: map[string]error{}, parts: map[string]string{},
	}
	if e != nil {
		r.conns = connsOf(e, s.Workers)
		r.progress = labProgress{Of: s.Trials * len(e.Variants), Now: e.Variants[0].Title}
		return r
	}
	all := racelab.All()
	for _, e := range all {
		r.conns = max(r.conns, connsOf(e, e.Workers.Default))
	}
	r.progress = labProgress{Of: len(all), Now: all[0].Title}
	return r
}

// connsOf is how many connections a run holds at once: one for each worker, and
// the lab's own.
func connsOf(e *racelab.Experiment, workers int) int {
	const labsOwn = 3
	for _, v := range e.Variants {
		workers = max(workers, len(v.Lanes))
	}
	return workers + labsOwn
}

// path is the address of the run, which can be shared while the server lives.
func (r *labRun) path() string {
	path := labPath
	if r.experiment != nil {
		path += "/" + r.experiment.Name
	}
	return path + "?run=" + url.QueryEscape(r.id)
}

func (r *labRun) limit() time.Duration {
	if r.experiment == nil {
		return labSweepLimit
	}
	return labRunLimit
}

// advance tells those who watch how far it is.
func (r *labRun) advance(p labProgress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = p
	close(r.news)
	r.news = make(chan struct{})
}

// trialEnded notes a trial that has ended.
func (r *labRun) trialEnded(p racelab.Progress) {
	r.mu.Lock()
	done := labProgress{Done: r.progress.Done + 1, Of: r.progress.Of}
	r.mu.Unlock()
	done.Now = p.Variant
	if v := r.experiment.Variant(p.Variant); v != nil {
		done.Now = v.Title
	}
	done.Now += fmt.Sprintf(", trial %d of %d", p.Trial.Number, p.Of)
	r.advance(done)
}

// addPart notes a part of a run over all experiments.
func (r *labRun) addPart(part *labRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts[part.experiment.Name] = part.id
}

// partIDs are the ids of its parts, by experiment.
func (r *labRun) partIDs() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.parts)
}

// end notes the outcome, once.
func (r *labRun) end(result *racelab.Result, size int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result, r.size, r.err, r.endedAt = result, size, err, time.Now()
	close(r.ended)
}

// hasEnded is true once the run has ended.
func (r *labRun) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// outcome gives the result, or the error, of a run that has ended.
func (r *labRun) outcome() (*racelab.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result, r.err
}

// failure is the answer to a run that ended without a result, or has not ended.
func (r *labRun) failure() error {
	if !r.hasEnded() {
		return &labRefusal{code: labBusy, detail: "The run has not ended yet. Read its address to see how it ends.", retryAfter: 5}
	}
	if _, err := r.outcome(); err != nil {
		return labFailure(err)
	}
	return nil
}

// seen gives how far the run is, and a channel that closes when that changes.
func (r *labRun) seen() (labProgress, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress, r.news
}

// await waits for the end, for a while.
func (r *labRun) await(ctx context.Context, most time.Duration) {
	patience := time.NewTimer(most)
	defer patience.Stop()
	select {
	case <-r.ended:
	case <-patience.C:
	case <-ctx.Done():
	}
}

// outlive lets an answer take longer than the server's timeouts, which are for
// requests that take a moment. The read timeout counts, too: when it fires, the
// server takes the client for gone.
func outlive(c echo.Context, most time.Duration) {
	control := http.NewResponseController(c.Response())
	_ = control.SetReadDeadline(time.Time{}) // where it is not supported, there is no timeout either
	_ = control.SetWriteDeadline(time.Now().Add(most + ledgerWrite))
}
