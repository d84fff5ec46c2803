package idempotency

// Status is the state of a key.
type Status string

