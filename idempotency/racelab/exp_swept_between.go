package racelab

import (
	"context"
	"strings"
)

// sweptBetween is the row that is gone by the time the loser reads it.
func sweptBetween() *Experiment {
	// unguarded loses the INSERT to a claim that the sweeper then removes.
	unguarded := func(look func(ctx context.Context, w *worker) (Answer, error)) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			if err := w.lab.exec(ctx, `INSERT INTO keys (key, hash, response) VALUES ($1, 'ours', '')`, theKey); err != nil {
				return Answer{}, err
			}
			w.before("SELECT hash", func(ctx context.Context) {
				w.happened(EventSwept, "the sweeper deletes the key")
				_ = w.lab.exec(ctx, `DELETE FROM keys`)
			})
			var mine string
			won, err := w.read(ctx, claimHashed, []any{theKey, "ours"}, &mine)
			if err != nil || won {
				return Answer{Kind: Charged}, err
			}
			return look(ctx, w)
		}
	}
	// contended lets somebody else's claim come before each of the ledger's
	// INSERTs, and the sweeper after it, so many times.
	contended := func(times int) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			for range times {
				w.before("INSERT INTO idempotency_keys", func(ctx context.Context) {
					_ = w.lab.exec(ctx, `
						INSERT INTO idempotency_keys (scope, key, operation, request_hash, status, owner, lease_until)
						VALUES ($1, $2, $3, sha256('other'), 'in_progress', 'other', clock_timestamp() + interval '60 seconds')`,
						theAccount, theKey, payments)
					w.before("SELECT operation", func(ctx context.Context) {
						w.happened(EventSwept, "the sweeper deletes the key")
						_ = w.lab.exec(ctx, `DELETE FROM idempotency_keys`)
					})
				})
			}
			return w.buyLocal(ctx, theKey, Price, nil)
		}
	}
	tried := func(_ context.Context, r *round) error {
		n := 0
		for _, e := range r.events.events {
			if strings.Contains(e.SQL, "INSERT INTO idempotency_keys") {
				n++
			}
		}
		r.figure("claims tried", "%d", n)
		return nil
	}
	lanes := []string{"request"}
	return &Experiment{
		Name: "swept-between", Title: "Swept between INSERT and SELECT", Chapter: TheBookkeeping,
		About: "The loser reads a row that it did not write, and a sweeper may have removed it meanwhile. In Node the handler dies on a property of undefined. In Go it is pgx.ErrNoRows if it is looked at, and if it is not, something quieter: a zero value, whose empty hash looks like another request's. " +
			"The guard is to claim again, a few times, and then to say 409.",
		Barriers:   "The lab comes between the two statements of the one worker: another's claim before the INSERT, the sweeper before the SELECT.",
		HoldsWhen:  "No row after a lost INSERT means: claim again.",
		BreaksWhen: "The row is taken for granted.",
		Workers:    parties(1), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "unguarded", Title: "Unguarded", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "No rows in result set: a 500 for a key that is free.",
				SQL:   []Line{plain(claimHashed), note("no row: somebody else has it. The sweeper comes by"), fault(selectHashed), note("no row either")}, tables: hashedTable,
				work: unguarded(func(ctx context.Context, w *worker) (Answer, error) {
					var hash, response string
					err := w.conn.QueryRow(ctx, selectHashed, theKey).Scan(&hash, &response)
					if err == nil {
						return Answer{Kind: Replayed}, nil
					}
					return Answer{Kind: Failed, Status: 500, Note: err.Error()}, nil
				}),
				after: func(_ context.Context, r *round) error {
					r.figure("the error", "%s", r.answers[0].Note)
					return nil
				},
				expect: []expectation{charges("0"), outcomes("1 error"), figure("the error", "no rows in result set")},
			},
			{
				Name: "zero-value", Title: "Unguarded, and not looked at", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The handler ignores that there was no row. Its zero value has an empty hash, so the client is told 422 for an honest request.",
				SQL:   []Line{plain(claimHashed), note("no row: somebody else has it. The sweeper comes by"), fault(selectHashed), note("hash is '', which is not ours")}, tables: hashedTable,
				work: unguarded(func(ctx context.Context, w *worker) (Answer, error) {
					var hash, response string
					if _, err := w.read(ctx, selectHashed, []any{theKey}, &hash, &response); err != nil {
						return Answer{}, err
					}
					if hash != "ours" {
						return Answer{Kind: Mismatch, Status: 422}, nil
					}
					return told(Replayed, 200, []byte(response)), nil
				}),
				expect: []expectation{charges("0"), outcomes("1 × 422")},
			},
			{
				Name: "guarded", Title: "Guarded", Sort: Right, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About: "The package claims again.",
				SQL:   []Line{plain(ledgerClaim), note("no row. The sweeper comes by"), plain(ledgerRead), note("no row either: claim again"), cure(ledgerClaim)},
				Uses:  usesDo, ledger: true, work: contended(1), after: tried,
				expect: []expectation{charges("1"), outcomes("1 charged"), money("1"), figure("claims tried", "2")},
			},
			{
				Name: "contended", Title: "Again and again", Sort: Right, Should: 0, Lanes: lanes, AlwaysHolds: true,
				About: "Three times in a row, and the package says 409: nobody is charged, and the client comes back.",
				SQL:   []Line{plain(ledgerClaim), plain(ledgerRead), plain(ledgerClaim), plain(ledgerRead), cure(ledgerClaim), plain(ledgerRead), note("no row for the third time: 409")},
				Uses:  usesDo, ledger: true, work: contended(3), after: tried,
				expect: []expectation{charges("0"), outcomes("1 × 409"), figure("claims tried", "3")},
			},
		},
	}
}
