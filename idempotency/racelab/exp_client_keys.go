package racelab

import "context"

// clientKeys is the client's half: one key for one intent.
func clientKeys() *Experiment {
	under := func(keys ...string) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			if err := w.inTurn(ctx); err != nil {
				return Answer{}, err
			}
			return w.buyLocal(ctx, keys[w.n-1], []int64{Price, Price, 7900}[w.n-1], nil)
		}
	}
	courses := []string{"course 1", "course 2"}
	return &Experiment{
		Name: "client-keys", Title: "Where the key comes from", Chapter: TheBookkeeping,
		About: "A key that is made within the retry loop is new each time, and so is the purchase. A key made of the user's id is old for the second course, which is answered with the first one's receipt, or, with a fingerprint, can never be bought. " +
			"The client makes one key per intent, before the first send, and keeps it.",
		Barriers:   "None: one request follows the other.",
		HoldsWhen:  "The key is made once per intent and stored before it is sent.",
		BreaksWhen: "It is made per request, or per user, or per session.",
		Workers:    parties(3), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "new-key-per-retry", Title: "A new key per retry", Sort: Broken, Should: 1, Lanes: []string{"first try", "retry"}, AlwaysHolds: true,
				About: "The server is right both times.",
				SQL:   []Line{plain(ledgerClaim), note("the answer is lost; the client tries again with a new key"), fault(ledgerClaim)}, ledger: true,
				work:   under("try-1", "try-2"),
				expect: []expectation{charges("2"), outcomes("2 charged"), money("2")},
			},
			{
				Name: "key-of-the-user", Title: "A key made of the user", Sort: Broken, Should: 2, Lanes: courses, AlwaysHolds: true,
				About: "The second course replays the first. Nobody is charged for it, and nobody gets it.",
				SQL:   []Line{fault(claimPlain), note("$1 is the user's id"), plain(selectKey)}, tables: plainTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					return w.replayAnything(ctx, "user-7", []int64{Price, 7900}[w.n-1])
				},
				expect: []expectation{charges("1"), outcomes("1 charged, 1 replayed"), money("1")},
			},
			{
				Name: "key-of-the-user-fingerprint", Title: "The same, with a fingerprint", Sort: Broken, Should: 2, Lanes: courses, AlwaysHolds: true,
				About: "Loud at least: 422 for as long as the key is kept.",
				SQL:   []Line{fault(ledgerClaim), note("$2 is the user's id"), plain(ledgerRead)}, ledger: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					return w.buyLocal(ctx, "user-7", []int64{Price, 7900}[w.n-1], nil)
				},
				expect: []expectation{charges("1"), outcomes("1 charged, 1 × 422"), money("1")},
			},
			{
				Name: "one-key-per-intent", Title: "One key per intent", Sort: Right, Should: 1, Lanes: []string{"first try", "retry"}, AlwaysHolds: true,
				About: "The retry sends the same key, so it is a replay.",
				SQL:   []Line{cure(ledgerClaim), note("the answer is lost; the client sends the same request again"), plain(ledgerRead)}, Uses: usesDo, ledger: true,
				work:   under("intent-1", "intent-1"),
				expect: []expectation{charges("1"), outcomes("1 charged, 1 replayed"), money("1")},
			},
			{
				Name: "another-intent", Title: "Another intent, another key", Sort: Right, Should: 2, Lanes: []string{"course 1", "retry", "course 2"}, AlwaysHolds: true,
				About: "And the second course is a purchase of its own.",
				SQL:   []Line{cure(ledgerClaim), plain(ledgerRead), plain(ledgerClaim)}, Uses: usesDo, ledger: true,
				work:   under("intent-1", "intent-1", "intent-2"),
				expect: []expectation{charges("2"), outcomes("2 charged, 1 replayed")},
			},
		},
	}
}
