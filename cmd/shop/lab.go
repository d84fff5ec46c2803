package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"payonce/idempotency/racelab"
	"payonce/migrations/localpg"
)

// labCommand is the race lab at a terminal.
type labCommand struct {
	database

	Experiment string         `arg:"" optional:"" help:"The experiment to run. Without one they are listed, in teaching order."`
	All        bool           `help:"Run every experiment, and judge what both articles say by the figures. Exits 1 where a figure is not as expected."`
	Workers    int            `placeholder:"N" help:"How many workers race, 2 to 32. Default: 8, or the experiment's own."`
	Trials     int            `placeholder:"N" help:"How often they are released, 1 to 20. Default: 3."`
	NoBarrier  bool           `help:"Let the workers race without the barrier between check and act. What happens then is luck: the spread is reported, and nothing claimed."`
	Handler    *time.Duration `placeholder:"TIME" help:"In place of the barrier, a handler that takes so long between check and act: 0s, 20ms, 200ms."`
	Variant    []string       `placeholder:"NAME" help:"Run only this variant of the experiment. May be repeated."`
	JSON       bool           `help:"Print everything that was measured, events included, as JSON."`
}

var (
	// errNotAsExpected: a figure is not what it should be.
	errNotAsExpected = errors.New("not every figure is as expected")
	// errNotRun: an experiment of a run of all has no result.
	errNotRun = errors.New("not every experiment could be run")
)

// experiments is what runs them: *racelab.Lab, and the contract is there.
type experiments interface {
	Run(ctx context.Context, name string, s racelab.Settings, progress func(racelab.Progress)) (*racelab.Result, error)
}

// Run lists the experiments, runs one, or runs all.
func (c *labCommand) Run(ctx context.Context, to streams) error {
	switch {
	case c.All && (c.Experiment != "" || len(c.Variant) > 0):
		return errors.New("--all runs every experiment: leave the experiment and --variant out, or --all")
	case c.NoBarrier && c.Handler != nil:
		return errors.New("--handler stands in place of the barrier: leave --no-barrier out, or --handler")
	case !c.All && c.Experiment == "":
		return c.list(to.out)
	}
	if c.Experiment != "" {
		if _, err := racelab.Find(c.Experiment); err != nil {
			return fmt.Errorf("%w (shop lab lists them all)", err)
		}
	}
	lab, done, err := c.open(ctx, newLog(to.err))
	if err != nil {
		return err
	}
	defer done()
	if c.All {
		return c.runAll(ctx, lab, to)
	}
	result, err := lab.Run(ctx, c.Experiment, c.settings(), nil)
	if err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(to.out, result)
	} else {
		err = printRun(to.out, result)
	}
	if err == nil && !result.OK {
		return errNotAsExpected
	}
	return err
}

func (c *labCommand) settings() racelab.Settings {
	s := racelab.Settings{Workers: c.Workers, Trials: c.Trials, Variants: c.Variant}
	switch {
	case c.NoBarrier:
		s.Window = racelab.None
	case c.Handler != nil:
		s.Window, s.Handler = racelab.Handler, *c.Handler
	}
	return s
}

// settingsFor gives those of the settings that apply to an experiment, for a
// run of all.
func (c *labCommand) settingsFor(e *racelab.Experiment) racelab.Settings {
	s := c.settings()
	if e.Workers.Min == e.Workers.Max {
		s.Workers = 0
	} else if s.Workers != 0 {
		s.Workers = max(s.Workers, e.Workers.Min)
	}
	if !e.HasWindow {
		s.Window = racelab.Barrier
	}
	return s
}

// open reaches the database, or starts the local one. It migrates nothing: the
// lab works in schemas of its own.
func (c *labCommand) open(ctx context.Context, log *slog.Logger) (*racelab.Lab, func(), error) {
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	address, done := c.DatabaseURL, func() {}
	if address == "" {
		server, err := localpg.Start(ctx, localpg.Options{DataDir: c.DataDir, Log: log})
		if err != nil {
			return nil, nil, fmt.Errorf("the local PostgreSQL: %w", err)
		}
		address = server.URL("")
		done = func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
			defer cancel()
			if err := server.Stop(ctx); err != nil {
				log.Warn("stopping the local PostgreSQL", slog.Any("err", err))
			}
		}
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		done()
		return nil, nil, c.unusable(err, address)
	}
	config.ConnectTimeout = 5 * time.Second
	lab := racelab.New(config)
	if _, err := lab.Server(ctx); err != nil {
		done()
		return nil, nil, c.unusable(err, address)
	}
	return lab, done, nil
}

// list prints what there is, in teaching order.
func (c *labCommand) list(out io.Writer) error {
	if c.JSON {
		return writeJSON(out, racelab.All())
	}
	return printList(out)
}

// report is everything that a run of all has found, for a program.
type report struct {
	Server  string            `json:"server"`
	Results []*racelab.Result `json:"results"`
	// Missed are the experiments that have no result, with what ended them.
	Missed []missed `json:"missed,omitempty"`
	Claims []judged `json:"claims"`
	OK     bool     `json:"ok"`
}

// missed is an experiment that could not be run.
type missed struct {
	Experiment string `json:"experiment"`
	Error      string `json:"error"`
}

// judged is a claim with what was measured.
type judged struct {
	racelab.Claim
	Measured string          `json:"measured"`
	Verdict  racelab.Verdict `json:"verdict"`
}

// runAll runs every experiment and judges every claim. It goes on past an
// experiment that fails, unless the next would end alike.
func (c *labCommand) runAll(ctx context.Context, lab experiments, to streams) error {
	all := report{OK: true}
	results := map[string]*racelab.Result{}
	for _, e := range racelab.All() {
		result, err := lab.Run(ctx, e.Name, c.settingsFor(e), nil)
		switch {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, racelab.ErrNotPermitted), errors.Is(err, racelab.ErrBounds):
			return err
		default:
			all.OK = false
			all.Missed = append(all.Missed, missed{e.Name, err.Error()})
			if !c.JSON {
				if err := printMissed(to.out, e, err); err != nil {
					return err
				}
			}
			continue
		}
		all.Server, all.OK = result.Server, all.OK && result.OK
		all.Results, results[e.Name] = append(all.Results, result), result
		if !c.JSON {
			if err := printShort(to.out, e, result); err != nil {
				return err
			}
		}
	}
	for _, claim := range racelab.Claims() {
		measured, verdict := claim.Measured(results[claim.Experiment])
		all.OK = all.OK && verdict != racelab.Fails
		all.Claims = append(all.Claims, judged{claim, measured, verdict})
	}
	write := printReport
	if c.JSON {
		write = func(out io.Writer, all report) error { return writeJSON(out, all) }
	}
	if err := write(to.out, all); err != nil {
		return err
	}
	switch {
	case len(all.Missed) > 0:
		return errNotRun
	case !all.OK:
		return errNotAsExpected
	}
	return nil
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
