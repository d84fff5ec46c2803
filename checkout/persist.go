package checkout

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"payonce/idempotency"
)

// passing are PostgreSQL's errors that a later run of the same transaction need
// not meet: a lock or a statement that took too long, a server that is out of
// memory, disk or connections, or one that is read-only for the moment, as in a
// failover.
var passing = []string{"55P03", "57014", "53000", "53100", "53200", "53300", "25006"}

// giveUpTimeout bounds the last thing that is done with a claim whose record
// phase failed.
const giveUpTimeout = 2 * time.Second

// LongestAnswer is the longest that a payment or a refund takes to be answered
// by a shop that waits so long for a duplicate and gives the call phase
// providerTimeout: the wait, then a takeover's claim, its call, its record, and
// giving the claim back. A server must not cut its answers off before.
func LongestAnswer(wait, providerTimeout time.Duration) time.Duration {
	return wait + claimTimeout + providerTimeout + recordTimeout + giveUpTimeout
}

// claimTimeout is ample for a claim, which waits for a connection and for a lock
// that is held for a transaction at most.
const claimTimeout = 5 * time.Second

// persist runs a record phase again while the database is away or busy, until
// ctx ends: the money has moved, and a takeover that asks for it is dearer than
// a few seconds of patience. After that the outcome is unknown to the client:
// the lease is shortened, if the database hears that at least, and the next
// request finds out.
//
// The error is the record phase's if that is an answer, else it wraps
// ErrOutcomeUnknown.
func (s *Service) persist(ctx context.Context, claim idempotency.Claim, record func() (idempotency.Response, error)) (idempotency.Response, error) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		answer, err := record()
		if err == nil || settledError(err) {
			return answer, err
		}
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR" && !slices.Contains(passing, refused.Code) {
			return s.unrecorded(ctx, claim, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return s.unrecorded(ctx, claim, err)
		}
	}
}

// unrecorded gives the claim back after a record phase that failed. If somebody
// else recorded the outcome meanwhile, that is the answer.
func (s *Service) unrecorded(ctx context.Context, claim idempotency.Claim, err error) (idempotency.Response, error) {
	ctx, done := detach(ctx, giveUpTimeout)
	defer done()
	answer, gaveUp := s.ledger.GiveUp(ctx, claim, pointCalled)
	if gaveUp == nil && answer != nil {
		return *answer, nil
	}
	return idempotency.Response{}, errors.Join(ErrOutcomeUnknown, err)
}

// settledError is true for an error that is an answer.
func settledError(err error) bool {
	var conflict *ConflictError
	return errors.As(err, &conflict) || errors.Is(err, idempotency.ErrInProgress)
}
