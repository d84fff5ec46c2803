package idempotency

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// errNotSent: the provider never heard of the call.
var errNotSent = errors.New("not sent")

// exampleProvider stands for a payment provider that knows idempotency keys.
func exampleProvider(_ context.Context, downstreamKey string, amount int) (charge string, err error) {
	if downstreamKey == "" || amount <= 0 {
		return "", errNotSent
	}
	return "ch_1", nil
}

// examplePool gives the example a schema of its own, and a function that drops
// it: an example has no testing.T.
func examplePool() (pool *pgxpool.Pool, drop func()) {
	e := &exampleRun{}
	return newDatabase(e).direct, e.end
}

// exampleRun is a run of an example, to what wants a test.
type exampleRun struct {
	testing.TB
	cleanups []func()
}

func (*exampleRun) Helper()                           {}
func (e *exampleRun) Cleanup(f func())                { e.cleanups = append(e.cleanups, f) }
func (*exampleRun) Errorf(format string, args ...any) { panic(errors.New(format)) }
func (*exampleRun) FailNow()                          { panic("the example has failed") }

func (e *exampleRun) end() {
	for i := len(e.cleanups) - 1; i >= 0; i-- {
		e.cleanups[i]()
	}
}
