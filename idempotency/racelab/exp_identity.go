package racelab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// claimHashed claims a key with a hash of the request beside it.
const (
	hashedTable = `
	CREATE TABLE keys (
		key      text PRIMARY KEY,
		hash     text NOT NULL,
		response text NOT NULL);`
	claimHashed      = `INSERT INTO keys (key, hash, response) VALUES ($1, $2, '') ON CONFLICT (key) DO NOTHING RETURNING key`
	selectHashed     = `SELECT hash, response FROM keys WHERE key = $1`
	theFirstSpelling = `{"amount":4900,"currency":"usd"}`
)

// spellings are the same request, as five honest clients send it.
var spellings = []string{
	theFirstSpelling,
	`{"currency":"usd","amount":4900}`,
	`{ "amount": 4900, "currency": "usd" }`,
	`{"amount":4900.0,"currency":"usd"}`,
	`{"amount":4.9e3,"currency":"usd"}`,
}

// byteHash is a fingerprint that honest retries fail.
func byteHash() *Experiment {
	hashed := func(hash func(body string) string, bodies []string) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (answer Answer, err error) {
			if err := w.inTurn(ctx); err != nil {
				return Answer{}, err
			}
			print := hash(bodies[w.n-1])
			err = w.transaction(ctx, begin, func() error {
				var mine, found, response string
				won, err := w.read(ctx, claimHashed, []any{theKey, print}, &mine)
				if err != nil {
					return err
				}
				if !won {
					if _, err := w.read(ctx, selectHashed, []any{theKey}, &found, &response); err != nil {
						return err
					}
					if answer = told(Replayed, 200, []byte(response)); found != print {
						answer = Answer{Kind: Mismatch, Status: 422}
					}
					return nil
				}
				var id int64
				if _, err := w.read(ctx, insertCharge, []any{theKey, Price}, &id); err != nil {
					return err
				}
				body := receipt{id, Price}.body()
				answer = told(Charged, 201, body)
				_, err = w.statement(ctx, rememberKey, theKey, string(body))
				return err
			})
			return answer, err
		}
	}
	ofBytes := func(body string) string {
		sum := sha256.Sum256([]byte(payments + "\n" + body))
		return hex.EncodeToString(sum[:])
	}
	stamped := []string{`{"amount":4900,"sent_at":"09:00:00"}`, `{"amount":4900,"sent_at":"09:00:03"}`}
	lanes := []string{"as sent first", "other order", "white space", "4900.0", "4.9e3"}
	return &Experiment{
		Name: "byte-hash", Title: "The hash of what?", Chapter: TheBookkeeping,
		About: "Hashing the bytes of the body refuses honest retries: the same members in another order, white space, 4900.0 for 4900. Hashing every field refuses them, too, once a client sends a time stamp. " +
			"So the fingerprint is taken of the canonical form (RFC 8785) of the fields that the operation declares.",
		Barriers:   "None: one request follows the other.",
		HoldsWhen:  "The fields are declared, and canonicalised before they are hashed.",
		BreaksWhen: "Anything that may change between two tries of one request is part of the hash.",
		Workers:    parties(5), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "bytes", Title: "A hash of the bytes", Sort: Broken, Should: 1, Lanes: lanes, AlwaysHolds: true,
				About:  "Four honest retries are told that they are another request.",
				SQL:    []Line{fault(claimHashed), note("$2: sha256 of the body as it came"), plain(selectHashed)},
				tables: hashedTable, work: hashed(ofBytes, spellings),
				expect: []expectation{charges("1"), outcomes("1 charged, 4 × 422"), money("1")},
			},
			{
				Name: "every-field", Title: "A hash of every field", Sort: Broken, Should: 1, Lanes: []string{"first try", "3 s later"}, AlwaysHolds: true,
				About:  "The client puts the time of sending into the body, so every retry is another request.",
				SQL:    []Line{fault(claimHashed), note("$2: sha256 of all members, canonical"), plain(selectHashed)},
				tables: hashedTable,
				work: hashed(func(body string) string {
					print, err := idempotency.NewFingerprint(payments, json.RawMessage(body))
					if err != nil {
						panic("racelab: bug: " + err.Error())
					}
					return hex.EncodeToString(print[:])
				}, stamped),
				expect: []expectation{charges("1"), outcomes("1 charged, 1 × 422"), money("1")},
			},
			{
				Name: "canonical", Title: "The declared fields, canonical", Sort: Right, Should: 1, Lanes: append(lanes[:5:5], "with a time stamp"), AlwaysHolds: true,
				About: "The package's fingerprint: every spelling is the same request. A field that is not declared does not count.",
				SQL:   []Line{plain(ledgerRead), cure(ledgerClaim), note("request_hash: of the declared fields in canonical form")},
				Uses:  usesFinger, ledger: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					body := append(spellings[:5:5], stamped[1])[w.n-1]
					// As an HTTP handler does: what the operation declares is
					// taken from the body, and nothing else.
					var declared struct {
						Amount   json.Number `json:"amount"`
						Currency string      `json:"currency"`
					}
					if err := json.Unmarshal([]byte(body), &declared); err != nil {
						return Answer{}, err
					}
					declared.Currency = "usd" // the account's, where the body does not say
					req, err := request(theAccount, theKey, payments, declared)
					if err != nil {
						return Answer{}, err
					}
					return w.doCharge(ctx, req, Price, nil)
				},
				expect: []expectation{charges("1"), outcomes("1 charged, 5 replayed"), money("1")},
			},
		},
	}
}

// keyScope is whose key it is.
func keyScope() *Experiment {
	accounts := []string{"acct_alice", "acct_mallory"}
	bodies := func(_ context.Context, r *round) error {
		r.figure("the second account was told of charge", "%d", r.answers[1].Charge)
		return nil
	}
	return &Experiment{
		Name: "key-scope", Title: "Whose key it is", Chapter: TheBookkeeping,
		About: "Two accounts use the same key, by accident or because one has seen the other's. With the key alone as primary key the second is answered with the first one's receipt: a leak, and a purchase that never happens. " +
			"With the account in the key they do not meet.",
		Barriers:   "None: one request follows the other.",
		HoldsWhen:  "The primary key is account and key.",
		BreaksWhen: "The space of keys is one for all accounts.",
		Workers:    parties(2), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "one-space", Title: "One space of keys", Sort: Broken, Should: 2, Lanes: accounts, AlwaysHolds: true,
				About: "The second account reads the first one's receipt.",
				SQL:   []Line{fault(claimPlain), plain(selectKey)}, tables: plainTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					return w.replayAnything(ctx, theKey, Price)
				},
				after:  bodies,
				expect: []expectation{charges("1"), outcomes("1 charged, 1 replayed"), figure("the second account was told of charge", "1")},
			},
			{
				Name: "scoped", Title: "Scoped by account", Sort: Right, Should: 2, Lanes: accounts, AlwaysHolds: true,
				About: "PRIMARY KEY (scope, key): two accounts, two purchases.",
				SQL:   []Line{cure(ledgerClaim), note("$1 is the account")}, Uses: usesDo, ledger: true,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					req, err := request(accounts[w.n-1], theKey, payments, fields{Price})
					if err != nil {
						return Answer{}, err
					}
					return w.doCharge(ctx, req, Price, nil)
				},
				after:  bodies,
				expect: []expectation{charges("2"), outcomes("2 charged"), figure("the second account was told of charge", "2")},
			},
		},
	}
}
