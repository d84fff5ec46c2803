package racelab

import "context"

// primaryKey puts the constraint behind the question, and stops there.
func primaryKey() *Experiment {
	return &Experiment{
		Name: "primary-key", Title: "The constraint alone", Chapter: TheWrongAnswers,
		About: "Ask first, but with a primary key on the table. If the charge is a row of the same transaction, the constraint saves the money, and then the handler tells seven buyers that their purchase failed. " +
			"If the charge is at a provider, it saves nothing: it protects the table, not the card.",
		Barriers:   "A second barrier after the SELECT. The first to write holds its transaction open until PostgreSQL is seen to make the others wait for its key.",
		HoldsWhen:  "The charge is undone together with the row that was refused, and the conflict is answered with the stored response.",
		BreaksWhen: "The work is done before the constraint is asked, where no ROLLBACK reaches.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "local-charge", Title: "The charge is a row", Sort: Broken, Should: 1,
				About:  "One charge. Seven callers get a raw 23505, which most frameworks turn into a 500.",
				SQL:    []Line{plain(begin), plain(selectKey), plain(insertCharge), fault(insertKey), note("23505: unique violation"), plain("COMMIT")},
				tables: keysWithPrimaryKey,
				work:   askFirst{begin: begin, look: selectKey, hold: true}.work,
				expect: []expectation{charges("1"), outcomes("1 charged, {n-1} × 23505"), money("1")},
			},
			{
				Name: "remote-charge", Title: "The charge is a call", Sort: Broken, Should: 1,
				About:  "Every card is charged, and then seven callers are told that it failed.",
				SQL:    []Line{plain(selectKey), note("no row: call the provider, which charges"), fault(insertKey), note("23505, after the money has moved")},
				tables: keysWithPrimaryKey,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					var response string
					found, err := w.read(ctx, selectKey, []any{theKey}, &response)
					if err != nil {
						return Answer{}, err
					}
					if err := w.checked(ctx); err != nil {
						return Answer{}, err
					}
					if found {
						return told(Replayed, 200, []byte(response)), nil
					}
					id, err := w.provider.charge(ctx, w, "", Price, nil)
					if err != nil {
						return Answer{}, err
					}
					body := receipt{id, Price}.body()
					if _, err := w.statement(ctx, insertKey, theKey, string(body)); err != nil {
						return Answer{}, err
					}
					return told(Charged, 201, body), nil
				},
				expect: []expectation{charges("{n}"), outcomes("1 charged, {n-1} × 23505"), money("{n}")},
			},
			{
				Name: "index-on-charges", Title: "An index on the charges", Sort: Broken, Should: 1,
				About:  "No constraint on the keys, and a unique index on the charges instead: the broken handler hides behind it. The money is right, and seven callers get a 23505 all the same. The lab's charges have no such index, so that it can be seen what a handler does; in production, have both.",
				SQL:    []Line{plain(begin), plain(selectKey), fault(insertCharge), note("23505: unique violation"), plain(insertKey), plain("COMMIT")},
				tables: keysTable + `CREATE UNIQUE INDEX charges_key ON charges (key);`,
				work:   askFirst{begin: begin, look: selectKey, hold: true}.work,
				expect: []expectation{charges("1"), outcomes("1 charged, {n-1} × 23505"), money("1")},
			},
			claimVariant(),
		},
	}
}
