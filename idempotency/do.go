package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Do runs a local operation: claim, work and record in one transaction. work
// adds the business rows through tx and gives the answer; its error rolls
// everything back, leaves no trace of the key, and is returned. Duplicates wait
// on the unique index and replay; if the winner rolls back, one of them becomes
// the owner.
//
// The other errors are those of Claim; after ErrCommitUnknown the work may have
// been done, and the same request with the same key finds out. work may run
// more than once.
func (l *Ledger) Do(ctx context.Context, req Request, work func(ctx context.Context, tx *Tx) (Response, error)) (Response, error) {
	owner := newOwner()
	req.arrived = time.Now()
	var doubt error // of the last try's COMMIT
	for try := 1; ; try++ {
		found, exists, err := l.read(ctx, req.id())
		switch {
		case err != nil && doubt != nil:
			return Response{}, unresolved(err)
		case err != nil:
			return Response{}, unclaimed(fmt.Errorf("reading the key: %w", err))
		case exists && !found.sameRequest(req):
			return Response{}, found.reused()
		case exists && found.Status == Completed && found.Owner == owner:
			return found.Response, nil // the COMMIT in doubt was ours, and it happened
		case exists && found.Status == Completed:
			return *l.replay(req, found), nil
		case exists:
			return Response{}, found.inProgress()
		case try > claimTries && doubt != nil:
			return Response{}, doubt
		case try > claimTries:
			return Response{}, ErrClaimContended
		}
		c := Claim{Request: req, Owner: owner, Origin: Fresh}
		answer, err := l.do(ctx, &c, work)
		switch {
		case err == nil:
			return answer, nil
		case errors.Is(err, ErrCommitUnknown):
			// The next INSERT waits for the transaction in doubt, as no SELECT
			// does, and either takes its place or finds the row that is ours.
			doubt = err
		case errors.Is(err, errNotGranted):
			doubt = nil // the INSERT has waited for it
		case doubt != nil && c.Attempt == 0:
			return Response{}, unresolved(err)
		default:
			return Response{}, unclaimed(err)
		}
	}
}

// do runs the one transaction of a local operation.
func (l *Ledger) do(ctx context.Context, c *Claim, work func(ctx context.Context, tx *Tx) (Response, error)) (answer Response, err error) {
	err = l.transact(ctx, l.acquireWait, func(tx *Tx) error {
		l.queueGrant(tx, c)
		if err := tx.Flush(ctx); err != nil { // here a duplicate waits for the winner
			return err
		}
		if answer, err = work(ctx, tx); err != nil {
			return err
		}
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		queueComplete(tx, *c, answer)
		l.queueHistory(tx, *c, "completed", answer, 0)
		return nil
	})
	return answer, err
}
