package racelab

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func runOne(t *testing.T, name, variant string, s Settings) (*VariantResult, *Trial) {
	t.Helper()
	s.Variants, s.Trials = []string{variant}, 1
	result, err := newLab(t).Run(t.Context(), name, s, nil)
	require.NoError(t, err)
	requireFigures(t, result)
	require.Len(t, result.Variants, 1)
	return &result.Variants[0], &result.Variants[0].Trials[0]
}

func winner(t *testing.T, trial *Trial) int {
	t.Helper()
	i := slices.IndexFunc(trial.Answers, func(a Answer) bool { return a.Kind == Charged })
	require.GreaterOrEqual(t, i, 0)
	return i + 1
}

func TestWaits(t *testing.T) {
	t.Parallel()

	t.Run("OfTheLosersAreForTheWinnerAndEndWithItsCommit", func(t *testing.T) {
		t.Parallel()
		for name, variant := range map[string]string{"claim": "claim", "primary-key": "local-charge"} {
			_, trial := runOne(t, name, variant, Settings{})
			first := winner(t, trial)
			waited := 0
			for _, e := range trial.Events {
				if e.Wait == nil {
					continue
				}
				waited++
				require.Equal(t, EventInsert, e.What)
				// Another loser, who inserts in the same instant and takes it
				// back, can be in the way for a moment, too.
				require.Contains(t, e.Wait.For, first)
				require.Equal(t, first, e.Wait.EndedBy)
			}
			require.Equal(t, 7, waited)
			require.Equal(t, 7, trial.Cost.LockWaits)
			require.Equal(t, []ChargeMark{{first, trial.Marks[0].At, 1, false}}, trial.Marks)
		}
	})

	t.Run("OfTheNextOwnerEndWithTheRollback", func(t *testing.T) {
		t.Parallel()
		_, trial := runOne(t, "claim", "winner-rolls-back", Settings{})
		failed := slices.IndexFunc(trial.Answers, func(a Answer) bool { return a.Kind == Undone }) + 1
		second := winner(t, trial)
		i := slices.IndexFunc(trial.Events, func(e Event) bool { return e.Worker == second && e.Wait != nil })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, failed, trial.Events[i].Wait.EndedBy)
		require.Contains(t, trial.Events[i].Wait.For, failed)
	})

	t.Run("AreNotSeenWhereNobodyWaits", func(t *testing.T) {
		t.Parallel()
		_, trial := runOne(t, "check-then-insert", "ask-first", Settings{})
		for _, e := range trial.Events {
			require.Nil(t, e.Wait)
		}
		require.Len(t, trial.Marks, 8)
		for i, m := range trial.Marks {
			require.Equal(t, i+1, m.Number)
			require.Equal(t, i > 0, m.TooMany)
			require.True(t, i == 0 || trial.Marks[i-1].At <= m.At)
		}
	})
}

// TestAWinnerIsHeldUntilTheOthersAreSeenToWait: however late they come.
func TestAWinnerIsHeldUntilTheOthersAreSeenToWait(t *testing.T) {
	t.Parallel()
	e := &Experiment{Name: "late", Workers: manyWorkers, Trials: fewTrials, Variants: []Variant{{
		Name: "late", tables: keysWithPrimaryKey, expect: []expectation{outcomes("1 charged, {n-1} replayed")},
		work: func(ctx context.Context, w *worker) (answer Answer, err error) {
			if w.n > 1 {
				if err := w.await(ctx, "claimed"); err != nil {
					return Answer{}, err
				}
				for range 100 {
					if _, err := w.statement(ctx, "SELECT pg_stat_get_backend_idset()"); err != nil {
						return Answer{}, err
					}
				}
			}
			err = w.transaction(ctx, begin, func() error {
				var mine string
				won, err := w.read(ctx, claimPlain, []any{theKey}, &mine)
				if err != nil || !won {
					answer = Answer{Kind: Replayed}
					return err
				}
				w.give("claimed")
				answer = Answer{Kind: Charged}
				return w.hold(ctx)
			})
			return answer, err
		},
	}}}
	result, err := newLab(t).run(t.Context(), e, Settings{Workers: 3, Trials: 1, Window: Barrier}, nil)
	require.NoError(t, err)
	requireFigures(t, result)
	waits := map[int]*Wait{}
	for _, e := range result.Variants[0].Trials[0].Events {
		if e.Wait != nil {
			waits[e.Worker] = e.Wait
		}
	}
	require.Len(t, waits, 2)
	require.Equal(t, 1, waits[2].EndedBy)
	require.Equal(t, 1, waits[3].EndedBy)
}

