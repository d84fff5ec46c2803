package web_test

import (
	"context"

	"payonce/idempotency"
)

// noKeys is a ledger in which nothing was ever claimed.
type noKeys struct{}

func (noKeys) KeysOf(context.Context, int, ...string) ([]idempotency.KeyState, error) {
	return nil, nil
}

func (noKeys) History(context.Context, string, ...idempotency.Key) ([]idempotency.Entry, error) {
	return nil, nil
}

func (noKeys) HistoryOf(context.Context, []idempotency.KeyState) ([]idempotency.Entry, error) {
	return nil, nil
}

func (noKeys) Marks(_ context.Context, scopes ...string) (map[string]string, error) {
	return map[string]string{}, nil
}
