package racelab

import "context"

// checkThenInsert is the question itself: has anyone claimed this key?
func checkThenInsert() *Experiment {
	return &Experiment{
		Name:    "check-then-insert",
		Title:   "Check, then insert",
		Chapter: TheQuestion,
		About: "Eight workers, one key, one $49.00 course. Each looks whether the key was seen, and if it was not, charges and writes it down. " +
			"At READ COMMITTED every SELECT sees what was committed before it, so all of them see nothing. The window is not narrow: it is the whole handler.",
		Barriers: "The workers start together. A second barrier after the SELECT lets nobody charge before everybody has looked: a start barrier alone is luck. " +
			"Without it, or with a handler that takes its time instead, the run reports what it sees. With the claim the winner commits once PostgreSQL is seen to make the others wait.",
		HoldsWhen:  "The statement that asks is the statement that claims, with a unique index to decide.",
		BreaksWhen: "Anything at all happens between the answer to the question and the row that depends on it.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "ask-first", Title: "Ask first", Sort: Broken, Should: 1,
				About: "Has anyone claimed this key? The answer was true a moment ago, and nothing stands behind it.",
				SQL: []Line{
					plain(begin), fault(selectKey), note("no row, so it must be ours"),
					plain(insertCharge), plain(insertKey), plain("COMMIT"),
				},
				tables: keysTable,
				work:   askFirst{begin: begin, look: selectKey}.work,
				after:  counted(foundNoKey),
				expect: []expectation{charges("{n}"), outcomes("{n} charged"), money("{n}"), figure(foundNoKey, "{n}")},
			},
			claimVariant(), // beside what it cures
			{
				Name: "late-comer", Title: "Ask first, and one comes later", Sort: Broken, Should: 1,
				About: "How long the window is: all but the last worker ask within the first one's handler, and charge. The last asks when the first has committed, and replays. So the window is neither the SELECT nor the INSERT: it is all that lies between them.",
				SQL: []Line{
					plain(begin), fault(selectKey), note("the handler: whoever asks meanwhile finds no row either"),
					plain(insertCharge), plain(insertKey), plain("COMMIT"), note("here the window closes"),
				},
				tables: keysTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					ask := askFirst{begin: begin, look: selectKey}
					if w.n < w.round.n {
						answer, err := ask.work(ctx, w)
						if w.n == 1 {
							w.give("committed")
						}
						return answer, err
					}
					w.looked = true // nobody waits for its look
					if w.second.arrive(w.n) {
						w.second.release()
					}
					if err := w.await(ctx, "committed"); err != nil {
						return Answer{}, err
					}
					return ask.work(ctx, w)
				},
				after:  counted(foundNoKey),
				expect: []expectation{charges("{n-1}"), outcomes("{n-1} charged, 1 replayed"), money("{n-1}"), figure(foundNoKey, "{n-1}")},
			},
		},
	}
}

// claimVariant is the cure, as the shop has it.
func claimVariant() Variant {
	return Variant{
		Name: "claim", Title: "Claim it", Sort: Right, Should: 1, AlwaysHolds: true,
		About: "Insert the key and let the unique index be the referee: the row count is the answer. Who loses waits for the winner's COMMIT and replays.",
		SQL: []Line{
			cure(ledgerClaim), note("one row: ours. No row: somebody else's, so wait, then replay"),
			plain(insertCharge), plain(ledgerDone), plain("COMMIT"),
		},
		Uses: usesDo, ledger: true,
		work: func(ctx context.Context, w *worker) (Answer, error) {
			return w.buyLocal(ctx, theKey, Price, func() error { return w.hold(ctx) })
		},
		after:  serializationFailures,
		expect: []expectation{charges("1"), outcomes("1 charged, {n-1} replayed"), money("1"), figure(failures40001, "0")},
	}
}

// askFirst is the handler of most tutorials, in its variations.
type askFirst struct {
	begin string // the transaction's isolation level
	look  string // the SELECT
	retry bool   // again from the start after 40001
	hold  bool   // the first to write holds its transaction open until the others wait
	// locks is true if the SELECT is to find and lock the key's row. Who gets
	// it first holds it until the others wait, and there is no second barrier:
	// they could not come so far.
	locks bool
}

// retries bounds how often a transaction runs again. It is no advice: retried at
// once, attempts are burnt for as long as the winner's COMMIT is on its way to
// the disk, and the lab wants to see how many.
const retries = 10_000

func (a askFirst) work(ctx context.Context, w *worker) (answer Answer, err error) {
	for {
		w.attempts++
		answer, err = a.once(ctx, w)
		if !a.retry || sqlState(err) != serializationFailure || w.attempts == retries {
			return answer, err
		}
	}
}

func (a askFirst) once(ctx context.Context, w *worker) (answer Answer, err error) {
	err = w.transaction(ctx, a.begin, func() error {
		var response string
		found, err := w.read(ctx, a.look, []any{theKey}, &response)
		if err != nil {
			return err
		}
		if !found {
			w.count(foundNoKey, 1)
		}
		if err := a.between(ctx, w); err != nil {
			return err
		}
		if found {
			answer = told(Replayed, 200, []byte(response))
			return nil
		}
		answer, err = w.chargeAndRemember(ctx, a.hold)
		return err
	})
	return answer, err
}

// between stands between check and act.
func (a askFirst) between(ctx context.Context, w *worker) error {
	if !a.locks {
		return w.checked(ctx)
	}
	if first := w.count("rows locked", 1) == 1; first {
		return w.hold(ctx)
	}
	return nil
}

// chargeAndRemember charges and writes the key down, on the worker's open
// transaction or, without one, at once.
func (w *worker) chargeAndRemember(ctx context.Context, hold bool) (Answer, error) {
	var id int64
	if _, err := w.read(ctx, insertCharge, []any{theKey, Price}, &id); err != nil {
		return Answer{}, err
	}
	body := receipt{id, Price}.body()
	if _, err := w.statement(ctx, insertKey, theKey, string(body)); err != nil {
		return Answer{}, err
	}
	if hold {
		if err := w.hold(ctx); err != nil {
			return Answer{}, err
		}
	}
	return told(Charged, 201, body), nil
}
