// Package idempotency is a ledger of idempotency keys on PostgreSQL. For one
// key, the side effect of a request runs under one owner at a time and its
// outcome is recorded once; every duplicate gets the same status and the same
// bytes. Any number of processes may share the ledger: the database decides
// between them, and nothing else does.
//
// A key alone promises nothing. The promise has three parts.
//
// # Exclusion
//
// Only one request per key may run the side effect, also when two arrive in the
// same millisecond. A SELECT cannot tell who is first: its answer was true a
// moment ago. So a key is claimed by
//
//	INSERT INTO idempotency_keys ... ON CONFLICT DO NOTHING RETURNING ...
//
// and the row count is the answer; the unique index is the referee. A claim has
// a lease, so that an owner who dies does not block its key for ever. Once the
// lease has lapsed, a conditional UPDATE hands the claim to one new owner, with
// a token and an attempt number of its own. Nothing else ever grants a claim.
//
// # Memory
//
// The outcome is stored with the key: status, media type and body, as bytes.
// What is definitive is stored, a declined card as much as a charged one. What
// is not is never stored: a conflict, a refusal before the claim, an outcome
// that nobody knows. In the transaction that stores the answer stand the
// business rows that it tells of.
//
// # Identity
//
// A key belongs to one request of one scope (usually an account). The
// fingerprint is SHA-256 over the operation and the canonical JSON of the
// declared fields; another request under the key is refused, and never replayed,
// run, or allowed to take over. The fingerprint is compared before anything else
// is looked at.
//
// # What a request meets
//
//	row found                  same request                     another request
//	none                       claims it
//	completed                  replays the stored answer        ErrKeyReused
//	in_progress, lease live    waits, then replays, or          ErrKeyReused
//	                           ErrInProgress
//	in_progress, lease lapsed  takes over: attempt + 1,         ErrKeyReused
//	                           from the recovery point
//	failed_retryable           claims it again: attempt + 1     ErrKeyReused
//	gone between INSERT and    claims it, three times, then
//	SELECT                     ErrClaimContended
//
// Over HTTP these are 422 (ErrKeyReused), 409 with Retry-After (ErrInProgress,
// ErrClaimContended), 503 (ErrOverloaded), and 400 (ErrKeyMissing,
// ErrKeyMalformed); a replay says "Idempotent-Replayed: true". After a 409 or a
// 503 the client sends the same request with the same key.
//
// # Two shapes
//
// Local: the side effect is rows in the same database. [Ledger.Do] claims the
// key, runs the work and stores the answer in one transaction. Duplicates wait
// on the unique index and replay; if the winner rolls back, one of them becomes
// the owner.
//
// Remote: the side effect is a call, which no transaction can undo and none may
// stay open for. There are three phases.
//
//   - Claim, a short transaction: [Ledger.Claim] writes the key and, with it,
//     the pending business row.
//   - Call: the provider, with no transaction open and no connection held, under
//     a downstream key taken from a row that is never deleted. What must not be
//     lost between two calls is stored by [Ledger.Checkpoint].
//   - Record, a short transaction: [Ledger.Record] writes the outcome, the
//     business rows and the answer. If surely nothing happened, [Ledger.Release]
//     lets the next request try; if nobody knows, [Ledger.GiveUp] leaves the key
//     in progress.
//
// Call and record belong on a context that outlives the client's
// ([context.WithoutCancel]) with a deadline of its own, shorter than the lease.
// See the example.
//
// # Fencing
//
// An owner may sleep through its lease and wake when another has finished. So
// each later transaction of an owner first locks the key's row under its token,
// its attempt and the status in_progress. No row: it writes nothing anywhere,
// and answers from the row. A late owner whom nobody took over may still record,
// because a paid result is never thrown away. A completed key never changes.
//
// A statement that only tests the row, by EXISTS or a join, is no fence: waiting
// for a lock on its own row, it does not look at the key again. Statements of
// one round trip begin with [Fence], which locks.
//
// # Clocks
//
// The database's clock sets and judges every lease, and says how old a claim is.
// No process's clock is asked. Retry-After is whole seconds, at least one.
//
// # Unknown
//
// A timeout of the provider is neither success nor failure. The key stays in
// progress, its lease cut to two seconds, and only the same request goes on from
// there: by the same call under the same downstream key, or by asking. A claim
// that was taken over is not clean ([Claim.Clean]): its first owner may have
// sent something, so a refusal heard later does not mean that nothing happened.
//
// A COMMIT whose answer is lost is unknown, too. The ledger looks it up in ways
// that wait for it: after a claim it repeats the INSERT under the same owner
// token, after a record it locks the row. A plain SELECT would see the state
// before. If the database does not come back, the error is ErrCommitUnknown, and
// never one that says that nothing was claimed.
//
// # What is guaranteed
//
//   - At any time at most one owner may record under a key, and one answer is
//     ever stored: with the business rows, or not at all.
//   - The first answer and each replay are the same status, type and bytes, for
//     as long as the key is kept.
//   - Another request under the key changes nothing.
//   - While a duplicate waits for a remote operation it holds no connection: one
//     poller a key and process looks for all of them.
//   - A refused claim leaves no trace.
//
// # What is not
//
//   - That the call is sent once. After a takeover it may be sent again; the
//     downstream key makes that one charge, at a provider that keeps it.
//   - Two keys for one intent. Back the key by a unique index on the business
//     rows, taken in the claim: one open or paid payment per order.
//   - A key that was reaped ([Ledger.ReapOnce]) is a new request. Keep keys
//     longer than anything can retry, and longer than the provider keeps its own.
//   - Anything, if committed transactions are lost, as in a failover to a
//     standby that is not synchronous.
//   - A connection that dies in silence holds its locks until the server notices:
//     set tcp_keepalives_idle and idle_in_transaction_session_timeout.
//
// # Taking it along
//
// The package needs no other of its repository. Copy the folder without
// payonce_test.go and the folders in it, apply [Schema] by a migration, and run
// its tests with TEST_DATABASE_URL naming a server on which a schema may be
// created. It works behind a transaction pooler in the driver's modes that
// prepare nothing.
package idempotency
