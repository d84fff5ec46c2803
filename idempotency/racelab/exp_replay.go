package racelab

import (
	"context"
	"encoding/json"
	"fmt"
)

const (
	jsonbTable = `
	CREATE TABLE keys (
		key      text PRIMARY KEY,
		response jsonb);`
	claimJSONB    = `INSERT INTO keys (key) VALUES ($1) ON CONFLICT (key) DO NOTHING RETURNING key`
	rememberJSONB = `UPDATE keys SET response = $2::jsonb WHERE key = $1`
	selectJSONB   = `SELECT response::text FROM keys WHERE key = $1`
)

// bigID is the first integer that a float64, and so JavaScript's number, cannot
// hold.
const bigID = 1<<53 + 1

// replayBytes asks whether the first answer and the replays are the same.
func replayBytes() *Experiment {
	// replay is a correct claim; fresh and again say how the answer is written
	// the first time, and how what was stored is written afterwards.
	replay := func(claim, remember, look string, fresh func(receipt) (sent, stored string), again func(stored string) (string, error)) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (answer Answer, err error) {
			err = w.transaction(ctx, begin, func() error {
				var mine, stored string
				won, err := w.read(ctx, claim, []any{theKey}, &mine)
				if err != nil {
					return err
				}
				if !won {
					if _, err := w.read(ctx, look, []any{theKey}, &stored); err != nil {
						return err
					}
					body, err := again(stored)
					answer = told(Replayed, 200, []byte(body))
					return err
				}
				if err := w.hold(ctx); err != nil {
					return err
				}
				var id int64
				if _, err := w.read(ctx, insertCharge, []any{theKey, Price}, &id); err != nil {
					return err
				}
				sent, kept := fresh(receipt{id, Price})
				answer = told(Charged, 201, []byte(sent))
				_, err = w.statement(ctx, remember, theKey, kept)
				return err
			})
			return answer, err
		}
	}
	asStored := func(stored string) (string, error) { return stored, nil }
	both := func(r receipt) (string, string) { return string(r.body()), string(r.body()) }
	bigIDs := func(ctx context.Context, r *round) error {
		return r.lab.exec(ctx, fmt.Sprintf("SELECT setval('charges_id_seq', %d, false)", int64(bigID)))
	}
	differ := []expectation{charges("1"), outcomes("1 charged, {n-1} replayed"), money("1"), figure(differing, "2")}
	return &Experiment{
		Name: "replay-bytes", Title: "The same answer", Chapter: TheBookkeeping,
		About: "A replay must be the first answer, byte for byte. A jsonb column parses what it stores and writes it anew, in its own order. A fresh path that is encoded by hand drifts from what is stored: 1 once, and \"1\" seven times. " +
			"In Node the driver hands an int8 over as text. In Go it is an int64, and the trap stands elsewhere: whoever decodes the stored JSON into any gets a float64, and a large id comes back as another one.",
		Barriers:   "The winner goes on when PostgreSQL is seen to make the others wait.",
		HoldsWhen:  "Status, media type and bytes are stored, and the first answer is made of them, too.",
		BreaksWhen: "Anything between the stored answer and the client parses it.",
		Workers:    manyWorkers, Trials: fewTrials, HasWindow: true,
		Variants: []Variant{
			{
				Name: "jsonb", Title: "Through jsonb", Sort: Broken, Should: 1, AlwaysHolds: true,
				About:  "jsonb keeps neither order nor white space: the replays are other bytes than the first answer.",
				SQL:    []Line{plain(begin), plain(claimJSONB), plain(insertCharge), fault(rememberJSONB), plain("COMMIT"), note("a replay:"), plain(selectJSONB)},
				tables: jsonbTable, work: replay(claimJSONB, rememberJSONB, selectJSONB, both, asStored),
				after: differentAnswers, expect: differ,
			},
			{
				Name: "encoded-again", Title: "The fresh path by hand", Sort: Broken, Should: 1, AlwaysHolds: true,
				About:  "The stored answer says \"1\", as the driver gave it; somebody has made it a number on the fresh path only.",
				SQL:    []Line{plain(begin), plain(claimPlain), plain(insertCharge), note(`stored: {"chargeId":"1"}, sent: {"chargeId":1}`), fault(rememberKey), plain("COMMIT"), note("a replay:"), plain(selectKey)},
				tables: plainTable,
				work: replay(claimPlain, rememberKey, selectKey, func(r receipt) (string, string) {
					return fmt.Sprintf(`{"chargeId":%d}`, r.Charge), fmt.Sprintf(`{"chargeId":"%d"}`, r.Charge)
				}, asStored),
				after: differentAnswers, expect: differ,
			},
			{
				Name: "decoded-to-any", Title: "Decoded into any", Sort: Broken, Should: 1, AlwaysHolds: true,
				About:  "Go's own trap: the replay decodes the stored JSON into any and encodes it again. The id is above 2^53, and comes back as its neighbour.",
				SQL:    []Line{plain(begin), plain(claimPlain), plain(insertCharge), plain(rememberKey), plain("COMMIT"), note("a replay, decoded into any and encoded again:"), fault(selectKey)},
				tables: plainTable, prepare: bigIDs,
				work: replay(claimPlain, rememberKey, selectKey, both, func(stored string) (string, error) {
					var decoded any
					if err := json.Unmarshal([]byte(stored), &decoded); err != nil {
						return "", err
					}
					encoded, err := json.Marshal(decoded)
					return string(encoded), err
				}),
				after: differentAnswers,
				expect: append(differ[:3:3], figure(differing, "2"),
					figure(named, "9007199254740992, 9007199254740993")),
			},
			{
				Name: "stored-bytes", Title: "The stored bytes", Sort: Right, Should: 1, AlwaysHolds: true,
				About: "The package stores the bytes that it sends, and sends the bytes that it stored.",
				SQL:   []Line{plain(ledgerClaim), plain(insertCharge), cure(ledgerDone), note("response_body is bytea"), plain(ledgerRead)},
				Uses:  &Code{"idempotency/response.go", "Response"}, ledger: true, prepare: bigIDs,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					return w.buyLocal(ctx, theKey, Price, func() error { return w.hold(ctx) })
				},
				after: differentAnswers,
				expect: append(differ[:3:3], figure(differing, "1"),
					figure(named, "9007199254740993")),
			},
		},
	}
}
