package racelab

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"payonce/migrations/dbtest"
)

func newLab(t *testing.T) *Lab {
	t.Helper()
	config, err := pgx.ParseConfig(dbtest.NewURL(t))
	require.NoError(t, err)
	return New(config)
}

func TestEveryExperimentShowsItsFigures(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			trials := 10
			if e.Trials.Max < trials {
				trials = e.Trials.Max
			}
			result, err := lab.Run(t.Context(), e.Name, Settings{Trials: trials}, nil)
			require.NoError(t, err)
			for _, v := range result.Variants {
				require.NotEmpty(t, v.Checks, v.Variant)
				for _, c := range v.Checks {
					require.True(t, c.OK, "%s: %s is %q, not %q", v.Variant, c.Figure, c.Got, c.Want)
				}
				for _, trial := range v.Trials {
					require.Len(t, trial.Marks, trial.Charges-trial.Before)
				}
				if os.Getenv("SHOW") != "" {
					t.Logf("%s %s %+v", v.Variant, v.Trials[0].Outcome(), v.Cost)
					for _, e := range v.Trials[0].Events {
						t.Logf("  w%d %-9s %.2f-%.2f rows=%d %s commits=%v %s wait=%+v %s", e.Worker, e.What, e.Start, e.End, e.Rows, e.SQLSTATE, e.Commits, e.SQL[:min(70, len(e.SQL))], e.Wait, e.Note)
					}
				}
			}
		})
	}
}
