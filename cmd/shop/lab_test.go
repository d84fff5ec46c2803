package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/idempotency/racelab"
	"payonce/migrations/dbtest"
)

// lab runs shop lab as a person at a terminal does.
func lab(t *testing.T, url string, args ...string) (status int, out, says string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"lab"}, args...)
	if url != "" {
		args = append(args, "--database-url="+url)
	}
	status = run(t.Context(), args, &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

func TestLab(t *testing.T) {
	t.Parallel()

	t.Run("ListsInTeachingOrderWithoutADatabase", func(t *testing.T) {
		t.Parallel()
		status, out, _ := lab(t, "postgres://nobody@127.0.0.1:1/nowhere")
		require.Equal(t, 0, status)
		at := -1
		for _, chapter := range racelab.Chapters() {
			require.Greater(t, strings.Index(out, string(chapter)+"\n"), at)
			at = strings.Index(out, string(chapter)+"\n")
		}
		for _, e := range racelab.All() {
			require.Contains(t, out, "  "+e.Name+" ")
		}
	})

	t.Run("RunsOneInTheMannerOfTheArticles", func(t *testing.T) {
		t.Parallel()
		status, out, says := lab(t, dbtest.NewEmptyURL(t), "check-then-insert", "--workers=4", "--trials=2")
		require.Equal(t, 0, status, says)
		require.Contains(t, out, "4 workers, 2 trials, with the barrier\n")
		require.Contains(t, out, "  ! SELECT response FROM keys WHERE key = $1\n", "the line that decides is marked")
		require.Regexp(t, `(?m)^    trial 2: +charges=4 \(\$196\.00\) +outcomes: 4 charged$`, out)
		require.Regexp(t, `(?m)^    trial 2: +charges=1 \(\$49\.00\) +outcomes: 1 charged, 3 replayed$`, out)
		require.Equal(t, 3, strings.Count(out, "    as expected\n"), "of each variant")
		require.Contains(t, out, "Holds when: ")
		require.Contains(t, out, "Differs from article A: ")
	})

	t.Run("ReportsTheSpreadWithoutTheBarrierAndClaimsNothing", func(t *testing.T) {
		t.Parallel()
		url := dbtest.NewEmptyURL(t)
		for _, window := range []string{"--no-barrier", "--handler=20ms", "--handler=0s"} {
			status, out, says := lab(t, url, "check-then-insert", "--variant=ask-first", "--trials=2", window)
			require.Equal(t, 0, status, says)
			require.Contains(t, out, "    spread: ")
			require.Contains(t, strings.Join(strings.Fields(out), " "), "Nothing is claimed: without the barrier this is luck.")
			require.NotContains(t, out, "as expected")
		}
	})

	t.Run("PrintsWhatWasMeasuredAsJSON", func(t *testing.T) {
		t.Parallel()
		status, out, says := lab(t, dbtest.NewEmptyURL(t), "claim", "--workers=2", "--trials=1", "--json")
		require.Equal(t, 0, status, says)
		var result racelab.Result
		require.NoError(t, json.Unmarshal([]byte(out), &result))
		require.Equal(t, "claim", result.Experiment)
		require.Equal(t, 2, result.Settings.Workers)
		require.True(t, result.OK)
		require.NotEmpty(t, result.Variant("claim").Trials[0].Events)

		_, out, _ = lab(t, "", "--json")
		var list []racelab.Experiment
		require.NoError(t, json.Unmarshal([]byte(out), &list))
		require.Len(t, list, len(racelab.All()))
	})

	t.Run("JudgesEveryClaimOfBothArticles", func(t *testing.T) {
		t.Parallel()
		status, out, says := lab(t, dbtest.NewEmptyURL(t), "--all", "--trials=1")
		require.Equal(t, 0, status, says+out)
		for _, e := range racelab.All() {
			require.Contains(t, out, "("+e.Name+")")
		}
		for _, article := range []racelab.Article{racelab.ArticleA, racelab.ArticleB} {
			require.Contains(t, out, "=== Article "+string(article)+": "+article.Title()+" ===\n")
		}
		require.NotContains(t, out, "NOT AS EXPECTED")
		require.Contains(t, out, " 0 not as expected. Claims: ")
		require.Contains(t, out, " 0 fail, ")
		require.Contains(t, out, "A1. HOLDS (check-then-insert)\n")
		require.Contains(t, out, ". DIFFERS (two-keys-one-order)\n")
		require.Contains(t, out, " 0 not run.\n")
	})

	t.Run("SaysWhatIsWrongInOneLine", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			args []string
			says string
		}{
			{[]string{"chek-then-insert"}, `no experiment is called "chek-then-insert": did you mean check-then-insert? (shop lab lists them all)`},
			{[]string{"'; DROP SCHEMA public --"}, "no experiment is called"},
			{[]string{strings.Repeat("x", 10_000)}, "no experiment is called"},
			{[]string{"--all", "claim"}, "--all runs every experiment"},
			{[]string{"claim", "--no-barrier", "--handler=1ms"}, "--handler stands in place of the barrier"},
			{[]string{"claim", "--handler=soon"}, "see shop --help"},
		} {
			status, out, says := lab(t, "postgres://nobody@127.0.0.1:1/nowhere", c.args...)
			require.Equal(t, 1, status, c.args)
			require.Empty(t, out)
			require.Contains(t, says, c.says)
			require.Equal(t, 1, strings.Count(says, "\n"), says)
			require.Less(t, len(says), 400)
		}
	})

	t.Run("RefusesAbsurdSettings", func(t *testing.T) {
		t.Parallel()
		url := dbtest.NewEmptyURL(t)
		for says, args := range map[string][]string{
			"1000000 workers: choose from 2 to 32":      {"claim", "--workers=1000000"},
			"-1 workers: choose from 2 to 32":           {"claim", "--workers=-1"},
			"500 trials: choose from 1 to 20":           {"claim", "--trials=500"},
			"the experiment has its own 2":              {"completer", "--workers=8"},
			"a script has no barrier to take away":      {"completer", "--no-barrier"},
			`claim has no variant called "naive"`:       {"claim", "--variant=naive"},
			"milliseconds of handler: choose from 0 to": {"claim", "--handler=1h"},
		} {
			status, out, told := lab(t, url, args...)
			require.Equal(t, 1, status, args)
			require.Empty(t, out)
			require.Contains(t, told, says)
		}
	})

	t.Run("SaysThatTheDatabaseIsAway", func(t *testing.T) {
		t.Parallel()
		status, _, says := lab(t, "postgres://nobody:secret@127.0.0.1:1/nowhere", "claim")
		require.Equal(t, 1, status)
		require.Contains(t, says, "start that database, or set another")
		require.NotContains(t, says, "secret")
	})
}

