package racelab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"payonce/idempotency"
)

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
