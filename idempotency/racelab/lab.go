package racelab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lab runs experiments on one PostgreSQL. Its methods are safe for concurrent
// use; runs do not see each other.
type Lab struct {
	database *pgx.ConnConfig
	limit    time.Duration // of a run
	trial    time.Duration // of each of its trials
}

// New makes a Lab on the database that config reaches. Its role must be allowed
// to create schemas. A run opens its own connections: one for each worker, and
// two of the lab's. It never touches what stands in another schema than the
// run's own, and drops that at the end, also after a cancel or a panic.
func New(config *pgx.ConnConfig) *Lab {
	return &Lab{database: config.Copy(), limit: runLimit, trial: trialLimit}
}

// Progress is a trial that has ended.
type Progress struct {
	Variant string `json:"variant"`
	Trial   Trial  `json:"trial"`
	// Of is how many trials the variant has.
	Of int `json:"of"`
}

// Run runs an experiment: its variants one after the other, each with so many
// trials. progress is called after each trial, from the goroutine of the call;
// it may be nil.
//
// It returns ErrUnknown, ErrBounds, ErrNoWindow, ErrNotPermitted, ErrBusy,
// ErrDeadline, ctx's error, or an error of the database. A figure that is not
// as expected is no error: see Result.OK.
func (l *Lab) Run(ctx context.Context, name string, s Settings, progress func(Progress)) (*Result, error) {
	e, err := Find(name)
	if err != nil {
		return nil, err
	}
	if s, err = e.settle(s); err != nil {
		return nil, err
	}
	return l.run(ctx, e, s, progress)
}

func (l *Lab) run(ctx context.Context, e *Experiment, s Settings, progress func(Progress)) (*Result, error) {
	limited, cancel := context.WithTimeoutCause(ctx, l.limit, ErrDeadline)
	defer cancel()
	result := &Result{
		Experiment: e.Name, Settings: s, HandlerMillis: milliseconds(s.Handler), Started: time.Now(), OK: true,
	}
	err := l.runVariants(limited, e, result, progress)
	if errors.Is(context.Cause(limited), ErrDeadline) && err != nil {
		err = fmt.Errorf("%w, more than %s: %w", ErrDeadline, l.limit, err)
	}
	if err != nil {
		return nil, fmt.Errorf("running %s: %w", e.Name, err)
	}
	result.TookMS = milliseconds(time.Since(result.Started))
	return result, nil
}

// runVariants runs the variants one after the other, in one schema that is made
// anew for each.
func (l *Lab) runVariants(ctx context.Context, e *Experiment, result *Result, progress func(Progress)) (err error) {
	b, err := l.open(ctx, result.Settings)
	if err != nil {
		return meaning(err)
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	result.Server = b.version
	for _, v := range e.chosen(result.Settings.Variants) {
		if err := b.turn(ctx, v); err != nil {
			return meaning(err)
		}
		trials, err := b.trials(ctx, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", v.Name, meaning(err))
		}
		sum := summary(v, result.Settings, trials)
		result.OK = result.OK && sum.OK()
		result.Variants = append(result.Variants, sum)
	}
	return nil
}

// trials runs the trials of the variant whose turn it is.
func (b *bench) trials(ctx context.Context, progress func(Progress)) (trials []Trial, err error) {
	for number := 1; number <= b.settings.Trials; number++ {
		t, err := b.trial(ctx, number)
		if err != nil {
			return nil, fmt.Errorf("trial %d: %w", number, err)
		}
		trials = append(trials, *t)
		if progress != nil {
			progress(Progress{b.variant.Name, *t, b.settings.Trials})
		}
	}
	return trials, nil
}

// Server gives PostgreSQL's version, as in "17.6".
func (l *Lab) Server(ctx context.Context) (string, error) {
	conn, err := pgx.ConnectConfig(ctx, l.database.Copy())
	if err != nil {
		return "", meaning(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return version(conn), nil
}

func version(conn *pgx.Conn) string {
	number, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	return number
}
