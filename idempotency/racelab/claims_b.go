package racelab

// claimsB are those of "Idempotency Key Race Conditions That Still Cause
// Duplicate Charges", in its order.
var claimsB = []Claim{
	{
		Text:       "A unique constraint alone does not stop the duplicate: it protects the table and not the charge.",
		Experiment: "primary-key", Figures: of("remote-charge", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "Exclusion: only one request per key runs the side effect, even when two arrive in the same millisecond.",
		Experiment: "claim", Figures: of("claim", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "Memory: the outcome is stored, so a replay returns the original response.",
		Experiment: "replay-bytes", Figures: of("stored-bytes", FigureCharges, FigureOutcomes, differing),
	},
	{
		Text:       "Identity: a key belongs to one request; with other parameters it is an error, and no new operation.",
		Experiment: "same-key-another-body", Figures: of("fingerprint", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "Recorded after the charge: a crash in between leaves no record, and the retry charges again.",
		Experiment: "recorded-after-the-charge", Figures: of("crash", FigureCharges),
	},
	{
		Text:       "So does a deploy or an error of the database.",
		Experiment: "recorded-after-the-charge", Figures: of("database-error", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "So does a client's timeout that cancels the handler.",
		Experiment: "recorded-after-the-charge", Figures: and(of("client-timeout", FigureCharges), of("hang-up-ignored", FigureCharges)),
		Differs: "In Go it is the request's context that ends the statement. The shop runs call and record on a context of its own.",
	},
	{
		Text:       "Check, then insert: both have done the work when the constraint fires.",
		Experiment: "primary-key", Figures: of("remote-charge", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "Same key, another body: the stored answer comes back for a request that was never made, or, deduplicated on key and amount, both are charged.",
		Experiment: "same-key-another-body", Figures: and(of("no-fingerprint", FigureOutcomes), of("key-and-amount", FigureCharges)),
	},
	{
		Text:       "A key made of a user's id is not unique per intent.",
		Experiment: "client-keys", Figures: of("key-of-the-user", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "in_progress holds a lease, so that a crash does not block the key for ever.",
		Experiment: "recorded-after-the-charge", Figures: of("claim-first", FigureCharges, FigureOutcomes, stateFigure),
	},
	{
		Text:       "completed includes business failures: a decline is stored and replayed.",
		Experiment: "what-sticks", Figures: and(of("decline-stored", FigureOutcomes, callsFigure), of("decline-forgotten", callsFigure)),
	},
	{
		Text:       "failed_retryable: nothing can have happened, so the next request claims the key again.",
		Experiment: "what-sticks", Figures: of("busy-released", FigureCharges, FigureOutcomes),
	},
	{
		Text: "What fails validation creates no key.",
		Test: "web TestBadInputStoresNothing",
	},
	{
		Text:       "A key space that is not scoped gives one tenant another's stored response.",
		Experiment: "key-scope", Figures: and(of("one-space", FigureOutcomes, "the second account was told of charge"), of("scoped", FigureOutcomes)),
	},
	{
		Text:       "Local side effect: claim and business write in one transaction; the loser waits on the index and replays.",
		Experiment: "claim", Figures: of("claim", FigureCharges, FigureOutcomes),
	},
	{
		Text:       "If the winner rolls back, a waiter's INSERT proceeds and does the work: exactly one order either way.",
		Experiment: "claim", Figures: of("winner-rolls-back", FigureCharges, FigureOutcomes, "owners"),
	},
	{
		Text:       "Remote side effect: claim, call, record, with no lock and no transaction held during the call.",
		Experiment: "across-the-call", Figures: of("three-phases", heldAtCall, "another buyer was told"),
	},
	{
		Text:       "The loser reads the row that it lost to, and compares operation and hash.",
		Experiment: "swept-between", Figures: of("unguarded", FigureOutcomes, "the error"),
		Contrary: true,
		Differs:  "The article's handler takes rows[0] for granted. A reaper may have removed the row meanwhile, and then it ends in an error for a key that is free. The package claims again, three times, and then says 409.",
	},
	{
		Text:       "The downstream key makes the ambiguous case safe: the retry takes over and the provider gives back the original charge.",
		Experiment: "recorded-after-the-charge", Figures: of("claim-first", FigureCharges, callsFigure),
	},
	{
		Text:       "Without a downstream key there is no safe answer short of asking the provider.",
		Experiment: "recorded-after-the-charge", Figures: and(of("no-downstream-key", FigureCharges, callsFigure), of("ask-the-provider", FigureCharges, callsFigure)),
	},
	{
		Text:       "An ambiguous outcome leaves the key in_progress; it is neither failed nor done.",
		Experiment: "what-sticks", Figures: and(of("unknown-kept", FigureCharges, FigureOutcomes), of("unknown-as-failure", FigureCharges)),
	},
	{
		Text:       "A field that changes on every retry must not be part of the hash.",
		Experiment: "byte-hash", Figures: and(of("every-field", FigureOutcomes), of("canonical", FigureOutcomes)),
	},
	{
		Text:       "The loser may be given the stored response, once the winner has finished.",
		Experiment: "race-loser", Figures: of("waits-on-the-index", FigureOutcomes, heldAtCall),
	},
	{
		Text:       "Or 409 while the original runs.",
		Experiment: "race-loser", Figures: of("told-409", FigureOutcomes, heldAtCall),
	},
	{
		Text:       "Or a short wait, then one of the two.",
		Experiment: "race-loser", Figures: and(of("short-wait", FigureOutcomes, heldAtCall), of("short-wait-over", FigureOutcomes, heldAtCall)),
		Differs: "The shop's wait is in memory, one poller for each key and process, so that waiting holds no connection.",
	},
	{
		Text: "The IETF draft has 409 for a concurrent key and 422 for another payload.",
		Test: "e2e TestOneKey",
	},
	{
		Text: "And 400 for a required key that is missing.",
		Test: "web TestBadInput",
	},
	{
		Text:       "Clients that take 409 for the advice to make a new key bring the duplicate back.",
		Experiment: "race-loser", Figures: of("new-key-on-409", FigureCharges),
	},
	{
		Text:       "Retention must exceed the longest window in which anything can retry.",
		Experiment: "retention", Figures: and(of("kept-24-hours", FigureCharges), of("kept-72-hours", FigureCharges, FigureOutcomes)),
	},
	{
		Text: "A provider call that is retried later than the provider keeps its keys is a new one there.",
		Test: "checkout/stripesim TestPrunedKeyExecutesAgain", Differs: onTheLocalStripe,
	},
	{
		Text:       "A new key per retry is useless.",
		Experiment: "client-keys", Figures: and(of("new-key-per-retry", FigureCharges), of("one-key-per-intent", FigureCharges)),
	},
	{
		Text:       "Two keys for one intent are two charges; a rule of the business has to stand behind the key.",
		Experiment: "two-keys-one-order", Figures: and(of("no-rule", FigureCharges), of("slot-at-the-claim", FigureCharges, FigureOutcomes)),
	},
	{
		Text:       "Such as a unique constraint: one successful payment per order.",
		Experiment: "two-keys-one-order", Figures: of("index-on-succeeded", FigureCharges, FigureOutcomes),
		Contrary: true,
		Differs:  "That rule is asked when both cards are charged: two charges and a 23505. The shop's index covers everything that could still become money, and is taken at the claim.",
	},
	{
		Text:       "With the operation stored, a key of a payment cannot answer a refund.",
		Experiment: "same-key-another-body", Figures: and(of("same-key-on-a-refund", FigureOutcomes), of("fingerprint", FigureOutcomes)),
	},
	{
		Text:       "Webhooks: the same pattern, keyed on the provider's event id.",
		Experiment: "webhooks", Figures: of("keyed-on-event", fulfilled, FigureOutcomes),
	},
	{
		Text:       "One transaction across the slow call: each retry waits on the index and holds a connection, until the pool is exhausted or lock_timeout ends it.",
		Experiment: "across-the-call", Figures: and(of("one-transaction", heldAtCall, "another buyer was told"), of("lock-timeout", "the first duplicate's SQLSTATE")),
	},
	{
		Text:       "A lease shorter than the call lets a retry take over while the first still runs: safe by the downstream key, at two calls.",
		Experiment: "lease-and-fence", Figures: of("unfenced-downstream-key", FigureCharges, callsFigure),
		Differs: "Safe for the money. The article's record names no owner, so a slow one writes over an answer that was already given; the shop's is fenced (variants unfenced and fenced).",
	},
	{
		Text:       "A lease that is too long blocks honest retries after a crash.",
		Experiment: "lease-and-fence", Figures: of("lease-too-long", FigureOutcomes, stateFigure),
	},
	{
		Text:       "Set above the call's timeout, nobody takes over a living owner.",
		Experiment: "lease-and-fence", Figures: of("longer-lease", FigureOutcomes, callsFigure),
	},
	{
		Text:       "Keys that no client retries stay in_progress; a completer finds the lapsed leases and resolves them.",
		Experiment: "completer", Figures: and(of("no-completer", stateFigure), of("completer", stateFigure, FigureCharges)),
	},
	{
		Text:       "Hashing bytes refuses requests that are equal but written otherwise; canonicalise first.",
		Experiment: "byte-hash", Figures: and(of("bytes", FigureOutcomes), of("canonical", FigureOutcomes)),
	},
	{
		Text:    "Keep card data, tokens and personal data out of stored answers, and personal data out of keys.",
		Test:    "e2e TestNoTableHoldsASecretOrPersonalData",
		Differs: "Every table is scanned after each end-to-end flow, keys included. The shop knows nobody's name: an account is a random id.",
	},
	{
		Text:       "To verify: two identical requests at once are one charge, and every replay is the same response.",
		Experiment: "race-loser", Figures: of("waits-on-the-index", FigureCharges, differing),
	},
	{
		Text: "And kill the handler between the call and the record: still one charge, one completed row.",
		Test: "e2e TestKilled",
	},
}
