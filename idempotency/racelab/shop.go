package racelab

import (
	"context"
	"encoding/json"
	"fmt"

	"payonce/idempotency"
)

// The shop of the experiments: one customer, one course, one key.
const (
	theKey     = "order-1042"
	theAccount = "acct_1"
	payments   = "POST /payments"
)

// keysTable is a ledger as it is written first: nothing stands behind it.
const keysTable = `
	CREATE TABLE keys (
		key      text NOT NULL,
		response text NOT NULL);`

// keysWithPrimaryKey is the same with the constraint.
const keysWithPrimaryKey = `
	CREATE TABLE keys (
		key      text PRIMARY KEY,
		response text NOT NULL);`

// The statements of the handlers that keep such a ledger.
const (
	selectKey    = `SELECT response FROM keys WHERE key = $1`
	insertCharge = `INSERT INTO charges (key, amount) VALUES ($1, $2) RETURNING id`
	insertKey    = `INSERT INTO keys (key, response) VALUES ($1, $2)`
)

// The decisive statements of package idempotency, abridged.
const (
	ledgerClaim = `INSERT INTO idempotency_keys (scope, key, ...) VALUES ($1, $2, ...) ON CONFLICT DO NOTHING RETURNING attempt, ...`
	ledgerRead  = `SELECT operation, request_hash, status, ... FROM idempotency_keys WHERE scope = $1 AND key = $2`
	ledgerDone  = `UPDATE idempotency_keys SET status = 'completed', ... WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress'`
	ledgerFence = `SELECT 1 FROM idempotency_keys WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress' FOR UPDATE`
	ledgerTakes = `UPDATE idempotency_keys SET owner = $3, ... WHERE scope = $1 AND key = $2 ... AND status = 'in_progress' AND lease_until < clock_timestamp() RETURNING attempt, ...`
	ledgerRetry = `UPDATE idempotency_keys SET owner = $3, ... WHERE scope = $1 AND key = $2 ... AND status = 'failed_retryable' RETURNING attempt, ...`
)

// receipt is the body of an answer.
type receipt struct {
	Charge int64 `json:"charge"`
	Amount int64 `json:"amount"`
}

func (r receipt) body() []byte {
	body, _ := json.Marshal(r) // two integers cannot fail
	return body
}

// told is the answer whose body is a receipt.
func told(kind Kind, status int, body []byte) Answer {
	var r receipt
	_ = json.Unmarshal(body, &r) // another body has neither field
	return Answer{Kind: kind, Status: status, Body: string(body), Charge: r.Charge, Amount: r.Amount}
}

// fields are what a request for a payment declares.
type fields struct {
	Amount int64 `json:"amount"`
}

// request is a request to the real ledger.
func request(scope, key, operation string, declared any) (idempotency.Request, error) {
	print, err := idempotency.NewFingerprint(operation, declared)
	return idempotency.Request{Scope: scope, Key: idempotency.Key(key), Operation: operation, Fingerprint: print}, err
}

// answered turns an answer of the real ledger into the worker's.
func answered(r idempotency.Response) Answer {
	kind := Charged
	switch {
	case r.Replayed:
		kind = Replayed
	case r.Status == 402:
		kind = Declined
	case r.Status >= 500:
		kind = Failed
	}
	return told(kind, r.Status, r.Body)
}

// buyLocal buys the course in the local shape, through the real ledger: claim,
// charge and record in one transaction. during stands between claim and charge.
func (w *worker) buyLocal(ctx context.Context, key string, amount int64, during func() error) (Answer, error) {
	req, err := request(theAccount, key, payments, fields{amount})
	if err != nil {
		return Answer{}, err
	}
	return w.doCharge(ctx, req, amount, during)
}

// doCharge charges in the one transaction of a request's claim.
func (w *worker) doCharge(ctx context.Context, req idempotency.Request, amount int64, during func() error) (Answer, error) {
	response, err := w.ledger.Do(ctx, req, func(ctx context.Context, tx *idempotency.Tx) (idempotency.Response, error) {
		w.attempts++
		if during != nil {
			if err := during(); err != nil {
				return idempotency.Response{}, err
			}
		}
		var id int64
		if err := tx.QueryRow(ctx, insertCharge, string(req.Key), amount).Scan(&id); err != nil {
			return idempotency.Response{}, err
		}
		return created(receipt{id, amount}), nil
	})
	if err != nil {
		return Answer{}, err
	}
	return answered(response), nil
}

func created(r receipt) idempotency.Response {
	return idempotency.Response{Status: 201, Type: "application/json", Body: r.body()}
}

// claim is the first phase of the remote shape. It gives an answer instead of a
// claim where the key has one.
func (w *worker) claim(ctx context.Context, key string, amount int64) (*idempotency.Claim, Answer, error) {
	req, err := request(theAccount, key, payments, fields{amount})
	if err != nil {
		return nil, Answer{}, err
	}
	claim, response, err := w.ledger.Claim(ctx, req, nil)
	if err != nil {
		return nil, Answer{}, err
	}
	if response != nil {
		return nil, answered(*response), nil
	}
	w.attempts++
	return claim, Answer{}, nil
}

// record is the last phase of the remote shape.
func (w *worker) record(ctx context.Context, c *idempotency.Claim, answer idempotency.Response) (Answer, error) {
	response, err := w.ledger.Record(ctx, *c, func(context.Context, *idempotency.Tx) (idempotency.Response, error) {
		return answer, nil
	})
	if err != nil {
		return Answer{}, err
	}
	return answered(response), nil
}

// buyRemote buys the course in the remote shape, through the real ledger:
// claim, call the provider under a downstream key, record. during is the time
// that the call takes.
func (w *worker) buyRemote(ctx context.Context, key string, amount int64, during func() error) (Answer, error) {
	claim, answer, err := w.claim(ctx, key, amount)
	if claim == nil {
		return answer, err
	}
	id, err := w.provider.charge(ctx, w, downstream(key), amount, during)
	if err != nil {
		return Answer{}, err
	}
	return w.record(ctx, claim, created(receipt{id, amount}))
}

func downstream(key string) string { return fmt.Sprintf("pay:%s:%s", theAccount, key) }

// lapse moves the lease of every key into the past, in place of waiting for it:
// the database's clock judges leases, so the row is what counts.
func (w *worker) lapse(ctx context.Context) error {
	w.happened(EventLapse, "the lease lapses: the lab moves it into the past")
	return w.lab.exec(context.WithoutCancel(ctx), `
		UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '1 second' WHERE status = 'in_progress'`)
}

// killed ends a worker whose process died.
func (w *worker) killed(note string) (Answer, error) {
	w.happened(EventKilled, note)
	return Answer{Kind: Killed, Note: note}, nil
}
