package racelab

const selectKeyForUpdate = selectKey + ` FOR UPDATE`

// selectForUpdate is the usual reflex.
func selectForUpdate() *Experiment {
	return &Experiment{
		Name: "select-for-update", Title: "SELECT ... FOR UPDATE", Chapter: TheWrongAnswers,
		About: "FOR UPDATE locks the rows that the query returned. The first request for a key returns none, so it locks nothing: eight workers hold eight empty sets of locks and go on. " +
			"It works perfectly from the second request on, and the second request was never the problem.",
		Barriers:   "With the row absent, a second barrier after the SELECT. With the row present there is no race to arrange: the first to lock the row holds it until PostgreSQL is seen to make the others wait for it.",
		HoldsWhen:  "The row to lock was there before the race began.",
		BreaksWhen: "The row is the one that the race is about: a lock needs something to hold.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "row-absent", Title: "No row yet", Sort: Broken, Should: 1,
				About:  "The first request of all. Nothing is locked, so nobody waits.",
				SQL:    []Line{plain(begin), fault(selectKeyForUpdate), note("no row, and so no lock"), plain(insertCharge), plain(insertKey), plain("COMMIT")},
				tables: keysTable, work: askFirst{begin: begin, look: selectKeyForUpdate}.work,
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), money("{n}")},
			},
			{
				Name: "row-present", Title: "The row is there", Sort: Costly, Should: 1, AlwaysHolds: true,
				About:  "The same code, with a key that was completed before: everyone replays, one behind the other.",
				SQL:    []Line{plain(begin), plain(selectKeyForUpdate), note("one row, and its lock: the next one waits"), plain("COMMIT")},
				tables: keysTable, prepare: boughtBefore,
				work:   askFirst{begin: begin, look: selectKeyForUpdate, locks: true}.work,
				after:  counted(foundNoKey),
				expect: []expectation{charges("1"), outcomes("{n} replayed"), money("1"), figure(foundNoKey, "0")},
			},
			claimVariant(),
		},
	}
}