func TestCostsAreCountedAtTheConnections(t *testing.T) {
	t.Parallel()

	t.Run("OfAskingFirst", func(t *testing.T) {
		t.Parallel()
		v, trial := runOne(t, "check-then-insert", "ask-first", Settings{Workers: 4})
		// BEGIN, SELECT, two INSERTs, COMMIT, each a round trip.
		require.Equal(t, 5.0, v.Cost.Statements)
		require.Equal(t, 5.0, v.Cost.RoundTrips)
		require.Equal(t, 1.0, v.Cost.Commits)
		require.Equal(t, 4, v.Cost.IdleInTransaction, "each holds its connection through the handler")
		require.Equal(t, v.Cost.Times, trial.Cost.Times)
		require.LessOrEqual(t, v.Cost.Times.Min, v.Cost.Times.Median)
		require.LessOrEqual(t, v.Cost.Times.Median, v.Cost.Times.Max)
	})

	t.Run("OfClaiming", func(t *testing.T) {
		t.Parallel()
		v, trial := runOne(t, "claim", "claim", Settings{Workers: 4})
		require.Equal(t, 0.25, v.Cost.Commits, "one commit for four requests")
		require.Equal(t, 3, v.Cost.LockWaits)
		commits, trips := 0, 0
		for _, e := range trial.Events {
			if e.Commits {
				commits++
			}
			if e.Statements > 0 {
				trips++
			}
		}
		require.Equal(t, 1, commits)
		require.Equal(t, v.Cost.RoundTrips, float64(trips)/4)
	})
}

// TestAHandlerTakesThePlaceOfTheBarrier: the time between check and act is the
// handler's, and is drawn as that.
func TestAHandlerTakesThePlaceOfTheBarrier(t *testing.T) {
	t.Parallel()
	result, err := newLab(t).Run(t.Context(), "check-then-insert", Settings{Trials: 1, Window: Handler, Handler: 20 * time.Millisecond}, nil)
	require.NoError(t, err)
	require.Equal(t, 20.0, result.HandlerMillis)
	handlers := 0
	for _, e := range result.Variant("ask-first").Trials[0].Events {
		require.NotEqual(t, EventBarrier, e.What)
		if e.What == EventHandler {
			handlers++
			require.GreaterOrEqual(t, e.End-e.Start, 20.0)
		}
	}
	require.Equal(t, 8, handlers)
}

// TestOnlyOneHandlerHoldsTheRow: the row's lock makes the others come one behind
// the other, so a handler in each of them would take as long as all together.
func TestOnlyOneHandlerHoldsTheRow(t *testing.T) {
	t.Parallel()
	_, trial := runOne(t, "select-for-update", "row-present", Settings{Workers: 4, Window: Handler, Handler: time.Millisecond})
	handlers := 0
	for _, e := range trial.Events {
		if e.What == EventHandler {
			handlers++
		}
	}
	require.Equal(t, 1, handlers)
}

func TestWhoWaitedIsReadFromTheLooks(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	statement := func(worker int, backend uint32, sql string, from, to int, commits bool) moment {
		return moment{Event{Worker: worker, What: kindOf(sql, commandTag), Backend: backend, SQL: sql, Commits: commits}, at(from), at(to)}
	}
	events := []moment{
		statement(1, 11, "BEGIN; INSERT INTO keys", 0, 5, false),
		statement(2, 12, "SELECT 1", 1, 4, false),
		statement(2, 12, "BEGIN; INSERT INTO keys", 5, 31, false),
		statement(1, 11, "COMMIT", 28, 32, true),
		statement(3, 13, "COMMIT", 29, 30, true),
		statement(2, 12, "SELECT 2", 33, 36, false),
	}
	looks := []look{
		// This one was asked while worker 2 still selected.
		{asked: at(2), answered: at(8), waiting: map[uint32]blocked{12: {sql: "INSERT INTO keys", by: []uint32{11}}}},
		{asked: at(20), answered: at(22), waiting: map[uint32]blocked{12: {sql: "INSERT INTO keys", by: []uint32{11, 99}}}},
		// And this one was answered while it selected again: which of the two
		// waited, it does not tell.
		{asked: at(27), answered: at(35), waiting: map[uint32]blocked{12: {sql: "INSERT INTO keys", by: []uint32{11}}}},
	}
	attribute(events, looks, start)
	require.Nil(t, events[1].Wait, "a SELECT does not wait because an INSERT after it did")
	require.Nil(t, events[5].Wait, "nor because of one before it")
	require.Equal(t, &Wait{For: []int{1, 0}, SeenFrom: 5, SeenTo: 21, EndedBy: 1, Until: 31}, events[2].Wait)
}
