package racelab

// onTheLocalStripe says of what Stripe does by what it is shown.
const onTheLocalStripe = "Shown on the local Stripe, which is built to what Stripe documents; the real one is not asked."

// claimsA are those of "Idempotency Keys: What Stripe and Shopify Actually Do",
// in its order.
var claimsA = []Claim{
	{
		Text:       "Check, then insert, with no unique index: eight workers with one key charge eight times, $392.00 for a $49.00 course, in every trial.",
		Experiment: "check-then-insert", Figures: of("ask-first", FigureCharges, FigureMoney, FigureOutcomes),
		Differs: "A start barrier alone is luck: some runs charge fewer times. The lab adds a barrier after the SELECT, which stands for a handler that takes its time; --no-barrier shows the spread.",
	},
	{
		Text:       "At READ COMMITTED every SELECT looks before anyone's INSERT is committed; the window is the whole handler.",
		Experiment: "check-then-insert", Figures: and(of("ask-first", foundNoKey), of("late-comer", FigureCharges, FigureOutcomes)),
		Differs: "Who asks within the first one's handler charges, and who asks after its COMMIT replays. With the setting handler in place of the barrier, one can see how much of 0, 20 or 200 ms is enough here.",
	},
	{
		Text:       "FOR UPDATE on a row that does not exist locks nothing: eight charges.",
		Experiment: "select-for-update", Figures: of("row-absent", FigureCharges, FigureMoney, FigureOutcomes),
	},
	{
		Text:       "The same code with the row present: eight replays, one charge.",
		Experiment: "select-for-update", Figures: of("row-present", FigureCharges, FigureMoney, FigureOutcomes),
	},
	{
		Text:       "REPEATABLE READ does not help: eight INSERTs are eight rows, and nothing conflicts.",
		Experiment: "isolation-levels", Figures: of("repeatable-read", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "SERIALIZABLE does: one charge, and 40001 for the other seven.",
		Experiment: "isolation-levels", Figures: of("serializable", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "It costs a retry loop in every caller.",
		Experiment: "isolation-levels", Figures: of("serializable-retried", FigureOutcomes, retriedLosers, attemptsPaid),
	},
	{
		Text:       "And its tracking overhead on every transaction in the database, not just this one.",
		Experiment: "isolation-levels", Figures: and(of("serializable", predicateLock), of("repeatable-read", predicateLock)),
		Contrary: true,
		Differs:  "PostgreSQL tracks what SERIALIZABLE transactions read, and no others: beside eight of them a READ COMMITTED bystander holds no predicate lock. It is not protected either, so all that share the rule must be SERIALIZABLE, and all of those pay.",
	},
	{
		Text: "The charges table of the measurements has no unique index on the key, on purpose.",
		Test: "idempotency/racelab TestChargesHaveNoUniqueIndexOnTheKey",
	},
	{
		Text:       "One there would hide the naive version's eight charges behind a 23505; in production, put one on.",
		Experiment: "primary-key", Figures: of("index-on-charges", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "INSERT ... ON CONFLICT DO NOTHING RETURNING checks and claims in one statement; the loser's blocks until the winner commits or rolls back.",
		Experiment: "claim", Figures: and(of("claim", FigureOutcomes), of("winner-rolls-back", FigureOutcomes)),
	},
	{
		Text:       "Eight workers through it: one charge, seven replays, $49.00.",
		Experiment: "claim", Figures: of("claim", FigureCharges, FigureMoney, FigureOutcomes),
	},
	{
		Text:       "At READ COMMITTED there is no 40001 to catch.",
		Experiment: "isolation-levels", Figures: and(of("claim", failures40001, FigureOutcomes), of("serializable", failures40001)),
	},
	{
		Text:       "A claim that is swept between the lost INSERT and the SELECT breaks an unguarded handler; guarded, the key is claimed on attempt 2.",
		Experiment: "swept-between", Figures: and(of("unguarded", "the error"), of("guarded", FigureOutcomes, "claims tried")),
		Differs: "No TypeError in Go: pgx.ErrNoRows where it is looked at. Where it is not, the zero value's empty hash is another request's, and the client is told 422 (variant zero-value).",
	},
	{
		Text:       "After three tries the handler says 409: nobody is charged and nothing crashes.",
		Experiment: "swept-between", Figures: of("contended", FigureCharges, FigureOutcomes, "claims tried"),
	},
	{
		Text:       "A fresh path that is encoded otherwise than what is stored gives 1 once and \"1\" seven times under one key.",
		Experiment: "replay-bytes", Figures: of("encoded-again", FigureOutcomes, differing),
		Differs: "pgx reads a bigint into an int64, so no text comes back by itself. Go's trap is the stored JSON decoded into any: a float64, and ids above 2^53 become their neighbours (variant decoded-to-any).",
	},
	{
		Text:       "With a primary key the constraint saves the money, and seven of eight callers get a raw 23505.",
		Experiment: "primary-key", Figures: of("local-charge", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "Without a fingerprint a $9,000 request under the key of a $49 one is answered with the $49 charge.",
		Experiment: "same-key-another-body", Figures: of("no-fingerprint", FigureCharges, FigureMoney, "the second was told"),
	},
	{
		Text:       "Reversed, a customer holds a $49 receipt for a $9,000 charge.",
		Experiment: "same-key-another-body", Figures: of("no-fingerprint-reversed", FigureCharges, "the first was told", "the second was told"),
		Contrary: true,
		Differs:  "As measured, who asked for the $49 course is given the receipt of the $9,000 charge, and not a $49 receipt for it.",
	},
	{
		Text:       "A hash of endpoint and body turns it into a loud 422, for the changed amount and for the same key on a refund.",
		Experiment: "same-key-another-body", Figures: of("fingerprint", FigureCharges, FigureOutcomes),
	},
	{
		Text: "Stripe stores failures too: the same result comes back, 500s included.",
		Test: "checkout/stripesim TestServerErrorIsStoredAndChargesNothing", Differs: onTheLocalStripe,
	},
	{
		Text: "Stripe refuses a key that comes with another endpoint or other parameters.",
		Test: "checkout/stripesim TestKeyIsBoundToItsRequest", Differs: onTheLocalStripe,
	},
	{
		Text: "Stripe takes keys and does not require them.",
		Test: "checkout/stripesim TestWithoutAKeyEveryRequestExecutes", Differs: onTheLocalStripe,
	},
	{
		Text:       "A key that was pruned after 24 hours is no duplicate any more: a retry from a queue that lags is a new charge.",
		Experiment: "retention", Figures: and(of("kept-24-hours", FigureCharges, callsFigure), of("kept-72-hours", FigureCharges, callsFigure)),
	},
	{
		Text: "Replays are marked with Idempotent-Replayed: true.",
		Test: "web TestStoredAnswers",
	},
	{
		Text:       "409 is for the concurrent duplicate, apart from mismatched parameters.",
		Experiment: "race-loser", Figures: of("told-409", FigureOutcomes),
	},
	{
		Text:    "Shopify requires the key, by the same validation as everything else.",
		Test:    "web TestBadInput",
		Differs: "The shop's key is a header or a form's field, and a request without one is a 400 before anything is claimed.",
	},
	{
		Text:       "Scoped by client and key, two tenants cannot collide, and nobody reads another's response.",
		Experiment: "key-scope", Figures: and(of("one-space", FigureOutcomes), of("scoped", FigureOutcomes)),
	},
	{
		Text: "With the completed step stored on the row, a retry resumes where the last one died.",
		Test: "idempotency TestTakeover/ResumesWhereTheLastOwnerWas",
	},
	{
		Text:       "Storing the progress of a request requires extra database writes, on every call.",
		Experiment: "race-loser", Figures: and(of("waits-on-the-index", commitsFigure), of("told-409", commitsFigure)),
		Differs: "Counted as commits: one where claim, work and answer are one transaction, two where the claim is committed before the call. Each recovery point between them is one more.",
	},
	{
		Text:       "BEGIN on the pool, of 1: an unrelated row is destroyed by a stranger's ROLLBACK.",
		Experiment: "begin-on-the-pool", Figures: and(of("naive-pool-of-1", survivingRows), of("pgx-pool-of-1", survivingRows)),
		Differs: "pgx closes a connection that comes back in a transaction, so B's row survives. It hides the mistake instead: A's row survives its own ROLLBACK. A pool that does not look shows what Node's does.",
	},
	{
		Text:       "BEGIN on the pool, of 4: a row survives its own ROLLBACK.",
		Experiment: "begin-on-the-pool", Figures: and(of("naive-pool-of-4", survivingRows), of("pgx-pool-of-4", survivingRows)),
		Differs: "The same with pgx, which leaves no connection in a transaction behind.",
	},
	{
		Text:       "A FOR UPDATE sent to the pool holds nothing.",
		Experiment: "begin-on-the-pool", Figures: and(of("lock-on-the-pool", hadToWait), of("lock-checked-out", hadToWait)),
	},
	{
		Text:       "With a client checked out, the whole transaction runs on it.",
		Experiment: "begin-on-the-pool", Figures: of("checked-out", survivingRows),
	},
	{
		Text:       "The cleanup on the failed transaction is refused with 25P02, and the row stays in_progress.",
		Experiment: "cleanup-inside", Figures: of("inside", "the work failed with", "the cleanup failed with", "state after the cleanup"),
	},
	{
		Text:       "On a healthy transaction the CHECK refuses it (23514), and had it landed, the ROLLBACK would have undone it.",
		Experiment: "cleanup-inside", Figures: of("inside", "the cleanup on a healthy transaction", "state after a write that landed, and the ROLLBACK"),
	},
	{
		Text:       "The key is dead: every retry is told that somebody is at work.",
		Experiment: "cleanup-inside", Figures: of("inside", FigureOutcomes),
	},
	{
		Text:       "Marked outside of it, on a fresh transaction, the retry succeeds.",
		Experiment: "cleanup-inside", Figures: of("outside", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "Better still, store no failure: delete the claim on a fresh transaction, so that a retry can take it cleanly.",
		Experiment: "cleanup-inside", Figures: and(of("deleted-outside", FigureCharges, FigureOutcomes), of("gone-with-it", FigureCharges, FigureOutcomes)),
		Differs: "Where all that was done was rolled back. The shop's local claim is part of that transaction and goes with it; a claim beside a provider's call is never deleted, but released, and only if surely nothing happened.",
	},
	{
		Text:       "And let a sweeper reclaim, by created_at, the rows whose process died without deleting anything.",
		Experiment: "cleanup-inside", Figures: of("swept-by-age", FigureCharges, FigureOutcomes),
		Contrary: true,
		Differs:  "Beside a remote call that is a second charge: the row in progress was all that was known of the first. The shop does otherwise: its reaper never touches a key in progress, and when the lease lapses the next owner, or the completer, takes it over.",
	},
	{
		Text:       "For webhooks the event's id is the key: keyed on the payment, a follow-up is dropped or a redelivery is fulfilled twice.",
		Experiment: "webhooks", Figures: and(of("keyed-on-payment", fulfilled), of("last-event", fulfilled), of("keyed-on-event", fulfilled)),
	},
	{
		Text:       "A unique index underneath holds where two deliveries interleave; with the ledger alone one relies on a SELECT.",
		Experiment: "webhooks", Figures: and(of("select-alone", FigureOutcomes, fulfilled), of("select-and-index", FigureOutcomes, fulfilled)),
	},
	{
		Text:       "200 for a delivery in flight loses the event if its holder dies; 409 lets the provider retry into a claim gone stale.",
		Experiment: "webhooks", Figures: and(of("in-flight-200", fulfilled), of("in-flight-409", fulfilled, FigureOutcomes)),
	},
}
