package web_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/idempotency/racelab"
)

// handLab is a lab whose runs a test ends by hand: each ends at once with an
// empty result, unless the test holds it or chooses how it ends.
type handLab struct {
	mu   sync.Mutex
	runs []string
	// hold, where set, keeps every run until it is closed or the run is given up.
	hold chan struct{}
	// started is told of each run.
	started chan string
	// fails says how the runs of an experiment end.
	fails map[string]error
	// shows, where set, are the variants that a run of an experiment shows.
	shows func(name string) []racelab.VariantResult
	ended int
}

func (l *handLab) Run(ctx context.Context, name string, s racelab.Settings, progress func(racelab.Progress)) (*racelab.Result, error) {
	l.mu.Lock()
	l.runs = append(l.runs, name)
	hold, started, err := l.hold, l.started, l.fails[name]
	l.mu.Unlock()
	if started != nil {
		started <- name
	}
	if e, unknown := racelab.Find(name); unknown == nil {
		progress(racelab.Progress{Variant: e.Variants[0].Name, Trial: racelab.Trial{Number: 1}, Of: s.Trials})
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended++
	if err != nil {
		return nil, err
	}
	result := &racelab.Result{Experiment: name, Settings: s, Server: "17.6", Started: time.Now(), Variants: []racelab.VariantResult{}, OK: true}
	if l.shows != nil {
		result.Variants = l.shows(name)
	}
	return result, nil
}

func (l *handLab) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.runs...)
}

// await waits until a run has begun.
func (l *handLab) await(t *testing.T) string {
	t.Helper()
	select {
	case name := <-l.started:
		return name
	case <-time.After(30 * time.Second):
		require.Fail(t, "no run has begun")
	}
	return ""
}
