package racelab

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"payonce/migrations/dbtest"
)

// inARow is how often each experiment is run for its figures.
const inARow = 10

func newLab(t *testing.T) *Lab {
	t.Helper()
	return patient(parse(t, dbtest.NewURL(t)))
}

// patient gives a lab whose runs may take long: tests share the machine.
func patient(config *pgx.ConnConfig) *Lab {
	lab := New(config)
	lab.limit, lab.trial = 5*time.Minute, time.Minute
	return lab
}

func parse(t *testing.T, url string) *pgx.ConnConfig {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	return config
}

// requireFigures: every expected figure is what the experiment says, in every
// trial.
func requireFigures(t *testing.T, result *Result) {
	t.Helper()
	for _, v := range result.Variants {
		require.NotEmpty(t, v.Checks, v.Variant)
		for _, c := range v.Checks {
			require.True(t, c.OK, "%s: %s is %q, not %q", v.Variant, c.Figure, c.Got, c.Want)
		}
	}
	require.True(t, result.OK)
}

func TestEveryExperimentShowsItsFiguresTenTimesInARow(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			told := 0
			result, err := lab.Run(t.Context(), e.Name, Settings{Trials: inARow}, func(Progress) { told++ })
			require.NoError(t, err)
			require.Equal(t, inARow*len(e.Variants), told)
			requireFigures(t, result)
			for _, v := range result.Variants {
				require.Len(t, v.Trials, inARow)
				for i := range v.Trials {
					requireWhole(t, e.Variant(v.Variant), &v.Trials[i])
				}
				requireTheSQLShown(t, e.Variant(v.Variant), v.Trials)
			}
			requireJSON(t, result)
		})
	}
}

// requireWhole: what a trial tells in one way it tells in every other.
func requireWhole(t *testing.T, v *Variant, trial *Trial) {
	t.Helper()
	require.Len(t, trial.Marks, trial.Charges-trial.Before, "%s: charges drawn", v.Name)
	answers, counted := 0, 0
	for _, e := range trial.Events {
		require.LessOrEqual(t, e.Start, e.End)
		require.LessOrEqual(t, e.End, trial.EndMS)
		require.True(t, e.Worker >= 1 && e.Worker <= len(trial.Answers), "%s: %s of worker %d, of %d", v.Name, e.What, e.Worker, len(trial.Answers))
		if e.What == EventAnswer && e.Note == trial.Answers[e.Worker-1].Kind.Word() {
			answers++
		}
		if w := e.Wait; w != nil {
			require.NotEmpty(t, w.For, "%s: a wait for nobody", v.Name)
			require.NotContains(t, w.For, e.Worker, "%s: a wait for itself", v.Name)
			require.LessOrEqual(t, e.Start, w.SeenFrom)
			require.LessOrEqual(t, w.SeenFrom, w.SeenTo)
			require.LessOrEqual(t, w.SeenTo, e.End)
			require.LessOrEqual(t, w.Until, e.End)
		}
	}
	require.GreaterOrEqual(t, answers, len(trial.Answers))
	for _, o := range trial.Outcomes {
		counted += o.Count
	}
	require.Equal(t, len(trial.Answers), counted)
	for i, a := range trial.Answers {
		require.Equal(t, i+1, a.Worker)
		require.NotEmpty(t, a.Kind)
	}
}

// requireTheSQLShown: each statement that the variant shows was run by a worker
// in one of the trials.
func requireTheSQLShown(t *testing.T, v *Variant, trials []Trial) {
	t.Helper()
	var run []string
	for i := range trials {
		for _, e := range trials[i].Events {
			run = append(run, strings.Split(e.SQL, "; ")...)
		}
	}
	for _, line := range v.SQL {
		if line.Comment {
			continue
		}
		found := false
		for _, sql := range run {
			found = found || abridges(line.Text, sql)
		}
		require.True(t, found, "%s shows what it does not run: %s", v.Name, line.Text)
	}
}

// abridges is true if shown is sql, with anything where it has dots.
func abridges(shown, sql string) bool {
	sql = strings.ReplaceAll(sql, "( ", "(")
	parts := strings.Split(oneLine(shown), "...")
	if !strings.HasPrefix(sql, parts[0]) {
		return false
	}
	for _, part := range parts {
		_, rest, found := strings.Cut(sql, strings.TrimSpace(part))
		if !found {
			return false
		}
		sql = rest
	}
	return sql == "" || parts[len(parts)-1] == ""
}

