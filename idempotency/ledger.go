package idempotency

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The defaults of Config.
const (
	DefaultLease       = 60 * time.Second
	DefaultWait        = time.Second
	DefaultAcquireWait = 2 * time.Second
)

// unknownLease is what is left of a lease whose owner ended its call unknown:
// long enough that a client that retries at once meets a 409 and not the
// provider, short enough that only a dead owner's key waits for a whole lease.
const unknownLease = 2 * time.Second

// Config are the settings of a Ledger.
type Config struct {
	// Pool reaches a PostgreSQL 15 or later with Schema in its search path.
	// Required.
	Pool *pgxpool.Pool
	// Instance names this process in the history. Optional. Default "unnamed".
	Instance string
	// Lease is how long a claim holds if its owner dies. It must be longer
	// than the deadline of the owner's whole call phase, or a living owner is
	// taken over; that is safe, but it costs a second call. Optional. Default
	// DefaultLease.
	Lease time.Duration
	// Wait is how long a duplicate waits for the first request's answer before
	// it is told to come back. Keep it well under the client's own timeout.
	// Negative does not wait. Optional. Default DefaultWait.
	Wait time.Duration
	// AcquireWait is how long a claim waits for a connection. Optional. Default
	// DefaultAcquireWait.
	AcquireWait time.Duration
	// Log gets what cannot be returned to a caller. Optional. Default discards.
	Log *slog.Logger
}

// Ledger is the ledger of keys on one PostgreSQL. Any number of processes may
// use the same one; the database decides between them. Its methods are safe for
// concurrent use.
type Ledger struct {
	pool        *pgxpool.Pool
	instance    string
	lease       time.Duration
	waitFor     time.Duration
	acquireWait time.Duration
	log         *slog.Logger
	watches     watches
	replays     *replayLog
}

// New makes a Ledger. It returns an error if the Config cannot work. Close it
// to write the last replays.
func New(c Config) (*Ledger, error) {
	if c.Pool == nil {
		return nil, errors.New("idempotency: Config.Pool is required")
	}
	l := &Ledger{
		pool: c.Pool, instance: c.Instance, lease: c.Lease, waitFor: c.Wait,
		acquireWait: c.AcquireWait, log: c.Log,
	}
	if l.instance == "" {
		l.instance = "unnamed"
	}
	if l.lease == 0 {
		l.lease = DefaultLease
	}
	if l.lease < unknownLease {
		return nil, fmt.Errorf("idempotency: Config.Lease is %s, and %s is the least", l.lease, unknownLease)
	}
	if l.waitFor == 0 {
		l.waitFor = DefaultWait
	}
	if l.acquireWait == 0 {
		l.acquireWait = DefaultAcquireWait
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.watches.poll = l.read
	l.replays = newReplayLog(l)
	return l, nil
}

// Close writes the replays that are still in memory and stops the writer.
func (l *Ledger) Close(ctx context.Context) error { return l.replays.close(ctx) }

// newOwner makes the token of one request's claim. A second request of the same
// process gets another one: the token tells requests apart, not processes.
func newOwner() string {
	var token [16]byte
	_, _ = rand.Read(token[:]) // crypto/rand.Read never returns an error
	return hex.EncodeToString(token[:])
}
