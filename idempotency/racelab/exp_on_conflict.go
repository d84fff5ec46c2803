package racelab

import "context"

// The two ways of ON CONFLICT DO UPDATE.
const (
	upsertKey     = `INSERT INTO keys (key, response) VALUES ($1, '') ON CONFLICT (key) DO UPDATE SET key = EXCLUDED.key RETURNING response`
	upsertKeyXmax = `INSERT INTO keys (key, response) VALUES ($1, '') ON CONFLICT (key) DO UPDATE SET key = EXCLUDED.key RETURNING xmax = 0, response`
	rememberKey   = `UPDATE keys SET response = $2 WHERE key = $1`
)

// rewritten is the figure of what the claims of duplicates wrote.
const rewritten = "row versions written anew by the claims"

// updatesSQL asks PostgreSQL how many row versions this session's UPDATEs have
// written to the table of keys; a session's counter is not reset with each
// transaction, so it is the difference that counts.
const updatesSQL = `SELECT pg_stat_get_xact_tuples_updated('keys'::regclass)`

// updates asks it on the worker's connection. The question is the lab's, and no
// statement of the handler.
func (w *worker) updates(ctx context.Context) (n int, err error) {
	err = w.conn.QueryRow(context.WithValue(ctx, workerKey{}, nil), updatesSQL).Scan(&n)
	return n, err
}

// onConflictDoUpdate returns a row to everyone.
func onConflictDoUpdate() *Experiment {
	work := func(tells bool) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (answer Answer, err error) {
			err = w.transaction(ctx, begin, func() error {
				var response string
				mine := true
				before, err := w.updates(ctx)
				if err != nil {
					return err
				}
				if tells {
					_, err = w.read(ctx, upsertKeyXmax, []any{theKey}, &mine, &response)
				} else {
					mine, err = w.read(ctx, upsertKey, []any{theKey}, &response)
				}
				if err != nil {
					return err
				}
				after, err := w.updates(ctx)
				if err != nil {
					return err
				}
				w.count(rewritten, after-before)
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
				_, err = w.statement(ctx, rememberKey, theKey, string(body))
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
				tables: keysWithPrimaryKey, work: work(false), after: counted(rewritten),
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), money("{n}"), figure(rewritten, "{n-1}")},
			},
			{
				Name: "xmax", Title: "xmax tells who inserted", Sort: Costly, Should: 1, AlwaysHolds: true,
				About:  "One charge. Every duplicate writes a new version of the row and locks it, where DO NOTHING writes nothing.",
				SQL:    []Line{plain(begin), cure(upsertKeyXmax), note("true: inserted. false: it was there"), plain(insertCharge), plain(rememberKey), plain("COMMIT")},
				tables: keysWithPrimaryKey, work: work(true), after: counted(rewritten),
				expect: []expectation{charges("1"), outcomes("1 charged, {n-1} replayed"), money("1"), figure(rewritten, "{n-1}")},
			},
			claimVariant(),
		},
	}
}