// ranByHand is a lab whose experiments fail as a test says, and else show what
// is expected with so many workers.
type ranByHand struct{ fails map[string]error }

func (l ranByHand) Run(_ context.Context, name string, s racelab.Settings, _ func(racelab.Progress)) (*racelab.Result, error) {
	if err := l.fails[name]; err != nil {
		return nil, err
	}
	e, err := racelab.Find(name)
	if err != nil {
		return nil, err
	}
	result := &racelab.Result{Experiment: name, Settings: s, Server: "17.6", OK: true}
	result.Settings.Workers = cmp.Or(s.Workers, e.Workers.Default)
	for _, v := range e.Variants {
		shown := racelab.VariantResult{Variant: v.Name, Trials: []racelab.Trial{{Number: 1}}}
		for _, x := range v.Expected(result.Settings.Workers) {
			shown.Checks = append(shown.Checks, racelab.Check{Expected: x, Got: x.Want, OK: true})
		}
		result.Variants = append(result.Variants, shown)
	}
	return result, nil
}

// TestLabGoesOnPastAnExperimentThatFails: the report says which it is, and
// judges the others.
func TestLabGoesOnPastAnExperimentThatFails(t *testing.T) {
	t.Parallel()
	slow := ranByHand{fails: map[string]error{"isolation-levels": fmt.Errorf("running isolation-levels: %w", racelab.ErrDeadline)}}
	var out bytes.Buffer
	err := (&labCommand{All: true}).runAll(t.Context(), slow, streams{out: &out})
	require.ErrorIs(t, err, errNotRun)
	require.Contains(t, out.String(), "NOT RUN: running isolation-levels: the run took too long")
	require.Contains(t, out.String(), "A1. HOLDS (check-then-insert)\n")
	require.Contains(t, out.String(), ". NOT RUN (isolation-levels)\n")
	require.Contains(t, out.String(), "Without a result: isolation-levels.\n")

	out.Reset()
	require.ErrorIs(t, (&labCommand{All: true, JSON: true}).runAll(t.Context(), slow, streams{out: &out}), errNotRun)
	var all report
	require.NoError(t, json.Unmarshal(out.Bytes(), &all))
	require.Equal(t, []missed{{"isolation-levels", "running isolation-levels: the run took too long"}}, all.Missed)
	require.Len(t, all.Claims, len(racelab.Claims()))
	require.False(t, all.OK)

	out.Reset()
	forbidden := ranByHand{fails: map[string]error{racelab.All()[1].Name: racelab.ErrNotPermitted}}
	require.ErrorIs(t, (&labCommand{All: true}).runAll(t.Context(), forbidden, streams{out: &out}), racelab.ErrNotPermitted)
	require.NotContains(t, out.String(), "Article", "the next would end alike")
}

// TestLabJudgesNoClaimByOtherSettings: the articles speak of eight workers.
func TestLabJudgesNoClaimByOtherSettings(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, (&labCommand{All: true, Workers: 4}).runAll(t.Context(), ranByHand{}, streams{out: &out}))
	require.Contains(t, out.String(), "A1. NOT RUN (check-then-insert)\n")
	require.Contains(t, out.String(), ". HOLDS (completer)\n", "which has its own")
	require.Contains(t, strings.Join(strings.Fields(out.String()), " "), "With others a claim is not judged.")
}

// TestLabFailsWhereAFigureIsNotAsExpected: what is printed says which, and the
// program's status is 1.
func TestLabFailsWhereAFigureIsNotAsExpected(t *testing.T) {
	t.Parallel()
	result := &racelab.Result{Experiment: "claim", Variants: []racelab.VariantResult{{
		Variant: "claim",
		Trials:  []racelab.Trial{{Number: 1, Charges: 2, Money: 9800}},
		Checks:  []racelab.Check{{Expected: racelab.Expected{Figure: "charges", Want: "1"}, Got: "2"}},
	}}}
	var out bytes.Buffer
	require.NoError(t, printRun(&out, result))
	require.Contains(t, out.String(), "NOT AS EXPECTED: charges: 2, not 1\n")
	out.Reset()
	e, err := racelab.Find("claim")
	require.NoError(t, err)
	require.NoError(t, printShort(&out, e, result))
	require.Contains(t, out.String(), "NOT AS EXPECTED\n  claim: charges: 2, not 1\n")
}
