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

// The two ways of ON CONFLICT DO UPDATE.
const (
	upsertKey     = `INSERT INTO keys (key, response) VALUES ($1, '') ON CONFLICT (key) DO UPDATE SET key = EXCLUDED.key RETURNING response`
	upsertKeyXmax = `INSERT INTO keys (key, response) VALUES ($1, '') ON CONFLICT (key) DO UPDATE SET key = EXCLUDED.key RETURNING xmax = 0, response`
	rememberKey   = `UPDATE keys SET response = $2 WHERE key = $1`
)

// versions is the figure of what the claims wrote.
const versions = "row versions written by the claims"

// onConflictDoUpdate returns a row to everyone.
func onConflictDoUpdate() *Experiment {
	work := func(tells bool) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (answer Answer, err error) {
			err = w.transaction(ctx, begin, func() error {
				var response string
				mine := true
				if tells {
					_, err = w.read(ctx, upsertKeyXmax, []any{theKey}, &mine, &response)
				} else {
					mine, err = w.read(ctx, upsertKey, []any{theKey}, &response)
				}
				if err != nil {
					return err
				}
				w.count(versions, 1)
				if !mine {
					answer = told(Replayed, 200, []byte(response))
					return nil
				}
				if first := w.count("owners", 1) == 1; first {
					if err := w.hold(ctx); err != nil {
						return err
					}
				}
				var id int64
				if _, err := w.read(ctx, insertCharge, []any{theKey, Price}, &id); err != nil {
					return err
				}
				body := receipt{id, Price}.body()
				answer = told(Charged, 201, body)
				_, err := w.statement(ctx, rememberKey, theKey, string(body))
				return err
			})
			return answer, err
		}
	}
	return &Experiment{
		Name: "on-conflict-do-update", Title: "ON CONFLICT DO UPDATE", Chapter: TheWrongAnswers,
		About: "DO UPDATE returns a row to everyone, so a row is no longer the right to go on. Who takes it for that charges eight times, in good order, one after the other. " +
			"RETURNING xmax = 0 can tell who inserted. That is right, leans on a system column, and writes the row anew for each duplicate.",
		Barriers:   "The first to get a row holds it until PostgreSQL is seen to make the others wait for it.",
		HoldsWhen:  "The statement also tells whether it inserted, and the caller looks.",
		BreaksWhen: "A returned row is taken for the claim.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "row-returned", Title: "A row came back, so it is ours", Sort: Broken, Should: 1, AlwaysHolds: true,
				About:  "Eight workers, eight rows, eight charges. No barrier is needed for that.",
				SQL:    []Line{plain(begin), fault(upsertKey), note("always one row"), plain(insertCharge), plain(rememberKey), plain("COMMIT")},
				tables: keysWithPrimaryKey, work: work(false), after: counted(versions),
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), money("{n}"), figure(versions, "{n}")},
			},
			{
				Name: "xmax", Title: "xmax tells who inserted", Sort: Costly, Should: 1, AlwaysHolds: true,
				About:  "One charge. Every duplicate writes a new version of the row and locks it, where DO NOTHING writes nothing.",
				SQL:    []Line{plain(begin), cure(upsertKeyXmax), note("true: inserted. false: it was there"), plain(insertCharge), plain(rememberKey), plain("COMMIT")},
				tables: keysWithPrimaryKey, work: work(true), after: counted(versions),
				expect: []expectation{charges("1"), outcomes("1 charged, {n-1} replayed"), money("1"), figure(versions, "{n}")},
			},
			claimVariant(),
		},
	}
}
