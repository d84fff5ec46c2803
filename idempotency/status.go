package idempotency

// Status is the state of a key.
type Status string

// The states of a key. completed never changes.
const (
	// InProgress: an owner has claimed the key and may be at its side effect.
	// Its lease bounds how long a dead owner blocks the key.
	InProgress Status = "in_progress"
	// Completed: the outcome is definitive and the answer is stored; a
	// declined card is as definitive as a charged one.
	Completed Status = "completed"
	// FailedRetryable: nothing happened and nothing can. The next request with
	// the key may claim it again.
	FailedRetryable Status = "failed_retryable"
)

// Origin tells how a claim was won.
type Origin string

// The origins of a claim. A claim that was taken over is not clean: an earlier
// owner may have sent something whose outcome nobody knows.
const (
	Fresh     Origin = "claimed"    // by the INSERT, nobody was here before
	Retaken   Origin = "retaken"    // from failed_retryable, by the conditional UPDATE
	TakenOver Origin = "taken_over" // from a lapsed lease, by the conditional UPDATE
)

// PointClaimed is the recovery point of a fresh claim. The points after it are
// named by the operation; a takeover resumes from the last one stored.
const PointClaimed = "claimed"
