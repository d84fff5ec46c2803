package racelab

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// The names of figures that several variants have.
const (
	differing     = "different answers"
	named         = "charges that the answers name"
	callsFigure   = "calls of the provider"
	stateFigure   = "state of the key"
	foundNoKey    = "workers that found no key"
	attemptsPaid  = "attempts that the losers paid"
	retriedLosers = "losers who needed more than one attempt"
	survivingRows = "surviving rows"
	hadToWait     = "B had to wait"
	commitsFigure = "commits of all requests together"
	failures40001 = "serialization failures (40001)"
	predicateLock = "predicate locks held, with a READ COMMITTED bystander's"
)

// differentAnswers notes how many different bodies the clients got, and which
// charges those name.
func differentAnswers(_ context.Context, r *round) error {
	var bodies, names []string
	for _, a := range r.answers {
		if a.Body != "" && !slices.Contains(bodies, a.Body) {
			bodies = append(bodies, a.Body)
		}
		if name := strconv.FormatInt(a.Charge, 10); a.Charge != 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	r.figure(differing, "%d", len(bodies))
	r.figure(named, "%s", strings.Join(names, ", "))
	return nil
}

// lockWaits notes the most connections that waited for a lock at once.
func lockWaits(_ context.Context, r *round) error {
	most := 0
	for _, l := range r.observer.taken() {
		most = max(most, len(l.waiting))
	}
	r.figure("connections waiting for a lock", "%d", most)
	return nil
}

// providerCalls notes how often the provider was called.
func providerCalls(_ context.Context, r *round) error {
	r.figure(callsFigure, "%d", r.provider.called())
	return nil
}

// commitsMade notes the commits of all workers together.
func commitsMade(_ context.Context, r *round) error {
	r.figure(commitsFigure, "%d", r.events.commits)
	return nil
}

// serializationFailures notes how often PostgreSQL raised 40001.
func serializationFailures(_ context.Context, r *round) error {
	n := 0
	for _, e := range r.events.events {
		if e.SQLSTATE == serializationFailure {
			n++
		}
	}
	r.figure(failures40001, "%d", n)
	return nil
}

// stateOfTheKey notes the key's status in the ledger.
func stateOfTheKey(ctx context.Context, r *round) error {
	status, err := ask[string](ctx, r.lab, `SELECT coalesce((SELECT status FROM idempotency_keys WHERE key = $1), 'no row')`, theKey)
	r.figure(stateFigure, "%s", status)
	return err
}

// counted notes a counter of the variant's own.
func counted(name string) func(context.Context, *round) error {
	return func(_ context.Context, r *round) error {
		r.figure(name, "%d", r.count(name, 0))
		return nil
	}
}

// attempts notes how often those who were not first ran their transactions.
func attempts(_ context.Context, r *round) error {
	var each []string
	again := 0
	for _, a := range r.answers {
		if a.Kind == Charged {
			continue
		}
		each = append(each, strconv.Itoa(a.Attempts))
		if a.Attempts > 1 {
			again++
		}
	}
	r.figure(retriedLosers, "%d", again)
	r.figure(attemptsPaid, "%s", strings.Join(each, ", "))
	return nil
}

// all notes several figures.
func all(notes ...func(context.Context, *round) error) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		for _, n := range notes {
			if err := n(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}
}
