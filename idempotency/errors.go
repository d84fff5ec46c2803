package idempotency

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrKeyMissing: neither the header nor the field holds a key. By ParseKey.
	ErrKeyMissing = errors.New("idempotency key missing")
	// ErrKeyMalformed: the key is not 1 to 255 bytes of printable ASCII, or the
	// request names more than one key. By ParseKey.
	ErrKeyMalformed = errors.New("idempotency key malformed")
	// ErrKeyReused: the key was claimed by a request with another fingerprint.
	// As a *ReusedError, by Claim and Do.
	ErrKeyReused = errors.New("idempotency key reused with another request")
	// ErrInProgress: the key's owner is still at work, or ended without a known
	// outcome moments ago. As an *InProgressError, by Claim and Do; and by
	// Record, Release and GiveUp of an owner who lost its claim to one at work.
	ErrInProgress = errors.New("request in progress")
	// ErrClaimContended: the key's row came and went three times while it was
	// being claimed. By Claim and Do.
	ErrClaimContended = errors.New("claim contended")
	// ErrOverloaded: no connection became free in time, or the database went
	// away before COMMIT. Nothing was claimed. By Claim and Do.
	ErrOverloaded = errors.New("the database has no time")
	// ErrFenced: the claim was lost to another owner, or the key was completed
	// by someone else. Nothing was written. By Checkpoint and Hold; by Record,
	// Release and GiveUp only if the key's row is gone altogether, since
	// otherwise they answer from it.
	ErrFenced = errors.New("claim lost")
	// ErrCommitUnknown: the connection broke during COMMIT. Claim, Do, Record
	// and Release find out what became of it, and return it only if they
	// cannot, because the database is away; then the key may be claimed, or
	// completed, and only the same request with the same key is safe. By
	// Checkpoint and Hold at once, after which the row decides.
	ErrCommitUnknown = errors.New("commit outcome unknown")
)

// ReusedError is ErrKeyReused, with what became of the request that has the key.
type ReusedError struct {
	// Status is in_progress, completed or failed_retryable.
	Status Status
	// Operation is the one that the key was claimed for.
	Operation string
	// ResponseStatus is the stored HTTP status; 0 unless completed.
	ResponseStatus int
}

func (e *ReusedError) Error() string { return ErrKeyReused.Error() + " (" + string(e.Status) + ")" }

// Unwrap gives ErrKeyReused.
func (e *ReusedError) Unwrap() error { return ErrKeyReused }

// Settled is true if the request that has the key has ended for good: a stored
// 202 still waits for something, and an owner at work may yet do anything.
func (e *ReusedError) Settled() bool { return e.Status != InProgress && e.ResponseStatus != 202 }

// InProgressError is ErrInProgress, with when to come back.
type InProgressError struct {
	// RetryAfter is whole seconds, at least one: one while the owner lives and
	// calls, what is left of the lease once the outcome is unknown.
	RetryAfter time.Duration
}

func (e *InProgressError) Error() string { return ErrInProgress.Error() }

// Unwrap gives ErrInProgress.
func (e *InProgressError) Unwrap() error { return ErrInProgress }

// unresolved is what err means after a COMMIT in doubt: nobody could look. It
// does not wrap err, which may be ErrOverloaded, and that says that nothing was
// claimed.
func unresolved(err error) error {
	return fmt.Errorf("%w: looking it up: %s", ErrCommitUnknown, err.Error())
}
