package racelab

import "context"

// predicateLocks counts what SERIALIZABLE tracks, while every worker stands
// between its SELECT and its INSERT, and a bystander at READ COMMITTED has read
// the same table: the lab itself.
func predicateLocks(ctx context.Context, r *round) error {
	if err := r.lab.exec(ctx, begin+"; SELECT count(*) FROM keys"); err != nil {
		return err
	}
	held, err := ask[int](ctx, r.lab, `
		SELECT count(*)
		  FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		 WHERE l.mode = 'SIReadLock' AND a.application_name = ANY ($1)`, []string{r.schema, r.workersName()})
	if err != nil {
		return err
	}
	r.figure(predicateLock, "%d", held)
	return r.lab.exec(ctx, "COMMIT")
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
				held:   predicateLocks,
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), money("{n}"), figure(predicateLock, "0")},
			},
			{
				Name: "serializable", Title: "SERIALIZABLE", Sort: Broken, Should: 1,
				About:  "The money is right, and seven of eight callers get an error for a purchase that was made.",
				SQL:    naive(beginSerializable),
				tables: keysTable, work: askFirst{begin: beginSerializable, look: selectKey}.work,
				held: predicateLocks, after: serializationFailures,
				expect: []expectation{
					charges("1"), outcomes("1 charged, {n-1} × 40001"), money("1"),
					figure(failures40001, "{n-1}"), figure(predicateLock, "{n}"),
				},
			},
			{
				Name: "serializable-retried", Title: "SERIALIZABLE, retried", Sort: Costly, Should: 1, AlwaysHolds: true,
				About: "Right, at the price of a retry loop in every caller, and of tracking what each SERIALIZABLE transaction reads. " +
					"Retried at once, a loser fails again for as long as the winner's COMMIT is on its way to the disk.",
				SQL:    []Line{cure(beginSerializable), plain(selectKey), plain(insertCharge), plain(insertKey), plain("COMMIT"), note("40001: again from BEGIN")},
				tables: keysTable, work: askFirst{begin: beginSerializable, look: selectKey, retry: true}.work,
				after:  attempts,
				expect: []expectation{charges("1"), outcomes("1 charged, {n-1} replayed"), money("1"), byBarrier(retriedLosers, "{n-1}")},
			},
			claimVariant(),
		},
	}
}
