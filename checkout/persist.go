package checkout

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"payonce/idempotency"
)

// persist runs a record phase again while the database is away, until ctx ends:
// the money has moved, and a takeover that asks for it is dearer than a few
// seconds of patience. After that the outcome is unknown to the client, and the
// key's lease lets the next request find out.
func persist(ctx context.Context, record func() (idempotency.Response, error)) (idempotency.Response, error) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		answer, err := record()
		if err == nil || settledError(err) {
			return answer, err
		}
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR" {
			return answer, errors.Join(ErrOutcomeUnknown, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return answer, errors.Join(ErrOutcomeUnknown, err)
		}
	}
}

// settledError is true for an error that is an answer.
func settledError(err error) bool {
	var conflict *ConflictError
	return errors.As(err, &conflict) || errors.Is(err, idempotency.ErrInProgress)
}
