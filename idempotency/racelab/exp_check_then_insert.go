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
			"Without it, or with a handler that takes its time instead, the run reports what it sees. In the other variant the winner commits once PostgreSQL is seen to make the others wait.",
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
			claimVariant(),
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
		expect: []expectation{charges("1"), outcomes("1 charged, {n-1} replayed"), money("1")},
	}
}

// askFirst is the handler of most tutorials, in its variations.
type askFirst struct {
	begin string // the transaction's isolation level
	look  string // the SELECT
	retry bool   // again from the start after 40001
	hold  bool   // the first to write holds its transaction open until the others wait
}

// retries bounds how often a transaction runs again. It is no advice: retried at
// once, attempts are burnt for as long as the winner's COMMIT is on its way to
// the disk, and the lab wants to see how many.
const retries = 10_000

func (a askFirst) work(ctx context.Context, w *worker) (answer Answer, err error) {
	for {
		w.attempts++
		answer, err = a.once(ctx, w)
		if !a.retry || sqlState(err) != "40001" || w.attempts == retries {
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
		if err := w.checked(ctx); err != nil {
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
