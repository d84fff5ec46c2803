package idempotency

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A lease bounds how long a dead owner blocks a key, and the database's clock
// judges it.
func TestTakeover(t *testing.T) {
	t.Parallel()

	t.Run("LiveLeaseIsNotTakenOver", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		mustClaim(t, d.ledger(2), purchase("k", 4900))
		// Another process with the shortest lease of all has no say in it.
		_, _, err := d.ledger(2, noWait, func(c *Config) { c.Lease = 2 * time.Second }).Claim(t.Context(), purchase("k", 4900), nil)
		require.ErrorIs(t, err, ErrInProgress)
	})

	t.Run("LapsedLeaseGetsOneNewOwner", func(t *testing.T) {
		t.Parallel()
		for _, workers := range []int{8, 64} {
			d := newDatabase(t)
			processes := []*Ledger{d.ledger(4, noWait), d.ledger(4, noWait)}
			mustClaim(t, processes[0], purchase("k", 4900))
			d.lapse("k")
			claims, errs := make([]*Claim, workers), make([]error, workers)
			together(workers, func(w int) {
				claims[w], _, errs[w] = processes[w%2].Claim(context.Background(), purchase("k", 4900), nil)
			})
			owners := 0
			for w := range workers {
				if claims[w] == nil {
					require.ErrorIs(t, errs[w], ErrInProgress)
					continue
				}
				owners++
				require.Equal(t, TakenOver, claims[w].Origin)
				require.Equal(t, 2, claims[w].Attempt)
			}
			require.Equal(t, 1, owners)
			require.Equal(t, []string{"claimed", "taken_over"}, d.history("k"))
		}
	})

	t.Run("ResumesWhereTheLastOwnerWas", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		req := purchase("k", 4900)
		req.Params = []byte("as first sent")
		first := mustClaim(t, l, req)
		require.NoError(t, l.Checkpoint(t.Context(), first, "intent_created", func(*Tx) {}))
		d.lapse("k")
		d.exec(`UPDATE idempotency_keys SET claimed_at = claimed_at - interval '10 minutes'`)

		req.Params = []byte("rebuilt by a new release")
		c := mustClaim(t, l, req)
		require.Equal(t, TakenOver, c.Origin)
		require.False(t, c.Clean(), "its last owner may have sent something")
		require.Equal(t, 2, c.Attempt)
		require.Equal(t, 1, c.Takeovers)
		require.Equal(t, "intent_created", c.RecoveryPoint)
		require.Equal(t, []byte("as first sent"), c.Params, "the parameters are frozen")
		require.NotEqual(t, first.Owner, c.Owner)
		require.GreaterOrEqual(t, c.Age, 10*time.Minute, "counted from the claim, not from the takeover")

		d.lapse("k")
		require.Equal(t, 2, mustClaim(t, l, req).Takeovers)
	})

	t.Run("RetryableIsRetakenClean", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		first := mustClaim(t, l, purchase("k", 4900))
		require.NoError(t, l.Checkpoint(t.Context(), first, "intent_created", func(*Tx) {}))
		d.exec(`UPDATE idempotency_keys SET claimed_at = claimed_at - interval '10 minutes'`)
		mustRelease(t, l, first)

		c := mustClaim(t, l, purchase("k", 4900))
		require.Equal(t, Retaken, c.Origin)
		require.True(t, c.Clean())
		require.Equal(t, 2, c.Attempt)
		require.Zero(t, c.Takeovers)
		require.Equal(t, PointClaimed, c.RecoveryPoint)
		require.Less(t, c.Age, 10*time.Minute, "counted from the new claim")
		mustRecord(t, l, c)
		require.Equal(t, []string{"claimed", "checkpoint", "released", "retaken", "completed"}, d.history("k"))
	})

	t.Run("RetryableGetsOneNewOwner", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(8)
		mustRelease(t, l, mustClaim(t, l, purchase("k", 4900)))
		answers, errs := make([]Response, 64), make([]error, 64)
		together(64, func(w int) {
			claim, answer, err := l.Claim(context.Background(), purchase("k", 4900), nil)
			if claim != nil {
				answers[w], errs[w] = l.Record(context.Background(), *claim, recordPaid(*claim))
			} else if errs[w] = err; answer != nil {
				answers[w] = *answer
			}
		})
		for w := range answers {
			require.NoError(t, errs[w])
			require.Equal(t, paid(2).Body, answers[w].Body)
		}
		require.Equal(t, 1, d.charges("k"))
	})

	t.Run("UnknownShortensTheLease", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2, noWait)
		c := mustClaim(t, l, purchase("k", 4900))
		answer, err := l.GiveUp(t.Context(), c, "called")
		require.NoError(t, err)
		require.Nil(t, answer)
		require.True(t, ask[bool](d, `SELECT status = 'in_progress' AND recovery_point = 'called' AND lease_until <= clock_timestamp() + interval '2 s' FROM idempotency_keys`))
		require.Equal(t, []string{"claimed", "unknown"}, d.history("k"))

		d.lapse("k")
		again := mustClaim(t, l, purchase("k", 4900))
		require.Equal(t, "called", again.RecoveryPoint)
		require.False(t, again.Clean())
	})

	t.Run("UnknownNeverLengthensTheLease", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		c := mustClaim(t, l, purchase("k", 4900))
		d.lapse("k")
		_, err := l.GiveUp(t.Context(), c, "called")
		require.NoError(t, err)
		require.True(t, ask[bool](d, `SELECT lease_until < clock_timestamp() FROM idempotency_keys`))
		require.Equal(t, TakenOver, mustClaim(t, l, purchase("k", 4900)).Origin)
	})
}
