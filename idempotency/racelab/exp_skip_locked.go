package racelab

import "context"

// Statements with SKIP LOCKED.
const (
	selectSkipLocked = selectKey + ` FOR UPDATE SKIP LOCKED`
	jobsTable        = `
	CREATE TABLE jobs (
		id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		done boolean NOT NULL DEFAULT false);`
	takeJob   = `SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`
	finishJob = `UPDATE jobs SET done = true WHERE id = $1`
)

// skipLocked is a good queue and a bad referee.
func skipLocked() *Experiment {
	return &Experiment{
		Name: "skip-locked", Title: "SKIP LOCKED", Chapter: WhatElse,
		About:      "SKIP LOCKED leaves out rows that somebody holds, so nobody waits. For a queue that is what one wants: any job will do. For a key it is a lie: the row that is locked is the answer, and leaving it out looks like no such key.",
		Barriers:   "A second barrier after the SELECT: every transaction is still open when the last one looks.",
		HoldsWhen:  "Any row will do, as in a queue, a completer or a reaper.",
		BreaksWhen: "One certain row is asked for, and its absence means something.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "as-a-referee", Title: "To look for a key", Sort: Broken, Should: 1,
				About:  "The key was completed long ago. One worker locks its row and replays; to all others the key is new.",
				SQL:    []Line{plain(begin), fault(selectSkipLocked), note("no row: locked, or not there? It looks the same"), plain(insertCharge), plain(insertKey), plain("COMMIT")},
				tables: keysTable, prepare: boughtBefore,
				work:   askFirst{begin: begin, look: selectSkipLocked}.work,
				expect: []expectation{charges("{n}"), outcomes("{n-1} charged, 1 replayed"), money("{n}")},
			},
			{
				Name: "as-a-queue", Title: "To take a job", Sort: Right, Should: perWorker, AlwaysHolds: true,
				About: "As many jobs as workers. Each takes another one, and nobody waits. The package's reaper works so.",
				SQL:   []Line{plain(begin), cure(takeJob), plain(insertCharge), plain(finishJob), plain("COMMIT")},
				Shop:  usesReap, tables: jobsTable,
				prepare: func(ctx context.Context, r *round) error {
					return r.lab.exec(ctx, `INSERT INTO jobs (done) SELECT false FROM generate_series(1, $1::int)`, r.n)
				},
				work: func(ctx context.Context, w *worker) (answer Answer, err error) {
					err = w.transaction(ctx, begin, func() error {
						var job, id int64
						found, err := w.read(ctx, takeJob, nil, &job)
						if err != nil {
							return err
						}
						if err := w.checked(ctx); err != nil {
							return err
						}
						if answer = (Answer{Kind: Ignored}); !found {
							return nil
						}
						if _, err := w.read(ctx, insertCharge, []any{theKey, Price}, &id); err != nil {
							return err
						}
						answer = told(Charged, 201, receipt{id, Price}.body())
						_, err = w.statement(ctx, finishJob, job)
						return err
					})
					return answer, err
				},
				after: all(lockWaits, func(ctx context.Context, r *round) error {
					left, err := ask[int](ctx, r.lab, `SELECT count(*) FROM jobs WHERE NOT done`)
					r.figure("jobs left", "%d", left)
					return err
				}),
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), figure("connections waiting for a lock", "0"), figure("jobs left", "0")},
			},
		},
	}
}

// boughtBefore is a purchase that was made before the workers came.
func boughtBefore(ctx context.Context, r *round) error {
	id, err := ask[int64](ctx, r.lab, insertCharge, theKey, Price)
	if err != nil {
		return err
	}
	return r.lab.exec(ctx, insertKey, theKey, string(receipt{id, Price}.body()))
}
