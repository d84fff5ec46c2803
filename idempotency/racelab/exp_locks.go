package racelab

import "context"

const selectKeyForUpdate = selectKey + ` FOR UPDATE`

// selectForUpdate is the usual reflex.
func selectForUpdate() *Experiment {
	work := func(ctx context.Context, w *worker) (Answer, error) {
		return askFirst{begin: begin, look: selectKeyForUpdate}.work(ctx, w)
	}
	return &Experiment{
		Name: "select-for-update", Title: "SELECT ... FOR UPDATE", Chapter: TheWrongAnswers,
		About: "FOR UPDATE locks the rows that the query returned. The first request for a key returns none, so it locks nothing: eight workers hold eight empty sets of locks and go on. " +
			"It works perfectly from the second request on, and the second request was never the problem.",
		Barriers:   "With the row absent, a second barrier after the SELECT. With the row present there is no race to arrange: the first worker holds the row's lock until PostgreSQL is seen to make the others wait for it.",
		HoldsWhen:  "The row to lock was there before the race began.",
		BreaksWhen: "The row is the one that the race is about: a lock needs something to hold.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "row-absent", Title: "No row yet", Sort: Broken, Should: 1,
				About:  "The first request of all. Nothing is locked, so nobody waits.",
				SQL:    []Line{plain(begin), fault(selectKeyForUpdate), note("no row, and so no lock"), plain(insertCharge), plain(insertKey), plain("COMMIT")},
				tables: keysTable, work: work,
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), money("{n}")},
			},
			{
				Name: "row-present", Title: "The row is there", Sort: Costly, Should: 1, AlwaysHolds: true,
				About:  "The same code, with a key that was completed before: everyone replays, one behind the other.",
				SQL:    []Line{plain(begin), plain(selectKeyForUpdate), note("one row, and its lock: the next one waits"), plain("COMMIT")},
				tables: keysTable, prepare: boughtBefore,
				work: func(ctx context.Context, w *worker) (answer Answer, err error) {
					err = w.transaction(ctx, begin, func() error {
						var response string
						if _, err := w.read(ctx, selectKeyForUpdate, []any{theKey}, &response); err != nil {
							return err
						}
						answer = told(Replayed, 200, []byte(response))
						return w.hold(ctx)
					})
					return answer, err
				},
				expect: []expectation{charges("1"), outcomes("{n} replayed"), money("1")},
			},
		},
	}
}

// isolationLevels changes nothing but the isolation level.
func isolationLevels() *Experiment {
	naive := func(start string) []Line {
		return []Line{fault(start), plain(selectKey), plain(insertCharge), plain(insertKey), plain("COMMIT")}
	}
	return &Experiment{
		Name: "isolation-levels", Title: "Isolation levels", Chapter: TheWrongAnswers,
		About: "The same handler and the same workers, with nothing changed but the isolation level. REPEATABLE READ keeps the stale answer stable: eight INSERTs make eight different rows, so no two of them conflict. " +
			"SERIALIZABLE watches what each transaction has read, and raises 40001 where a commit has made that untrue: right, if every caller runs its transaction again.",
		Barriers:   "A second barrier after the SELECT. On a second attempt there is none: the others have gone on.",
		HoldsWhen:  "Every transaction involved is SERIALIZABLE and every caller retries 40001 from the start.",
		BreaksWhen: "The level only promises a stable view, or nobody catches 40001.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "repeatable-read", Title: "REPEATABLE READ", Sort: Broken, Should: 1,
				About:  "A stable view of no such key: the wrong answer, held more firmly.",
				SQL:    naive(beginRepeatable),
				tables: keysTable, work: askFirst{begin: beginRepeatable, look: selectKey}.work,
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), money("{n}")},
			},
			{
				Name: "serializable", Title: "SERIALIZABLE", Sort: Broken, Should: 1,
				About:  "The money is right, and seven of eight callers get an error for a purchase that was made.",
				SQL:    naive(beginSerializable),
				tables: keysTable, work: askFirst{begin: beginSerializable, look: selectKey}.work,
				expect: []expectation{charges("1"), outcomes("1 charged, {n-1} × 40001"), money("1")},
			},
			{
				Name: "serializable-retried", Title: "SERIALIZABLE, retried", Sort: Costly, Should: 1, AlwaysHolds: true,
				About: "Right, at the price of a retry loop in every caller, and of tracking what every transaction reads. " +
					"Retried at once, a loser fails again for as long as the winner's COMMIT is on its way to the disk.",
				SQL:    []Line{cure(beginSerializable), plain(selectKey), plain(insertCharge), plain(insertKey), plain("COMMIT"), note("40001: again from BEGIN")},
				tables: keysTable, work: askFirst{begin: beginSerializable, look: selectKey, retry: true}.work,
				after:  attempts,
				expect: []expectation{charges("1"), outcomes("1 charged, {n-1} replayed"), money("1"), byBarrier(retriedLosers, "{n-1}")},
			},
		},
	}
}
