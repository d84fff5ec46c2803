package idempotency

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The reaper removes finished keys, and makes rows vanish under those who look
// for them.
func TestReaper(t *testing.T) {
	t.Parallel()
	const retention = 72 * time.Hour

	t.Run("RemovesFinishedKeysOnly", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2, noWait)
		for _, age := range []string{"old", "young"} {
			mustRecord(t, l, mustClaim(t, l, purchase(Key(age+" completed"), 4900)))
			mustRelease(t, l, mustClaim(t, l, purchase(Key(age+" retryable"), 4900)))
			mustClaim(t, l, purchase(Key(age+" in progress"), 4900))
			unknown := mustClaim(t, l, purchase(Key(age+" unknown"), 4900))
			_, err := l.GiveUp(t.Context(), unknown, "called")
			require.NoError(t, err)
		}
		d.age("old %", "73 hours") // the leases, too, ended longer ago than the retention
		d.age("young %", "71 hours")

		result, err := l.ReapOnce(t.Context(), Reap{Retention: retention})
		require.NoError(t, err)
		require.Equal(t, ReapResult{Keys: 2, History: 4}, result)
		for _, gone := range []Key{"old completed", "old retryable"} {
			require.Empty(t, d.keyRow(gone))
			require.Empty(t, d.history(gone))
		}
		require.Equal(t, 6, ask[int](d, `SELECT count(*) FROM idempotency_keys`))
		require.Equal(t, 2, ask[int](d, `SELECT count(*) FROM idempotency_keys WHERE key LIKE 'old%' AND status = 'in_progress'`),
			"a key in progress may have charged somebody, however old it is")

		// A key used again after that is a new request, whatever it asks for.
		require.Equal(t, 1, mustClaim(t, l, purchase("old completed", 900000)).Attempt)
	})

	t.Run("CountsFromTheLastChange", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		c := mustClaim(t, l, purchase("k", 4900))
		d.age("k", "30 days")
		mustRecord(t, l, c) // a late owner, today
		result, err := l.ReapOnce(t.Context(), Reap{Retention: retention})
		require.NoError(t, err)
		require.Zero(t, result)
	})

	t.Run("KeepsWhatTheBusinessStillNeeds", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		for _, key := range []Key{"k1", "k2"} {
			mustRecord(t, l, mustClaim(t, l, purchase(key, 4900)))
		}
		d.age("k%", "30 days")
		d.exec(`INSERT INTO orders (account, id) VALUES ('acct_1', 'k1')`)
		keep := `EXISTS (SELECT 1 FROM orders o WHERE o.account = k.scope AND o.id = k.key)`
		result, err := l.ReapOnce(t.Context(), Reap{Retention: retention, Keep: keep})
		require.NoError(t, err)
		require.Equal(t, 1, result.Keys)
		require.NotEmpty(t, d.keyRow("k1"))
	})

	t.Run("TakesBatchesOldestFirst", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		for _, key := range []Key{"k1", "k2", "k3"} {
			mustRecord(t, l, mustClaim(t, l, purchase(key, 4900)))
		}
		d.age("k1", "30 days")
		d.age("k2", "40 days")
		d.age("k3", "50 days")
		for _, gone := range []Key{"k3", "k2", "k1"} {
			require.NotEmpty(t, d.keyRow(gone))
			result, err := l.ReapOnce(t.Context(), Reap{Retention: retention, Limit: 1})
			require.NoError(t, err)
			require.Equal(t, 1, result.Keys)
			require.Empty(t, d.keyRow(gone))
		}
	})

	t.Run("WaitsForNobody", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		for _, key := range []Key{"held", "free"} {
			mustRelease(t, l, mustClaim(t, l, purchase(key, 4900)))
		}
		d.age("%", "30 days")
		_, err := l.claim(t.Context(), purchase("held", 4900), newOwner(), Retaken, func(ctx context.Context, tx *Tx, _ Claim) error {
			if err := tx.Flush(ctx); err != nil {
				return err
			}
			soon, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			result, err := l.ReapOnce(soon, Reap{Retention: retention})
			require.NoError(t, err, "it waited for a key that somebody holds")
			require.Equal(t, 1, result.Keys)
			return nil
		})
		require.NoError(t, err)
		require.NotEmpty(t, d.keyRow("held"))
		require.Empty(t, d.keyRow("free"))
	})

	t.Run("ReapersShareTheWork", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(8)
		const keys = 40
		for range keys {
			mustRecord(t, l, mustClaim(t, l, purchase(Key(newOwner()), 4900)))
		}
		d.age("%", "30 days")
		removed, errs := make([]int, 8), make([]error, 8)
		together(8, func(w int) {
			for errs[w] == nil {
				result, err := l.ReapOnce(context.Background(), Reap{Retention: retention, Limit: 3})
				if errs[w] = err; result.Keys == 0 {
					return
				}
				removed[w] += result.Keys
			}
		})
		total := 0
		for w := range removed {
			require.NoError(t, errs[w])
			total += removed[w]
		}
		// Who finds everything locked stops early, so a round may be left.
		last, err := l.ReapOnce(t.Context(), Reap{Retention: retention})
		require.NoError(t, err)
		require.Equal(t, keys, total+last.Keys, "each key is removed once")
	})

	t.Run("RefusesToForgetBeforeTheProvider", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		_, err := d.ledger(2).ReapOnce(t.Context(), Reap{Retention: MinRetention - time.Second})
		require.ErrorContains(t, err, "Retention")
	})
}

// age makes the keys like pattern older: everything about them happened longer ago.
func (d *database) age(pattern, by string) {
	d.t.Helper()
	d.exec(`UPDATE idempotency_keys SET created_at = created_at - $2::interval, claimed_at = claimed_at - $2::interval,
		completed_at = completed_at - $2::interval, lease_until = lease_until - $2::interval WHERE key LIKE $1`, pattern, by)
}
