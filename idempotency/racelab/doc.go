// Package racelab runs every broken and every right way to use an idempotency
// key against a real PostgreSQL, and returns what happened: charges and money,
// how the workers ended, what it cost, and a time line of each of them. Nothing
// is simulated that PostgreSQL can do, and no figure is stored: each is measured
// at the moment of asking.
//
// # Running one
//
//	lab := racelab.New(config)
//	result, err := lab.Run(ctx, "check-then-insert", racelab.Settings{}, nil)
//
// [All] lists the experiments in teaching order. Each is a question and some
// [Variant]s that answer it, broken and right side by side, with the SQL that
// they run and the line of it that decides. A [Result] is plain data and encodes
// to JSON. [Claims] says which figures answer what the two articles claim, of a
// run with the experiment's own settings ([Experiment.Answers]).
//
// # What a run touches
//
// A run has a schema of its own, with a random name, as the only one in the
// search path of all its connections, and drops it at the end, whatever the end
// is. Of a process that was killed the next run removes what is left. Workers
// and trials are bounded, statements, trials and runs have deadlines, and the lab needs
// as many connections as there are workers, and two more.
//
// The right variants call package idempotency as the shop does, on its own
// [idempotency.Schema] in that schema. Beside it stands the table charges, which
// has no unique index on the key, on purpose: what is counted is what a handler
// does, and not what a second constraint saves it from.
//
// # What is made certain, and how
//
// Workers start together. A start barrier alone is luck, so where a race is the
// finding there is a second one ([Barrier]): nobody acts before everybody has
// looked, and a winner does not commit before PostgreSQL itself says that the
// others wait for it. [None] takes that away, and [Handler] puts a handler that
// takes its time in its place; then the run reports the spread that it saw and
// claims nothing, except of variants that need no luck ([Variant.AlwaysHolds]).
//
// Other experiments are scripts: each party waits for the other's step. Where
// one comes between two statements of the ledger, the lab does so by the tracer
// of its connections. Leases, locks and ages are not waited for but moved into
// the past, by the database's clock, which is the one that judges them.
//
// Four things are timers, because time is what they stand for: the handler of
// the window Handler, the patience of buyers who find no connection, a
// lock_timeout, and the short wait of duplicates whose wait ends first. Nothing
// is ordered by how long they are.
//
// # How it is measured
//
// Statements, round trips and commits are counted by a pgx tracer of the run's
// own connections. An observer on a connection of its own asks pg_stat_activity
// and pg_blocking_pids, every two milliseconds, who waits for whom; a [Wait]
// holds what it saw and which COMMIT or ROLLBACK ended it. A wait shorter than
// that may not be seen, which is one more reason for the barrier. Charges are
// counted afterwards, on a connection that took no part.
//
// pgx runs without prepared statements here, so that the first statement of a
// connection costs one round trip, like every other.
package racelab
