package idempotency

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What happened to a key is written in the transactions that exist anyway, so
// the picture survives a kill; replays follow in batches.
func TestHistory(t *testing.T) {
	t.Parallel()

	t.Run("TellsTheWholeLife", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		east := d.ledger(2, func(c *Config) { c.Instance = "east" })
		west := d.ledger(2, func(c *Config) { c.Instance = "west" })
		c := mustClaim(t, east, purchase("k", 4900))
		mustRelease(t, east, c)
		c = mustClaim(t, east, purchase("k", 4900))
		require.NoError(t, east.Checkpoint(t.Context(), c, "intent_created", func(*Tx) {}))
		_, err := east.GiveUp(t.Context(), c, "called")
		require.NoError(t, err)
		d.lapse("k")
		mustRecord(t, west, mustClaim(t, west, purchase("k", 4900)))
		_, _, err = west.Claim(t.Context(), purchase("k", 4900), nil)
		require.NoError(t, err)
		require.NoError(t, west.Close(t.Context()), "writes the replay")

		require.Equal(t, []string{
			"claimed 1 east", "released 1 east", "retaken 2 east", "checkpoint 2 east intent_created",
			"unknown 2 east", "taken_over 3 west", "completed 3 west 201", "replayed 3 west",
		}, d.lines("k"))
		require.Equal(t, 3, ask[int](d, `SELECT count(DISTINCT owner) FROM key_history`), "one token a claim")
		require.NotContains(t, d.lines("k")[0], c.Owner)
	})

	t.Run("KeepsAtMost64ReplaysOfAKey", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		for range 2 { // also across processes
			l := d.ledger(2)
			for _, key := range []Key{"k1", "k2"} {
				if d.keyRow(key) == "" {
					mustRecord(t, l, mustClaim(t, l, purchase(key, 4900)))
				}
			}
			for range 50 {
				_, _, err := l.Claim(t.Context(), purchase("k1", 4900), nil)
				require.NoError(t, err)
			}
			_, _, err := l.Claim(t.Context(), purchase("k2", 4900), nil)
			require.NoError(t, err)
			require.NoError(t, l.Close(t.Context()))
			require.NoError(t, l.Close(t.Context()), "a second time")
		}
		require.Equal(t, 64, ask[int](d, `SELECT count(*) FROM key_history WHERE key = 'k1' AND what = 'replayed'`))
		require.Equal(t, 2, ask[int](d, `SELECT count(*) FROM key_history WHERE key = 'k2' AND what = 'replayed'`))
	})

	t.Run("ReplaysAreWrittenWithoutClosing", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustRecord(t, l, mustClaim(t, l, purchase("k", 4900)))
		_, _, err := l.Claim(t.Context(), purchase("k", 4900), nil)
		require.NoError(t, err)
		eventually(t, "the replay is written", func() bool { return len(d.history("k")) == 3 })
		require.Equal(t, []string{"claimed", "completed", "replayed"}, d.history("k"))
	})

	t.Run("NothingIsLeftOfAReapedKey", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustRecord(t, l, mustClaim(t, l, purchase("k", 4900)))
		_, _, err := l.Claim(t.Context(), purchase("k", 4900), nil)
		require.NoError(t, err)
		d.exec(`DELETE FROM key_history`)
		d.exec(`DELETE FROM idempotency_keys`) // before the replay is written
		require.NoError(t, l.Close(t.Context()))
		require.Empty(t, d.history("k"))
	})

	t.Run("ReplaysNeverHoldUpAnAnswer", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustRecord(t, l, mustClaim(t, l, purchase("k", 4900)))
		other, err := d.direct.Begin(t.Context())
		require.NoError(t, err)
		_, err = other.Exec(t.Context(), `LOCK TABLE key_history`) // no batch can be written
		require.NoError(t, err)
		for range replayBuffer {
			l.replays.add(purchase("k", 4900), row{Attempt: 1, Owner: "o"})
		}
		_, replay, err := l.Claim(t.Context(), purchase("k", 4900), nil)
		require.NoError(t, err)
		require.True(t, replay.Replayed)
		require.NoError(t, other.Rollback(t.Context()))
	})
}

// lines gives the history with what matters of each line.
func (d *database) lines(key Key) []string {
	d.t.Helper()
	return ask[[]string](d, `SELECT array_agg(concat_ws(' ', what, attempt, instance, detail->>'point', detail->>'status') ORDER BY at, id)
		FROM key_history WHERE key = $1`, key)
}