// requireJSON: a result, cut to a trial a variant, says the same after a journey.
func requireJSON(t *testing.T, result *Result) {
	t.Helper()
	for i := range result.Variants {
		result.Variants[i].Trials = result.Variants[i].Trials[:1]
	}
	data, err := json.Marshal(result)
	require.NoError(t, err)
	var again Result
	require.NoError(t, json.Unmarshal(data, &again))
	again.Settings.Handler = result.Settings.Handler
	require.True(t, result.Started.Equal(again.Started))
	again.Started = result.Started
	second, err := json.Marshal(again)
	require.NoError(t, err)
	require.JSONEq(t, string(data), string(second))
}

func TestFiguresFollowTheNumberOfWorkers(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	for _, e := range All() {
		if e.Workers.Min == e.Workers.Max {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			result, err := lab.Run(t.Context(), e.Name, Settings{Workers: e.Workers.Min, Trials: 1}, nil)
			require.NoError(t, err)
			requireFigures(t, result)
		})
	}
	t.Run("TheMost", func(t *testing.T) {
		t.Parallel()
		result, err := lab.Run(t.Context(), "check-then-insert", Settings{Workers: MaxWorkers, Trials: 1}, nil)
		require.NoError(t, err)
		requireFigures(t, result)
		require.Equal(t, MaxWorkers, result.Variant("ask-first").Trials[0].Charges)
		require.Equal(t, int64(MaxWorkers*Price), result.Variant("ask-first").Trials[0].Money)
	})
}

// TestWithoutTheBarrierNothingIsClaimed: what is luck is reported as what it was
// this time. What does not need the barrier is held to its figures all the same.
func TestWithoutTheBarrierNothingIsClaimed(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	for _, e := range All() {
		if !e.HasWindow {
			continue
		}
		settings := map[string]Settings{"None": {Workers: 4, Trials: 3, Window: None}}
		if e.Chapter == TheQuestion {
			settings["Handler"] = Settings{Trials: 2, Window: Handler, Handler: 5 * time.Millisecond}
			settings["HandlerOfNoTime"] = Settings{Trials: 2, Window: Handler}
		}
		for name, s := range settings {
			t.Run(e.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				result, err := lab.Run(t.Context(), e.Name, s, nil)
				require.NoError(t, err)
				require.True(t, result.OK)
				for _, v := range result.Variants {
					always := e.Variant(v.Variant).AlwaysHolds
					require.Equal(t, always, len(v.Checks) > 0, v.Variant)
					trials := 0
					for _, spread := range v.Spread {
						trials += spread.Trials
					}
					require.Equal(t, s.Trials, trials, "%s: the spread", v.Variant)
				}
			})
		}
	}
}

// TestTheSpreadIsTheTrials: the report counts trials, and rounds nothing.
func TestTheSpreadIsTheTrials(t *testing.T) {
	t.Parallel()
	v := checkThenInsert().Variant("ask-first")
	trials := []Trial{{Charges: 8}, {Charges: 3}, {Charges: 8}, {Charges: 0}}
	sum := summary(v, Settings{Workers: 8, Window: None}, trials)
	require.Equal(t, []Spread{{0, 1}, {3, 1}, {8, 2}}, sum.Spread)
	require.Empty(t, sum.Checks)

	sum = summary(v, Settings{Workers: 8, Window: Barrier}, trials)
	require.False(t, sum.OK())
	require.Equal(t, "8; 3; 8; 0", sum.Check(FigureCharges).Got)
}

// TestPostgreSQL17ShowsTheSameFigures: with as many workers and trials as the
// article that measured on it. Ten in a row there, too, would double what all of
// these tests cost.
func TestPostgreSQL17ShowsTheSameFigures(t *testing.T) {
	t.Parallel()
	lab := patient(another(t))
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			result, err := lab.Run(t.Context(), e.Name, Settings{}, nil)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(result.Server, "17."), result.Server)
			requireFigures(t, result)
		})
	}
}

func version17(ctx context.Context, config *pgx.ConnConfig) (bool, error) {
	v, err := New(config).Server(ctx)
	return strings.HasPrefix(v, "17."), err
}
