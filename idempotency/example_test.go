package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A payment in the remote shape: claim, call, record. It is sent twice under one
// key and charged once; under the same key, another amount is refused. In your
// own package the names begin with idempotency.
func Example() {
	pool, drop := examplePool() // a *pgxpool.Pool, with Schema applied to its database
	defer drop()
	ledger, err := New(Config{Pool: pool})
	if err != nil {
		panic(err)
	}
	pay := func(ctx context.Context, key Key, amount int) (Response, error) {
		const operation = "POST /orders/42/payments"
		fingerprint, err := NewFingerprint(operation, map[string]any{"amount": amount})
		if err != nil {
			return Response{}, err
		}
		request := Request{Scope: "acct_1", Key: key, Operation: operation, Fingerprint: fingerprint}

		// Claim. What the claim must bring along (a pending payment) goes where nil stands.
		claim, answer, err := ledger.Claim(ctx, request, nil)
		if err != nil {
			return Response{}, err // 409, 422 or 503: nothing was claimed
		}
		if answer != nil {
			return *answer, nil // a replay
		}

		// Call, with no transaction open. From here on a hang-up changes nothing.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		charge, err := exampleProvider(ctx, "pay:payment_7", amount)
		if errors.Is(err, errNotSent) && claim.Clean() {
			_, err = ledger.Release(ctx, *claim, func(context.Context, *Tx) error { return nil })
			return Response{}, err // 503: try again, with any key
		} else if err != nil {
			_, err = ledger.GiveUp(ctx, *claim, "called")
			return Response{}, err // 503: try again, with this key only
		}

		// Record: the business row and the answer in one transaction.
		return ledger.Record(ctx, *claim, func(_ context.Context, tx *Tx) (Response, error) {
			tx.Queue(`INSERT INTO charges (key, attempt) VALUES ($1, $2)`, claim.Key, claim.Attempt)
			return Response{Status: 201, Type: "application/json", Body: []byte(`{"charge":"` + charge + `"}`)}, nil
		})
	}
	for _, amount := range []int{4900, 4900, 900000} {
		answer, err := pay(context.Background(), "key-of-order-42", amount)
		fmt.Println(answer.Status, string(answer.Body), "replayed:", answer.Replayed, "error:", err)
	}
	// Output:
	// 201 {"charge":"ch_1"} replayed: false error: <nil>
	// 201 {"charge":"ch_1"} replayed: true error: <nil>
	// 0  replayed: false error: idempotency key reused with another request (completed)
}
