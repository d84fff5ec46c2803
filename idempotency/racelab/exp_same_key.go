package racelab

import (
	"context"
	"fmt"

	"payonce/idempotency"
)

// plainTable is a ledger of key and response, and nothing about the request.
const plainTable = keysWithPrimaryKey

// claimPlain claims a key in such a ledger.
const claimPlain = `INSERT INTO keys (key, response) VALUES ($1, '') ON CONFLICT (key) DO NOTHING RETURNING key`

// one is the step of a script that runs one request after the other: worker n
// waits for worker n-1 to end.
func (w *worker) inTurn(ctx context.Context) error {
	return w.events.await(ctx, func([]moment) bool { return int(w.ended.Load()) >= w.n-1 })
}

// replayAnything is a correct claim without a fingerprint: exclusion and
// memory, but no identity.
func (w *worker) replayAnything(ctx context.Context, key string, amount int64) (answer Answer, err error) {
	err = w.transaction(ctx, begin, func() error {
		var mine, response string
		won, err := w.read(ctx, claimPlain, []any{key}, &mine)
		if err != nil {
			return err
		}
		if !won {
			if _, err := w.read(ctx, selectKey, []any{key}, &response); err != nil {
				return err
			}
			answer = told(Replayed, 200, []byte(response))
			return nil
		}
		var id int64
		if _, err := w.read(ctx, insertCharge, []any{key, amount}, &id); err != nil {
			return err
		}
		body := receipt{id, amount}.body()
		answer = told(Charged, 201, body)
		_, err = w.statement(ctx, rememberKey, key, string(body))
		return err
	})
	return answer, err
}

// sameKeyAnotherBody is the client bug that a table of key and response turns
// into a silent wrong answer.
func sameKeyAnotherBody() *Experiment {
	lines := []Line{plain(claimPlain), note("no row: the key was used, so replay"), fault(selectKey), note("whatever it was used for")}
	script := func(amounts ...int64) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			if err := w.inTurn(ctx); err != nil {
				return Answer{}, err
			}
			return w.replayAnything(ctx, theKey, amounts[w.n-1])
		}
	}
	receipts := func(_ context.Context, r *round) error {
		for i, name := range []string{"the first was told", "the second was told"} {
			r.figure(name, "%s", Dollars(r.answers[i].Amount))
		}
		return nil
	}
	return &Experiment{
		Name: "same-key-another-body", Title: "Same key, another body", Chapter: TheBookkeeping,
		About: "A client bug uses one key for two requests. A ledger of key and response replays the first answer to the second request, with a 200: nobody errs, nobody logs. " +
			"A fingerprint of the operation and the body beside the key turns a silent wrong answer into a loud 422.",
		Barriers:   "None: one request follows the other.",
		HoldsWhen:  "The operation and a hash of the body stand beside the key, and are compared before anything else.",
		BreaksWhen: "The key is all that is compared.",
		Workers:    parties(2), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "no-fingerprint", Title: "$49, then $9,000", Sort: Broken, Should: 1, Lanes: []string{"$49", "$9,000"}, AlwaysHolds: true,
				About: "The $9,000 order becomes the $49 one. The second caller is told that it worked.",
				SQL:   lines, tables: plainTable, work: script(4900, 900000), after: receipts,
				expect: []expectation{
					charges("1"), outcomes("1 charged, 1 replayed"), money("1"),
					figure("the first was told", "$49.00"), figure("the second was told", "$49.00"),
				},
			},
			{
				Name: "no-fingerprint-reversed", Title: "$9,000, then $49", Sort: Broken, Should: 1, Lanes: []string{"$9,000", "$49"}, AlwaysHolds: true,
				About: "Who asked for the $49 course gets the receipt of a $9,000 charge.",
				SQL:   lines, tables: plainTable, work: script(900000, 4900), after: receipts,
				expect: []expectation{
					charges("1"), outcomes("1 charged, 1 replayed"),
					figure("the first was told", "$9,000.00"), figure("the second was told", "$9,000.00"),
				},
			},
			{
				Name: "same-key-on-a-refund", Title: "The key of a payment on a refund", Sort: Broken, Should: 1, Lanes: []string{"payment", "refund"}, AlwaysHolds: true,
				About: "The refund is answered with the receipt of the payment. No money goes back.",
				SQL:   lines, tables: plainTable, work: script(4900, -4900), after: receipts,
				expect: []expectation{charges("1"), outcomes("1 charged, 1 replayed"), money("1"), figure("the second was told", "$49.00")},
			},
			{
				Name: "key-and-amount", Title: "Deduplicated on key and amount", Sort: Broken, Should: 1, Lanes: []string{"$50", "$75"}, AlwaysHolds: true,
				About:  "The other way to be wrong: the second request is new, so it runs, and one key has charged twice.",
				SQL:    []Line{fault(claimPlain), note("$1 is the key with the amount behind it"), plain(insertCharge)},
				tables: plainTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					amount := []int64{5000, 7500}[w.n-1]
					return w.replayAnything(ctx, fmt.Sprintf("%s:%d", theKey, amount), amount)
				},
				expect: []expectation{charges("2"), outcomes("2 charged")},
			},
			{
				Name: "fingerprint", Title: "With a fingerprint", Sort: Right, Should: 1, AlwaysHolds: true,
				Lanes: []string{"$49", "$9,000", "$9,000 again", "refund", "$49 again"},
				About: "Another amount and another operation are refused with 422, as often as they come; the honest retry is replayed.",
				SQL:   []Line{plain(ledgerRead), cure(ledgerClaim), note("operation and request_hash are compared before status and lease")},
				Uses:  usesFinger, ledger: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					switch w.n {
					case 4:
						req, err := request(theAccount, theKey, "POST /payments/1/refunds", fields{Price})
						if err != nil {
							return Answer{}, err
						}
						_, err = w.ledger.Do(ctx, req, func(context.Context, *idempotency.Tx) (idempotency.Response, error) {
							return created(receipt{}), nil
						})
						return Answer{}, err
					case 2, 3:
						return w.buyLocal(ctx, theKey, 900000, nil)
					}
					return w.buyLocal(ctx, theKey, Price, nil)
				},
				expect: []expectation{charges("1"), outcomes("1 charged, 1 replayed, 3 × 422"), money("1")},
			},
		},
	}
}
