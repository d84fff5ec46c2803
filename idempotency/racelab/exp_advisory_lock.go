package racelab

import "context"

// advisorySQL locks a number made of the key. The schema's name is in it, so
// that two runs, or the shop, are never in each other's way.
const advisorySQL = `SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || $1, 0))`

// advisoryLock locks the name of the key instead of its row.
func advisoryLock() *Experiment {
	locked := func(start string) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (answer Answer, err error) {
			err = w.transaction(ctx, start, func() error {
				// At REPEATABLE READ this statement also takes the snapshot, before
				// it waits.
				if _, err := w.statement(ctx, advisorySQL, theKey); err != nil {
					return err
				}
				var response string
				found, err := w.read(ctx, selectKey, []any{theKey}, &response)
				if err != nil {
					return err
				}
				if found {
					answer = told(Replayed, 200, []byte(response))
					return nil
				}
				first := w.count("owners", 1) == 1
				answer, err = w.chargeAndRemember(ctx, first)
				return err
			})
			return answer, err
		}
	}
	return &Experiment{
		Name: "advisory-lock", Title: "An advisory lock", Chapter: TheWrongAnswers,
		About: "pg_advisory_xact_lock takes a number, so it can lock a key that has no row yet. At READ COMMITTED that is right: one charge. Its price: every request stands in one queue, replays too, each holding a connection; " +
			"it ends with the transaction, so nothing is remembered unless a row is written as well; two keys may hash to one number; and whoever forgets the lock is not stopped. At REPEATABLE READ it is wrong, because the snapshot is older than the lock.",
		Barriers:   "The first to get the lock holds it until PostgreSQL is seen to make the others wait for it.",
		HoldsWhen:  "Every writer takes the same lock first, at READ COMMITTED, and remembers the answer in a row.",
		BreaksWhen: "The snapshot was taken before the lock was granted, or one path forgets the lock.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "read-committed", Title: "Lock, then ask", Sort: Costly, Should: 1, AlwaysHolds: true,
				About:  "Right. The SELECT takes a new snapshot, after the lock was granted.",
				SQL:    []Line{plain(begin), cure(advisorySQL), note("here everyone else waits, one behind the other"), plain(selectKey), plain(insertCharge), plain(insertKey), plain("COMMIT")},
				tables: keysTable, work: locked(begin),
				expect: []expectation{charges("1"), outcomes("1 charged, {n-1} replayed"), money("1")},
			},
			{
				Name: "repeatable-read", Title: "The same, at REPEATABLE READ", Sort: Broken, Should: 1,
				About:  "The snapshot is taken when the statement that waits for the lock begins. Each gets the lock in turn, and looks at the past.",
				SQL:    []Line{plain(beginRepeatable), fault(advisorySQL), note("the snapshot is from before the wait"), plain(selectKey), plain(insertCharge), plain(insertKey), plain("COMMIT")},
				tables: keysTable, work: locked(beginRepeatable),
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), money("{n}")},
			},
			claimVariant(),
		},
	}
}
