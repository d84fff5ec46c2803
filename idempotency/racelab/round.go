package racelab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"payonce/idempotency"
)

// trialLimit ends a trial that hangs, long after any that does not.
const trialLimit = 30 * time.Second

// round is one trial under way.
type round struct {
	*bench
	number   int
	n        int // workers
	events   *recorder
	second   *barrier
	cues     signals
	provider *provider
	ledger   *idempotency.Ledger
	ended    atomic.Int32
	before   int // charges
	answers  []Answer
	naive    *naivePool // of the variants that have one

	mu      sync.Mutex
	figures []Figure
	shared  map[string]int // counters of a variant's own
}

// trial releases the workers once and reports what happened. It returns
// ErrDeadline if they did not end in time.
func (b *bench) trial(ctx context.Context, number int) (*Trial, error) {
	limited, cancel := context.WithTimeoutCause(ctx, b.limit, ErrDeadline)
	defer cancel()
	t, err := b.attempt(limited, cancel, number)
	// The run's own deadline is the run's to tell.
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(limited), ErrDeadline) {
		err = fmt.Errorf("%w, more than %s for one trial: %w", ErrDeadline, b.limit, err)
	}
	return t, err
}

func (b *bench) attempt(ctx context.Context, cancel context.CancelFunc, number int) (_ *Trial, err error) {
	if number > 1 {
		if err := b.empty(ctx); err != nil {
			return nil, fmt.Errorf("emptying the schema: %w", err)
		}
	}
	r := &round{bench: b, number: number, n: b.variant.parties(b.settings), events: newRecorder(), shared: map[string]int{}}
	r.second = newBarrier(r.n)
	r.provider = &provider{round: r, keys: map[string]int64{}}
	if b.variant.ledger {
		r.ledger, err = idempotency.New(idempotency.Config{
			Pool: b.pool, Instance: "lab", Lease: b.variant.lease, Wait: cmp.Or(b.variant.wait, statementLimit), AcquireWait: statementLimit,
		})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, r.ledger.Close(context.WithoutCancel(ctx))) }()
	}
	if b.variant.prepare != nil {
		if err := b.variant.prepare(ctx, r); err != nil {
			return nil, fmt.Errorf("preparing: %w", err)
		}
	}
	if err := b.warm(ctx); err != nil {
		return nil, err
	}
	if r.before, err = ask[int](ctx, b.lab, `SELECT count(*) FROM charges`); err != nil {
		return nil, err
	}
	b.observer.begin()
	began, answers, err := r.release(ctx, cancel)
	b.observer.end()
	if err != nil {
		return nil, err
	}
	r.answers = answers
	if b.variant.after != nil {
		if err := b.variant.after(ctx, r); err != nil {
			return nil, fmt.Errorf("looking at what is left: %w", err)
		}
	}
	return r.report(ctx, began, answers)
}

// release starts the workers together and waits for all of them. One that fails
// or panics ends the others.
func (r *round) release(ctx context.Context, cancel context.CancelFunc) (began time.Time, answers []Answer, err error) {
	answers = make([]Answer, r.n)
	failures := make([]error, r.n)
	start := make(chan struct{})
	var ready, group sync.WaitGroup
	ready.Add(r.n)
	for i := range r.n {
		w := &worker{round: r, n: i + 1}
		group.Go(func() {
			defer w.end()
			defer func() {
				if p := recover(); p != nil {
					failures[i] = fmt.Errorf("worker %d panicked: %v\n%s", w.n, p, debug.Stack())
					cancel()
				}
			}()
			err := w.acquire(ctx)
			ready.Done()
			defer w.release()
			if err == nil {
				<-start
				answers[i], err = w.run(ctx, &began)
			}
			if failures[i] = err; err != nil {
				cancel()
			}
		})
	}
	ready.Wait()
	began = time.Now()
	close(start)
	group.Wait()
	// The first failure ended the others, whose errors only say so.
	for _, failure := range failures {
		if failure != nil && (err == nil || errors.Is(err, context.Canceled)) {
			err = failure
		}
	}
	return began, answers, err
}

// run does the variant's work and says what the client was told.
func (w *worker) run(ctx context.Context, began *time.Time) (Answer, error) {
	mine := as(ctx, w)
	a, err := w.variant.work(mine, w)
	if err != nil {
		if a, err = answerTo(ctx, err); err != nil {
			return a, fmt.Errorf("worker %d: %w", w.n, err)
		}
	}
	now := time.Now()
	a.Worker, a.TookMS = w.n, milliseconds(now.Sub(*began))
	a.Attempts = max(w.attempts, 1)
	w.events.add(w, EventAnswer, now, now, a.Kind.Word())
	return a, nil
}

// end tells everybody who waits for this worker that it has ended.
func (w *worker) end() {
	w.round.ended.Add(1)
	w.events.tell()
	if w.second.arrive(w.n) {
		w.second.release()
	}
}

// figure notes a figure of the variant's own.
func (r *round) figure(name, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures = append(r.figures, Figure{name, fmt.Sprintf(format, args...)})
}

// count adds to a counter of the variant's own and gives its value.
func (r *round) count(name string, more int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shared[name] += more
	return r.shared[name]
}

// report turns what was recorded into data.
func (r *round) report(ctx context.Context, began time.Time, answers []Answer) (*Trial, error) {
	t := &Trial{
		Number: r.number, Before: r.before, Answers: answers, Outcomes: outcomesOf(answers), Figures: append([]Figure{}, r.figures...), Marks: []ChargeMark{}, Events: []Event{},
	}
	var err error
	if t.Charges, err = ask[int](ctx, r.lab, `SELECT count(*) FROM charges`); err != nil {
		return nil, fmt.Errorf("counting the charges: %w", err)
	}
	if t.Money, err = ask[int64](ctx, r.lab, `SELECT coalesce(sum(amount), 0)::bigint FROM charges`); err != nil {
		return nil, fmt.Errorf("adding up the charges: %w", err)
	}
	looks := r.observer.taken()
	attribute(r.events.events, looks, began)
	for _, m := range r.events.events {
		m.Start, m.End = milliseconds(m.start.Sub(began)), milliseconds(m.end.Sub(began))
		t.Events = append(t.Events, m.Event)
		t.EndMS = max(t.EndMS, m.End)
	}
	slices.SortStableFunc(t.Events, func(a, b Event) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return a.Worker - b.Worker
	})
	slices.SortStableFunc(r.events.marks, func(a, b mark) int { return a.at.Compare(b.at) })
	for i, m := range r.events.marks {
		t.Marks = append(t.Marks, ChargeMark{m.worker, milliseconds(m.at.Sub(began)), i + 1, r.before+i >= r.variant.should(r.n)})
	}
	requests := float64(r.n)
	t.Cost = Cost{
		Statements: float64(r.events.statements) / requests,
		Commits:    float64(r.events.commits) / requests,
		RoundTrips: float64(r.events.trips) / requests,
	}
	for _, l := range looks {
		t.Cost.seen(len(l.waiting), l.idle, l.held())
	}
	var times []float64
	for _, a := range answers {
		times = append(times, a.TookMS)
	}
	t.Cost.Times = timesOf(times)
	return t, nil
}
