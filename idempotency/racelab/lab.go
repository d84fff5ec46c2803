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
}

// New makes a Lab on the database that config reaches. Its role must be allowed
// to create schemas. A run opens its own connections: one for each worker, and
// two of the lab's. It never touches what stands in another schema than the
// run's own, and drops that at the end, also after a cancel or a panic.
func New(config *pgx.ConnConfig) *Lab { return &Lab{database: config.Copy(), limit: runLimit} }

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
	for _, v := range e.chosen(s.Variants) {
		trials, err := l.runVariant(limited, result, v, progress)
		if err != nil {
			if errors.Is(context.Cause(limited), ErrDeadline) {
				err = fmt.Errorf("%w, more than %s: %w", ErrDeadline, l.limit, err)
			}
			return nil, fmt.Errorf("running %s, %s: %w", e.Name, v.Name, err)
		}
		sum := summary(v, s, trials)
		result.OK = result.OK && sum.OK()
		result.Variants = append(result.Variants, sum)
	}
	result.TookMS = milliseconds(time.Since(result.Started))
	return result, nil
}

// runVariant runs the trials of a variant in a schema of their own.
func (l *Lab) runVariant(ctx context.Context, result *Result, v *Variant, progress func(Progress)) (trials []Trial, err error) {
	b, err := l.open(ctx, v, result.Settings)
	if err != nil {
		return nil, opening(err)
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	result.Server = b.version
	for number := 1; number <= result.Settings.Trials; number++ {
		t, err := b.trial(ctx, number)
		if err != nil {
			return nil, fmt.Errorf("trial %d: %w", number, opening(err))
		}
		trials = append(trials, *t)
		if progress != nil {
			progress(Progress{v.Name, *t, result.Settings.Trials})
		}
	}
	return trials, nil
}

// Server gives PostgreSQL's version, as in "17.6".
func (l *Lab) Server(ctx context.Context) (string, error) {
	conn, err := pgx.ConnectConfig(ctx, l.database.Copy())
	if err != nil {
		return "", opening(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return version(conn), nil
}

func version(conn *pgx.Conn) string {
	number, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	return number
}
